#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/fabric.h"

namespace freshet::fabric {

// How a sum over all members is made.
enum class Algorithm {
  kAuto,          // by size and number of members, from a table (below)
  kCentral,       // rank 0 gathers, adds and sends back: the driver of "parameter averaging"; kept as the baseline
  kRing,          // in chunks around a ring, reduce-scatter then all-gather; each byte travels 2 (n-1)/n times
  kTree,          // up a binary tree and down again, in pieces
  kHalving,       // recursive halving and doubling, for any number of members
  kHierarchical,  // within each host, then across hosts, then within
  kDirect,  // each member adds up its own chunk from all others, then hands it to all: best where memory is shared
  kNative,  // the engine's own
};
std::string_view NameOf(Algorithm algorithm);
Result<Algorithm> AlgorithmOf(std::string_view name);
std::vector<std::string> AlgorithmNames();

// Which algorithm is used from which size on, in bytes, ascending; the first begins at 0.
struct AlgorithmTable {
  struct Entry {
    std::uint64_t from_bytes = 0;
    Algorithm algorithm = Algorithm::kRing;
  };
  std::vector<Entry> entries;
  Algorithm For(std::uint64_t bytes) const;
  std::string ToText() const;  // "0 tree, 65536 ring": for people, checkpoints and FromText
  static Result<AlgorithmTable> FromText(std::string_view text);
};

// Operations that all members of a fabric call together, in the same order and with the same sizes. The result is the
// same bytes on every member, and depends on the values, the number of members and the algorithm alone, never on
// timing.
//
// Threads: one thread of a member at a time. What is started runs on the fabric's own thread, in the order started.
// Failure: as the fabric's; the values are then in no particular state.
class Collectives {
 public:
  struct Options {
    Algorithm algorithm = Algorithm::kAuto;
    AlgorithmTable table = {};             // for kAuto; empty: a fixed one that suits the fabric
    std::size_t piece_bytes = 256 * 1024;  // of pipelined algorithms
  };
  explicit Collectives(Fabric& fabric);
  Collectives(Fabric& fabric, Options options);

  Fabric& fabric() const { return fabric_; }
  const Options& options() const { return options_; }
  const AlgorithmTable& table() const { return options_.table; }
  void SetTable(AlgorithmTable table) { options_.table = std::move(table); }  // the same one on every member
  // By which algorithm a sum of so many bytes goes.
  Algorithm AlgorithmFor(std::uint64_t bytes) const;

  // Times algorithms on sizes from 4 KB to 64 MB and takes the fastest of each; rank 0 decides for all.
  Result<void> Calibrate(const base::Clock& clock);

  Result<void> AllReduce(std::span<float> values) { return AllReduce(values, options_.algorithm); }
  Result<void> AllReduce(std::span<float> values, Algorithm algorithm);
  // The same as part of an operation that has a tag (of Start or NextTag), on the thread that runs it.
  Result<void> AllReduceWithin(Tag tag, std::span<float> values) const;
  // Member r ends with the sum of chunk r (Chunk below) in its place; the rest is undefined.
  Result<void> ReduceScatter(std::span<float> values);
  // Every member's chunk r, as member r has it, to all.
  Result<void> AllGather(std::span<float> values);
  // Blocks of any size: what each member gives, in the order of ranks.
  Result<std::vector<std::vector<std::byte>>> Gather(std::span<const std::byte> mine);
  Result<void> Broadcast(std::span<std::byte> bytes, int root);
  // Returns when all members have called it. A member may leave as soon as its own call has returned: all that others
  // still wait for in theirs has been sent, and arrives before its goodbye, so its leaving alone fails nobody. But it
  // is lost to who asks for it afterwards, and a loss is one to all (fabric.h): it may reach a member that is still in
  // the barrier. Who wants to leave, and be missed by somebody without harm to others, waits until all have returned.
  Result<void> Barrier();

  // The same while the caller goes on; the values must not be touched until Wait.
  struct Pending {
    std::uint64_t id = 0;
  };
  Pending StartAllReduce(std::span<float> values) { return StartAllReduce(values, options_.algorithm); }
  Pending StartAllReduce(std::span<float> values, Algorithm algorithm);
  // Any other operation of several members, written over the fabric with the tag it is given (it may use 2^16 tags from
  // there on).
  Pending Start(std::function<Result<void>(Tag tag)> operation);
  Result<void> Wait(Pending pending);

  // The first tag of 2^16 that nothing else uses; the same on every member that has made the same calls.
  Tag NextTag();

 private:
  struct State;
  // At once, or after what was started.
  Result<void> Run(const std::function<Result<void>(Tag)>& operation);

  Fabric& fabric_;
  Options options_;
  std::shared_ptr<State> state_;
};

// Where chunk `index` of `count` begins in `length` things; chunk sizes differ by at most one.
inline std::size_t ChunkBegin(std::size_t length, int index, int count) {
  const auto i = static_cast<std::size_t>(index), n = static_cast<std::size_t>(count);
  return length / n * i + (length % n < i ? length % n : i);
}
inline std::span<float> Chunk(std::span<float> values, int index, int count) {
  const std::size_t begin = ChunkBegin(values.size(), index, count);
  return values.subspan(begin, ChunkBegin(values.size(), index + 1, count) - begin);
}

}  // namespace freshet::fabric
