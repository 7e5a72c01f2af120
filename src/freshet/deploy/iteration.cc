#include "deploy/iteration.h"

#include "deploy/control_records.h"

namespace freshet::deploy {

Result<WorkReport> Iteration::Train(Runtime& runtime, const History& history) {
  WorkReport joined;
  if (!unvisited.empty())
    joined = TRY(runtime.Run(*model, *state, history, {unvisited, 1, 1, seed, &stop, /*fresh=*/true}));
  WorkReport drawn = TRY(runtime.Run(*model, *state, history, {numbers, passes, scale, seed, &stop}));
  if (joined.rows == 0) return drawn;
  const auto a = static_cast<double>(joined.rows), b = static_cast<double>(drawn.rows);
  return WorkReport{joined.rows + drawn.rows, (a * joined.loss + b * drawn.loss) / (a + b)};
}

Result<void> Iteration::CatchUp(const RecordLog& log, std::uint64_t to, optimize::RowSets* touched) {
  if (applied >= to) return {};
  constexpr std::size_t kBlock = 256;
  data::Rows rows;
  rows.width = model->config().dense ? model->config().features : 0;
  rows.ClearRows();
  std::vector<float> scores;
  Slip slip;
  const auto learn = [&]() -> Result<void> {
    if (rows.size() == 0) return {};
    TRY(state->Learn(*model, rows, scores));
    if (touched != nullptr) model->Touch(state->parameters, rows.batch(), *touched);
    rows.ClearRows();
    return {};
  };
  TRY(log.Scan(applied, [&](const Record& record) -> Result<void> {
    if (record.sequence >= to) return {};
    if (record.kind == RecordKind::kDrift) {
      TRY(learn());
      state->Fade(KeepOf(record));
    }
    if (record.kind == RecordKind::kClass) return Error{Code::kStopped, "the model has got another class meanwhile"};
    if (record.kind != RecordKind::kObservation) return {};
    TRY(UnpackRow(record.payload, rows, slip));
    return rows.size() >= kBlock ? learn() : Result<void>();
  }));
  TRY(learn());
  applied = to;
  return {};
}

}  // namespace freshet::deploy
