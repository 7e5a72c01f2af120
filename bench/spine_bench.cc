// Benchmarks of what everything else stands on: parsing, updates, factorization, learning under drift.
//   spine_bench [SECTION…] [--tiny] [--json] [--repeats N] [--data DIR]
// Exits with 1 when an answer was wrong; a missed target is shown and is no error.

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/settings.h"
#include "base/thread_pool.h"
#include "sections.h"

namespace freshet::bench {
namespace {

struct Section {
  std::string_view name;
  int threads;
  Result<void> (*run)(Context& context);
};
constexpr std::array kSections = {
    Section{"parse", 1, BenchParse},
    Section{"update", 1, BenchUpdate},
    Section{"updates-sparse", 1, BenchSparseUpdates},
    Section{"factorization", 2, BenchFactorization},
    Section{"sea", 1, BenchSea},
};

std::vector<std::string> SectionNames() {
  std::vector<std::string> names(kSections.size());
  std::transform(kSections.begin(), kSections.end(), names.begin(),
                 [](const Section& section) { return section.name; });
  return names;
}

struct Flags {
  std::vector<std::string> sections;
  bool tiny = false, json = false, help = false;
  int repeats = 7;
  std::string data;

  void Register(base::Settings& settings) {
    settings.Add("section", &sections, "what to measure: " + Join(SectionNames(), ", ") + " (all if none is named)",
                 {.value = "NAME", .positional = true});
    settings.Add("tiny", &tiny, "check the answers at small sizes; times say nothing");
    settings.Add("json", &json, "as one JSON object");
    settings.Add("repeats", &repeats, "measurements, after one that warms up",
                 {.value = "N", .least = 1, .most = 1000});
    settings.Add("data", &data, "where real data sets are (not given: $FRESHET_DATA, else ../shared/data)",
                 {.value = "DIR"});
    settings.Add("help", &help, "this text");
  }
};

// A directory of our own, removed with all that is in it.
class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "spine_bench.XXXXXX").string();
    CHECK(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string DataDirectory(const Flags& flags) {
  if (!flags.data.empty()) return flags.data;
  const char* const named = std::getenv("FRESHET_DATA");
  return named != nullptr ? named : "../shared/data";
}

bool Wanted(const Flags& flags, std::string_view name) {
  return flags.sections.empty() ||
         std::find(flags.sections.begin(), flags.sections.end(), name) != flags.sections.end();
}

Result<void> CheckNames(const Flags& flags) {
  const std::vector<std::string> names = SectionNames();
  for (const std::string& name : flags.sections)
    if (std::find(names.begin(), names.end(), name) == names.end())
      return Error{Code::kInvalid, Str("no section ", Quoted(name), "; expected ", Join(names, ", "))};
  return {};
}

// True when every answer was right.
Result<bool> Run(const std::vector<std::string>& arguments) {
  base::PosixFiles files;
  base::SystemClock clock;
  base::Log log(
      clock, [](std::string_view line) { std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data()); },
      base::Level::kWarn);
  base::Faults faults;
  Flags flags;
  base::Settings settings;
  flags.Register(settings);
  TRY(settings.Parse(arguments, files));
  if (flags.help) {
    std::printf("spine_bench [SECTION…]\n\n%s", settings.Help().c_str());
    return true;
  }
  TRY(CheckNames(flags));

  const Scratch scratch;
  Report report(!flags.tiny);
  for (const Section& section : kSections) {
    if (!Wanted(flags, section.name)) continue;
    std::fprintf(stderr, "running %s\n", std::string(section.name).c_str());
    base::ThreadPool pool(section.threads);
    const base::Env env{files, clock, log, pool, faults};
    Context context{env, report, flags.tiny, flags.tiny ? 1 : flags.repeats, DataDirectory(flags), scratch.path()};
    report.Section(std::string(section.name));
    TRY(section.run(context).While(Str("running ", section.name)));
  }
  const std::string text = flags.json ? report.ToJson() : report.ToMarkdown();
  std::fputs(text.c_str(), stdout);
  return report.ok();
}

}  // namespace
}  // namespace freshet::bench

int main(int argc, char** argv) {
  const auto right = freshet::bench::Run({argv + 1, argv + argc});
  if (!right.ok()) {
    std::fprintf(stderr, "spine_bench: %s\n", right.error().text.c_str());
    return 2;
  }
  return right.value() ? 0 : 1;
}
