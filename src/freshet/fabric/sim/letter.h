#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/hollow.h"
#include "fabric/protocol/note.h"

namespace freshet::fabric::sim {

// What one member sends another.
struct Letter {
  enum class Kind {
    kNote,    // and what goes with it
    kBulk,    // the whole of a long message: the note's id is that of its receive
    kClosed,  // the connection ends
  };
  int from = 0;
  Kind kind = Kind::kNote;
  Note note = {};
  std::vector<std::byte> content = {};
  std::size_t hollow = 0;  // so many bytes instead or behind it, which are not there

  // With what it carries, copied unless that is hollow.
  void Carry(std::span<const std::byte> bytes) {
    if (base::IsHollow(bytes.data()))
      hollow += bytes.size();
    else
      content.assign(bytes.begin(), bytes.end());
  }
  std::span<const std::byte> payload() const {
    return content.empty() && hollow > 0 ? base::HollowBytes(hollow) : content;
  }
  std::size_t bytes() const { return kHeadBytes + hollow + content.size(); }
  static constexpr std::size_t kHeadBytes = 32;
};

}  // namespace freshet::fabric::sim
