#include "optimize/scratch_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"

namespace freshet::optimize {

ScratchMemory::~ScratchMemory() {
  const base::Lock lock(mutex_);
  CHECK(files_.empty());
}

void* ScratchMemory::Reserve(std::size_t bytes) {
  std::string path = directory_ + "/freshet-parameters-XXXXXX";
  const int descriptor = mkostemp(path.data(), O_CLOEXEC);
  if (descriptor < 0) return nullptr;
  unlink(path.c_str());
  void* at = MAP_FAILED;
  if (ftruncate(descriptor, static_cast<off_t>(bytes)) == 0)
    at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (at == MAP_FAILED) {
    close(descriptor);
    return nullptr;
  }
  const base::Lock lock(mutex_);
  files_[static_cast<char*>(at)] = {bytes, descriptor};
  return at;
}

bool ScratchMemory::Commit(void* at, std::size_t from, std::size_t to) {
  const base::Lock lock(mutex_);
  auto file = files_.upper_bound(static_cast<char*>(at));
  CHECK(file != files_.begin());
  --file;
  const auto offset = static_cast<off_t>(static_cast<char*>(at) - file->first);
  return posix_fallocate(file->second.descriptor, offset + static_cast<off_t>(from), static_cast<off_t>(to - from)) ==
         0;
}

void ScratchMemory::Release(void* at, std::size_t bytes) {
  const base::Lock lock(mutex_);
  const auto file = files_.find(static_cast<char*>(at));
  CHECK(file != files_.end() && file->second.bytes == bytes);
  munmap(at, bytes);
  close(file->second.descriptor);
  files_.erase(file);
}

}  // namespace freshet::optimize
