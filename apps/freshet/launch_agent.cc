#include "launch_agent.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include "launch_crew.h"
#include "verb.h"
#include "witness.h"

extern char** environ;

namespace freshet::cli {
namespace {

constexpr int kTokenPatienceMs = 30'000;

Result<Token> ReceiveToken() {
  Token token(kTokenBytes);
  for (std::size_t got = 0; got < token.size();) {
    pollfd input{0, POLLIN, 0};
    const ssize_t bytes = poll(&input, 1, kTokenPatienceMs) > 0 ? read(0, token.data() + got, token.size() - got) : -1;
    if (bytes <= 0)
      return Error{Code::kInvalid, "no token came on standard input; --agent is for freshet launch, not for people"};
    got += static_cast<std::size_t>(bytes);
  }
  return token;
}

// What the launcher says: a signal, or SIGTERM once when it is gone.
class Orders {
 public:
  explicit Orders(const Door& door) : door_(door) { fcntl(0, F_SETFL, fcntl(0, F_GETFL) | O_NONBLOCK); }

  int Next() {
    if (over_) return 0;
    unsigned char byte = 0;
    const ssize_t got = read(0, &byte, 1);
    over_ = got == 0 || door_.stop;
    if (over_) return SIGTERM;
    return got == 1 && (byte == SIGINT || byte == SIGTERM || byte == SIGKILL) ? byte : 0;
  }

 private:
  const Door& door_;
  bool over_ = false;
};

}  // namespace

Result<void> RunAgent(Door& door, base::Clock::Duration frozen, const std::vector<std::string>& arguments) {
  const Token secret = TRY(ReceiveToken());
  const base::Descriptor token = TRY(HoldToken(secret));
  WorkerStart start;
  start.out = start.err = WorkerStart::Output::kInherit;
  start.arguments = {"freshet"};
  start.arguments.insert(start.arguments.end(), arguments.begin(), arguments.end());
  for (char** variable = environ; *variable != nullptr; ++variable) start.environment.emplace_back(*variable);
  start.environment.push_back(Str("FRESHET_TOKEN_FD=", token.get()));
  start.token = token.get();
  const bool elastic = std::find(arguments.begin(), arguments.end(), "--elastic") != arguments.end();
  std::unique_ptr<Witness> witness;
  const char* const job = std::getenv("FRESHET_JOB_ID");
  if (elastic) witness = TRY(Witness::Open(secret, job == nullptr ? "" : job, door.clock));
  start.testifies = elastic;
  Crew::Options how{.frozen = frozen};
  if (elastic) how.goes_on = [&](Worker& ended) { return witness->Tell(ended); };
  Crew crew(door.clock, how);
  crew.Add(TRY(Worker::Start(start)));
  Orders orders(door);
  const auto outcome = crew.Run([&] { return orders.Next(); });
  door.exit_code = outcome.code;
  if (outcome.cause && outcome.cause->frozen > 0)
    return Error{Code::kPeerLost,
                 "this worker was frozen, that is, stopped by a signal (SIGSTOP, SIGTSTP), and now ended"};
  return {};
}

}  // namespace freshet::cli
