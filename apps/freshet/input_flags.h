#pragma once

#include "base/settings.h"
#include "data/others.h"
#include "data/reader.h"
#include "model/model.h"

namespace freshet::cli {

// The flags about input that verbs share, and opening what they name.
struct InputFlags {
  std::vector<std::string> data;
  data::InputOptions input;
  data::ReaderOptions reader;
  std::string classes, numeric, categorical, ignore;  // comma-separated
  std::string part;                                   // K/N
  int rank = -1;                                      // what {rank} in a path stands for; -1: for itself
  int index_base = -1;
  std::uint64_t crop = 0;              // what is shown of images; see data/augment.h
  bool mirror = false;                 //
  std::string subtract_mean = "auto";  // auto, none, channel, pixel
  bool scale_target = true;            // see data/target.h

  enum class Use { kTraining, kScoring };
  void Register(base::Settings& settings, Use use);

  // Opens the data as rows. An empty description is inferred and filled; a loaded one is applied.
  Result<std::unique_ptr<data::RowSource>> Open(const base::Env& env, data::Description& description);
  // Several classes may not all show in the head of the data that was opened: looks for them everywhere it can, here
  // and in the shares of others.
  Result<void> FindAllClasses(const base::Env& env, data::Description& description) const;
  // What a network is shown of images, by --crop and --subtract-mean: fills description.view, for which it may read
  // some rows and take the source back to its beginning. kInvalid when a flag asks for what rows that are no images
  // cannot have.
  Result<void> SettleView(const base::Env& env, data::RowSource& source, data::Description& description) const;
  // How labels that are numbers are scaled for a model: fills description.target by a look at the source. With others,
  // who may have looked at other rows, the first one's view is everybody's.
  Result<void> SettleTarget(const data::RowSource& source, const model::Model& model, data::Others* others,
                            data::Description& description) const;
  // Copies the comma-separated texts into `input`, and the paths into `reader`.
  void Settle();
  // Of the files that were named, one that cannot be read a second time (standard input, a pipe); "" when all can.
  std::string Once(base::Files& files) const;
};

// What the description notes, on standard error: the first few sentences, and where the rest can be seen.
void ShowNotes(const data::Description& description);

// Rows set aside as bad by a source that Open returned.
std::uint64_t BadRows(const data::RowSource& source);

}  // namespace freshet::cli
