#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/executor.h"
#include "base/files.h"
#include "data/cache.h"

namespace freshet::train {

// A run's cache of parsed rows: filled on the way while the first epoch reads its source, or in a pass of its own, and
// read by whoever wants all rows again. It is empty, being filled, or full.
//
// Threads:   one at a time; rows() as any data::RowSource.
// Ownership: borrows files, which outlive it. The file stays when it was given a name, and goes with this when not.
// Failure:   of the files; the cache is then of no more use. What was begun and not ended leaves no file.
class RowCache {
 public:
  // Without a path, the file lies in the scratch directory under a name of its own.
  RowCache(base::Files& files, std::string path, const std::string& scratch_directory);
  ~RowCache();

  data::RowSource* rows() const { return reader_.get(); }  // all of them; null unless it is full

  // From an empty cache to a full one, block by block. Add and End do nothing unless Begin was called.
  Result<void> Begin();
  Result<void> Add(const data::Rows& rows);
  Result<void> End(const data::Description& description);
  // The same in one pass over the source, from its beginning. kStopped as soon as `goes_on` says no.
  Result<void> Fill(base::Executor& executor, data::RowSource& source, const data::Description& description,
                    const std::function<bool()>& goes_on);

  // Takes what an earlier run has left, if it is there and whole.
  void Reopen();
  // Empties a full cache and removes its file: the source has other rows now.
  Result<void> Drop();

 private:
  base::Files& files_;
  const bool temporary_;
  const std::string path_;
  std::unique_ptr<data::CacheWriter> writer_;  // while it is being filled by Add
  std::unique_ptr<data::CacheReader> reader_;  // when it is full
};

}  // namespace freshet::train
