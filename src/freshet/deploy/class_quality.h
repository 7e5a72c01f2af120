#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace freshet::deploy {

// How good the predictions of a classifier were over a window of rows. What cannot be told yet, or not of this loss, is
// nothing.
struct ClassFigures {
  struct OfClass {
    std::string name;                         // left to whoever knows it
    double share = 0;                         // of the rows are of this class
    std::optional<double> precision, recall;  // right among those called so; found among those that are
    std::optional<double> auc;                // against all others; up to ClassQuality::kMostRanked classes
  };
  struct Bin {
    double predicted = 0, observed = 0, share = 0;  // mean probability, share that came true, share of the rows
  };
  double window = 0, rows = 0;  // about the last `window` rows; so many there were, as they count
  std::optional<double> log_loss;
  std::optional<double> auc;                // of two classes; of more, the mean over classes
  std::optional<double> calibration_error;  // mean distance of probability and what came true, by ten bins
  std::vector<Bin> calibration;             // bins that have rows: of the second class, or of the class that was chosen
  std::vector<OfClass> classes;
};

// Counts predictions of a classifier, each made before its label was learned, over about the last thousand and the last
// hundred thousand rows: a row counts 1 - 1/N times what the next one does. Probabilities are counted in bins,
// thirty-two to each halving of p (or of 1 - p), so that the area under the ROC curve is right to about a thousandth,
// at a constant cost a row.
//
// Threads: one at a time.
class ClassQuality {
 public:
  static constexpr std::size_t kMostRanked = 16;  // classes: of more, no area under the curve is told
  static constexpr double kWindows[] = {1'000, 100'000};

  // Scores of losses without probabilities (hinge) are ranked only.
  explicit ClassQuality(bool probabilities) : probabilities_(probabilities) {}

  bool probabilities() const { return probabilities_; }

  // `predicted`: the probability of the second of two classes, or one for each class. More classes may come to those
  // there were. A row with a number that is not finite does not count.
  void Add(std::span<const float> predicted, std::size_t label, double loss);
  // By window, the shorter first; none before the first row.
  std::vector<ClassFigures> Figures() const;

  // All it remembers, to the last bit, as JSON.
  std::string Save() const;
  // False, and nothing has changed, when the text cannot come from Save.
  [[nodiscard]] bool Load(const std::string& json);

 private:
  static constexpr std::size_t kBins = 962, kCalibrationBins = 10;
  struct Ranked {  // of one class: rows of it and others, by the probability they were given
    std::vector<float> own = std::vector<float>(kBins), others = std::vector<float>(kBins);
  };
  struct Counts {  // of one class
    float own = 0, called = 0, both = 0;
  };
  struct Window {
    double weight = 1;  // of the next row
    double rows = 0, loss = 0;
    std::vector<Ranked> ranked;
    std::vector<Counts> counts;
    std::array<std::array<float, 3>, kCalibrationBins> calibration{};  // rows, sum of probabilities, came true
  };
  static std::size_t BinOf(float probability);
  void AddTo(Window& window, double rows, std::span<const float> predicted, std::size_t label, double loss);
  static void Rescale(Window& window, double by);
  template <class Each>
  static void ForEachSum(Window& window, const Each& each);
  static std::optional<double> AreaUnder(const Ranked& ranked);
  ClassFigures FiguresOf(const Window& window, double rows) const;

  const bool probabilities_;
  std::array<Window, 2> windows_;
  std::vector<std::size_t> bins_;  // of the row that is being counted
};

}  // namespace freshet::deploy
