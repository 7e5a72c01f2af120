#include "train/train_trace.h"

#include <algorithm>
#include <cstring>

#include "base/option.h"

namespace freshet::train {
namespace {

// What a process sends before its events.
struct Head {
  std::uint64_t spans = 0, dropped = 0;
};

}  // namespace

TrainTrace::TrainTrace(base::Files& files, base::Clock& clock, std::string path, int rank, int workers)
    : files_(files), clock_(clock), path_(std::move(path)), rank_(rank), origin_(clock.Now()) {
  for (int worker = 0; worker < workers; ++worker) recorders_.push_back(std::make_unique<base::Trace>(clock));
}

Result<std::unique_ptr<TrainTrace>> TrainTrace::Open(base::Files& files, base::Clock& clock, std::string path, int rank,
                                                     int workers) {
  std::unique_ptr<TrainTrace> trace(new TrainTrace(files, clock, std::move(path), rank, workers));
  if (rank == 0) {
    const auto written = trace->Write();
    if (!written.ok())
      return Error{written.error().code,
                   Str(Option("trace"), " ", trace->path_, ": cannot be written: ", written.error().text)};
  }
  return trace;
}

Result<void> TrainTrace::CompareClocks(fabric::Collectives& collectives) {
  first_ = last_ = TRY(fabric::CompareClocks(collectives, clock_));
  host_ = collectives.fabric().host(rank_);
  return collectives.Broadcast(std::as_writable_bytes(std::span(&origin_, 1)), 0);
}

Result<void> TrainTrace::Gather(fabric::Collectives& collectives) {
  last_ = TRY(fabric::CompareClocks(collectives, clock_));
  {
    fabric::Transfers transfers(collectives.fabric(), collectives.NextTag(), "gathering the trace");
    TRY(rank_ == 0 ? Receive(transfers) : Send(transfers));
  }
  return collectives.Barrier();  // nobody leaves before everything has arrived
}

Result<void> TrainTrace::GatherThose(fabric::Collectives& collectives) {
  rank_ = collectives.fabric().rank();
  others_.clear();  // of another attempt
  others_spans_ = others_dropped_ = 0;
  TRY(CompareClocks(collectives));
  return Gather(collectives);
}

Result<void> TrainTrace::Send(fabric::Transfers& transfers) const {
  const Head head{recorders_[0]->size(), recorders_[0]->dropped()};
  std::string message(reinterpret_cast<const char*>(&head), sizeof head);
  message += Events(0);
  TRY(transfers.SendAny(0, std::as_bytes(std::span(message.data(), message.size()))));
  return transfers.WaitAll();
}

Result<void> TrainTrace::Receive(fabric::Transfers& transfers) {
  for (int rank = 1; rank < transfers.size(); ++rank) {
    const auto handle = TRY(transfers.Borrow(rank));
    const fabric::Arrived arrived = TRY(transfers.Wait(handle));
    if (arrived.bytes < sizeof(Head))
      return Error{Code::kCorrupt, Str("rank ", rank, " runs another version of this program")};
    Head head;
    std::memcpy(&head, arrived.view.data(), sizeof head);
    others_.emplace_back(reinterpret_cast<const char*>(arrived.view.data()) + sizeof head,
                         arrived.view.size() - sizeof head);
    others_spans_ += head.spans;
    others_dropped_ += head.dropped;
    transfers.Release(handle);
  }
  return {};
}

std::string TrainTrace::Events(std::size_t worker) const {
  const base::Trace& recorder = *recorders_[worker];
  const auto rank = rank_ + static_cast<int>(worker);
  const auto error = std::max(first_.error, last_.error);
  const auto us = [](base::Clock::Duration time) { return Fixed(static_cast<double>(time.count()) / 1e3, 3); };
  std::vector<std::string> labels;
  if (rank_ > 0) labels.push_back(Str("clock ahead of rank 0's by ", us(last_.ahead), " us, ±", us(error), " us"));
  if (recorder.dropped() > 0) labels.push_back(Str(recorder.dropped(), " later spans left out"));
  return recorder.ToJson(
      rank, Str("rank ", rank, " on ", host_), Join(labels, "; "),
      [this](base::Clock::Duration time) { return fabric::OnRankZero(first_, last_, time) - origin_; });
}

Result<void> TrainTrace::Write() const {
  return base::WriteAtomic(files_, path_, [&](base::OutputFile& file) -> Result<void> {
    const char* separator = "[\n";
    const auto add = [&](const std::string& events) -> Result<void> {
      TRY(file.Write(separator));
      separator = ",\n";
      return file.Write(events);
    };
    for (std::size_t worker = 0; worker < recorders_.size(); ++worker) TRY(add(Events(worker)));
    for (const std::string& events : others_) TRY(add(events));
    return file.Write("\n]\n");
  });
}

std::uint64_t TrainTrace::spans() const {
  std::uint64_t sum = others_spans_;
  for (const auto& recorder : recorders_) sum += recorder->size();
  return sum;
}

std::uint64_t TrainTrace::dropped() const {
  std::uint64_t sum = others_dropped_;
  for (const auto& recorder : recorders_) sum += recorder->dropped();
  return sum;
}

}  // namespace freshet::train
