// Sums by Gloo's algorithms over TCP, for fabric_bench.py.
//
// Not pinned: its ranks have a second thread each, which must not wait for the first one's core.
//
//   peer_gloo ring|bcube|halving_doubling EMPTY_DIRECTORY RANKS SECONDS BYTES…
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <exception>

#include "contest.h"

namespace {

class GlooMember final : public freshet::bench::Member {
 public:
  GlooMember(std::shared_ptr<gloo::Context> context, std::string algorithm)
      : context_(std::move(context)), algorithm_(std::move(algorithm)) {}
  int rank() const override { return context_->rank; }
  int size() const override { return context_->size; }

  void Sum(std::span<float> values) override {
    if (algorithm_ == "halving_doubling") return SumByHalving(values);
    gloo::AllreduceOptions options(context_);
    options.setOutput(values.data(), values.size());
    options.setAlgorithm(algorithm_ == "ring" ? gloo::AllreduceOptions::Algorithm::RING
                                              : gloo::AllreduceOptions::Algorithm::BCUBE);
    using Reduce = void (*)(void*, const void*, const void*, std::size_t);
    options.setReduceFunction(static_cast<Reduce>(&gloo::sum<float>));
    gloo::allreduce(options);
  }

  void Meet() override {
    gloo::BarrierOptions options(context_);
    gloo::barrier(options);
  }

  void TakeFromFirst(std::span<std::byte> bytes) override {
    gloo::BroadcastOptions options(context_);
    options.setOutput(reinterpret_cast<char*>(bytes.data()), bytes.size());
    options.setRoot(0);
    gloo::broadcast(options);
  }

 private:
  // An older form that is made ready for one buffer and then run many times.
  void SumByHalving(std::span<float> values) {
    if (halving_ == nullptr || ready_for_.data() != values.data() || ready_for_.size() != values.size()) {
      halving_ = std::make_unique<gloo::AllreduceHalvingDoubling<float>>(context_, std::vector<float*>{values.data()},
                                                                         static_cast<int>(values.size()));
      ready_for_ = values;
    }
    halving_->run();
  }

  const std::shared_ptr<gloo::Context> context_;
  const std::string algorithm_;
  std::unique_ptr<gloo::AllreduceHalvingDoubling<float>> halving_;
  std::span<float> ready_for_;
};

void Run(int rank, const std::string& algorithm, const std::string& directory, const freshet::bench::Task& task) {
  gloo::transport::tcp::attr address("127.0.0.1");
  auto device = gloo::transport::tcp::CreateDevice(address);
  gloo::rendezvous::FileStore store(directory);
  const auto context = std::make_shared<gloo::rendezvous::Context>(rank, task.ranks);
  context->setTimeout(std::chrono::seconds(60));
  context->connectFullMesh(store, device);
  GlooMember member(context, algorithm);
  freshet::bench::Compete(member, "gloo_" + algorithm, task);
}

}  // namespace

int main(int argc, char** argv) {
  const freshet::bench::Task task = freshet::bench::ParseTask(argc, argv, 3);
  const int rank = freshet::bench::ForkRanks(task.ranks);
  try {
    Run(rank, argv[1], argv[2], task);
  } catch (const std::exception& error) {
    freshet::bench::Die(error.what());
  }
  return freshet::bench::JoinRanks(rank);
}
