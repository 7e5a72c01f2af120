#include "desk.h"

#include <unistd.h>

#include "fabric/membership/envelope.h"
#include "fabric/tcp/towards.h"

namespace freshet::cli {

Result<std::unique_ptr<Desk>> Desk::Open(const PlaceFlags& flags, const fabric::Place& place, Door& door) {
  const fabric::TcpOptions options = TRY(flags.Tcp(place, door));
  const std::string host = place.rendezvous.empty() ? "127.0.0.1" : TRY(fabric::tcp::AddressTowards(place.rendezvous));
  auto post = TRY(fabric::TcpPost::Open({.host = host, .job = options.job, .token = options.token}, door.clock));
  char machine[256] = {};
  (void)gethostname(machine, sizeof machine - 1);
  WorkerView::Who who{.job = place.job, .name = Str("rank ", place.rank, " on ", machine), .address = post->address()};
  return std::unique_ptr<Desk>(new Desk(std::move(who), place.size, std::move(post), door.clock));
}

Desk::Desk(WorkerView::Who who, int size, std::unique_ptr<fabric::TcpPost> post, const base::Clock& clock)
    : name_(who.name),
      view_(who, clock),
      post_(std::move(post)),
      group_{.began_with = size, .least = size, .most = size, .members = {{who.name, who.address}}},
      clerk_(clock, [this] { Serve(); }) {}

Desk::~Desk() {
  {
    const base::Lock lock(mutex_);
    ending_ = true;
  }
  post_->Wake();
  clerk_.Join();
}

std::string Desk::card() const { return Str(name_, "\n", post_->address()); }

void Desk::Meet(const std::vector<std::string>& cards) {
  const base::Lock lock(mutex_);
  group_.members.clear();
  for (const std::string& card : cards) {
    const auto lines = Split(card, '\n');
    if (lines.size() == 2) group_.members.emplace_back(lines[0], lines[1]);
  }
}

void Desk::Serve() {
  while (true) {
    const auto letter = post_->Receive(base::Clock::Duration::max());
    const base::Lock lock(mutex_);
    if (ending_) return;
    if (!letter) continue;
    const auto envelope = fabric::Envelope::Decode(*letter);
    if (!envelope.ok() || !envelope.value().question) continue;
    const fabric::Question& question = *envelope.value().question;
    post_->Send(question.reply_to,
                fabric::Envelope{.answer = view_.Answer(group_, question.order, post_->strangers())}.Encode());
  }
}

}  // namespace freshet::cli
