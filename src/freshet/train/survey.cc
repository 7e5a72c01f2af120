#include "train/survey.h"

#include "data/drive.h"
#include "data/standardise.h"
#include "strategy/merge_descriptions.h"
#include "train/trainer.h"

namespace freshet::train {

Result<void> SurveyTogether(const base::Env& env, fabric::Collectives& collectives, RowsOf whose,
                            data::RowSource& source, data::Description& description, const std::atomic<bool>& stop) {
  strategy::Survey survey;
  survey.first_met.resize(description.dictionaries.size());
  const auto note = [&](const data::Position& where) {
    for (std::size_t d = 0; d < survey.first_met.size(); ++d)
      survey.first_met[d].resize(description.dictionaries[d].size(), {where.file, where.offset});
  };
  note({});  // those of an earlier model come first
  if (description.standardise) survey.moments = data::Moments(description.moments.columns());
  TRY(data::DriveInOrder(env.executor, source, [&](data::Rows& rows) -> Result<void> {
    if (stop.load(std::memory_order_relaxed))
      return Error{Code::kStopped, "stopped while names and moments were looked for, before training"};
    note(rows.begin);
    if (description.standardise) data::Standardise(survey.moments, rows);
    return {};
  }));
  if (whose == RowsOf::kOwnInputs) survey.first_met.clear();
  TRY(strategy::MergeDescriptions(collectives, survey, description));
  return source.Seek({});
}

Result<void> PrepareNames(const data::Description& description, const model::Model& model,
                          optimize::Parameters& parameters) {
  // One row of the last name of every dictionary. How names become features: data/reader.cc.
  const bool ratings = description.format == "ratings";
  std::vector<std::uint32_t> indices;
  for (std::uint32_t d = 0; d < description.dictionaries.size(); ++d) {
    if (description.dictionaries[d].size() == 0) return {};
    const std::uint32_t last = description.dictionaries[d].size() - 1;
    indices.push_back(!ratings                ? static_cast<std::uint32_t>(description.features) + last
                      : description.joint_ids ? last * 2 + d
                                              : last);
  }
  if (indices.empty()) return {};
  const std::vector<float> values(indices.size(), 1.0f);
  const std::uint32_t offsets[] = {0, static_cast<std::uint32_t>(indices.size())};
  const float label = 0;
  data::Batch row;
  row.rows = 1;
  row.labels = &label;
  row.offsets = offsets;
  row.indices = indices.data();
  row.values = values.data();
  return model.Prepare(parameters, row);
}

}  // namespace freshet::train
