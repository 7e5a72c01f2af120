#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/settings.h"
#include "data/description.h"
#include "data/formats/format.h"
#include "data/reader.h"
#include "data/source.h"

namespace freshet::data {

class Table;

// An input, as whoever wants to read it describes it: where it lies and what is known of it. What is not said is told
// from the data.
struct Input {
  std::vector<std::string> paths;  // files, patterns, pipes, "-", a folder of images, or a cache of parsed rows
  std::shared_ptr<const Table> table = {};  // or rows in memory (data/table.h), in place of paths
  int rank = -1;                            // what {rank} in a path stands for; -1: for itself
  InputOptions options;
  std::string part;                         // "K/N": one part of N of the data, the first being 0; "": all
  std::uint64_t max_bad_rows = 0;           // so many are set aside before reading fails
  std::string bad_rows_path;                // where they are written; "" counts them only
  bool labelled = true;                     // rows without a label are bad
  bool grow = true;                         // new names enter the dictionaries
  std::uint64_t crop = 0;                   // what is shown of images; see data/images/augment.h
  bool mirror = false;                      //
  std::string subtract_mean = "auto";       // auto, none, channel, pixel
  bool scale_target = true;                 // see data/target.h
  const std::atomic<bool>* stop = nullptr;  // set: what looks at everything returns kStopped

  // Binds the options to their names, which docs and messages use: all of them, or those that make sense where a model
  // says how rows are read.
  enum class Use { kTraining, kScoring };
  void Register(base::Settings& settings, Use use);

  // The paths as they are opened.
  std::vector<std::string> Resolved() const;
  // What it is called in a message.
  std::string Name() const;
  // Of the files that were named, one that cannot be read a second time (standard input, a pipe); "" when all can.
  std::string Once(base::Files& files) const;
};

// Opens an input as rows. An empty description is inferred and filled; one that a model has is applied.
//
// Ownership: the source borrows env and the description (whose dictionaries it may grow); both outlive it.
// Failure:   kInvalid for options that make no sense; kNotFound and kIo of the files; kBadInput for a malformed head.
Result<std::unique_ptr<RowSource>> Open(const base::Env& env, const Input& input, Description& description);

// Several classes may not all show in the head of the data that was opened: looks for them everywhere it can, here and
// in the shares of others.
Result<void> FindAllClasses(const base::Env& env, const Input& input, Description& description);

// What a network is shown of images, by crop and subtract_mean: fills description.view, for which it may read some rows
// and take the source back to its beginning. kInvalid when an option asks for what rows that are no images cannot have.
Result<void> SettleView(const base::Env& env, const Input& input, RowSource& source, Description& description);

// How labels that are numbers are scaled, for a model that wants them so: fills description.target by a look at the
// source. With others, who may have looked at other rows, the first one's view is everybody's.
Result<void> SettleTarget(const Input& input, const RowSource& source, bool wanted, Others* others,
                          Description& description);

}  // namespace freshet::data
