// Strangers at the port of a training: from before it begins until it has ended, they change nothing.

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "process_testing.h"

namespace freshet::cli {
namespace {

using Arguments = std::vector<std::string>;

// Comes to the port again and again with nothing, garbage, the beginning of a hello, or TLS, and lingers; says how
// often it was let in to speak.
int Disturb(int port, const std::atomic<bool>& stop) {
  const std::string words[] = {"", std::string(300, '\xee'), "FRSHTCP1", std::string("\x16\x03\x01\x02", 4),
                               "GET / HTTP/1.1\r\n\r\n"};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int heard = 0;
  std::vector<int> lingering;
  for (std::size_t i = 0; !stop; ++i) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
      ++heard;
      const std::string& said = words[i % std::size(words)];
      (void)!send(fd, said.data(), said.size(), MSG_NOSIGNAL);
    } else {
      usleep(1000);
    }
    lingering.push_back(fd);
    if (lingering.size() < 200) continue;
    for (const int old : lingering) close(old);
    lingering.clear();
  }
  for (const int old : lingering) close(old);
  return heard;
}

TEST(StrangersAtATraining, ChangeNothing) {
  const base::ScratchDirectory scratch;
  const auto run = [&](const Arguments& arguments) { return Process(scratch, arguments, {}).Wait(); };
  ASSERT_EQ(run({"data", "generate", "--kind", "sea", "--rows", "6000", "-o", "sea.csv"}).code, 0);
  for (const bool tls : {false, true}) {
    const auto train = [&](const std::string& output, int port) {
      Arguments arguments = {"launch", "-n",    "3",       "--rendezvous", Str("127.0.0.1:", port),
                             "--",     "train", "sea.csv", "--quiet",      "--batch",
                             "30",     "-o",    output};
      if (tls) arguments.emplace_back("--tls");
      const Finished finished = run(arguments);
      EXPECT_EQ(finished.code, 0) << finished.err;
      return scratch.Read(output);
    };
    const int port = FreePort();
    const std::string alone = train("alone.model", port);
    std::atomic<bool> stop = false;
    int heard = 0;
    std::thread stranger([&] { heard = Disturb(port, stop); });
    EXPECT_EQ(train("disturbed.model", port), alone);
    stop = true;
    stranger.join();
    EXPECT_GT(heard, 0);
  }
}

}  // namespace
}  // namespace freshet::cli
