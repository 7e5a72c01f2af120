#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "fabric/membership/message.h"

namespace freshet::fabric {

// Somebody outside of the group asks how it goes, says where to answer, and perhaps what it wishes.
struct Question {
  std::string reply_to = {}, order = {};
};

// What a letter says: one of these.
struct Envelope {
  MemberId to = 0;  // 0: whoever gets it
  std::optional<MembershipMessage> message = {};
  std::optional<Proof> proof = {};
  std::optional<Question> question = {};
  std::optional<std::string> answer = {};

  std::string Encode() const;
  // kCorrupt for bytes that are none.
  static Result<Envelope> Decode(std::string_view bytes);
};

}  // namespace freshet::fabric
