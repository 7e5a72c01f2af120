#include "train/row_cache.h"

#include <unistd.h>

#include <utility>

#include "data/drive.h"

namespace freshet::train {

RowCache::RowCache(base::Files& files, std::string path, const std::string& scratch_directory)
    : files_(files),
      temporary_(path.empty()),
      path_(temporary_
                ? Str(scratch_directory, "/freshet.", getpid(), ".", reinterpret_cast<std::uintptr_t>(this), ".rows")
                : std::move(path)) {}

RowCache::~RowCache() {
  if (temporary_ && files_.Exists(path_)) (void)files_.Remove(path_);
}

Result<void> RowCache::Begin() {
  writer_ = TRY(data::CacheWriter::Create(files_, path_));
  return {};
}

Result<void> RowCache::Add(const data::Rows& rows) {
  if (writer_ == nullptr) return {};
  return writer_->Append(rows);
}

Result<void> RowCache::End(const data::Description& description) {
  if (writer_ == nullptr) return {};
  TRY(writer_->Close(description));
  writer_ = nullptr;
  reader_ = TRY(data::CacheReader::Open(files_, path_));
  return {};
}

Result<void> RowCache::Fill(base::Executor& executor, data::RowSource& source, const data::Description& description,
                            const std::function<bool()>& goes_on) {
  TRY(source.Seek({}));
  const auto writer = TRY(data::CacheWriter::Create(files_, path_));
  TRY(data::DriveInOrder(executor, source, [&](data::Rows& rows) -> Result<void> {
    if (!goes_on()) return Error{Code::kStopped, "stopped"};
    return writer->Append(rows);
  }));
  TRY(writer->Close(description));
  reader_ = TRY(data::CacheReader::Open(files_, path_));
  return {};
}

void RowCache::Reopen() {
  if (!files_.Exists(path_)) return;
  auto reader = data::CacheReader::Open(files_, path_);
  if (reader.ok()) reader_ = std::move(reader).value();
}

Result<void> RowCache::Drop() {
  if (reader_ == nullptr) return {};
  reader_ = nullptr;
  return files_.Remove(path_);
}

}  // namespace freshet::train
