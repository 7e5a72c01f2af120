#include "base/faulty_files.h"

namespace freshet::base {
namespace {

Error DiskFull(const std::string& path) { return {Code::kIo, Str(path, ": cannot write: No space left on device")}; }

class FaultyOutput final : public OutputFile {
 public:
  FaultyOutput(FaultyFiles& owner, std::unique_ptr<OutputFile> real, std::string path)
      : owner_(owner), real_(std::move(real)), path_(std::move(path)) {}
  Result<void> Write(std::span<const std::byte> bytes) override {
    if (!failed_ && owner_.FailsNow()) {
      failed_ = true;
      TRY(real_->Write(bytes.first(bytes.size() / 2)));
    }
    if (failed_) return DiskFull(path_);
    return real_->Write(bytes);
  }
  Result<void> Sync() override {
    if (!failed_ && owner_.FailsNow()) failed_ = true;
    if (failed_) return DiskFull(path_);
    return real_->Sync();
  }

 private:
  FaultyFiles& owner_;
  const std::unique_ptr<OutputFile> real_;
  const std::string path_;
  bool failed_ = false;  // for ever, as the contract of OutputFile has it
};

class FaultyAppend final : public AppendFile {
 public:
  FaultyAppend(FaultyFiles& owner, std::unique_ptr<AppendFile> real, std::string path)
      : owner_(owner), real_(std::move(real)), path_(std::move(path)) {}
  Result<void> Append(std::span<const std::byte> bytes) override {
    if (!owner_.FailsNow()) return real_->Append(bytes);
    TRY(real_->Append(bytes.first(bytes.size() / 2)));
    return DiskFull(path_);
  }
  Result<void> Sync() override {
    if (owner_.FailsNow()) return DiskFull(path_);
    return real_->Sync();
  }
  Result<void> Truncate(std::uint64_t size) override { return real_->Truncate(size); }

 private:
  FaultyFiles& owner_;
  const std::unique_ptr<AppendFile> real_;
  const std::string path_;
};

}  // namespace

bool FaultyFiles::FailsNow() {
  const int left = --left_;
  if (left == 0 || (left < 0 && for_ever_ && failures_ > 0)) {
    ++failures_;
    return true;
  }
  return false;
}

Result<std::unique_ptr<OutputFile>> FaultyFiles::Create(const std::string& path) {
  if (FailsNow()) return DiskFull(path);
  return std::unique_ptr<OutputFile>(std::make_unique<FaultyOutput>(*this, TRY(real_.Create(path)), path));
}

Result<std::unique_ptr<AppendFile>> FaultyFiles::OpenAppend(const std::string& path) {
  if (FailsNow()) return DiskFull(path);
  return std::unique_ptr<AppendFile>(std::make_unique<FaultyAppend>(*this, TRY(real_.OpenAppend(path)), path));
}

Result<void> FaultyFiles::Rename(const std::string& from, const std::string& to) {
  if (FailsNow()) return DiskFull(to);
  return real_.Rename(from, to);
}

Result<void> FaultyFiles::SyncDirectoryOf(const std::string& path) {
  if (FailsNow()) return DiskFull(path);
  return real_.SyncDirectoryOf(path);
}

}  // namespace freshet::base
