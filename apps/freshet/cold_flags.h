#pragma once

#include <string>

#include "base/files.h"
#include "base/log.h"
#include "base/settings.h"
#include "model/model_file.h"

namespace freshet::cli {

// The flags of a model that is served before it has seen anything, and the model they describe.
struct ColdFlags {
  std::string name;  // "": none is wanted
  std::string kind = "linear", loss = "auto", columns, classes;
  std::uint64_t features = 0, factors = 40, hidden = 0;
  bool scale_target = true;

  void Register(base::Settings& settings);
  // At its starting values. kInvalid says which flags do not go together.
  Result<model::TrainedModel> Make(base::Files& files, base::Log& log, optimize::Memory& memory,
                                   std::uint64_t seed) const;
};

}  // namespace freshet::cli
