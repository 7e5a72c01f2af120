#include "base/trace.h"

#include <nlohmann/json.hpp>
#include <set>

#include "base/str.h"

namespace freshet::base {
namespace {

using Json = nlohmann::ordered_json;

std::string TrackName(std::uint32_t track) {
  if (track == Trace::kTraining) return "training";
  if (track == Trace::kFabric) return "fabric";
  return Str("thread ", track - Trace::kThreads);
}

// What names a process or a track in the picture.
std::string Metadata(const char* what, int process, std::uint32_t track, const char* key, std::string_view value) {
  const Json json = {{"name", what}, {"ph", "M"}, {"pid", process}, {"tid", track}, {"args", {{key, value}}}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string Microseconds(Clock::Duration duration) { return Fixed(static_cast<double>(duration.count()) / 1e3, 3); }

std::string ArgsOf(const Trace::Details& details) {
  std::vector<std::string> parts;
  const auto add = [&](const char* key, std::uint64_t value) {
    if (value != Trace::kNone) parts.push_back(Str("\"", key, "\":", value));
  };
  add("step", details.step);
  add("bucket", details.bucket);
  add("bytes", details.bytes);
  if (!details.algorithm.empty()) parts.push_back(Str("\"algorithm\":\"", details.algorithm, "\""));
  if (!details.note.empty())
    parts.push_back(Str("\"note\":", Json(details.note).dump(-1, ' ', false, Json::error_handler_t::replace)));
  return parts.empty() ? "" : Str(",\"args\":{", Join(parts, ","), "}");
}

}  // namespace

void Trace::Add(const char* name, std::uint32_t track, Clock::Duration begin, Clock::Duration end, Details details) {
  const Lock lock(mutex_);
  if (events_.size() < most_)
    events_.push_back({name, track, begin, end - begin, std::move(details)});
  else
    ++dropped_;
}

std::size_t Trace::size() const {
  const Lock lock(mutex_);
  return events_.size();
}

std::uint64_t Trace::dropped() const {
  const Lock lock(mutex_);
  return dropped_;
}

std::string Trace::ToJson(int process, std::string_view process_name, std::string_view label,
                          const std::function<Clock::Duration(Clock::Duration)>& time) const {
  const Lock lock(mutex_);
  std::string out = Metadata("process_name", process, 0, "name", process_name);
  if (!label.empty()) out += Str(",\n", Metadata("process_labels", process, 0, "labels", label));
  std::set<std::uint32_t> tracks;
  for (const Event& event : events_) tracks.insert(event.track);
  for (const std::uint32_t track : tracks)
    out += Str(",\n", Metadata("thread_name", process, track, "name", TrackName(track)));
  for (const Event& event : events_) {
    const Clock::Duration begin = time(event.begin);
    out += Str(",\n{\"name\":\"", event.name, "\",\"ph\":\"X\",\"ts\":", Microseconds(begin),
               ",\"dur\":", Microseconds(time(event.begin + event.length) - begin), ",\"pid\":", process,
               ",\"tid\":", event.track, ArgsOf(event.details), "}");
  }
  return out;
}

}  // namespace freshet::base
