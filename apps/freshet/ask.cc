#include "ask.h"

#include <algorithm>
#include <cstdlib>

#include "fabric/membership/envelope.h"
#include "fabric/tcp/towards.h"

namespace freshet::cli {

void AskFlags::Register(base::Settings& settings) {
  settings.Group("Which job");
  settings.Add("address", &address, "where one of its workers is reached, as the job says when it begins",
               {.value = "HOST:PORT", .positional = true});
  RegisterJob(settings);
}

void AskFlags::RegisterJob(base::Settings& settings) {
  settings.Add("job", &job, "its name, as it says when it begins", {.value = "NAME"});
  settings.Add("token-file", &token_file, "32 secret bytes that members of the job share (mode 0600)",
               {.value = "FILE"});
}

Result<std::unique_ptr<Asker>> Asker::Open(const AskFlags& flags, Door& door) {
  if (flags.address.empty() || flags.job.empty())
    return Error{Code::kInvalid,
                 "which job? HOST:PORT and --job NAME stand in the line 'others may join at …' or 'asked how it goes "
                 "at …' it began with"};
  const fabric::Place here{.size = 1, .local_size = 1};
  Token token = TRY(ReadToken(flags.token_file, here, [](const char* name) { return std::getenv(name); }));
  return Open(std::move(token), flags.job, flags.address, door);
}

Result<std::unique_ptr<Asker>> Asker::Open(Token token, std::string job, const std::string& address, Door& door) {
  fabric::TcpPost::Options options{.host = TRY(fabric::tcp::AddressTowards(address)), .job = std::move(job)};
  std::copy(token.begin(), token.end(), options.token.begin());
  auto post = TRY(fabric::TcpPost::Open(options, door.clock));
  return std::unique_ptr<Asker>(new Asker(std::move(token), std::move(post), door));
}

Result<std::string> Asker::AskAny(const std::vector<std::string>& addresses, base::Clock::Duration patience,
                                  const std::string& order) {
  const auto end = door_.clock.Now() + patience;
  for (const std::string& address : addresses)
    post_->Send(address, fabric::Envelope{.question = fabric::Question{post_->address(), order}}.Encode());
  while (door_.clock.Now() < end) {
    TRY(door_.GoOn());
    const auto letter = post_->Receive(std::min(end, door_.clock.Now() + std::chrono::milliseconds(100)));
    if (!letter) continue;
    auto envelope = fabric::Envelope::Decode(*letter);
    if (envelope.ok() && envelope.value().answer) return *envelope.value().answer;
  }
  return Error{Code::kTimeout, Str("no answer from ", Join(addresses, ", "),
                                   ": either nobody of the job is there, or its name or token is another")};
}

}  // namespace freshet::cli
