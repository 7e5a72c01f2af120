#pragma once

#include <map>
#include <string>

#include "base/mutex.h"
#include "optimize/memory.h"

namespace freshet::optimize {

// Parameters that are larger than memory: they lie in files without a name, of which the system keeps in memory what is
// used and what there is room for. Disk is taken as it is committed, so that a full one is found out then.
//
// Threads: any. The directory should be on a disk; where it is in memory itself nothing is gained.
class ScratchMemory final : public Memory {
 public:
  explicit ScratchMemory(std::string directory) : directory_(std::move(directory)) {}
  ~ScratchMemory() override;

  void* Reserve(std::size_t bytes) override;
  bool Commit(void* at, std::size_t from, std::size_t to) override;
  void Release(void* at, std::size_t bytes) override;

 private:
  struct File {
    std::size_t bytes = 0;
    int descriptor = -1;
  };
  const std::string directory_;
  base::Mutex mutex_;
  std::map<char*, File> files_ GUARDED_BY(mutex_);  // by where they begin
};

}  // namespace freshet::optimize
