#include "fabric/one_clock.h"

namespace freshet::fabric {
namespace {

using Duration = base::Clock::Duration;

template <class T>
std::span<const std::byte> BytesOf(const T& thing) {
  return std::as_bytes(std::span(&thing, 1));
}
template <class T>
std::span<std::byte> BytesInto(T& thing) {
  return std::as_writable_bytes(std::span(&thing, 1));
}

Result<ClockReading> Ask(Fabric& fabric, const base::Clock& clock, int member, Tag tag, int questions) {
  ClockReading best;
  for (int i = 0; i < questions; ++i) {
    const Duration asked = clock.Now();
    Duration theirs{};
    TRY(fabric.Send(member, tag, BytesOf(asked)));
    TRY(fabric.Receive(member, tag, BytesInto(theirs)));
    const Duration round = clock.Now() - asked;
    if (i > 0 && round / 2 >= best.error) continue;
    best = {theirs, theirs - (asked + round / 2), round / 2};
  }
  TRY(fabric.Send(member, tag, BytesOf(best)));
  return best;
}

Result<ClockReading> Answer(Fabric& fabric, const base::Clock& clock, Tag tag, int questions) {
  for (int i = 0; i < questions; ++i) {
    Duration asked{};
    TRY(fabric.Receive(0, tag, BytesInto(asked)));
    const Duration now = clock.Now();
    TRY(fabric.Send(0, tag, BytesOf(now)));
  }
  ClockReading reading;
  TRY(fabric.Receive(0, tag, BytesInto(reading)));
  return reading;
}

}  // namespace

Result<ClockReading> CompareClocks(Collectives& collectives, const base::Clock& clock, int questions) {
  Fabric& fabric = collectives.fabric();
  const Tag tag = collectives.NextTag();
  if (fabric.rank() != 0) return Answer(fabric, clock, tag, questions);
  for (int member = 1; member < fabric.size(); ++member) TRY(Ask(fabric, clock, member, tag, questions));
  return ClockReading{clock.Now(), Duration(0), Duration(0)};
}

Duration OnRankZero(const ClockReading& first, const ClockReading& second, Duration time) {
  const auto span = static_cast<double>((second.at - first.at).count());
  const double share = span > 0 ? static_cast<double>((time - first.at).count()) / span : 0;
  const auto drift = static_cast<double>((second.ahead - first.ahead).count());
  return time - first.ahead - Duration(static_cast<Duration::rep>(share * drift));
}

}  // namespace freshet::fabric
