#include "fabric/sim/disk.h"

#include <utility>

namespace freshet::fabric::sim {
namespace {

// Writes as much as the disk lets through; should that not be all, the machine is gone before the rest.
template <class Write>
Result<void> WriteShare(Disk& disk, std::span<const std::byte> bytes, const Write& write) {
  TRY(disk.Work(true));
  const std::size_t share = disk.Share(bytes.size());
  TRY(write(bytes.first(share)));
  return share < bytes.size() ? disk.Work() : Result<void>();
}

// Nothing is synced for real: the machine below does not fail.
class Output final : public base::OutputFile {
 public:
  Output(Disk& disk, std::unique_ptr<base::OutputFile> file) : disk_(disk), file_(std::move(file)) {}
  using base::OutputFile::Write;
  Result<void> Write(std::span<const std::byte> bytes) override {
    return WriteShare(disk_, bytes, [this](std::span<const std::byte> share) { return file_->Write(share); });
  }
  Result<void> Sync() override { return disk_.Work(); }

 private:
  Disk& disk_;
  const std::unique_ptr<base::OutputFile> file_;
};

class Tail final : public base::AppendFile {
 public:
  Tail(Disk& disk, std::unique_ptr<base::AppendFile> file) : disk_(disk), file_(std::move(file)) {}
  Result<void> Append(std::span<const std::byte> bytes) override {
    return WriteShare(disk_, bytes, [this](std::span<const std::byte> share) { return file_->Append(share); });
  }
  Result<void> Sync() override { return disk_.Work(); }
  Result<void> Truncate(std::uint64_t size) override {
    TRY(disk_.Work());
    return file_->Truncate(size);
  }

 private:
  Disk& disk_;
  const std::unique_ptr<base::AppendFile> file_;
};

}  // namespace

Result<void> Disk::Work(bool writes) {
  clock_.Sleep(each_);
  if (off_) return Error{Code::kIo, "the machine is off"};
  if (writes && full_) return Error{Code::kIo, "no space left on the simulated disk"};
  return {};
}

std::size_t Disk::Share(std::size_t bytes) {
  if (bytes == 0 || !tear_) return bytes;
  std::exchange(tear_, nullptr)();
  return bytes / 2;
}

Result<std::unique_ptr<base::OutputFile>> Disk::Create(const std::string& path) {
  TRY(Work(true));
  return std::unique_ptr<base::OutputFile>(std::make_unique<Output>(*this, TRY(real_.Create(path))));
}
Result<std::unique_ptr<base::AppendFile>> Disk::OpenAppend(const std::string& path) {
  TRY(Work(true));
  return std::unique_ptr<base::AppendFile>(std::make_unique<Tail>(*this, TRY(real_.OpenAppend(path))));
}
Result<void> Disk::Rename(const std::string& from, const std::string& to) {
  TRY(Work());
  return real_.Rename(from, to);
}
Result<void> Disk::Remove(const std::string& path) {
  TRY(Work());
  return real_.Remove(path);
}
Result<void> Disk::MakeDirectory(const std::string& path) {
  TRY(Work(true));
  return real_.MakeDirectory(path);
}
Result<void> Disk::SyncDirectoryOf(const std::string&) { return Work(); }

}  // namespace freshet::fabric::sim
