#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "data/description.h"
#include "model/model.h"
#include "train/evaluation.h"

namespace freshet::cli {

// A JSON object as a line. Bytes that are not UTF-8, which names may have, become U+FFFD.
std::string JsonLine(const nlohmann::ordered_json& json);
// A name as it can be printed within a line: \n, \t, \x1b and the like in place of what would break it.
std::string Printable(std::string_view name);

// An evaluation as JSON and as text for people, with the names that fit the model's loss.
nlohmann::ordered_json ToJson(const train::Evaluation& evaluation, const model::Model& model);
std::string ToText(const train::Evaluation& evaluation, const model::Model& model);

}  // namespace freshet::cli
