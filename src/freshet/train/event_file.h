#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/files.h"
#include "train/trainer.h"

namespace freshet::train {

// How a run goes, as a file that TensorBoard reads: TFRecords (a length, its masked CRC-32C, an event, the same of that)
// of scalars over the rows learned from. docs/formats.md says more.
//
// Threads:   one at a time. Ownership: borrows files and clock.
// Failure:   Open, and End, which returns the first error of what was written meanwhile; a run does not stop for it.
class EventFile {
 public:
  // A new file in the directory, which is made if it is not there. `run` tells files of the same second apart.
  static Result<std::unique_ptr<EventFile>> Open(base::Files& files, const base::Clock& clock,
                                                 const std::string& directory, std::string_view run);

  void Add(std::string_view tag, double value, std::uint64_t rows);
  void Add(const Progress& progress);
  Result<void> End(const Report& report);

  const std::string& path() const { return path_; }

 private:
  EventFile(std::unique_ptr<base::AppendFile> file, const base::Clock& clock, std::string path)
      : file_(std::move(file)), clock_(clock), path_(std::move(path)) {}
  void Write(std::string_view rest);

  const std::unique_ptr<base::AppendFile> file_;
  const base::Clock& clock_;
  const std::string path_;
  Result<void> written_;  // or the first error, after which nothing more is
  double loss_ = 0, weight_ = 0, seconds_ = 0;
  std::uint64_t rows_ = 0;  // when last told
};

}  // namespace freshet::train
