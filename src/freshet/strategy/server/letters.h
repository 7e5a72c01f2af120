#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "base/hollow.h"
#include "base/result.h"
#include "strategy/server/synchrony.h"

namespace freshet::strategy::server {

// What workers and servers write to each other: a head, then parcels, each of which names rows of one block and perhaps
// brings their floats, as they are or in a codec's form. All members are the same program on machines alike, so that
// heads are structs as they lie in memory; everything begins at a multiple of eight bytes. Floats of which only the number
// is of interest (base/hollow.h) are counted in the head and left out.

// The first byte says what it is (OwnPace::kFirstOwn and above).
enum class Kind : std::uint8_t { kPush = 64, kPull, kAway, kAnswer, kTicket, kBundle, kForward, kHave, kReady };

// What the first worker has ordered all to do when they have come to a clock (OwnPace). It travels with what it pushes and
// with what is then answered to others, so that nobody reads what was pushed after the order and does not know of it.
struct Notice {
  std::uint64_t number = 0;  // rises; 0: none
  std::uint64_t clock = 0;
  std::uint64_t what = 0;
  Synchrony synchrony = {};  // of an order to change it
};

// A gradient, summed over rows that weigh `weight`, and what the model wants to see of those rows (`digest` bytes, at
// the end).
struct PushHead {
  Kind kind = Kind::kPush;
  std::uint8_t unused[3] = {};
  std::uint32_t parcels = 0;
  std::uint64_t clock = 0;    // of the worker: its updates before this one
  std::uint64_t version = 0;  // of the server, from which the worker last read
  double weight = 0;
  double progress = 0;  // of training, 0 to 1
  std::uint64_t digest = 0;
  std::uint64_t bytes =
      0;  // of this letter, where others to the same shard stand behind it, each behind its length; 0: it is all
  std::uint64_t hollow = 0;  // bytes of floats that are left out
  // Where shares of a clock are dealt out anew for each (backup): which of how many, and which part of it, of how many.
  std::uint16_t share = 0, shares = 0, part = 0, parts = 0;
  Notice notice = {};
};
// Asks for rows, as soon as clock `needs` is complete.
struct PullHead {
  Kind kind = Kind::kPull;
  std::uint8_t unused[3] = {};
  std::uint32_t parcels = 0;
  std::uint64_t needs = 0;
  std::uint64_t request = 0;  // the worker's number of it
};
// The worker makes no more updates for now, and asks for an answer.
struct AwayHead {
  Kind kind = Kind::kAway;
  std::uint8_t unused[7] = {};
  std::uint64_t request = 0;
};

// Asks the first server which pieces of the rows are the worker's, after those it knows of; and the answer. See server.cc.
struct Ticket {
  Kind kind = Kind::kTicket;
  std::uint8_t unused[7] = {};
  std::uint64_t piece = 0;  // the first
  std::uint64_t count = 1;  // and how many, one after another
};

// Several letters to one shard as one: each behind its length.
struct BundleHead {
  Kind kind = Kind::kBundle;
  std::uint8_t unused = 0;
  std::uint16_t shard = 0;
  std::uint16_t worker = 0;  // for whom the sender speaks: itself, or one that is gone
  std::uint16_t unused_too = 0;
  std::uint64_t letters = 0;
  std::uint64_t hollow = 0;  // of all of them
};

// A letter of a worker that the one before in a shard's chain has taken in, for the next: it follows. And back, to the
// first: the last of the chain has all up to that number.
struct ForwardHead {
  Kind kind = Kind::kForward;
  std::uint8_t unused = 0;
  std::uint16_t shard = 0;
  std::uint16_t worker = 0;
  std::uint16_t unused_too = 0;
  std::uint64_t number = 0;  // of the letters of this shard
};
struct HaveHead {
  Kind kind = Kind::kHave;
  std::uint8_t unused = 0;
  std::uint16_t shard = 0;
  std::uint8_t unused_too[4] = {};
  std::uint64_t number = 0;
};

// To the first worker, where the slowest are not waited for (ReadyDesk): this one has come to the end of that round.
struct ReadyHead {
  Kind kind = Kind::kReady;
  std::uint8_t unused[7] = {};
  std::uint64_t round = 0;
};

// From a server: the floats of the rows that were asked for, in their order.
struct AnswerHead {
  Kind kind = Kind::kAnswer;
  std::uint8_t unused = 0;
  std::uint16_t shard = 0;
  std::uint16_t worker = 0;      // that asked
  std::int16_t waited_for = -1;  // the worker by whose letter that clock became complete; -1: it was
  std::uint64_t request = 0;
  std::uint64_t have = 0;     // updates of the worker that asked, which are in them or will be whoever is lost
  std::uint64_t clock = 0;    // all of what was pushed before it is in them
  std::uint64_t version = 0;  // updates of this server that are
  double waited = 0;          // seconds, until that clock was complete
  std::uint64_t hollow = 0;   // bytes of floats that are left out
  Notice notice = {};
};

struct Parcel {
  enum class Form : std::uint16_t {
    kStretch,  // rows `first` to first + count - 1
    kRows,     // as many numbers of rows follow
    kSame,     // the rows of that block which this worker asked for the last time
  };
  enum class Values : std::uint16_t {
    kFloats,   // as they are
    kEncoded,  // what the codec made of them, behind how many bytes that is
  };
  std::uint32_t block = 0;
  Form form = Form::kStretch;
  Values values = Values::kFloats;  // of a push
  std::uint64_t first = 0, count = 0;
};

// A letter that is being written.
class Writer {
 public:
  // With room for about so many bytes more.
  template <class Head>
  explicit Writer(const Head& head, std::size_t room = 0) {
    bytes_.reserve(sizeof head + room);
    Put(&head, sizeof head);
  }
  // Goes on with one that was written before.
  explicit Writer(std::vector<std::byte> written) : bytes_(std::move(written)) {}
  template <class Head>
  void SetHead(const Head& head) {
    std::memcpy(bytes_.data(), &head, sizeof head);
  }
  void Begin(const Parcel& parcel, std::span<const std::uint32_t> rows = {}) {
    Put(&parcel, sizeof parcel);
    Put(rows.data(), rows.size_bytes());
  }
  // Room for so many floats, for who writes them at once.
  float* Floats(std::size_t count) {
    const std::size_t at = Grow(count * sizeof(float));
    return reinterpret_cast<float*>(bytes_.data() + at);
  }
  void Put(const void* from, std::size_t bytes) {
    if (base::IsHollow(from)) {
      hollow_ += bytes;
      return;
    }
    const std::size_t at = Grow(bytes);
    if (bytes > 0) std::memcpy(bytes_.data() + at, from, bytes);
  }
  std::size_t size() const { return bytes_.size(); }
  std::size_t hollow() const { return hollow_; }  // bytes that were left out so far
  std::vector<std::byte> Take() { return std::move(bytes_); }

 private:
  std::size_t Grow(std::size_t bytes) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + (bytes + 7) / 8 * 8);
    return at;
  }
  std::vector<std::byte> bytes_;
  std::size_t hollow_ = 0;
};

// A letter that is being read: each call gives the next part of it, kCorrupt when there is none. Borrows the bytes,
// which begin at a multiple of eight.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}
  template <class Head>
  Result<Head> Take() {
    static_assert(std::is_trivially_copyable_v<Head>);
    Head head;
    std::memcpy(&head, TRY(Bytes(sizeof head)).data(), sizeof head);
    return head;
  }
  template <class Number>
  Result<std::span<const Number>> Numbers(std::uint64_t count) {
    if (count > rest_.size() / sizeof(Number)) return Damaged();
    const auto bytes = TRY(Bytes(count * sizeof(Number)));
    return std::span(reinterpret_cast<const Number*>(bytes.data()), count);
  }
  Result<std::span<const std::byte>> Bytes(std::size_t count) {
    const std::size_t all = (count + 7) / 8 * 8;
    if (count > rest_.size() || all > rest_.size()) return Damaged();
    const auto bytes = rest_.first(count);
    rest_ = rest_.subspan(all);
    return bytes;
  }
  std::size_t left() const { return rest_.size(); }
  static Error Damaged() {
    return {Code::kCorrupt, "what another member of the parameter server writes is damaged, or of another model"};
  }

 private:
  std::span<const std::byte> rest_;
};

// Bytes that a letter was written without.
inline std::size_t LeftOut(std::span<const std::byte> letter) {
  const auto hollow = [&]<class Head>(Head head) {
    std::memcpy(&head, letter.data(), sizeof head);
    return head.hollow;
  };
  switch (static_cast<Kind>(letter[0])) {
    case Kind::kPush:
      return hollow(PushHead());
    case Kind::kBundle:
      return hollow(BundleHead());
    case Kind::kAnswer:
      return hollow(AnswerHead());
    case Kind::kPull:
    case Kind::kAway:
    case Kind::kTicket:
    case Kind::kForward:
    case Kind::kHave:
    case Kind::kReady:
      break;
  }
  return 0;
}

// What was done to floats, in bytes of them, for who knows what that takes (fabric::Fabric::Spend).
struct Effort {
  std::size_t copied = 0, added = 0, applied = 0;  // many that lie one after another
  std::size_t rows = 0;                            // and those of rows here and there, with their numbers
};

}  // namespace freshet::strategy::server
