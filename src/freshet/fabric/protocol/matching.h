#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "fabric/fabric.h"
#include "fabric/protocol/operation.h"

namespace freshet::fabric {

// Brings together receives that wait for a message and messages that came before anybody wanted them, by sender and
// tag, first come first served.
//
// Threads: one at a time. Ownership: borrows the operations.
class Matching {
 public:
  struct Message {
    int from = 0;
    Tag tag = 0;
    std::uint64_t send_id = 0;
    std::size_t bytes = 0;
    bool whole = true;  // short, and here; else on offer
    std::vector<std::byte> content;
  };

  void Post(Operation& receive) { posted_.emplace(receive.tag, &receive); }
  void Keep(Message message) { kept_.emplace(message.tag, std::move(message)); }

  // The first receive that waits for a message of this sender and tag, which waits no longer; null if there is none.
  Operation* TakeReceive(int from, Tag tag);
  // The first message for a receive.
  std::optional<Message> TakeMessage(const Operation& receive);

  void Remove(const Operation& receive);
  std::size_t RemoveOffer(int from, std::uint64_t send_id);  // how many there were
  void RemoveOffers(int from);

 private:
  std::multimap<Tag, Operation*> posted_;  // equal tags stay in the order they came
  std::multimap<Tag, Message> kept_;
};

}  // namespace freshet::fabric
