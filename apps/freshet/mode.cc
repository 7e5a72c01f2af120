// freshet mode: has the workers of a running job go on in another synchrony.

#include <nlohmann/json.hpp>

#include "ask.h"
#include "strategy/server/synchrony.h"

namespace freshet::cli {
namespace {

using Json = nlohmann::ordered_json;

Result<void> Run(Door& door, const Verb& verb, const std::vector<std::string>& arguments) {
  AskFlags flags;
  std::vector<std::string> words;
  double wait = 60;
  bool json = false;
  base::Settings settings;
  settings.Add("mode", &words, "bsp, ssp:CLOCKS, asp:SIGNIFICANCE or bap, then where a worker of the job is reached",
               {.value = "SYNCHRONY HOST:PORT", .positional = true});
  flags.RegisterJob(settings);
  settings.Add("wait", &wait, "how long it may take until all workers go on in it", {.value = "S", .least = 0});
  settings.Add("json", &json, "as one JSON object");
  if (!TRY(ParseArguments(door, verb, arguments, settings))) return {};
  if (words.size() != 2)
    return Error{Code::kInvalid, Str("found ", words.size(), " words, expected two: ", verb.usage)};
  if (words[0].empty())
    return Error{Code::kInvalid, "found an empty mode, expected bsp, ssp:CLOCKS (as ssp:3), asp:SIGNIFICANCE or bap"};
  const std::string to = TRY(strategy::server::Synchrony::Parse(words[0])).ToText();
  flags.address = words[1];
  const auto asker = TRY(Asker::Open(flags, door));
  std::string before;
  const auto end =
      door.clock.Now() + std::chrono::duration_cast<base::Clock::Duration>(std::chrono::duration<double>(wait));
  while (true) {  // said again each time, since who was told may be lost
    const Json answer = Json::parse(TRY(asker->Ask(flags.address, "mode " + to)), nullptr, false);
    if (answer.is_object() && answer.contains("error")) return Error{Code::kInvalid, answer.value("error", "")};
    if (!answer.is_object() || !answer.contains("synchrony") || !answer["synchrony"].is_object())
      return Error{Code::kCorrupt, Str(flags.address, " gave no answer that could be read")};
    const Json& synchrony = answer["synchrony"];
    const std::string now = synchrony.value("now", "");
    if (before.empty()) before = now;
    if (now == to) {
      const auto since = synchrony.value("since", std::uint64_t{0});
      if (json)
        return Print(
            door.files,
            Json{{"schema", 1}, {"job", flags.job}, {"before", before}, {"now", now}, {"since", since}}.dump() + "\n");
      return Print(door.files, before == now ? Str("synchrony ", now, ", as it was\n")
                                             : Str("synchrony ", before, " → ", now, " at clock ", since, "\n"));
    }
    if (door.clock.Now() >= end)
      return Error{Code::kTimeout,
                   Str("after ", wait, " s the job still runs in ", now,
                       ": its workers have not met since (it may be reading, or at the end of an epoch); "
                       "it will go on in ",
                       to, " when they do")};
    TRY(door.GoOn());
    door.clock.Sleep(std::chrono::milliseconds(100));
  }
}

}  // namespace

const Verb kMode = {"mode", "change the synchrony of a running job with a parameter server",
                    "SYNCHRONY HOST:PORT --job NAME [--token-file FILE]",
                    "  freshet mode ssp:3 127.0.0.1:41513 --job 5f2c… --token-file job.token\n"
                    "  freshet mode bap node1:41513 --job nightly --json\n",
                    Run};

}  // namespace freshet::cli
