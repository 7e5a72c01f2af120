#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "data/batch.h"

namespace freshet::deploy {

// Which items each user has rated, so that recommendations can leave them out.
//
// Threads: any. Memory: 4 bytes a rating.
class SeenItems {
 public:
  void Add(const data::Batch& ratings) {
    const std::lock_guard lock(mutex_);
    for (std::size_t r = 0; r < ratings.rows; ++r) {
      const std::uint32_t user = ratings.indices[ratings.offsets[r]], item = ratings.indices[ratings.offsets[r] + 1];
      if (user == data::kUnseen || item == data::kUnseen) continue;
      if (user >= items_.size()) items_.resize(user + 1);
      items_[user].push_back(item);
    }
  }
  void Add(std::uint32_t user, std::uint32_t item) {
    const std::lock_guard lock(mutex_);
    if (user >= items_.size()) items_.resize(user + 1);
    items_[user].push_back(item);
  }
  std::vector<std::uint32_t> Of(std::uint32_t user) const {
    const std::lock_guard lock(mutex_);
    return user < items_.size() ? items_[user] : std::vector<std::uint32_t>();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::vector<std::uint32_t>> items_;  // by user
};

}  // namespace freshet::deploy
