#pragma once

#include <cstdint>
#include <string>

#include "base/files.h"
#include "model/model_file.h"

// Model files that take over from what a deployment has learned: what they are known by, whether they may, and where a
// copy of each is kept.
//
// Threads: any; nothing here holds state but the directory, into which one at a time writes.
namespace freshet::deploy {

// By what a model file is known again: its weights and moments.
std::string MarksOf(const optimize::Parameters& parameters, const data::Moments& moments);
std::string MarksOf(const model::TrainedModel& trained);

// A model and how rows are read for it; borrowed.
struct ModelAndInput {
  const model::Model& model;
  const data::Description& description;
};
// Whether one may take over from the other, which serves. Its journal holds rows by the numbers of their features and
// labels: they must mean the same to both. kInvalid, with what to do instead, when they do not.
Result<void> MayTakeOver(const ModelAndInput& next, const ModelAndInput& present);

// Writes a copy for replays, which may begin before the record that names it, into the directory, which is made if it
// is not there. `trained.model` may be elsewhere: it is `model` that is written. Returns the file's name: the first
// number from `first` on that no copy has.
Result<std::string> KeepModelFile(base::Files& files, const std::string& directory, std::uint64_t first,
                                  const model::Model& model, const model::TrainedModel& trained);

}  // namespace freshet::deploy
