#include "strategy/ring/head_deltas.h"

namespace freshet::strategy::ring {

double HeadDeltas::Make(Stage& stage, std::size_t micro, const data::Batch& rows, const float* input,
                        std::span<float> scores) {
  double answer = 0;
  for (const Stage::HeadOutput& output : stage.Heads(micro)) {
    std::span<float> deltas = output.deltas;
    if (deltas.empty()) {  // nothing learns by this head
      unwanted_.resize(output.made.size());
      deltas = unwanted_;
    }
    const double loss = loss_.Of(output.head, rows, input, output.made, deltas);
    if (output.head != 0) continue;
    answer = loss;
    if (!scores.empty()) loss_.CopyScores(output.made, scores);
  }
  return answer;
}

}  // namespace freshet::strategy::ring
