#include "program.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>

#include "base/option.h"
#include "base/stoppable_files.h"
#include "ends_at_signals.h"
#include "model/short_waits/short_waits.h"
#include "results.h"

namespace freshet::cli {
namespace {

std::atomic<bool> g_stop{false};  // the one thing a signal handler can reach
std::atomic<int> g_signal{0};

void OnSignal(int signal) {
  if (g_stop.exchange(true)) _exit(128 + signal);  // the second time means now
  g_signal = signal;
  const char text[] = "\nstopping; what is to be kept is being written (again to force)\n";
  (void)!write(2, text, sizeof text - 1);
}

// Exit codes that scripts and schedulers can act on; docs/cli.md lists them.
int ExitCode(Code code) {
  switch (code) {
    case Code::kInvalid:
      return 2;
    case Code::kBadInput:
      return 3;
    case Code::kPeerLost:
      return 4;
    case Code::kDiverged:
      return 5;
    case Code::kCorrupt:
      return 6;
    case Code::kStopped:
      return g_signal == SIGTERM ? 143 : 130;
    default:
      return 1;
  }
}

// Is a network perhaps to be computed? A model that is loaded may be one.
bool MayComputeNetworks(std::span<char*> arguments) {
  if (arguments.size() < 2) return false;
  const std::string_view verb = arguments[1];
  if (verb == "predict" || verb == "evaluate" || verb == "serve") return true;
  if (verb != "train" && verb != "replay") return false;
  return std::any_of(arguments.begin() + 2, arguments.end(), [](std::string_view argument) {
    return argument.starts_with("--model") || argument.starts_with("--from") || argument.starts_with("--config") ||
           argument.starts_with("-i");
  });
}

std::string Overview() {
  std::string out =
      "freshet - trains models on all your machines and keeps them trained while they serve\n\n"
      "  freshet data generate --kind sea --rows 60000 -o sea.csv\n"
      "  freshet train sea.csv -o sea.model\n\nVerbs:\n";
  for (const auto* verb : Verbs()) {
    std::string name(verb->name);
    name.resize(12, ' ');
    out += Str("  ", name, verb->summary, "\n");
  }
  return out + "\n'freshet VERB --help' shows examples and flags; 'freshet --version' the version.\n";
}

// Did whoever called ask for JSON? Failures of the flags themselves are answered so, too. What stands behind -- is for
// another program.
bool WantsJson(const std::vector<std::string>& arguments) {
  const auto end = std::find(arguments.begin(), arguments.end(), "--");
  return std::any_of(arguments.begin(), end, [](const std::string& a) { return a == "--json" || a == "--json=true"; });
}

std::string FailureJson(const Error& error, int exit_code) {
  const nlohmann::ordered_json out = {
      {"schema", 1}, {"error", {{"code", Name(error.code)}, {"text", error.text}, {"exit_code", exit_code}}}};
  return JsonLine(out);
}

Result<void> Run(Door& door, std::vector<std::string> arguments) {
  if (arguments.size() >= 2 && arguments[0] == "help") arguments = {arguments[1], "--help"};
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h" || arguments[0] == "help")
    return Print(door.files, Overview());
  if (arguments[0] == "--version") return Print(door.files, VersionText(door));
  std::vector<std::string> names;
  for (const auto* verb : Verbs()) {
    if (verb->name == arguments[0]) return verb->run(door, *verb, {arguments.begin() + 1, arguments.end()});
    names.emplace_back(verb->name);
  }
  const std::string nearest = Nearest(arguments[0], names);
  return Error{Code::kInvalid, Str("no verb '", arguments[0], "'; ",
                                   nearest.empty() ? "see freshet --help" : Str("did you mean '", nearest, "'?"))};
}

}  // namespace

void WriteError(std::string_view line) {
  const std::string text = ShowOptions(line, "--") + "\n";
  (void)!write(2, text.data(), text.size());
}

namespace {

bool NobodyTakesResults() {
  pollfd out{.fd = 1, .events = 0, .revents = 0};
  return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

// What is said by the handler below, made before: it may only write.
struct LastWords {
  std::string json = {};
  int signal = 0;
};
LastWords g_last_words[2];

void EndAtOnce(int signal) {
  const char text[] = "\nfreshet: stopped\n";
  (void)!write(2, text, sizeof text - 1);
  for (const LastWords& words : g_last_words)
    if (words.signal == signal) (void)!write(1, words.json.data(), words.json.size());
  _exit(128 + signal);
}

}  // namespace

EndsAtSignals::EndsAtSignals(const Door& door) {
  const bool json = WantsJson(door.arguments);
  const auto words = [&](int signal) {
    return LastWords{json ? FailureJson(Error{Code::kStopped, "stopped"}, 128 + signal) : "", signal};
  };
  g_last_words[0] = words(SIGINT);
  g_last_words[1] = words(SIGTERM);
  struct sigaction action {};
  action.sa_flags = SA_ONSTACK;
  action.sa_handler = EndAtOnce;
  sigaction(SIGINT, &action, &interrupt_);
  sigaction(SIGTERM, &action, &terminate_);
}

EndsAtSignals::~EndsAtSignals() {
  sigaction(SIGINT, &interrupt_, nullptr);
  sigaction(SIGTERM, &terminate_, nullptr);
}

int RunProgram(int argc, char** argv, Extras extras) {
  if (MayComputeNetworks({argv, static_cast<std::size_t>(argc)})) model::WaitShortly(argv);
#if defined(__AVX2__)
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    WriteError("freshet: this build needs a processor with AVX2; configure it with -DFRESHET_ARCH=x86-64");
    return 1;
  }
#endif
  // Kernels that oneDNN makes keep numbers where the stack should be: a signal has one of its own. (The kernel of the
  // system hands signals to the first thread, which is this one.)
  static std::byte stack[64 << 10];
  const stack_t apart{.ss_sp = stack, .ss_flags = 0, .ss_size = sizeof stack};
  sigaltstack(&apart, nullptr);
  struct sigaction action {};
  action.sa_flags = SA_ONSTACK;
  action.sa_handler = OnSignal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);  // who stops listening to progress does not end what is learned

  base::StoppableFiles files(g_stop);
  base::SystemClock clock;
  const char* const verbose = std::getenv("FRESHET_LOG");
  const auto least = verbose != nullptr && std::strcmp(verbose, "info") == 0 ? base::Level::kInfo : base::Level::kWarn;
  base::Log log(clock, WriteError, least);
  base::Faults faults;
  if (const char* const armed = std::getenv("FRESHET_FAULT"); armed != nullptr) {
    if (const auto result = faults.Arm(armed); !result.ok()) {
      WriteError(Str("freshet: ", result.error().text));
      return 2;
    }
  }
  Door door{files, clock, log, faults, g_stop, {argv + 1, argv + argc}, std::move(extras)};
  const auto result = Run(door, door.arguments);
  if (result.ok()) return door.exit_code;
  if (result.error().code == Code::kIo && NobodyTakesResults()) {  // as every program ends that a pipe was closed on
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
  }
  for (const std::string_view line : Split(result.error().text, '\n')) WriteError(Str("freshet: ", line));
  const int exit_code = door.exit_code != 0 ? door.exit_code : ExitCode(result.error().code);
  // A closed pipe cannot take it; the exit code says the same.
  if (WantsJson(door.arguments) && door.speaks) (void)Print(files, FailureJson(result.error(), exit_code));
  return exit_code;
}

}  // namespace freshet::cli
