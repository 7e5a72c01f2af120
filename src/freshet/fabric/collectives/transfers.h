#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "fabric/fabric.h"

namespace freshet::fabric {

// The transfers of one operation among a team: all members of a fabric, or some of them in the order of their ranks.
// Places in the team are counted from 0.
//
// It sees to it that no transfer outlives the operation: whatever was started and not waited for is waited for by the
// destructor. After an error it first aborts the group, since an operation that one member leaves halfway cannot be
// finished by the others; so everybody learns of it at once. (Where losses are reported this member is then lost to
// all.)
//
// Empty spans are not sent: both ends know that there is nothing to come.
//
// Failure:   as the fabric's, with what was being done: "making a sum".
// Threads:   one.
class Transfers {
 public:
  // `doing` is a word for what this is a part of; it outlives the transfers.
  Transfers(Fabric& fabric, Tag tag, std::string_view doing);
  Transfers(Fabric& fabric, Tag tag, std::string_view doing,
            std::vector<int> ranks);  // this member is among them
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;
  ~Transfers();

  Fabric& fabric() const { return fabric_; }
  Tag tag() const { return tag_; }
  int size() const { return static_cast<int>(ranks_.size()); }
  int me() const { return me_; }
  int rank_of(int place) const { return ranks_[static_cast<std::size_t>(place)]; }

  // A transfer of this operation; a default one is nothing, and waiting for it too.
  struct Handle {
    std::size_t index = SIZE_MAX;
  };
  Result<Handle> Send(int to, std::span<const std::byte> bytes, Tag part = 0);
  Result<Handle> Receive(int from, std::span<std::byte> into, Tag part = 0);
  Result<Handle> ReceiveAdd(int from, std::span<float> into, Tag part = 0);
  // Also of an empty message: its size is not known here.
  Result<Handle> Borrow(int from, Tag part = 0);
  Result<Handle> SendAny(int to, std::span<const std::byte> bytes,
                         Tag part = 0);  // for Borrow: also when empty

  // A receive must have brought as many bytes as its span has. Waiting again is nothing.
  Result<Arrived> Wait(Handle handle);
  Result<void> WaitAll();
  // That a message of another has the size it must have.
  Result<void> Expect(const Arrived& arrived, std::size_t bytes);
  void Release(Handle borrowed);

 private:
  struct Item {
    std::optional<Transfer> transfer;  // until waited for
    std::optional<Transfer> lent;      // until released
    std::size_t bytes = SIZE_MAX;      // that must come; SIZE_MAX: any number
  };
  Result<Handle> Keep(Result<Transfer> transfer, std::size_t bytes, bool borrowed);
  Error Fail(Error error);

  Fabric& fabric_;
  const Tag tag_;
  const std::string_view doing_;
  const std::vector<int> ranks_;
  int me_ = 0;
  std::vector<Item> items_;
  std::size_t done_ = 0;  // items below are over
  std::optional<Error> failure_;
};

}  // namespace freshet::fabric
