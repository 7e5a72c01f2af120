#pragma once

#include <nlohmann/json.hpp>

#include "base/result.h"
#include "strategy/server/report.h"

namespace freshet::train {

// What a member of a parameter server tells, as others are told and as it is shown. And back: kCorrupt for what is none.
nlohmann::ordered_json ToJson(const strategy::server::Report& report);
Result<strategy::server::Report> ServerReportFrom(std::string_view json);

}  // namespace freshet::train
