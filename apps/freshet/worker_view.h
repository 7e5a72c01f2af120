#pragma once

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "strategy/group_change.h"
#include "strategy/server/panel.h"
#include "train/watch.h"

namespace freshet::cli {

// What a worker of a running job tells who asks how it goes (freshet ps), and lets itself be told (freshet mode).
//
// Threads: any; Tell, one at a time. Ownership: borrows the clock.
class WorkerView {
 public:
  struct Who {
    std::string job, name, address;
  };
  struct Group {
    std::uint64_t generation = 1;
    int began_with = 1, least = 1, most = 1;
    std::vector<std::pair<std::string, std::string>> members = {};  // name and address
  };

  WorkerView(Who who, const base::Clock& clock) : who_(std::move(who)), clock_(clock) {}

  // How far this process has come.
  void Tell(const train::Progress& progress);
  void Tell(const strategy::GroupChange& change);
  strategy::server::Panel& panel() { return panel_; }

  // JSON. `order` is what is wished beside: nothing, or "mode SYNCHRONY". `refused` counts letters of strangers.
  std::string Answer(const Group& group, const std::string& order, std::uint64_t refused);

 private:
  const Who who_;
  const base::Clock& clock_;
  strategy::server::Panel panel_;
  std::atomic<std::uint64_t> rows_{0}, step_{0};
  std::atomic<double> rate_{0};  // rows per second, of all
  std::atomic<std::uint64_t> changes_{0}, lost_{0}, came_{0}, repeated_{0};
  double told_at_ = 0;
};

}  // namespace freshet::cli
