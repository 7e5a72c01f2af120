#include "strategy/merge_descriptions.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/check.h"
#include "data/merge_moments.h"

namespace freshet::strategy {
namespace {

using Encounter = std::pair<std::uint64_t, std::uint64_t>;

struct Name {
  Encounter first_met;
  std::string_view text;
};

// Of each name where it was first met, its length and its bytes.
std::vector<std::byte> Pack(const data::Dictionary& dictionary, const std::vector<Encounter>& first_met) {
  std::vector<std::byte> out;
  const auto put = [&](const void* at, std::size_t bytes) {
    const auto* const begin = static_cast<const std::byte*>(at);
    out.insert(out.end(), begin, begin + bytes);
  };
  for (std::uint32_t number = 0; number < dictionary.size(); ++number) {
    const std::string_view text = dictionary.Name(number);
    const Encounter met = first_met.empty() ? Encounter{} : first_met[number];
    const std::uint64_t head[] = {met.first, met.second, text.size()};
    put(head, sizeof head);
    put(text.data(), text.size());
  }
  return out;
}

void Unpack(std::span<const std::byte> from, std::vector<Name>& names) {
  while (!from.empty()) {
    std::uint64_t head[3];
    CHECK(from.size() >= sizeof head);
    std::memcpy(head, from.data(), sizeof head);
    from = from.subspan(sizeof head);
    CHECK(from.size() >= head[2]);
    names.push_back({{head[0], head[1]}, {reinterpret_cast<const char*>(from.data()), head[2]}});
    from = from.subspan(head[2]);
  }
}

Result<void> MergeNames(fabric::Collectives& collectives, const std::vector<Encounter>& first_met,
                        data::Dictionary& dictionary) {
  const auto all = TRY(collectives.Gather(Pack(dictionary, first_met)));
  std::vector<Name> names;
  for (const auto& bytes : all) Unpack(bytes, names);
  // A name that several have met stands where the first of them met it: the later ones find it there.
  std::stable_sort(names.begin(), names.end(), [](const Name& a, const Name& b) { return a.first_met < b.first_met; });
  data::Dictionary merged;
  for (const Name& name : names) merged.Add(name.text);
  dictionary = std::move(merged);
  return {};
}

Result<void> MergeMoments(fabric::Collectives& collectives, const data::Moments& mine, data::Moments& moments) {
  const std::vector<double> saved = mine.Save();
  for (const auto& bytes : TRY(collectives.Gather(std::as_bytes(std::span<const double>(saved))))) {
    CHECK(bytes.size() == saved.size() * sizeof(double));
    std::vector<double> theirs(saved.size());
    std::memcpy(theirs.data(), bytes.data(), bytes.size());
    moments = data::Merged(moments, data::Moments::Load(theirs));
  }
  return {};
}

}  // namespace

Result<void> MergeDescriptions(fabric::Collectives& collectives, const Survey& mine, data::Description& description) {
  const std::vector<Encounter> nowhere;
  for (std::size_t d = 0; d < description.dictionaries.size(); ++d)
    TRY(MergeNames(collectives, mine.first_met.empty() ? nowhere : mine.first_met[d], description.dictionaries[d]));
  if (mine.moments.columns() > 0) TRY(MergeMoments(collectives, mine.moments, description.moments));
  return {};
}

}  // namespace freshet::strategy
