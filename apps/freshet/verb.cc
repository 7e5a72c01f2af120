#include "verb.h"

#include <algorithm>

#include "base/cores.h"
#include "base/option.h"
#include "base/version.h"

namespace freshet::cli {

std::vector<const Verb*> Verbs() {
  return {&kTrain, &kLaunch, &kSubmit, &kAgent,   &kJoin,   &kPs,     &kMode,  &kPredict,  &kEvaluate, &kRecommend,
          &kServe, &kReplay, &kData,   &kInspect, &kExport, &kImport, &kBench, &kSimulate, &kPlan,     &kCompare};
}

namespace {

// Nothing said is the default of some options, which is not to be said by an empty text: a script's variable was not
// set, and nobody would know.
Result<void> CheckNotEmpty(const std::vector<std::string>& arguments, std::string_view option) {
  const std::string flag = Str("--", option);
  for (std::size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i)
    if (arguments[i] == flag + "=" || (arguments[i] == flag && i + 1 < arguments.size() && arguments[i + 1].empty()))
      return Error{Code::kInvalid, Str(Option(option), ": found an empty text; give one, or leave the flag out")};
  return {};
}

}  // namespace

Result<bool> ParseArguments(Door& door, const Verb& verb, const std::vector<std::string>& arguments,
                            base::Settings& settings) {
  const bool help =
      std::any_of(arguments.begin(), arguments.end(), [](const std::string& a) { return a == "-h" || a == "--help"; });
  if (help) {
    TRY(Print(door.files, Str("freshet ", verb.name, " - ", verb.summary, "\n\nUsage: freshet ", verb.name, " ",
                              verb.usage, "\n\nExamples:\n", verb.examples, settings.Help())));
    return false;
  }
  TRY(settings.Parse(arguments, door.files));
  TRY(CheckNotEmpty(arguments, "synchrony"));
  return true;
}

std::string ProgramVersion() { return std::string(Version()); }
std::string ProgramCommit() { return FRESHET_COMMIT; }

std::string VersionText(const Door& door) {
  return Str("freshet ", Version(), FRESHET_COMMIT[0] == '\0' ? "" : " (" FRESHET_COMMIT ")",
             "\nmodels: linear, factorization, fm, kmeans, networks on oneDNN; ONNX in and out"
             "\nformats: libsvm, csv, vw, ratings, idx, cifar10, images, text; gzip, xz, zstd"
             "\nfabrics: threads, tcp",
             door.extras.connect_mpi ? ", mpi\n" : "\n");
}

Result<void> Print(base::Files& files, std::string_view text) {
  const auto out = TRY(files.Create("-"));
  return out->Write(ShowOptions(text, "--"));
}

int Threads(int asked) { return asked > 0 ? asked : base::AvailableCores(); }

}  // namespace freshet::cli
