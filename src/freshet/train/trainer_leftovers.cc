// What runs leave beside their checkpoint, and who takes it away: parts of workers (CHECKPOINT.rankK.stepN) that no
// checkpoint names any more, and drafts (….PID.draft) of a run that was killed while it wrote.

#include <charconv>

#include "train/trainer_state.h"

namespace freshet::train {
namespace {

// A path in which nothing stands for something else.
std::string Literally(const std::string& path) {
  std::string pattern;
  for (const char c : path)
    if (c == '*' || c == '?' || c == '[' || c == '\\')
      pattern += Str("[", std::string(1, c), "]");
    else
      pattern += c;
  return pattern;
}

// The number behind `word` in a name; -1: there is none.
long long NumberBehind(std::string_view name, std::string_view word) {
  const std::size_t at = name.find(word);
  if (at == std::string_view::npos) return -1;
  long long number = -1;
  std::from_chars(name.data() + at + word.size(), name.data() + name.size(), number);
  return number;
}

}  // namespace

// Each worker takes away its own: at the start drafts, at any time parts of other steps than the checkpoint's. Rank 0,
// or who trains alone, takes away what larger groups left as well; their parts of this step only when the checkpoint is
// no longer theirs. Whatever cannot be removed stays.
void Trainer::RemoveLeftovers(std::uint64_t step, When when) const {
  const int rank = strategy_->rank(), size = Workers();
  const std::string& path = options_.checkpoint_path;
  for (const char* const ending : {".rank*.step*", ".*draft"}) {
    const auto found = env_.files.Glob(Literally(path) + ending);
    if (!found.ok()) continue;  // there are none
    for (const std::string& name : found.value()) {
      const std::string_view rest = std::string_view(name).substr(path.size());
      const long long owner = NumberBehind(rest, ".rank"), of_step = NumberBehind(rest, ".step");
      const bool gone = rank == 0 && owner >= size;  // nobody has this rank now
      if (!gone && std::max(owner, 0LL) != rank) continue;
      const bool draft = rest.ends_with(".draft");
      const bool named = of_step == static_cast<long long>(step) && !(gone && when == When::kSaved);
      if (draft ? when == When::kStart : owner >= 0 && of_step >= 0 && !named) (void)env_.files.Remove(name);
    }
  }
}

}  // namespace freshet::train
