// Strangers at the port, of all kinds and many at a time: the group comes together and works all the same, and what
// they cost is bounded. FRESHET_STRANGERS says how many come (the slow suite: 10000).

#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <thread>

#include "base/random.h"
#include "fabric/collectives/collectives.h"
#include "fabric/tcp/bootstrap.h"
#include "fabric/tcp/tcp_testing.h"

namespace freshet::fabric {
namespace {

using tcp::Conduit;

// The address sanitizer keeps what was freed.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kCountsMemory = false;
#else
constexpr bool kCountsMemory = true;
#endif

int HowMany() {
  const char* const told = std::getenv("FRESHET_STRANGERS");
  return told != nullptr ? std::atoi(told) : 1200;
}

// One who comes to the port and is not wanted there.
class Stranger {
 public:
  enum Kind { kSilent, kGarbage, kSlow, kLong, kNoToken, kWrongToken, kOtherJob, kOtherGeneration, kTls, kKinds };

  Stranger(Kind kind, base::Descriptor socket, base::Random& random)
      : kind_(kind), badge_{.rank = 1, .size = 4, .job = "a test", .token = {}, .generation = 0} {
    badge_.token = TestOptions(1, 4).token;
    if (kind == kWrongToken || kind == kTls) badge_.token[3] ^= std::byte{1};
    if (kind == kOtherJob) badge_.job = "another";
    if (kind == kOtherGeneration) badge_.generation = 7;
    const auto keys = kind == kTls ? tcp::TlsKeys::Make(badge_.token).value() : nullptr;
    conduit_ = Conduit(std::move(socket), keys, tcp::TlsSession::Side::kDials);
    words_ = dialing_.Hello();
    if (kind == kGarbage || kind == kLong) words_.assign(kind == kLong ? 20'000 : random.Below(300), '\0');
    for (char& letter : words_)
      if (kind == kGarbage) letter = static_cast<char>(random.Next());
    if (kind == kLong) words_ = dialing_.Hello() + words_;
  }

  // Goes on as far as it can; false when it was sent away.
  bool Turn() {
    if (kind_ == kTls) return conduit_.Handshake().ok();
    if (kind_ != kSilent) {
      const iovec part{words_.data(), std::min<std::size_t>(words_.size(), kind_ == kSlow ? 1 : words_.size())};
      const auto sent = conduit_.Write({&part, 1});
      if (!sent.ok()) return false;
      words_.erase(0, sent.value());
    }
    char heard[1000];
    const iovec room{heard, sizeof heard};
    const auto got = conduit_.Read({&room, 1});
    if (!got.ok()) return false;
    heard_.append(heard, got.value());
    if (heard_.size() == tcp::kChallengeBytes && kind_ != kNoToken) {
      auto proof = dialing_.Prove(heard_, {"host", "", "127.0.0.1", 1});
      words_ = proof.ok() ? std::move(proof).value() : std::string(100, '\1');
      heard_.clear();
    }
    return true;
  }

 private:
  const Kind kind_;
  tcp::Badge badge_;
  tcp::Dialing dialing_{badge_, 0, tcp::NewNonce()};
  Conduit conduit_;
  std::string words_, heard_;
};

// A process of its own, so that what it holds open is not counted with the group's. Its crowd comes to the port until
// `count` have; a word from it says that half have, and then that all have.
void RunCrowd(int port, int count, int words) {
  base::SystemClock clock;
  base::Random random(1, "crowd");
  std::vector<std::unique_ptr<Stranger>> crowd;
  for (int come = 0; come < count || !crowd.empty();) {
    for (int i = 0; i < 20 && come < count && crowd.size() < 500; ++i, ++come) {
      auto socket = tcp::Connect({"127.0.0.1", port}, tcp::Deadline(clock, std::chrono::seconds(1)));
      if (socket.ok())
        crowd.push_back(std::make_unique<Stranger>(static_cast<Stranger::Kind>(random.Below(Stranger::kKinds)),
                                                   std::move(socket).value(), random));
      if (come == count / 2) (void)!::write(words, "h", 1);
    }
    std::erase_if(crowd, [](const auto& stranger) { return !stranger->Turn(); });
    if (come == count) clock.Sleep(std::chrono::milliseconds(5));
  }
  (void)!::write(words, "a", 1);
}

class Crowd {
 public:
  // Before this process has other threads: a child of one that has may never get the locks they held.
  explicit Crowd(int count) {
    CHECK(::pipe(ports_) == 0 && ::pipe(words_) == 0);
    child_ = ::fork();
    ::close(child_ == 0 ? ports_[1] : words_[1]);  // so that each learns of the other's death
    if (child_ != 0) return;
    int port = 0;
    if (::read(ports_[0], &port, sizeof port) == sizeof port) RunCrowd(port, count, words_[1]);
    ::_exit(0);
  }
  ~Crowd() {
    for (const int end : {ports_[0], ports_[1], words_[0]}) ::close(end);
    ::waitpid(child_, nullptr, 0);
  }
  void ComeTo(int port) { CHECK(::write(ports_[1], &port, sizeof port) == sizeof port); }
  // Until it has said the next thing.
  void Await() {
    char word;
    EXPECT_EQ(::read(words_[0], &word, 1), 1);
  }

 private:
  int ports_[2], words_[2];
  pid_t child_;
};

struct Holdings {
  int descriptors = 0;
  int listening = 0;
  long resident_kb = 0;
};
Holdings Look() {
  Holdings holdings;
  DIR* const all = ::opendir("/proc/self/fd");
  while (const dirent* const entry = ::readdir(all)) {
    int listens = 0;
    socklen_t size = sizeof listens;
    ::getsockopt(std::atoi(entry->d_name), SOL_SOCKET, SO_ACCEPTCONN, &listens, &size);
    ++holdings.descriptors;
    holdings.listening += listens;
  }
  ::closedir(all);
  long pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;
  holdings.resident_kb = pages * ::sysconf(_SC_PAGESIZE) / 1024;
  return holdings;
}

// Rank 1 is there at once, rank 2 comes through the crowd, rank 3 when all of it has been there. So the door is open
// all the while.
void ExpectNoHarm(bool tls) {
  const int count = HowMany();
  Crowd crowd(count);
  const Holdings before = Look();
  Holdings most;
  std::promise<void> half, all;
  std::thread watcher;
  base::SystemClock clock;
  int port = 0;
  Members members = ConnectAll(4, clock, [&](TcpOptions& options) {
    options.connect_timeout = std::chrono::seconds(100);
    options.tls = tls;
    if (options.rank == 2) half.get_future().wait();
    if (options.rank == 3) all.get_future().wait();
    if (options.rank != 0) return;
    options.listening = [&, told = options.listening](int number) -> Result<void> {
      port = number;
      crowd.ComeTo(number);
      TRY(told(number));
      watcher = std::thread([&] {
        crowd.Await();
        most = Look();
        half.set_value();
        crowd.Await();
        all.set_value();
      });
      return {};
    };
  });
  watcher.join();
  for (const auto& member : members) ASSERT_TRUE(member.ok()) << member.error().text;
  EXPECT_GT(members[0].value()->statistics().strangers, static_cast<std::uint64_t>(count / 2));
  EXPECT_LE(most.descriptors, before.descriptors + static_cast<int>(tcp::Door::kGuests) + 20);
  if (kCountsMemory) {
    EXPECT_LT(most.resident_kb, before.resident_kb + 40'000);
  }

  // And while the group works, nobody is there for them.
  EXPECT_EQ(Look().listening, 0);
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    for (int i = 0; i < count / 10; ++i)
      (void)tcp::Connect({"127.0.0.1", port}, tcp::Deadline(clock, std::chrono::seconds(1)));
  });
  for (auto& member : members)
    threads.emplace_back([&] {
      Collectives collectives(*member.value());
      for (int step = 0; step < 50; ++step) {
        std::vector<float> ones(20'000, 1.0F);
        ASSERT_TRUE(collectives.AllReduce(ones).ok());
        ASSERT_EQ(ones, std::vector<float>(ones.size(), 4.0F));
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(Strangers, DoNotDisturbTheGroupAndCostLittle) { ExpectNoHarm(false); }
TEST(Strangers, DoNotDisturbTheGroupUnderTlsAndCostLittle) { ExpectNoHarm(true); }

}  // namespace
}  // namespace freshet::fabric
