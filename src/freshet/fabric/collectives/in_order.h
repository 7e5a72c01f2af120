#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string_view>

#include "fabric/fabric.h"

namespace freshet::fabric {

// Sends a message of its own to each other member and visits the messages of all, in the order of ranks; of any sizes.
// All members call it together with the same tag. `doing` is the word for it in errors: "making a sum of rows".
//
// `outgoing` gives the message for a member, each just before it is sent, so that making the next goes on while the
// last travels; its bytes stay as they are until this returns. `visit` is called for this member too, in its place,
// with no bytes. The bytes it sees lie at any address and are gone when it returns.
//
// Blocking: until all have been visited and this member's messages were taken.
// Failure:  the fabric's error, or the first of `visit`. Either aborts the fabric: the others cannot go on without this
//           member, and nothing may be left that reads from its messages.
Result<void> ExchangeInOrder(Fabric& fabric, Tag tag, std::string_view doing,
                             const std::function<std::span<const std::byte>(int to)>& outgoing,
                             const std::function<Result<void>(int from, std::span<const std::byte> bytes)>& visit);

}  // namespace freshet::fabric
