// What one server of parameters and one worker can do: round trips for one row, rows pushed in lists, bytes of dense
// gradients. Times are of the parts that a training uses (Letterbox, Shard), with plain SGD; answers are checked.
//
// Beside them what the machine's memory lets through in the same run.
//
//   server_bench threads|memfd|sockets [SECONDS]
//   server_bench --tiny
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <thread>

#include "base/clock.h"
#include "base/random.h"
#include "fabric/collectives/collectives.h"
#include "fabric/tcp/tcp_fabric.h"
#include "fabric/threads/threads_fabric.h"
#include "model/network/description.h"
#include "model/network/zoo.h"
#include "strategy/letterbox.h"
#include "strategy/server/shard.h"

namespace freshet::bench {
namespace {

using strategy::Letterbox;
using namespace strategy::server;

[[noreturn]] void Die(const std::string& why) {
  std::fprintf(stderr, "server_bench: %s\n", why.c_str());
  std::exit(1);
}
template <class T>
T Must(Result<T> result) {
  if (!result.ok()) Die(result.error().text);
  return std::move(result).value();
}
void Must(const Result<void>& result) {
  if (!result.ok()) Die(result.error().text);
}

constexpr std::uint64_t kRows = 1 << 22;
constexpr fabric::Tag kAnswers = 7;

struct Subject {
  std::unique_ptr<model::Model> model;
  std::size_t block = 0;
  std::uint64_t rows = 0, width = 1;
};

// A linear model of many features, or a network with a wide layer.
Subject Sparse() {
  model::ModelConfig config;
  config.loss = "squared";
  return {Must(model::Model::Make(config)), 0, kRows, 1};
}
Subject Dense(std::int64_t width) {
  model::network::Graph graph({width});
  graph.AddHead(graph.Dense(0, width, "wide"));
  model::ModelConfig config;
  config.kind = "network";
  config.loss = "softmax";
  config.dense = true;
  config.features = config.classes = static_cast<std::uint64_t>(width);
  config.network = ToToml(graph);
  Subject subject{Must(model::Model::Make(config))};
  const auto blocks = subject.model->Blocks();
  for (std::size_t b = 0; b < blocks.size(); ++b)
    if (blocks[b].rows * blocks[b].width > subject.rows * subject.width)
      subject.block = b, subject.rows = blocks[b].rows, subject.width = blocks[b].width;
  return subject;
}

// The server's side: answers until the worker has gone.
class Host {
 public:
  Host(fabric::Fabric& fabric, const Subject& subject) : fabric_(fabric) {
    optimize::OptimizerOptions rule;
    rule.kind = "sgd";
    rule.schedule.rate = 1;
    const auto optimizer = Must(optimize::Optimizer::Make(rule, memory_));
    auto start = Must(subject.model->NewParameters(memory_));
    std::vector<std::uint64_t> rows(start.blocks(), 0);
    rows[subject.block] = subject.rows;
    Must(subject.model->MakeRoom(start, rows));
    Must(optimizer->Follow(start));
    shard_ =
        Must(Shard::Make({.synchrony = Must(Synchrony::Parse("bap"))}, *subject.model, start, *optimizer, memory_));
    letters_ = std::make_shared<Letterbox>(
        fabric, 5, [this](int from, std::span<const std::byte> bytes) { return Serve(from, bytes); });
    letters_->Open();
  }
  ~Host() { letters_->End(); }
  void Close() { Must(letters_->CloseTogether()); }

 private:
  Result<bool> Serve(int from, std::span<const std::byte> bytes) {
    for (Shard::Answer& answer : TRY(shard_->On(from, bytes, {}))) {
      sent_ = std::move(answer.bytes);
      TRY(fabric_.Send(answer.to, kAnswers, sent_));
    }
    return true;
  }
  fabric::Fabric& fabric_;
  optimize::HeapMemory memory_;
  std::unique_ptr<Shard> shard_;
  std::shared_ptr<Letterbox> letters_;
  std::vector<std::byte> sent_;
};

class Client {
 public:
  Client(fabric::Fabric& fabric, const Subject& subject, double seconds)
      : fabric_(fabric), subject_(subject), seconds_(seconds), letters_(std::make_shared<Letterbox>(fabric, 5)) {
    letters_->Open();
  }

  // So many a second, of what `once` does `of` at a time.
  template <class Once>
  double Rate(double of, const Once& once) {
    once();
    Settle();
    double done = 0;
    const auto begun = clock_.Now();
    while (base::Seconds(clock_.Now() - begun) < seconds_) {
      once();
      done += of;
    }
    Settle();
    return done / base::Seconds(clock_.Now() - begun);
  }

  float PullOne(std::uint32_t row) {
    Writer writer(PullHead{.parcels = 1});
    writer.Begin({.block = Block(), .form = Parcel::Form::kRows, .count = 1}, std::span(&row, 1));
    Must(letters_->Send(1, writer.Take()));
    return Answer();
  }
  void Push(std::span<const std::uint32_t> rows) {
    Writer writer(PushHead{.parcels = 1, .clock = clock_of_worker_++, .weight = 1});
    writer.Begin({.block = Block(), .form = Parcel::Form::kRows, .count = rows.size()}, rows);
    std::fill_n(writer.Floats(rows.size()), rows.size(), 1.0f);
    Must(letters_->Send(1, writer.Take()));
    Must(letters_->AwaitTaken(4));
  }
  void PushDense() {
    Writer writer(PushHead{.parcels = 1, .clock = clock_of_worker_++, .weight = 1});
    writer.Begin({.block = Block(), .count = subject_.rows});
    const std::size_t count = subject_.rows * subject_.width;
    std::fill_n(writer.Floats(count), count, 1.0f);
    Must(letters_->Send(1, writer.Take()));
    Must(letters_->AwaitTaken(2));
  }
  void Settle() {
    Must(letters_->Send(1, Writer(AwayHead{}).Take()));
    (void)Answer();
  }
  void Close() { Must(letters_->CloseTogether()); }
  std::uint64_t pushes() const { return clock_of_worker_; }
  const base::SystemClock& clock() const { return clock_; }

 private:
  std::uint32_t Block() const { return static_cast<std::uint32_t>(subject_.block); }
  float Answer() {
    const auto transfer = Must(fabric_.StartBorrow(1, kAnswers));
    const auto arrived = Must(fabric_.Wait(transfer, std::chrono::minutes(1)));
    float value = 0;
    if (arrived.view.size() >= sizeof(AnswerHead) + sizeof value)
      std::memcpy(&value, arrived.view.data() + sizeof(AnswerHead), sizeof value);
    fabric_.Release(transfer);
    Must(letters_->AwaitTaken(64));
    return value;
  }
  fabric::Fabric& fabric_;
  const Subject& subject_;
  const double seconds_;
  base::SystemClock clock_;
  std::shared_ptr<Letterbox> letters_;
  std::uint64_t clock_of_worker_ = 0;
};

void CheckNear(double got, double want, const char* what) {
  if (!(std::abs(got - want) <= 1e-3 * std::abs(want) + 1e-3)) Die(Str(what, ": ", got, ", expected ", want));
}

void RunSparse(fabric::Fabric& fabric, double seconds) {
  const Subject subject = Sparse();
  fabric::Collectives all(fabric);
  std::optional<Host> host;
  if (fabric.rank() == 1) host.emplace(fabric, subject);
  Must(all.Barrier());
  if (fabric.rank() == 0) {
    Client client(fabric, subject, seconds);
    std::printf("{\"round_trips\":%.0f", client.Rate(1, [&] { (void)client.PullOne(17); }));
    base::Random random(1, "keys");
    for (const std::size_t count : {std::size_t{1000}, std::size_t{100'000}}) {
      std::vector<std::uint32_t> rows(count);
      for (std::size_t i = 0; i < count; ++i)
        rows[i] = static_cast<std::uint32_t>(i * (kRows / count) + random.Below(kRows / count));
      const double before = client.PullOne(rows[3]);
      const std::uint64_t pushes = client.pushes();
      std::printf(",\"keys_in_%zu\":%.0f", count, client.Rate(static_cast<double>(count), [&] { client.Push(rows); }));
      CheckNear(client.PullOne(rows[3]), before - static_cast<double>(client.pushes() - pushes),
                "a row that was pushed");
    }
    client.Close();
  } else {
    host->Close();
  }
  Must(all.Barrier());
}

// Bytes of gradients a second that the machine's memory lets through, whatever brings them: one thread writes them as
// another subtracts those of before from parameters, without a word between the two.
double MemoryLimit(std::size_t floats, double seconds) {
  std::vector<float> letter(floats), gradient(floats, 1e-6f), parameters(floats, 0.0f);
  const base::SystemClock clock;
  const auto rate = [&](const auto& once) {
    double done = 0;
    const auto begun = clock.Now();
    while (base::Seconds(clock.Now() - begun) < seconds) {
      once(static_cast<float>(done));
      done += static_cast<double>(floats * sizeof(float));
    }
    return done / base::Seconds(clock.Now() - begun);
  };
  double written = 0;
  std::thread writes([&] { written = rate([&](float value) { std::fill(letter.begin(), letter.end(), value); }); });
  const double applied = rate([&](float) {
    for (std::size_t i = 0; i < floats; ++i) parameters[i] -= gradient[i];
  });
  writes.join();
  if (!(parameters[floats / 2] < 0) || letter[0] != letter[floats - 1]) Die("memory does not keep what is written");
  return std::min(written, applied);
}

void RunDense(fabric::Fabric& fabric, double seconds, std::int64_t width) {
  const Subject subject = Dense(width);
  fabric::Collectives all(fabric);
  std::optional<Host> host;
  if (fabric.rank() == 1) host.emplace(fabric, subject);
  Must(all.Barrier());
  if (fabric.rank() == 0) {
    Client client(fabric, subject, seconds);
    const double before = client.PullOne(0);
    const double bytes = static_cast<double>(subject.rows * subject.width * sizeof(float));
    std::printf(",\"dense_bytes\":%.0f", client.Rate(bytes, [&] { client.PushDense(); }));
    CheckNear(client.PullOne(0), before - static_cast<double>(client.pushes()), "a dense row");
    client.Close();
  } else {
    host->Close();
  }
  Must(all.Barrier());
  if (fabric.rank() == 0)
    std::printf(",\"memory_bytes\":%.0f}\n",
                MemoryLimit(static_cast<std::size_t>(subject.rows * subject.width), seconds));
}

void RunAll(fabric::Fabric& fabric, double seconds, std::int64_t width) {
  RunSparse(fabric, seconds);
  RunDense(fabric, seconds, width);
}

int RunTcp(bool shared_memory, double seconds) {
  int ports[2];
  if (::pipe(ports) != 0) Die("cannot make a pipe");
  std::fflush(stdout);
  const pid_t child = ::fork();
  fabric::TcpOptions options;
  options.rank = child == 0 ? 1 : 0;
  options.size = 2;
  options.job = "bench";
  options.token.fill(std::byte{0x5a});
  options.shared_memory = shared_memory;
  int port = 0;
  if (options.rank == 1 && ::read(ports[0], &port, sizeof port) != sizeof port) Die("rank 0 has no port");
  options.rendezvous = Str("127.0.0.1:", port);
  options.listening = [&](int number) -> Result<void> {
    if (::write(ports[1], &number, sizeof number) != sizeof number) Die("cannot tell the port");
    return {};
  };
  base::SystemClock clock;
  {
    const auto fabric = Must(fabric::TcpFabric::Connect(options, clock));
    RunAll(*fabric, seconds, 2048);
  }
  if (child == 0) std::_Exit(0);
  int status = 0;
  ::waitpid(child, &status, 0);
  return status == 0 ? 0 : 1;
}

void RunThreads(double seconds, std::int64_t width) {
  const base::SystemClock clock;
  fabric::ThreadsGroup group(2, clock);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < 2; ++rank) threads.emplace_back([&, rank] { RunAll(group.member(rank), seconds, width); });
}

int Main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const double seconds = argc > 2 ? std::atof(argv[2]) : 1;
  if (what == "--tiny")
    RunThreads(0.01, 64);
  else if (what == "threads")
    RunThreads(seconds, 2048);
  else if (what == "memfd" || what == "sockets")
    return RunTcp(what == "memfd", seconds);
  else
    Die("expected threads, memfd, sockets or --tiny");
  return 0;
}

}  // namespace
}  // namespace freshet::bench

int main(int argc, char** argv) { return freshet::bench::Main(argc, argv); }
