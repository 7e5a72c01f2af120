#pragma once

#include <cstdint>
#include <string>

#include "base/log.h"
#include "base/settings.h"
#include "data/open.h"
#include "model/model.h"
#include "optimize/optimizer.h"

namespace freshet::train {

// A model and its learning, as far as somebody says; the rest follows from the data. Every default and every choice
// that depends on the model or the data is made here, for all who train.
struct Learning {
  enum class Use { kTraining, kReplay };  // what ends, and what goes on for ever

  Use use = Use::kTraining;
  std::string model = "auto", loss = "auto", optimizer = "auto", schedule = "auto";
  double rate = 0, l1 = 0, l2 = -1, decay = 1e-5, momentum = 0.9, beta1 = 0.9, beta2 = 0.999, spread = 0.1;
  int warmup = 0;
  std::uint64_t factors = 40, clusters = 8, features = 0, seed = 1;
  std::uint64_t hidden = 0;  // networks of the zoo
  double dropout = -1;       //
  std::string network = {};  // the text of a network's file

  // Binds the options to their names: those about the model, and those about its learning. The caller begins the
  // groups.
  void RegisterModel(base::Settings& settings);
  void RegisterLearning(base::Settings& settings);

  // Is `model` a network: one of the zoo, or a file that describes one?
  bool IsNetwork() const;
  // Reads the file of a network, and settles what the labels must be for this model and loss, as far as it is said; to
  // be called before the data is opened.
  Result<void> ChooseTask(base::Files& files, data::Input& input);
  // Replaces every "auto" but the schedule's, and unset numbers, by what will be used.
  void SettleDefaults(const data::Description& description);

  optimize::OptimizerOptions Optimizer() const;
  // Warns of what a network's text says that was probably not meant.
  Result<model::ModelConfig> Config(const data::Description& description, base::Log& log) const;

 private:
  // How strongly factors are held near zero. Those set to where the objective is least learn more of the noise than those
  // that go there with a rate that falls.
  double FactorDecay() const { return use == Use::kReplay ? 0.1 : optimizer == "coordinates" ? 0.09 : 0.05; }
  Result<model::ModelConfig> NetworkConfig(const data::Description& description, base::Log& log) const;
};

}  // namespace freshet::train
