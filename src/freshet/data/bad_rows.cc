#include "data/bad_rows.h"

#include "base/option.h"

namespace freshet::data {

Result<void> BadRows::Add(const std::string& place, const std::string& what, const std::string& text) {
  if (++count_ > most_) {
    const std::string before =
        most_ == 0 ? "" : Str(" (bad row ", count_, ", ", Option("max-bad-rows"), " ", most_, ")");
    return Error{Code::kBadInput, Str(place, ": ", what, before)};
  }
  if (path_.empty() || !first_pass_) return {};
  if (!file_) file_ = TRY(files_.Create(path_));
  return file_->Write(Str("# ", place, ": ", ShowOptions(what, "--"), "\n", text, "\n"));  // as people give them
}

void BadRows::NewPass() {
  first_pass_ = first_pass_ && count_ == 0;
  count_ = 0;
}

}  // namespace freshet::data
