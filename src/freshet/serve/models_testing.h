#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "serve/tensors.h"

namespace freshet::serve {

// A model with the description of its input, as it would be served; without weights.
class Served {
 public:
  Served(data::Description description, const model::ModelConfig& config)
      : description_(std::move(description)),
        model_(model::Model::Make(config).value()),
        signature_(std::make_unique<Signature>(description_, *model_)) {}
  Served(const Served&) = delete;

  const Signature& operator*() const { return *signature_; }
  data::Description& description() { return description_; }

 private:
  data::Description description_;
  std::unique_ptr<model::Model> model_;
  std::unique_ptr<Signature> signature_;
};

inline data::Labels LabelsNamed(std::vector<std::string> names) {
  data::Labels labels;
  labels.kind = names.empty()       ? data::Labels::Kind::kReal
                : names.size() == 2 ? data::Labels::Kind::kBinary
                                    : data::Labels::Kind::kClasses;
  labels.names = std::move(names);
  labels.Index();
  return labels;
}

// A linear model; its loss follows from the number of labels.
inline model::ModelConfig LinearFor(const data::Description& description) {
  model::ModelConfig config;
  const std::size_t labels = description.labels.names.size();
  config.loss = labels == 0 ? "squared" : labels == 2 ? "logistic" : "softmax";
  config.classes = labels > 2 ? labels : 1;
  config.dense = description.dense;
  config.features = description.features;
  return config;
}

inline data::Description DenseInput(std::uint64_t features, std::vector<std::string> labels = {"no", "yes"}) {
  data::Description description;
  description.format = "idx";
  description.dense = true;
  description.features = features;
  description.labels = LabelsNamed(std::move(labels));
  return description;
}

inline data::Description SparseInput(int bits = 0) {
  data::Description description;
  description.format = "libsvm";
  description.bits = bits;
  description.labels = LabelsNamed({"-1", "1"});
  return description;
}

// A table with the columns age, city, income, label, w, t, note; without categories when `dense`.
inline data::Description TableInput(bool dense = false) {
  using Kind = data::Column::Kind;
  data::Description description;
  description.format = "csv";
  description.delimiter = ",";
  description.header = true;
  description.columns = {{"age", Kind::kNumber},    {"city", dense ? Kind::kNumber : Kind::kCategory},
                         {"income", Kind::kNumber}, {"label", Kind::kLabel},
                         {"w", Kind::kWeight},      {"t", Kind::kTime},
                         {"note", Kind::kIgnored}};
  description.features = dense ? 3 : 2;
  description.dense = dense;
  description.standardise = true;
  description.moments = data::Moments(description.features);
  if (!dense) {
    description.dictionaries.resize(1);
    for (const std::string city : {"0=Rome", "0=7"}) description.dictionaries[0].Add(city);
  }
  description.labels = LabelsNamed({"no", "yes"});
  return description;
}

inline data::Description RatingsInput() {
  using Kind = data::Column::Kind;
  data::Description description;
  description.format = "ratings";
  description.delimiter = "\t";
  description.columns = {
      {"user", Kind::kCategory}, {"item", Kind::kCategory}, {"rating", Kind::kLabel}, {"timestamp", Kind::kTime}};
  description.dictionaries.resize(2);
  for (const std::string user : {"1", "ann"}) description.dictionaries[0].Add(user);
  for (const std::string item : {"a", "b", "c"}) description.dictionaries[1].Add(item);
  description.labels = LabelsNamed({});
  return description;
}

inline model::ModelConfig FactorizationConfig() {
  model::ModelConfig config;
  config.kind = "factorization";
  config.loss = "squared";
  return config;
}

inline model::ModelConfig ClustersFor(const data::Description& description) {
  model::ModelConfig config;
  config.kind = "kmeans";
  config.loss = "squared";
  config.dense = description.dense;
  config.features = description.features;
  return config;
}

template <class T>
std::vector<T> Copy(const data::Buffer<T>& buffer) {
  return {buffer.span().begin(), buffer.span().end()};
}

// The bytes of values as a binary tensor has them.
template <class T>
std::string BytesOfValues(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}
inline std::string BytesOfTexts(const std::vector<std::string>& texts) {
  std::string bytes;
  for (const std::string& text : texts)
    bytes += BytesOfValues(std::vector<std::uint32_t>{static_cast<std::uint32_t>(text.size())}) + text;
  return bytes;
}

}  // namespace freshet::serve
