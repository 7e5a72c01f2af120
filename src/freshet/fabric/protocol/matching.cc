#include "fabric/protocol/matching.h"

namespace freshet::fabric {

Operation* Matching::TakeReceive(int from, Tag tag) {
  for (auto [at, end] = posted_.equal_range(tag); at != end; ++at) {
    Operation* const receive = at->second;
    if (!receive->Takes(from)) continue;
    posted_.erase(at);
    return receive;
  }
  return nullptr;
}

std::optional<Matching::Message> Matching::TakeMessage(const Operation& receive) {
  for (auto [at, end] = kept_.equal_range(receive.tag); at != end; ++at) {
    if (!receive.Takes(at->second.from)) continue;
    Message message = std::move(at->second);
    kept_.erase(at);
    return message;
  }
  return std::nullopt;
}

void Matching::Remove(const Operation& receive) {
  for (auto [at, end] = posted_.equal_range(receive.tag); at != end; ++at) {
    if (at->second != &receive) continue;
    posted_.erase(at);
    return;
  }
}

std::size_t Matching::RemoveOffer(int from, std::uint64_t send_id) {
  return std::erase_if(kept_, [&](const auto& entry) {
    return entry.second.from == from && entry.second.send_id == send_id && !entry.second.whole;
  });
}

void Matching::RemoveOffers(int from) {
  std::erase_if(kept_, [&](const auto& entry) { return entry.second.from == from && !entry.second.whole; });
}

}  // namespace freshet::fabric
