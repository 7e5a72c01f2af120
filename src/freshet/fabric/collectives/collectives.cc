#include "fabric/collectives/collectives.h"

#include <atomic>
#include <bit>
#include <map>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/mutex.h"
#include "fabric/collectives/algorithms.h"
#include "fabric/collectives/transfers.h"

namespace freshet::fabric {
namespace {

constexpr Tag kTagsEach = Tag{1} << 16;

bool OnOneHost(const Fabric& fabric) {
  bool one = true;
  for (int rank = 1; rank < fabric.size(); ++rank) one = one && fabric.host(rank) == fabric.host(0);
  return one;
}

AlgorithmTable DefaultTable(const Fabric& fabric) {
  if (fabric.prefers_native()) return {.entries = {{0, Algorithm::kNative}}};
  // Over a network: few steps while the time of a step counts, few bytes when they do. Halving has both where the
  // number of members is a power of two; but several of a host then cross to others at once, where a ring crosses one
  // by one.
  if (std::has_single_bit(static_cast<unsigned>(fabric.size())) && (fabric.size() == 2 || OnOneHost(fabric)))
    return {.entries = {{0, Algorithm::kHalving}}};
  return {.entries = {{0, Algorithm::kHalving}, {512 * 1024, Algorithm::kRing}}};
}

Result<void> Sum(Fabric& fabric, Tag tag, std::span<float> values, Algorithm algorithm, std::size_t piece_bytes) {
  if (algorithm == Algorithm::kNative) return fabric.NativeAllReduce(values);
  if (algorithm == Algorithm::kHierarchical) return HierarchicalAllReduce(fabric, tag, values, piece_bytes);
  Transfers transfers(fabric, tag, "making a sum");
  switch (algorithm) {
    case Algorithm::kCentral:
      return CentralAllReduce(transfers, values);
    case Algorithm::kTree:
      return TreeAllReduce(transfers, values, piece_bytes);
    case Algorithm::kHalving:
      return HalvingAllReduce(transfers, values);
    case Algorithm::kDirect:
      return DirectAllReduce(transfers, values);
    default:
      return RingAllReduce(transfers, values, piece_bytes);
  }
}

Result<void> GatherAll(Fabric& fabric, Tag tag, std::span<const std::byte> mine,
                       std::vector<std::vector<std::byte>>& blocks) {
  Transfers transfers(fabric, tag, "gathering from all");
  const int n = transfers.size(), me = transfers.me();
  blocks.assign(static_cast<std::size_t>(n), {});
  blocks[static_cast<std::size_t>(me)].assign(mine.begin(), mine.end());
  std::vector<Transfers::Handle> lent(static_cast<std::size_t>(n));
  for (int i = 1; i < n; ++i) {
    TRY(transfers.SendAny((me + i) % n, mine));
    lent[static_cast<std::size_t>((me + i) % n)] = TRY(transfers.Borrow((me + i) % n));
  }
  for (int i = 1; i < n; ++i) {
    const auto other = static_cast<std::size_t>((me + i) % n);
    const Arrived arrived = TRY(transfers.Wait(lent[other]));
    blocks[other].assign(arrived.view.begin(), arrived.view.end());
    transfers.Release(lent[other]);
  }
  return transfers.WaitAll();
}

// In round k each tells the member 2^k further on; after all rounds everyone has heard of everyone.
Result<void> MeetAll(Fabric& fabric, Tag tag) {
  Transfers transfers(fabric, tag, "meeting at a barrier");
  const int n = transfers.size(), me = transfers.me();
  std::byte said{1}, heard{0};
  for (int distance = 1; distance < n; distance *= 2) {
    const auto sent = TRY(transfers.Send((me + distance) % n, {&said, 1}));
    TRY(transfers.Wait(TRY(transfers.Receive((me + n - distance) % n, {&heard, 1}))));
    TRY(transfers.Wait(sent));
  }
  return {};
}

}  // namespace

struct Collectives::State {
  explicit State(const base::Clock& clock) : ended(clock.NewCondition()) {}

  std::uint64_t tags_taken = 0;
  std::uint64_t last_id = 0;
  std::atomic<int> running{0};  // started and not ended

  const std::unique_ptr<base::Condition> ended;

  base::Mutex mutex;
  // Of what was started and not waited for.
  std::map<std::uint64_t, std::optional<Result<void>>> results GUARDED_BY(mutex);
};

Collectives::Collectives(Fabric& fabric) : Collectives(fabric, Options()) {}

Collectives::Collectives(Fabric& fabric, Options options)
    : fabric_(fabric), options_(std::move(options)), state_(std::make_shared<State>(fabric.clock())) {
  if (options_.table.entries.empty()) options_.table = DefaultTable(fabric);
}

Tag Collectives::NextTag() { return kReserved + kTagsEach * state_->tags_taken++; }

Result<void> Collectives::Run(const std::function<Result<void>(Tag)>& operation) {
  // Members agree on the order of operations by calling them in that order, so this one comes after what was started.
  if (state_->running.load(std::memory_order_acquire) > 0) return Wait(Start(operation));
  return operation(NextTag());
}

Result<void> Collectives::AllReduce(std::span<float> values, Algorithm algorithm) {
  if (fabric_.size() == 1 || values.empty()) return {};
  if (state_->running.load(std::memory_order_acquire) > 0) return Wait(StartAllReduce(values, algorithm));
  if (algorithm == Algorithm::kAuto) algorithm = options_.table.For(values.size_bytes());
  return Sum(fabric_, NextTag(), values, algorithm, options_.piece_bytes);
}

Result<void> Collectives::AllReduceWithin(Tag tag, std::span<float> values) const {
  if (fabric_.size() == 1 || values.empty()) return {};
  return Sum(fabric_, tag, values, AlgorithmFor(values.size_bytes()), options_.piece_bytes);
}

Algorithm Collectives::AlgorithmFor(std::uint64_t bytes) const {
  return options_.algorithm == Algorithm::kAuto ? options_.table.For(bytes) : options_.algorithm;
}

Result<void> Collectives::ReduceScatter(std::span<float> values) {
  return Run([&](Tag tag) -> Result<void> {
    Transfers transfers(fabric_, tag, "making a sum in parts");
    return RingReduceScatter(transfers, values, options_.piece_bytes);
  });
}

Result<void> Collectives::AllGather(std::span<float> values) {
  return Run([&](Tag tag) -> Result<void> {
    Transfers transfers(fabric_, tag, "gathering parts from all");
    return RingAllGather(transfers, values, options_.piece_bytes);
  });
}

Result<std::vector<std::vector<std::byte>>> Collectives::Gather(std::span<const std::byte> mine) {
  std::vector<std::vector<std::byte>> blocks;
  TRY(Run([&](Tag tag) { return GatherAll(fabric_, tag, mine, blocks); }));
  return blocks;
}

Result<void> Collectives::Broadcast(std::span<std::byte> bytes, int root) {
  if (root < 0 || root >= fabric_.size())
    return Error{Code::kInvalid, Str("broadcast from rank ", root, " in a group of ", fabric_.size())};
  return Run([&](Tag tag) -> Result<void> {
    Transfers transfers(fabric_, tag, "broadcasting");
    return TreeBroadcast(transfers, bytes, root, options_.piece_bytes);
  });
}

Result<void> Collectives::Barrier() {
  return Run([&](Tag tag) { return MeetAll(fabric_, tag); });
}

Collectives::Pending Collectives::StartAllReduce(std::span<float> values, Algorithm algorithm) {
  if (algorithm == Algorithm::kAuto) algorithm = options_.table.For(values.size_bytes());
  const bool nothing = fabric_.size() == 1 || values.empty();
  return Start([&fabric = fabric_, values, algorithm, nothing, piece_bytes = options_.piece_bytes](Tag tag) {
    return nothing ? Result<void>() : Sum(fabric, tag, values, algorithm, piece_bytes);
  });
}

Collectives::Pending Collectives::Start(std::function<Result<void>(Tag tag)> operation) {
  const Pending pending{++state_->last_id};
  {
    const base::Lock lock(state_->mutex);
    state_->results[pending.id] = std::nullopt;
  }
  state_->running.fetch_add(1);
  fabric_.Post([state = state_, operation = std::move(operation), tag = NextTag(), id = pending.id] {
    Result<void> result = operation(tag);
    const base::Lock lock(state->mutex);
    state->results[id] = std::move(result);
    state->running.fetch_sub(1);
    state->ended->NotifyAll();
  });
  return pending;
}

Result<void> Collectives::Wait(Pending pending) {
  const base::Lock lock(state_->mutex);
  const auto found = state_->results.find(pending.id);
  CHECK(found != state_->results.end());  // what was started is waited for once
  state_->ended->WaitFor(state_->mutex, [&] { return found->second.has_value(); });
  Result<void> result = *std::move(found->second);
  state_->results.erase(found);
  return result;
}

}  // namespace freshet::fabric
