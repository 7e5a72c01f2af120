#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/files.h"
#include "data/others.h"

namespace freshet::train {

// What workers must have in common for N of them to be one experiment: the same rows to share out, and the same
// settings. Each tells the others; all see what differs, name the ranks, and refuse.

// A file that a worker is about to read. Hosts may know the same data by other paths: it is told by its length and what
// its ends look like.
struct FileAccount {
  std::string path;
  std::uint64_t bytes = 0;     // of a folder: files in its folders
  std::uint32_t checksum = 0;  // of the first and last bytes; of a folder: of the names in it
  bool folder = false;
};

// The files that patterns stand for here. kInvalid for what has no length (standard input, a pipe).
Result<std::vector<FileAccount>> LookAt(base::Files& files, const std::vector<std::string>& patterns);

// Do all read the same files, by the same split? `mine` is not looked at when it is "own".
Result<void> AgreeOnFiles(data::Others& others, const std::string& split, const std::vector<FileAccount>& mine);

// Lines `name = value` that have to be the same for all.
Result<void> AgreeOnSettings(data::Others& others, std::string_view about, const std::string& mine);

}  // namespace freshet::train
