#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/str.h"

namespace freshet::base {

enum class Level { kInfo, kWarn, kError };

// One event, one line of key=value pairs:  2026-01-31T12:00:00.123Z INFO checkpoint rows=4096 took_ms=12
// INFO is what an operator reads next morning, WARN is surprising but handled, ERROR needs a person. Numbers of every
// step are metrics, not logs. The library itself prints nothing: a door gives the sink.
//
// Threads: any; lines do not mix. Ownership: borrows the clock.
class Log {
 public:
  using Sink = std::function<void(std::string_view line)>;
  Log(Clock& clock, Sink sink, Level least = Level::kInfo) : clock_(clock), sink_(std::move(sink)), least_(least) {}

  // Log.Info("checkpoint", "rows", 4096, "file", path)
  template <class... Fields>
  void Info(std::string_view event, const Fields&... fields) {
    Write(Level::kInfo, event, fields...);
  }
  template <class... Fields>
  void Warn(std::string_view event, const Fields&... fields) {
    Write(Level::kWarn, event, fields...);
  }
  template <class... Fields>
  void Error(std::string_view event, const Fields&... fields) {
    Write(Level::kError, event, fields...);
  }

 private:
  template <class... Fields>
  void Write(Level level, std::string_view event, const Fields&... fields) {
    static_assert(sizeof...(Fields) % 2 == 0, "fields come in pairs: name, value");
    if (level < least_) return;
    std::string line = Start(level, event);
    AppendFields(line, fields...);
    Emit(line);
  }
  static void AppendFields(std::string&) {}
  template <class Value, class... Rest>
  static void AppendFields(std::string& line, std::string_view name, const Value& value, const Rest&... rest) {
    AppendField(line, name, Str(value));
    AppendFields(line, rest...);
  }
  static void AppendField(std::string& line, std::string_view name, std::string_view value);
  std::string Start(Level level, std::string_view event) const;
  void Emit(std::string_view line);

  Clock& clock_;
  const Sink sink_;
  const Level least_;
  Mutex mutex_;  // one line at a time goes to the sink
};

}  // namespace freshet::base
