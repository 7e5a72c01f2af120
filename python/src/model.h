#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

#include "data/images/augment.h"
#include "data/open.h"
#include "data/row_builder.h"
#include "deploy/state.h"
#include "model/model_file.h"
#include "train/evaluation.h"
#include "train/learning.h"

namespace freshet::python {

// A trained model in Python's hands: it predicts, and goes on learning from single rows.
//
// Until it learns it has its weights alone. With its first update it becomes a state (deploy::State), as a served model
// is one: an update rule with what that sums up, moments that follow the rows. What the file it came from says of such
// sums goes on.
//
// Threads: any. Predictions run at once, learning alone. No call that waits for another needs the interpreter.
class Model {
 public:
  explicit Model(model::TrainedModel trained);

  static Result<std::unique_ptr<Model>> Load(base::Files& files, const std::string& path);
  static Result<std::unique_ptr<Model>> FromBytes(std::string bytes);
  Result<void> Save(base::Files& files, const std::string& path);
  Result<std::string> ToBytes();

  // How updates learn from here on; before the first one only.
  void SetLearning(train::Learning learning) { learning_ = std::move(learning); }

  // Scores of all rows, as many for each as the model has; with `link` what the loss makes of them.
  Result<std::vector<float>> Predict(const base::Env& env, const data::Input& input, bool link,
                                     const std::atomic<bool>* stop);
  Result<train::Evaluation> Evaluate(const base::Env& env, const data::Input& input, const std::atomic<bool>* stop);
  // Learns from all rows, one by one; returns the mean loss before each.
  Result<double> Update(const base::Env& env, const data::Input& input, const std::atomic<bool>* stop);
  // The same of one row of numbers; returns its loss.
  Result<double> UpdateRow(std::span<const float> numbers, float label, float weight);
  // The best items for a user that they have not rated.
  Result<std::vector<std::pair<std::string, float>>> Recommend(const std::string& user, std::size_t count);

  // What a state has learned of moments goes into the description, for those who ask for that.
  void Settle();

  const model::Model& model() const { return *model_; }
  data::Description& description() { return description_; }
  const data::RowBuilder& builder() const { return builder_; }
  // The blocks of parameters, one after another, with their names and shapes.
  struct Block {
    std::string name;
    std::uint64_t rows, width;
    std::vector<float> values;
  };
  std::vector<Block> Blocks();
  std::uint64_t rows() const { return rows_; }  // learned from

  // As one whose parameters are this one's, for who wants to train it further or to export it.
  Result<model::TrainedModel> Copy(optimize::Memory& memory);

 private:
  const optimize::Parameters& parameters() const { return state_ == nullptr ? *parameters_ : state_->parameters; }
  Result<void> Begin();  // to learn
  Result<void> Write(base::OutputFile& file);
  Result<double> Learn(data::Rows& rows);

  std::shared_mutex mutex_;
  std::unique_ptr<model::Model> model_;
  std::optional<optimize::Parameters> parameters_;  // until it learns
  std::unique_ptr<deploy::State> state_;            // from then on
  std::optional<data::Augment> view_;               // of images, which the state looks through
  data::Description description_;
  std::atomic<bool> settled_ = true;
  data::Metadata metadata_;
  model::Rated rated_;
  std::optional<model::Sums> sums_;
  train::Learning learning_{.use = train::Learning::Use::kReplay};
  std::uint64_t rows_ = 0;
  const data::RowBuilder builder_;  // of single rows, by the description
  data::Rows row_;
  std::vector<float> scores_;
};

void BindModel(nanobind::module_& module);

}  // namespace freshet::python
