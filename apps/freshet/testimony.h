#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "fabric/membership/envelope.h"

namespace freshet::cli {

// What a worker tells its agent, and what the agent makes of the bytes that have come: the last that is whole.
std::string EncodeTestimony(fabric::MemberId id, const fabric::Testimony& testimony);
class TestimonyReader {
 public:
  void Add(std::string_view bytes);
  const std::optional<fabric::Proof>& last() const { return last_; }

 private:
  std::string heard_;
  std::optional<fabric::Proof> last_;
};

}  // namespace freshet::cli
