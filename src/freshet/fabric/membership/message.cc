#include "fabric/membership/message.h"

#include <array>
#include <string_view>

#include "base/str.h"

namespace freshet::fabric {

std::string MembershipMessage::ToText() const {
  constexpr std::array<std::string_view, 7> kNames = {"join",     "prepare", "promise", "accept",
                                                      "accepted", "refused", "commit"};
  std::string text = Str(kNames[static_cast<std::size_t>(kind)], " ", generation, " by ", from);
  if (ballot.round > 0) text += Str(" in ", ballot.round, ".", ballot.by);
  if (accepted.round > 0) text += Str(" after ", accepted.round, ".", accepted.by);
  if (!roster.seats.empty()) {
    text += ":";
    for (const Seat& seat : roster.seats) text += Str(" ", seat.id);
  }
  return text;
}

}  // namespace freshet::fabric
