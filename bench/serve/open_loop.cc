// An open-loop client of an HTTP server: requests go out by a fixed schedule, whether the answers of earlier ones have
// come or not, and the time of each counts from the moment it should have gone out. So a server that stalls is charged
// for everybody who would have waited, which a client that waits for its answers (wrk) does not notice.
//
//   open_loop --port N --rate R [--seconds 10] [--connections 64] [--warm-up 1] --path /v2/… --body FILE
//
// One thread, keep-alive connections, one request at a time on each; what finds all of them busy waits its turn. Prints
// one JSON object: how many were sent, how many failed (another status than 200, another body than the first answer's
// length allows, a lost connection), and quantiles of the time in microseconds.

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Micros = std::chrono::duration<double, std::micro>;

[[noreturn]] void Fail(const std::string& text) {
  std::fprintf(stderr, "open_loop: %s\n", text.c_str());
  std::exit(1);
}

struct Options {
  int port = 0, connections = 64;
  double rate = 0, seconds = 10, warm_up = 1;
  std::string path, body;
};

Options Parse(int argc, char** argv) {
  Options options;
  std::map<std::string, std::string> flags;
  for (int i = 1; i + 1 < argc; i += 2) flags[argv[i]] = argv[i + 1];
  const auto number = [&](const char* name, double otherwise) {
    return flags.contains(name) ? std::atof(flags[name].c_str()) : otherwise;
  };
  options.port = static_cast<int>(number("--port", 0));
  options.connections = static_cast<int>(number("--connections", 64));
  options.rate = number("--rate", 0);
  options.seconds = number("--seconds", 10);
  options.warm_up = number("--warm-up", 1);
  options.path = flags["--path"];
  std::ifstream file(flags["--body"], std::ios::binary);
  options.body = {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (options.port <= 0 || options.rate <= 0 || options.path.empty() || options.body.empty())
    Fail("wanted: --port N --rate R --path /… --body FILE");
  return options;
}

// The times of requests by how long they took, in buckets two per cent apart.
class Times {
 public:
  void Add(double micros) {
    const auto bucket = static_cast<std::size_t>(std::max(0.0, std::log(std::max(micros, 1.0)) / kStep));
    ++counts_[std::min(bucket, counts_.size() - 1)];
    ++total_;
    most_ = std::max(most_, micros);
  }
  double Quantile(double share) const {
    std::uint64_t below = 0;
    for (std::size_t b = 0; b < counts_.size(); ++b) {
      below += counts_[b];
      if (static_cast<double>(below) >= share * static_cast<double>(total_))
        return std::min(most_, std::exp(static_cast<double>(b + 1) * kStep));
    }
    return most_;
  }
  std::uint64_t total() const { return total_; }
  double most() const { return most_; }

 private:
  static constexpr double kStep = 0.02;
  std::vector<std::uint64_t> counts_ = std::vector<std::uint64_t>(1200);  // up to e^24 microseconds
  std::uint64_t total_ = 0;
  double most_ = 0;
};

struct Connection {
  int socket = -1;
  bool busy = false;
  Clock::time_point intended;
  std::string received;
};

class Load {
 public:
  explicit Load(const Options& options)
      : options_(options), poller_(epoll_create1(0)), connections_(static_cast<std::size_t>(options.connections)) {
    request_ = "POST " + options.path +
               " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
               std::to_string(options.body.size()) + "\r\n\r\n" + options.body;
    for (std::size_t c = 0; c < connections_.size(); ++c) Connect(c);
  }

  void Run() {
    const auto start = Clock::now();
    const auto interval = std::chrono::duration<double>(1 / options_.rate);
    const auto total = static_cast<std::uint64_t>((options_.seconds + options_.warm_up) * options_.rate);
    const auto warm = static_cast<std::uint64_t>(options_.warm_up * options_.rate);
    const auto due = [&](std::uint64_t n) {
      return start + std::chrono::duration_cast<Clock::duration>(static_cast<double>(n) * interval);
    };
    measured_from_ = due(warm);
    std::uint64_t next = 0;
    const auto give_up = due(total) + std::chrono::seconds(10);
    while (next < total || !waiting_.empty() || busy_ > 0) {
      const auto now = Clock::now();
      if (now > give_up) break;
      for (; next < total && due(next) <= now; ++next) waiting_.push_back(due(next));
      while (!waiting_.empty() && !free_.empty()) SendNext();
      Wait(next < total ? due(next) - Clock::now() : std::chrono::milliseconds(100));
    }
    failed_ += busy_ + waiting_.size();
    std::printf(
        "{\"sent\": %llu, \"failed\": %llu, \"p50_us\": %.0f, \"p90_us\": %.0f, \"p99_us\": %.0f, "
        "\"p999_us\": %.0f, \"max_us\": %.0f}\n",
        static_cast<unsigned long long>(times_.total()), static_cast<unsigned long long>(failed_), times_.Quantile(0.5),
        times_.Quantile(0.9), times_.Quantile(0.99), times_.Quantile(0.999), times_.most());
  }

 private:
  void Connect(std::size_t c) {
    Connection& connection = connections_[c];
    connection.socket = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(options_.port));
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    if (connect(connection.socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      Fail("nobody listens on port " + std::to_string(options_.port));
    const int yes = 1;
    setsockopt(connection.socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    fcntl(connection.socket, F_SETFL, O_NONBLOCK);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = c;
    epoll_ctl(poller_, EPOLL_CTL_ADD, connection.socket, &event);
    connection.received.clear();
    connection.busy = false;
    free_.push_back(c);
  }

  void SendNext() {
    const std::size_t c = free_.back();
    free_.pop_back();
    Connection& connection = connections_[c];
    connection.intended = waiting_.front();
    waiting_.pop_front();
    connection.busy = true;
    ++busy_;
    // Small beside the socket's buffer, which is empty: it goes out whole or the connection is lost.
    if (send(connection.socket, request_.data(), request_.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(request_.size()))
      Lost(c);
  }

  void Wait(Clock::duration most) {
    const auto nanos = std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::nanoseconds>(most).count());
    const timespec timeout{nanos / 1'000'000'000, nanos % 1'000'000'000};
    epoll_event events[64];
    const int count = epoll_pwait2(poller_, events, 64, &timeout, nullptr);
    for (int i = 0; i < count; ++i) Receive(events[i].data.u64);
  }

  void Receive(std::size_t c) {
    Connection& connection = connections_[c];
    char bytes[16 << 10];
    const ssize_t got = recv(connection.socket, bytes, sizeof bytes, 0);
    if (got <= 0) {
      if (got < 0 && errno == EAGAIN) return;
      return Lost(c);
    }
    connection.received.append(bytes, static_cast<std::size_t>(got));
    const std::string_view all = connection.received;
    const std::size_t head = all.find("\r\n\r\n"), at = all.find("Content-Length: ");
    if (head == all.npos) return;
    std::size_t length = 0;
    if (at == all.npos) return Lost(c);
    std::from_chars(all.data() + at + 16, all.data() + head, length);
    if (all.size() < head + 4 + length) return;
    const bool right =
        all.starts_with("HTTP/1.1 200 ") && all.size() == head + 4 + length && all.find("\"model_name\"") != all.npos;
    const bool counts = connection.intended >= measured_from_;
    if (!right) ++failed_;
    if (counts) times_.Add(Micros(Clock::now() - connection.intended).count());
    connection.received.clear();
    connection.busy = false;
    --busy_;
    free_.push_back(c);
  }

  void Lost(std::size_t c) {
    if (connections_[c].busy) ++failed_, --busy_;
    std::erase(free_, c);
    close(connections_[c].socket);
    Connect(c);
  }

  const Options options_;
  const int poller_;
  std::string request_;
  std::vector<Connection> connections_;
  std::vector<std::size_t> free_;
  std::deque<Clock::time_point> waiting_;  // when they should have gone out
  std::uint64_t busy_ = 0, failed_ = 0;
  Clock::time_point measured_from_;
  Times times_;
};

}  // namespace

int main(int argc, char** argv) {
  Load(Parse(argc, argv)).Run();
  return 0;
}
