// The small bodies of learn_request.h, those of calls that steer a deployed model.

#include <array>

#include "serve/json_body.h"
#include "serve/learn_request.h"

namespace freshet::serve {
namespace {

Error Bad(std::string text) { return {Code::kBadInput, std::move(text)}; }

// A string that says something.
Result<std::string> TextIn(const JsonField& field) {
  std::string text(TRY(StringIn(field)));
  if (text.empty() || text.find('\0') != std::string::npos)
    return Bad(Str(field.name, " is ", Quoted(text), ", expected a text that is not empty"));
  return text;
}

// The name of a user or item: a string, or a whole number as it is written.
Result<std::string> NameIn(const JsonField& field) {
  std::int64_t number = 0;
  if (field.found && field.value.get(number) == simdjson::SUCCESS) return Str(number);
  return TextIn(field);
}

}  // namespace

Result<RollBackRequest> ParseRollBack(std::string_view body) {
  JsonBody json;
  std::array<JsonField, 3> fields = {JsonField{"version"}, JsonField{"discard"}, JsonField{"relearn"}};
  const auto& [version, discard, relearn] = fields;
  TRY(FindFields(TRY(json.Parse(body)), fields, UnknownKeys::kRefused));
  RollBackRequest request;
  request.version = TRY(TextIn(version));
  if (relearn.found) request.relearn = TRY(BoolIn(relearn));
  if (!discard.found) return request;
  const simdjson::dom::array range = TRY(ArrayIn(discard));
  std::uint64_t from = 0, to = 0;
  if (range.size() != 2 || range.at(0).get(from) != simdjson::SUCCESS || range.at(1).get(to) != simdjson::SUCCESS ||
      from > to)
    return Bad("discard: expected [from, to], two whole numbers in ascending order");
  request.discard = {from, to};
  return request;
}

Result<void> ParseIterate(std::string_view body) {
  if (Trim(body).empty()) return {};
  JsonBody json;
  return FindFields(TRY(json.Parse(body)), {}, UnknownKeys::kRefused);
}

Result<DatasetRequest> ParseDataset(std::string_view body) {
  JsonBody json;
  std::array<JsonField, 1> fields = {JsonField{"path"}};
  TRY(FindFields(TRY(json.Parse(body)), fields, UnknownKeys::kRefused));
  return DatasetRequest{TRY(TextIn(fields[0]))};
}

Result<RecommendRequest> ParseRecommend(std::string_view body) {
  JsonBody json;
  std::array<JsonField, 3> fields = {JsonField{"user"}, JsonField{"k"}, JsonField{"seen"}};
  const auto& [user, k, seen] = fields;
  TRY(FindFields(TRY(json.Parse(body)), fields, UnknownKeys::kRefused));
  RecommendRequest request;
  request.user = TRY(NameIn(user));
  if (k.found) request.k = TRY(WholeIn(k));
  if (request.k < 1 || request.k > RecommendRequest::kMost)
    return Bad(Str("k is ", request.k, ", expected 1 to ", RecommendRequest::kMost));
  if (!seen.found) return request;
  for (const simdjson::dom::element item : TRY(ArrayIn(seen)))
    request.seen.push_back(TRY(NameIn({"an item of seen", true, item})));
  return request;
}

Result<PinRequest> ParsePin(std::string_view body) {
  JsonBody json;
  std::array<JsonField, 2> fields = {JsonField{"version"}, JsonField{"pinned"}};
  const auto& [version, pinned] = fields;
  TRY(FindFields(TRY(json.Parse(body)), fields, UnknownKeys::kRefused));
  return PinRequest{TRY(TextIn(version)), TRY(BoolIn(pinned))};
}

}  // namespace freshet::serve
