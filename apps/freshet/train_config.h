#pragma once

#include <string>
#include <string_view>

#include "base/files.h"
#include "base/result.h"

namespace freshet::cli {

// A text that freshet train is to be given as --config, by so many processes.
struct TrainConfig {
  std::string_view toml;
  std::string name;          // what the text is called in what is wrong with it
  int processes = 1;         // of a job that others start
  std::string elastic = {};  // between how many there may be
  bool data = true;          // it has to name data, for them to read
};

// kInvalid with one line per mistake, for what a job that others start cannot have, and when it names no data.
Result<void> CheckTrainConfig(const TrainConfig& config);

// kNotFound for files of rows that it names and that are not there, as seen from the directory `place`.
Result<void> CheckTrainFiles(base::Files& files, const TrainConfig& config, const std::string& place);

}  // namespace freshet::cli
