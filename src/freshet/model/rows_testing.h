#pragma once

#include <utility>
#include <vector>

#include "base/random.h"
#include "data/rows.h"
#include "model/model.h"

namespace freshet::model {

// What tests of models share: rows made by hand and at random.

inline void AddSparse(data::Rows& rows, float label, const std::vector<std::pair<std::uint32_t, float>>& entries) {
  if (rows.offsets.empty()) rows.ClearRows();
  rows.labels.Append(label);
  for (const auto& [index, value] : entries) {
    rows.indices.Append(index);
    rows.values.Append(value);
  }
  rows.offsets.Append(static_cast<std::uint32_t>(rows.indices.size()));
}

inline void AddDense(data::Rows& rows, float label, const std::vector<float>& values) {
  rows.width = values.size();
  rows.labels.Append(label);
  rows.dense.Append(std::span<const float>(values));
}

inline void AddRating(data::Rows& rows, std::uint32_t user, std::uint32_t item, float label) {
  AddSparse(rows, label, {{user, 1.0f}, {item, 1.0f}});
}

// One kind of model with one loss, over sparse or dense rows of kFeatures features.
struct Kind {
  static constexpr std::uint32_t kFeatures = 12;
  std::string kind, loss;
  bool dense = false;

  ModelConfig Config() const {
    ModelConfig config;
    config.kind = kind;
    config.loss = loss;
    config.dense = dense;
    config.features = dense || kind == "kmeans" ? kFeatures : 0;
    config.classes = loss == "softmax" ? 3 : 1;
    config.factors = 5;
    config.clusters = 3;
    return config;
  }
  std::string Name() const { return kind + "_" + loss + (dense ? "_dense" : "_sparse"); }

  float Label(base::Random& random) const {
    if (loss == "softmax") return static_cast<float>(random.Below(3));
    if (kind == "factorization") return static_cast<float>(1 + random.Below(5));
    if (loss == "squared") return static_cast<float>(random.Normal());
    return static_cast<float>(random.Below(2));
  }
  // A row at random; sparse ones name each feature at most once.
  void AddRow(base::Random& random, data::Rows& rows) const {
    const float label = Label(random);
    if (kind == "factorization") {
      AddRating(rows, static_cast<std::uint32_t>(random.Below(6)), static_cast<std::uint32_t>(random.Below(5)), label);
    } else if (dense) {
      std::vector<float> values(kFeatures);
      for (float& value : values) value = random.Below(4) == 0 ? 0.0f : static_cast<float>(random.Normal());
      AddDense(rows, label, values);
    } else {
      std::vector<std::pair<std::uint32_t, float>> entries;
      for (std::uint32_t j = 0; j < kFeatures; ++j)
        if (random.Below(2) == 0) entries.emplace_back(j, static_cast<float>(random.Normal()));
      AddSparse(rows, label, entries);
    }
  }
};

inline std::vector<Kind> TrainableKinds() {
  std::vector<Kind> kinds;
  for (const bool dense : {false, true})
    for (const char* const loss : {"logistic", "hinge", "squared", "softmax"}) kinds.push_back({"linear", loss, dense});
  for (const char* const loss : {"logistic", "hinge", "squared"}) kinds.push_back({"fm", loss});
  kinds.push_back({"factorization", "squared"});
  return kinds;
}

inline std::vector<Kind> AllKinds() {
  std::vector<Kind> kinds = TrainableKinds();
  kinds.push_back({"kmeans", "squared", true});
  kinds.push_back({"kmeans", "squared", false});
  return kinds;
}

// Gives every parameter a random value; counts and means that are not learned by gradients a sensible one.
inline void Randomise(base::Random& random, optimize::Parameters& parameters, float spread = 0.5f) {
  for (std::size_t b = 0; b < parameters.blocks(); ++b) {
    std::vector<float> values = parameters.Gather(b);
    for (float& value : values) value = spread * static_cast<float>(random.Normal());
    if (parameters.block(b).name == "global") values = {3.5f, 100.0f};
    if (parameters.block(b).name == "counts")
      for (float& value : values) value = 4;
    parameters.Scatter(b, values);
  }
}

}  // namespace freshet::model
