#include "base/log.h"

#include <algorithm>
#include <ctime>

namespace freshet::base {

std::string Log::Start(Level level, std::string_view event) const {
  using std::chrono::milliseconds;
  const auto since_1970 = std::chrono::duration_cast<milliseconds>(clock_.Wall()).count();
  const std::time_t seconds = since_1970 / 1000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char stamp[32];
  const std::size_t size = std::strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S.", &parts);
  const std::string ms = Str(since_1970 % 1000 + 1000).substr(1);
  const char* const names[] = {"INFO", "WARN", "ERROR"};
  return Str(std::string_view(stamp, size), ms, "Z ", names[static_cast<int>(level)], " ", event);
}

void Log::AppendField(std::string& line, std::string_view name, std::string_view value) {
  line += Str(" ", name, "=");
  const auto special = [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == '"' || c == '=' || c == '\\'; };
  if (!value.empty() && std::none_of(value.begin(), value.end(), special)) {
    line += value;
    return;
  }
  line += '"';
  for (const char c : value) {
    if (c == '"' || c == '\\') line += '\\';
    line += static_cast<unsigned char>(c) < ' ' ? ' ' : c;  // one event stays one line
  }
  line += '"';
}

void Log::Emit(std::string_view line) {
  const Lock lock(mutex_);
  sink_(line);
}

}  // namespace freshet::base
