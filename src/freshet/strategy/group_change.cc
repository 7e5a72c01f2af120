#include "strategy/group_change.h"

#include "base/str.h"

namespace freshet::strategy {

GroupChange GroupChange::Since(const fabric::Roster& before, const fabric::ElasticGroup& group,
                               std::optional<fabric::MemberId> left_out) {
  const fabric::Roster after = group.roster();
  GroupChange change{.generation = after.generation,
                     .before = static_cast<int>(before.seats.size()),
                     .after = static_cast<int>(after.seats.size()),
                     .first = group.rank() == 0};
  for (const fabric::Seat& seat : before.seats)
    if (!after.Has(seat.id))
      change.gone.push_back({seat.name, left_out == seat.id ? "left out for being slow" : group.HowEnded(seat.id)});
  for (const fabric::Seat& seat : after.seats)
    if (!before.Has(seat.id)) change.came.push_back(seat.name);
  return change;
}

void GroupHistory::Add(const GroupChange& change, bool one_left_out) {
  ++changes;
  lost += change.gone.size() - (one_left_out ? 1 : 0);
  left_out += one_left_out ? 1 : 0;
  came += change.came.size();
  repeated += change.repeated;
  seconds += change.seconds;
}

std::string GroupChange::ToText() const {
  std::string text = Str("membership ", before, " → ", after, ":");
  std::string_view mark = " ";
  for (const Gone& one : gone) {
    text += Str(mark, one.name, " is gone, ", one.how.empty() ? "unreachable" : one.how);
    mark = "; ";
  }
  for (const std::string& one : came) {
    text += Str(mark, one, " has come");
    mark = "; ";
  }
  if (gone.empty() && came.empty()) text += " the same once more";
  if (!note.empty()) text += Str("; ", note);
  text += Str("; step ", step);
  if (repeated == 1) text += " repeated";
  if (repeated > 1) text += Str(", ", repeated, " repeated");
  return Str(text, "; ", Fixed(seconds, 2), " s");
}

}  // namespace freshet::strategy
