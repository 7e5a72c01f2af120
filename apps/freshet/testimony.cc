#include "testimony.h"

#include <cstring>

namespace freshet::cli {

std::string EncodeTestimony(fabric::MemberId id, const fabric::Testimony& testimony) {
  const std::string text = fabric::Envelope{.proof = fabric::Proof{.id = id, .testimony = testimony}}.Encode();
  const auto size = static_cast<std::uint32_t>(text.size());
  std::string out(sizeof size, '\0');
  std::memcpy(out.data(), &size, sizeof size);
  return out + text;
}

void TestimonyReader::Add(std::string_view bytes) {
  heard_ += bytes;
  std::uint32_t size = 0;
  while (heard_.size() >= sizeof size) {
    std::memcpy(&size, heard_.data(), sizeof size);
    if (heard_.size() < sizeof size + size) return;
    if (auto envelope = fabric::Envelope::Decode(std::string_view(heard_).substr(sizeof size, size)); envelope.ok())
      last_ = std::move(envelope.value().proof);
    heard_.erase(0, sizeof size + size);
  }
}

}  // namespace freshet::cli
