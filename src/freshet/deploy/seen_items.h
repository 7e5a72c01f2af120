#pragma once

#include <cstdint>
#include <vector>

#include "base/mutex.h"
#include "data/batch.h"

namespace freshet::deploy {

// Which items each user has rated, so that recommendations can leave them out.
//
// Threads: any. Memory: 4 bytes a rating.
class SeenItems {
 public:
  void Add(const data::Batch& ratings) {
    const base::Lock lock(mutex_);
    for (std::size_t r = 0; r < ratings.rows; ++r) {
      const std::uint32_t user = ratings.indices[ratings.offsets[r]], item = ratings.indices[ratings.offsets[r] + 1];
      if (user == data::kUnseen || item == data::kUnseen) continue;
      if (user >= items_.size()) items_.resize(user + 1);
      items_[user].push_back(item);
    }
  }
  void Add(std::uint32_t user, std::uint32_t item) {
    const base::Lock lock(mutex_);
    if (user >= items_.size()) items_.resize(user + 1);
    items_[user].push_back(item);
  }
  std::vector<std::uint32_t> Of(std::uint32_t user) const {
    const base::Lock lock(mutex_);
    return user < items_.size() ? items_[user] : std::vector<std::uint32_t>();
  }

 private:
  mutable base::Mutex mutex_;
  std::vector<std::vector<std::uint32_t>> items_ GUARDED_BY(mutex_);  // by user
};

}  // namespace freshet::deploy
