#include "data/prefetch.h"

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

namespace freshet::data {
namespace {

class Prefetcher {
 public:
  Prefetcher(const base::Executor& executor, const base::Clock& clock, RowSource& source, std::size_t depth,
             const BlockWork& work)
      : clock_(clock), source_(source), work_(work), changed_(executor.NewCondition()) {
    // One more than are ahead: the block at work.
    for (std::size_t i = 0; i < std::max<std::size_t>(depth, 1) + 1; ++i) free_.push_back(std::make_unique<Rows>());
  }

  Result<void> Run(base::Executor& executor, PrefetchStats& stats) {
    Result<void> result;
    executor.RunBeside([this] { ReadAhead(); },
                       [&] {
                         result = Consume(stats);
                         const base::Lock lock(mutex_);
                         over_ = true;
                         changed_->NotifyAll();
                       });
    return result;
  }

 private:
  Result<void> Consume(PrefetchStats& stats) {
    while (true) {
      const auto wanted = clock_.Now();
      std::unique_ptr<Rows> rows = NextInOrder();
      const auto got = clock_.Now();
      stats.waited += got - wanted;
      if (rows == nullptr) break;
      Result<void> result = source_.Finish(*rows);
      if (result.ok()) result = work_(*rows);
      stats.worked += clock_.Now() - got;
      if (!result.ok()) return result;
      ++stats.blocks;
      const base::Lock lock(mutex_);
      free_.push_back(std::move(rows));
      changed_->NotifyAll();
    }
    const base::Lock lock(mutex_);
    if (error_) return *error_;
    return {};
  }

  // The block whose turn it is, or null when there is none: at the end, or because it could not be read.
  std::unique_ptr<Rows> NextInOrder() {
    const base::Lock lock(mutex_);
    while (true) {
      const auto ready = parsed_.begin();
      if (ready != parsed_.end() && ready->first == turn_) {
        auto rows = std::move(ready->second);
        parsed_.erase(ready);
        ++turn_;
        return rows;
      }
      if (!read_all_ && !free_.empty()) {
        ParseOne();
      } else if (read_all_ && parsing_ == 0) {
        return nullptr;
      } else {
        changed_->Wait(mutex_);
      }
    }
  }

  void ReadAhead() {
    const base::Lock lock(mutex_);
    while (!over_ && !read_all_) {
      if (free_.empty())
        changed_->Wait(mutex_);
      else
        ParseOne();
    }
  }

  void ParseOne() REQUIRES(mutex_) {
    auto rows = std::move(free_.back());
    free_.pop_back();
    ++parsing_;
    mutex_.unlock();
    Result<bool> more = source_.Next(*rows);
    mutex_.lock();
    --parsing_;
    if (more.ok() && more.value()) {
      const std::uint64_t sequence = rows->sequence;
      parsed_.emplace(sequence, std::move(rows));
    } else {
      read_all_ = true;
      if (!more.ok() && !error_) error_ = std::move(more).error();
    }
    changed_->NotifyAll();
  }

  const base::Clock& clock_;
  RowSource& source_;
  const BlockWork& work_;

  const std::unique_ptr<base::Condition> changed_;

  base::Mutex mutex_;
  std::vector<std::unique_ptr<Rows>> free_ GUARDED_BY(mutex_);
  std::map<std::uint64_t, std::unique_ptr<Rows>> parsed_ GUARDED_BY(mutex_);  // by sequence
  std::uint64_t turn_ GUARDED_BY(mutex_) = 0;                                 // whose turn it is
  int parsing_ GUARDED_BY(mutex_) = 0;
  bool read_all_ GUARDED_BY(mutex_) = false;       // there is no more, or no more can be read
  bool over_ GUARDED_BY(mutex_) = false;           // nobody will consume any more
  std::optional<Error> error_ GUARDED_BY(mutex_);  // of reading; the blocks before it go first
};

}  // namespace

Result<void> DrivePrefetched(base::Executor& executor, const base::Clock& clock, RowSource& source, std::size_t depth,
                             const BlockWork& work, PrefetchStats* stats) {
  PrefetchStats unwanted;
  return Prefetcher(executor, clock, source, depth, work).Run(executor, stats == nullptr ? unwanted : *stats);
}

}  // namespace freshet::data
