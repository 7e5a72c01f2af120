#include "data/drive.h"
#include "base/mutex.h"

#include <map>
#include <memory>
#include <vector>

namespace freshet::data {
namespace {

// Every thread does whatever is possible, most urgent first: work on the block whose turn it is, else parse ahead.
class Driver {
 public:
  Driver(base::Executor& executor, RowSource& source, const BlockWork& in_order, const SharedWork* at_once)
      : executor_(executor),
        source_(source),
        in_order_(in_order),
        at_once_(at_once),
        changed_(executor.NewCondition()) {
    // Two blocks a thread keep everybody busy; more only use memory.
    for (int i = 0; i < 2 * executor.width() + 1; ++i) free_.push_back(std::make_unique<Rows>());
  }

  Result<void> Run() {
    executor_.Run(executor_.width(), [this](int thread) { Loop(thread); });
    const base::Lock lock(mutex_);
    if (error_) return *error_;
    if (late_error_) return *late_error_;
    return {};
  }

 private:
  void Loop(int thread) {
    const base::Lock lock(mutex_);
    while (!error_) {
      const auto ready = parsed_.begin();
      if (!in_turn_ && ready != parsed_.end() && ready->first == turn_) {
        auto rows = std::move(ready->second);
        parsed_.erase(ready);
        TakeTurn(thread, *rows);
        free_.push_back(std::move(rows));
        changed_->NotifyAll();
      } else if (!read_all_ && !free_.empty()) {
        ParseAhead();
      } else if (read_all_ && parsing_ == 0 && (parsed_.empty() || !in_turn_)) {
        return;  // whoever has the last turn finishes it; blocks behind one that could not be read never get theirs
      } else {
        changed_->Wait(mutex_);
      }
    }
  }

  void TakeTurn(int thread, Rows& rows) REQUIRES(mutex_) {
    in_turn_ = true;
    mutex_.unlock();
    Result<void> result = source_.Finish(rows);
    if (result.ok()) result = in_order_(rows);
    mutex_.lock();
    in_turn_ = false;
    ++turn_;
    if (!result.ok()) Fail(std::move(result).error());
    changed_->NotifyAll();
    if (at_once_ == nullptr || error_) return;
    mutex_.unlock();
    result = (*at_once_)(thread, rows);
    mutex_.lock();
    if (!result.ok()) Fail(std::move(result).error());
  }

  void ParseAhead() REQUIRES(mutex_) {
    auto rows = std::move(free_.back());
    free_.pop_back();
    ++parsing_;
    mutex_.unlock();
    Result<bool> more = source_.Next(*rows);
    mutex_.lock();
    --parsing_;
    if (!more.ok()) {
      // The blocks before this one go first: kept until they are done.
      read_all_ = true;
      if (!late_error_) late_error_ = std::move(more).error();
    } else if (more.value()) {
      const std::uint64_t sequence = rows->sequence;
      parsed_.emplace(sequence, std::move(rows));
    } else {
      read_all_ = true;
    }
    changed_->NotifyAll();
  }

  void Fail(Error error) REQUIRES(mutex_) {
    if (!error_) error_ = std::move(error);
    changed_->NotifyAll();
  }

  base::Executor& executor_;
  RowSource& source_;
  const BlockWork& in_order_;
  const SharedWork* const at_once_;

  const std::unique_ptr<base::Condition> changed_;

  base::Mutex mutex_;
  std::vector<std::unique_ptr<Rows>> free_ GUARDED_BY(mutex_);
  std::map<std::uint64_t, std::unique_ptr<Rows>> parsed_ GUARDED_BY(mutex_);  // by sequence
  std::uint64_t turn_ GUARDED_BY(mutex_) = 0;                                 // whose turn it is
  bool in_turn_ GUARDED_BY(mutex_) = false;
  bool read_all_ GUARDED_BY(mutex_) = false;
  int parsing_ GUARDED_BY(mutex_) = 0;
  std::optional<Error> error_ GUARDED_BY(mutex_);
  std::optional<Error> late_error_ GUARDED_BY(mutex_);  // of reading
};

}  // namespace

Result<void> DriveInOrder(base::Executor& executor, RowSource& source, const BlockWork& in_order) {
  return Driver(executor, source, in_order, nullptr).Run();
}

Result<void> DriveShared(base::Executor& executor, RowSource& source, const BlockWork& in_order,
                         const SharedWork& at_once) {
  return Driver(executor, source, in_order, &at_once).Run();
}

}  // namespace freshet::data
