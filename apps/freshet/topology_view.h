#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "train/topology.h"

namespace freshet::cli {

nlohmann::ordered_json ToJson(const train::Topology& topology);
std::string ToText(const train::Topology& topology);

}  // namespace freshet::cli
