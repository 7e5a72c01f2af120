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

// [from, to), with from below to.
template <class T>
Result<std::pair<T, T>> RangeIn(const JsonField& field) {
  const simdjson::dom::array range = TRY(ArrayIn(field));
  T from = 0, to = 0;
  if (range.size() != 2 || range.at(0).get(from) != simdjson::SUCCESS || range.at(1).get(to) != simdjson::SUCCESS ||
      from >= to)
    return Bad(Str(field.name, ": expected [from, to], two whole numbers with from below to"));
  return std::pair(from, to);
}

Result<void> ParseDiscard(const JsonField& discard, RollBackRequest& request) {
  if (discard.value.is_array()) {
    request.discard = TRY(RangeIn<std::uint64_t>(discard));
    return {};
  }
  if (!discard.value.is_object())
    return Bad(Str("discard is ", Shown(discard.value), ", expected [from, to] or an object of sequences, times, ids"));
  std::array<JsonField, 3> fields = {JsonField{"sequences"}, JsonField{"times"}, JsonField{"ids"}};
  const auto& [sequences, times, ids] = fields;
  TRY(FindFields(TRY(ObjectIn(discard)), fields, UnknownKeys::kRefused, {.part = "discard"}));
  if (!sequences.found && !times.found && !ids.found)
    return Bad("discard is empty, expected one or more of sequences, times, ids");
  if (sequences.found) request.discard = TRY(RangeIn<std::uint64_t>(sequences));
  if (times.found) request.times = TRY(RangeIn<std::int64_t>(times));
  if (!ids.found) return {};
  for (const simdjson::dom::element id : TRY(ArrayIn(ids)))
    request.ids.push_back(TRY(TextIn({"an id of discard", true, id})));
  if (request.ids.empty() || request.ids.size() > RollBackRequest::kMostIds)
    return Bad(Str("discard: ", request.ids.size(), " ids, expected 1 to ", RollBackRequest::kMostIds));
  return {};
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
  if (discard.found) TRY(ParseDiscard(discard, request));
  return request;
}

Result<void> ParseIterate(std::string_view body) {
  if (Trim(body).empty()) return {};
  JsonBody json;
  return FindFields(TRY(json.Parse(body)), {}, UnknownKeys::kRefused);
}

Result<DeployRequest> ParseDeploy(std::string_view body) {
  JsonBody json;
  std::array<JsonField, 2> fields = {JsonField{"path"}, JsonField{"relearn"}};
  const auto& [path, relearn] = fields;
  TRY(FindFields(TRY(json.Parse(body)), fields, UnknownKeys::kRefused));
  return DeployRequest{TRY(TextIn(path)), relearn.found && TRY(BoolIn(relearn))};
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
