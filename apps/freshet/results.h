#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "data/description.h"
#include "model/model.h"
#include "train/evaluation.h"

namespace freshet::cli {

// An evaluation as JSON and as text for people, with the names that fit the model's loss.
nlohmann::ordered_json ToJson(const train::Evaluation& evaluation, const model::Model& model);
std::string ToText(const train::Evaluation& evaluation, const model::Model& model);

}  // namespace freshet::cli
