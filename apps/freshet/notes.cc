#include "notes.h"

#include <algorithm>

#include "program.h"

namespace freshet::cli {

void ShowNotes(const data::Description& description) {
  constexpr std::size_t kMost = 8;
  const std::size_t shown = std::min(description.notes.size(), kMost);
  for (std::size_t i = 0; i < shown; ++i) WriteError(Str("note: ", description.notes[i]));
  if (shown < description.notes.size())
    WriteError(Str("note: and ", description.notes.size() - shown, " more; see 'freshet data inspect'"));
}

}  // namespace freshet::cli
