#include "worker_view.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace freshet::cli {

void WorkerView::Tell(const train::Progress& progress) {
  const double now = base::Seconds(clock_.Now());
  const auto rows = static_cast<double>(progress.rows - std::min<std::uint64_t>(progress.rows, rows_));
  if (told_at_ > 0 && now > told_at_) rate_ = rows / (now - told_at_);
  told_at_ = now;
  rows_ = progress.rows;
  step_ = progress.step;
}

void WorkerView::Tell(const strategy::GroupChange& change) {
  ++changes_;
  lost_ += change.gone.size();
  came_ += change.came.size();
  repeated_ += change.repeated;
}

std::string WorkerView::Answer(const Group& group, const std::string& order, std::uint64_t refused) {
  nlohmann::ordered_json json = {{"job", who_.job},
                                 {"generation", group.generation},
                                 {"began_with", group.began_with},
                                 {"least", group.least},
                                 {"most", group.most},
                                 {"name", who_.name},
                                 {"address", who_.address},
                                 {"pid", getpid()},
                                 {"step", step_.load()},
                                 {"rows", rows_.load()},
                                 {"rows_per_second", rate_.load()},
                                 {"changes", changes_.load()},
                                 {"lost", lost_.load()},
                                 {"came", came_.load()},
                                 {"repeated", repeated_.load()},
                                 {"refused", refused}};
  if (!order.empty()) {
    const auto wished = order.starts_with("mode ") ? panel_.Wish(std::string_view(order).substr(5))
                                                   : Error{Code::kInvalid, "that is nothing one can wish for"};
    if (!wished.ok()) json["error"] = wished.error().text;
  }
  if (const auto told = panel_.Tell(); told.now) {
    json["synchrony"] = {{"now", told.now->ToText()}, {"since", told.since}, {"changes", told.changes}};
    if (told.wished) json["synchrony"]["wished"] = told.wished->ToText();
    json["clock"] = told.count.clock;
    json["updates_served"] = told.count.updates;
  }
  json["members"] = nlohmann::ordered_json::array();
  for (const auto& [name, address] : group.members) json["members"].push_back({{"name", name}, {"address", address}});
  return json.dump();
}

}  // namespace freshet::cli
