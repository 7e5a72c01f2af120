#pragma once

#include <map>
#include <string>

#include "base/clock.h"
#include "deploy/replay/replay.h"

namespace freshet::cli {

// Shows how a replay goes, on standard error: one line that is redrawn on a terminal, elsewhere a line now and then.
class ReplayView {
 public:
  ReplayView(bool quiet, base::Clock& clock, std::size_t runs);
  void Show(const deploy::ReplayProgress& progress);
  void Done();

 private:
  const bool quiet_, terminal_;
  base::Clock& clock_;
  const std::size_t runs_;
  std::map<std::pair<std::uint64_t, deploy::Method>, double> shares_;  // of each run that has begun
  double next_draw_ = 0;
  bool drawn_ = false;
};

// What came out, for people and for programs. `error_name` says what is counted.
std::string ReplayText(const deploy::ReplayReport& report, const std::string& error_name);
std::string ReplayJson(const deploy::ReplayReport& report, const std::string& error_name,
                       const std::vector<std::pair<std::string, std::string>>& settings);

}  // namespace freshet::cli
