#pragma once

#include <string>
#include <utility>
#include <vector>

#include "strategy/worlds_testing.h"

namespace freshet::strategy::ring {

// What tests of columns share: tasks for every kind of model that can be spread so.

// Rows of 300 features of which each has eight, whose labels depend on them; with weights.
inline Task Features(const std::string& kind, const std::string& loss, std::uint64_t classes, std::size_t rows,
                     std::uint64_t seed) {
  Task task;
  task.name = Str(kind, " ", loss, " ", classes);
  task.optimizer.schedule.rate = 0.05;
  task.config.kind = kind;
  task.config.loss = loss;
  task.config.classes = classes;
  task.config.factors = 5;
  base::Random random(seed, task.name);
  for (std::size_t r = 0; r < rows; ++r) {
    std::vector<std::pair<std::uint32_t, float>> entries;
    float sum = 0;
    for (std::uint32_t k = 0; k < 8; ++k) {
      const auto feature = static_cast<std::uint32_t>(40 * k + random.Below(37));
      entries.emplace_back(feature, static_cast<float>(random.Normal()));
      sum += entries.back().second * static_cast<float>(feature % 3);
    }
    const auto label = loss == "squared" ? sum : std::floor(std::abs(sum));
    model::AddSparse(task.rows, loss == "squared" ? label : std::fmod(label, classes == 1 ? 2.0f : classes), entries);
    task.rows.weights.Append(1 + static_cast<float>(random.Below(3)) / 2);
  }
  return task;
}

// Rows of 11 numbers each.
inline Task Numbers(const std::string& loss, std::uint64_t classes, std::size_t rows, std::uint64_t seed) {
  Task task;
  task.name = Str("dense ", loss, " ", classes);
  task.optimizer.schedule.rate = 0.05;
  task.config.loss = loss;
  task.config.classes = classes;
  task.config.dense = true;
  task.config.features = 11;
  base::Random random(seed, task.name);
  AddNoisyRows(task.rows, rows, 11, std::max<std::uint64_t>(classes, 2), random);
  return task;
}

inline Task Clusters(std::size_t rows, std::uint64_t seed) {
  Task task = MakeTask("kmeans", rows, seed);
  task.config.clusters = 7;
  return task;
}

// By its name: linear_LOSS and fm_LOSS of sparse rows, dense_LOSS of tables, kmeans.
inline Task MakeColumnTask(const std::string& name, std::size_t rows, std::uint64_t seed) {
  const std::size_t space = name.find('_');
  const std::string kind = name.substr(0, space), loss = space == name.npos ? "" : name.substr(space + 1);
  if (kind == "kmeans") return Clusters(rows, seed);
  if (kind == "dense") return Numbers(loss, loss == "softmax" ? 3 : 1, rows, seed);
  return Features(kind, loss, loss == "softmax" ? 4 : 1, rows, seed);
}

}  // namespace freshet::strategy::ring
