#include "train/checkpoint_files.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

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

std::string PathOfRank(const std::string& path, int rank) { return rank == 0 ? path : Str(path, ".rank", rank); }

CheckpointFiles::CheckpointFiles(base::Files& files, std::string path, int rank, int workers)
    : files_(files), path_(std::move(path)), rank_(rank), workers_(workers) {}

std::string CheckpointFiles::Part(std::uint64_t save) const { return Str(path_, ".rank", rank_, ".save", save); }

void CheckpointFiles::RemoveLeftovers(std::uint64_t save, When when) const {
  for (const char* const ending : {".rank*.save*", ".*draft"}) {
    const auto found = files_.Glob(Literally(path_) + ending);
    if (!found.ok()) continue;  // there are none
    for (const std::string& name : found.value()) {
      const std::string_view rest = std::string_view(name).substr(path_.size());
      const long long owner = NumberBehind(rest, ".rank"), of_save = NumberBehind(rest, ".save");
      const bool gone = rank_ == 0 && owner >= workers_;  // nobody has this rank now
      if (!gone && std::max(owner, 0LL) != rank_) continue;
      const bool draft = rest.ends_with(".draft");
      const bool named = of_save == static_cast<long long>(save) && !(gone && when == When::kSaved);
      if (draft ? when == When::kStart : owner >= 0 && of_save >= 0 && !named) (void)files_.Remove(name);
    }
  }
}

}  // namespace freshet::train
