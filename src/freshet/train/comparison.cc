#include "train/comparison.h"

#include <algorithm>
#include <charconv>

#include "base/option.h"
#include "base/random.h"
#include "base/thread.h"
#include "base/thread_pool.h"
#include "fabric/threads/threads_fabric.h"
#include "simulate/calibrate.h"
#include "simulate/costed_model.h"
#include "simulate/subject.h"
#include "strategy/server/synchrony.h"
#include "train/belonging.h"

namespace freshet::train {
namespace {

// Every row takes the same time.
class RowCosts final : public simulate::Costs {
 public:
  RowCosts(double row_seconds, std::size_t blocks) : row_seconds_(row_seconds), blocks_(blocks) {}
  simulate::StepCost Of(std::size_t rows, int) const override {
    const double compute = row_seconds_ * static_cast<double>(rows);
    return {.finished = std::vector<double>(blocks_, compute), .compute = compute, .apply = 0};
  }

 private:
  const double row_seconds_;
  const std::size_t blocks_;
};

// One worker of a course: its model takes the time it is to take, and tells how it does.
class Runner {
 public:
  Runner(const Arena& arena, int rank, base::Clock& clock, fabric::sim::Cores* cores,
         std::vector<Course::Moment>* moments)
      : arena_(arena),
        rank_(rank),
        clock_(clock),
        cores_(cores),
        moments_(moments),
        random_(static_cast<std::uint64_t>(rank) + 1, "straggler") {}

  Result<Outcome> Run(const base::Env& env, optimize::Memory& memory, const Job& job,
                      std::unique_ptr<fabric::Fabric> fabric, const std::atomic<bool>* stop) {
    fabric_ = fabric.get();
    Around around;
    around.fabric = std::move(fabric);
    around.stop = stop;
    around.dressed = [this](const model::Model& model) -> const model::Model& { return Dress(model); };
    around.progress = [this](const Progress& progress) {
      if (progress.fraction) epochs_ = *progress.fraction * progress.epochs;
    };
    return train::Run(env, memory, job, std::move(around));
  }

 private:
  const model::Model& Dress(const model::Model& model) {
    const bool costs = cores_ != nullptr || arena_.straggler.times > 1;
    costs_.emplace(costs ? arena_.row_price.Of(model) : 0, model.Blocks().size());
    dressed_.emplace(
        model, *costs_, simulate::CostedModel::Values::kReal,
        [this](double seconds, int threads) { Spend(seconds, threads); },
        [this](double loss, std::size_t rows) { Tell(loss, rows); }, arena_.workers);
    return *dressed_;
  }

  // Simulated cores work as long as is said; real ones have worked already, and rest for what is missing.
  void Spend(double seconds, int threads) {
    if (!(seconds > 0)) return;
    const Straggler& slow = arena_.straggler;
    const bool now = slow.rank == rank_ || (slow.one_in > 0 && random_.Below(slow.one_in) == 0);
    const double times = now ? slow.times : 1;
    if (cores_ != nullptr)
      cores_->Work(times * seconds, threads);
    else if (times > 1)
      clock_.Sleep(
          std::chrono::duration_cast<base::Clock::Duration>(std::chrono::duration<double>((times - 1) * seconds)));
  }

  void Tell(double loss, std::size_t rows) {
    if (moments_ == nullptr) return;
    moments_->push_back({base::Seconds(clock_.Now()), epochs_,
                         static_cast<double>(fabric_->bytes_sent() + fabric_->bytes_shared()), loss,
                         static_cast<double>(rows)});
  }

  const Arena& arena_;
  const int rank_;
  base::Clock& clock_;
  fabric::sim::Cores* const cores_;
  std::vector<Course::Moment>* const moments_;
  base::Random random_;
  fabric::Fabric* fabric_ = nullptr;
  double epochs_ = 0;
  std::optional<RowCosts> costs_;
  std::optional<simulate::CostedModel> dressed_;
};

}  // namespace

double RowPrice::Of(const model::Model& model) {
  const base::Lock lock(mutex_);
  if (seconds_ > 0) return seconds_;
  constexpr std::size_t kRows = 64;
  const base::SystemClock clock;
  const simulate::DrawnRows drawn(model, kRows, 1);
  const auto cost = simulate::MeasureBatch(model, drawn.batch(), 1, clock, 0.05);
  return seconds_ = std::max(cost.ok() ? cost.value().compute / kRows : 0, 1e-9);
}

void Contender::Enter(Together& together) const {
  strategy::StrategyOptions& how = together.strategy;
  how.kind = strategy;
  how.backup = backup;
  how.synchrony = synchrony;
  if (detail.empty()) return;
  if (strategy == "allreduce") together.topology = detail;
  if (strategy == "average") how.every = std::strtoull(detail.c_str(), nullptr, 10);
  if (strategy == "groups") how.group = std::atoi(detail.c_str());
  if (strategy == "gossip") how.gossip = detail;
}

Result<Contender> Contender::Parse(std::string_view text) {
  Contender contender{.name = std::string(text), .strategy = {}, .detail = {}};
  const std::string_view whole = text;
  if (const std::size_t plus = text.find('+'); plus != std::string_view::npos) {
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data() + plus + 1, end, contender.backup);
    text = read.ec == std::errc{} && read.ptr == end && contender.backup >= 1 ? text.substr(0, plus) : "";
  }
  if (!text.empty() && strategy::server::Synchrony::Parse(text).ok()) {
    contender.strategy = "server";
    contender.synchrony = text;
    if (contender.backup == 0 || text == "bsp") return contender;
  }
  const std::size_t colon = text.find(':');
  contender.strategy = text.substr(0, colon);
  if (colon != std::string_view::npos) contender.detail = text.substr(colon + 1);
  if (const std::size_t mode = contender.detail.find(':');
      contender.strategy == "groups" && mode != std::string::npos) {
    contender.synchrony = contender.detail.substr(mode + 1);
    contender.detail.resize(strategy::server::Synchrony::Parse(contender.synchrony).ok() ? mode : 0);
    if (contender.detail.empty() || contender.synchrony.empty()) contender.strategy.clear();
  }
  const auto among = [&](const std::vector<std::string>& names) {
    return contender.detail.empty() || std::find(names.begin(), names.end(), contender.detail) != names.end();
  };
  int number = 1;
  const std::string& detail = contender.detail;
  const bool counts = detail.empty() || (std::from_chars(detail.data(), detail.data() + detail.size(), number).ptr ==
                                             detail.data() + detail.size() &&
                                         number >= 1);
  const std::string& strategy = contender.strategy;
  if ((strategy == "allreduce" && among(fabric::AlgorithmNames())) ||
      (contender.backup == 0 && (((strategy == "average" || strategy == "groups") && counts) ||
                                 (strategy == "gossip" && among({"pairs", "push-sum", "walk"})) || text == "ring")))
    return contender;
  return Error{Code::kInvalid,
               Str(Option("strategies"), ": found ", Quoted(whole),
                   ", expected bsp, ssp:N, asp:X or bap (of a parameter server), allreduce or allreduce:TOPOLOGY, "
                   "average:N, groups:N or groups:N:MODE (through a server), gossip, gossip:HOW or ring; of bsp and "
                   "allreduce with +N: does not wait for the N "
                   "slowest")};
}

Result<Straggler> Straggler::Parse(std::string_view text) {
  Straggler straggler;
  if (text.empty()) return straggler;
  const auto read = [](std::string_view part, auto& to) {
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), to);
    return error == std::errc{} && end == part.data() + part.size();
  };
  const std::size_t x = text.find('x');
  const bool always = x != std::string_view::npos && text.substr(x, 2) == "x@";
  const bool sometimes = x != std::string_view::npos && text.substr(x, 2) == "x/";
  const bool told = (always && read(text.substr(x + 2), straggler.rank) && straggler.rank >= 0) ||
                    (sometimes && read(text.substr(x + 2), straggler.one_in) && straggler.one_in >= 1);
  if (!told || !read(text.substr(0, x), straggler.times) || !(straggler.times >= 1) || straggler.times > 1e6)
    return Error{Code::kInvalid, Str(Option("straggler"), ": found ", Quoted(text),
                                     ", expected 2x@1 (rank 1 takes twice as long) or 4x/10 (each takes four times as "
                                     "long in one step of ten)")};
  return straggler;
}

Result<Course> RunCourse(const base::Env& env, const Job& job, const Contender& contender, const Arena& arena,
                         const std::atomic<bool>* stop) {
  Job entered = job;
  contender.Enter(entered.together);
  DropForeign(entered.together);  // what was given for others
  Course course;
  course.name = contender.name;
  optimize::HeapMemory memory;  // of what they make
  std::vector<std::optional<Result<Outcome>>> outcomes(static_cast<std::size_t>(arena.workers));
  const auto run = [&](int rank, base::Clock& clock, fabric::sim::Cores* cores,
                       std::unique_ptr<fabric::Fabric> fabric) {
    base::ThreadPool pool(1, &clock);
    const base::Env own{env.files, clock, env.log, pool, env.faults};
    Runner runner(arena, rank, clock, cores, rank == 0 ? &course.moments : nullptr);
    outcomes[static_cast<std::size_t>(rank)] = runner.Run(own, memory, entered, std::move(fabric), stop);
  };
  if (arena.platform != nullptr) {
    arena.flows->Restart();
    fabric::SimOptions quiet;
    quiet.heartbeat = std::chrono::hours(24);  // nobody dies here
    quiet.wait_timeout = std::chrono::hours(24 * 365);
    fabric::sim::Cluster cluster({.platform = *arena.platform, .nodes = arena.workers, .fabric = quiet}, *arena.flows);
    cluster.Run([&](fabric::sim::Cluster::Member& member) {
      run(member.rank(), member.clock(), &member.cores(), member.Connect());
    });
  } else {
    fabric::ThreadsGroup group(arena.workers, env.clock, {.timeout = std::chrono::minutes(10)});
    std::vector<base::Thread> threads;
    for (int rank = 0; rank < arena.workers; ++rank)
      threads.emplace_back(env.clock, [&, rank] { run(rank, env.clock, nullptr, group.Take(rank)); });
    for (base::Thread& thread : threads) thread.Join();
  }
  for (const auto& outcome : outcomes)  // the first cause, not those who lost a peer by it
    if (!outcome->ok() && outcome->error().code != Code::kPeerLost) return outcome->error();
  Outcome first = TRY(std::move(*outcomes[0]));
  course.report = std::move(first.report);
  course.workers = std::move(first.workers);
  for (const WorkerReport& worker : course.workers) course.bytes += worker.times.bytes_sent + worker.times.bytes_shared;
  if (course.moments.empty()) return Error{Code::kBadInput, "no rows to learn from"};
  const double begun = course.moments.front().seconds;
  for (Course::Moment& moment : course.moments) moment.seconds -= begun;
  course.seconds = course.moments.back().seconds;
  return course;
}

}  // namespace freshet::train
