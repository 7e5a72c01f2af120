#include "elastic_seat.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "fabric/tcp/tcp_fabric.h"
#include "fabric/tcp/towards.h"
#include "launch_token.h"
#include "launch_worker.h"
#include "progress.h"
#include "testimony.h"

namespace freshet::cli {
namespace {

constexpr int kAgentPatienceMs = 10'000;

std::string Variable(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? "" : text;
}

fabric::MemberId NewId() {
  fabric::MemberId id = 0;
  while (id == 0)
    if (getrandom(&id, sizeof id, 0) != sizeof id) id = 0;
  return id;
}

// All of it. Who could not be proved to have ended, should it be killed, must not have a say: it ends.
void TellAgent(int agent, std::string_view bytes) {
  while (!bytes.empty()) {
    pollfd line{.fd = agent, .events = POLLOUT, .revents = 0};
    const ssize_t put = poll(&line, 1, kAgentPatienceMs) <= 0
                            ? -1
                            : send(agent, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put <= 0) {
      WriteError("freshet: the agent of this worker (who started it) does not listen; it ends\n");
      _exit(kPeerLost);
    }
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
}

// Of a host that was cut off there may be no way to anybody, until it is back.
Result<std::string> AddressTowardsAny(const std::vector<std::string>& contacts, Door& door) {
  for (const auto end = door.clock.Now() + std::chrono::seconds(30); door.clock.Now() < end;) {
    for (const std::string& contact : contacts)
      if (auto address = fabric::tcp::AddressTowards(contact); address.ok()) return address;
    TRY(door.GoOn());
    door.clock.Sleep(std::chrono::milliseconds(200));
  }
  return Error{Code::kPeerLost, Str("there is no way to any of ", Join(contacts, ", "))};
}

}  // namespace

bool ElasticSeat::Comes() { return !Variable("FRESHET_JOIN").empty(); }

Result<std::unique_ptr<ElasticSeat>> ElasticSeat::Open(const PlaceFlags& flags, const fabric::Place& place,
                                                       const train::Together::Bounds& bounds, Door& door) {
  if (flags.fabric != "tcp")
    return Error{Code::kInvalid, "--elastic goes with --fabric tcp: MPI ends with its first loss"};
  if (place.size > bounds.most)
    return Error{Code::kInvalid, Str("--elastic: ", place.size, " workers, at most ", bounds.most)};
  if (!Comes() && place.size < bounds.least)
    return Error{Code::kInvalid, Str("--elastic: ", place.size, " workers, at least ", bounds.least,
                                     "; start as many, or give a lower MIN")};
  fabric::TcpOptions options = TRY(flags.Tcp(place, door));
  options.stop = nullptr;
  options.connect_timeout = std::chrono::seconds(3);
  std::vector<std::string> contacts;
  const std::string join = Variable("FRESHET_JOIN");
  for (const std::string_view address : Split(join, ','))
    if (!address.empty()) contacts.emplace_back(address);
  const std::string host =
      contacts.empty() ? place.rendezvous.empty() ? "127.0.0.1" : TRY(fabric::tcp::AddressTowards(place.rendezvous))
                       : TRY(AddressTowardsAny(contacts, door));
  auto post = TRY(fabric::TcpPost::Open({.host = host, .job = options.job, .token = options.token}, door.clock));
  std::unique_ptr<ElasticSeat> seat(new ElasticSeat(std::move(options), std::move(post), door.clock));
  const std::string who = Variable("FRESHET_NAME");
  char machine[256] = {};
  (void)gethostname(machine, sizeof machine - 1);
  seat->seat_ = {.id = NewId(),
                 .address = seat->post_->address(),
                 .name = Str(who.empty() ? Str("rank ", place.rank) : who, " on ", machine)};
  seat->view_ = std::make_unique<WorkerView>(WorkerView::Who{seat->options_.job, seat->seat_.name, seat->seat_.address},
                                             door.clock);
  seat->bounds_ = bounds;
  seat->workers_ = place.size;
  seat->contacts_ = std::move(contacts);
  seat->options_.bind_address = host;
  if (const std::string number = Variable("FRESHET_AGENT_FD"); !number.empty()) {
    const int descriptor = std::atoi(number.c_str());
    if (fcntl(descriptor, F_SETFD, FD_CLOEXEC) != 0)
      return Error{Code::kInvalid, Str("FRESHET_AGENT_FD: found ", Quoted(number), ", expected an open descriptor")};
    seat->agent_ = base::Descriptor(descriptor);
  }
  return seat;
}

fabric::ElasticPlace ElasticSeat::place() const {
  fabric::ElasticPlace place;
  place.seat = seat_;
  place.post = post_.get();
  place.connect = [this](const fabric::Roster& roster, int rank, const std::atomic<bool>& stop) {
    return Connect(roster, rank, stop);
  };
  place.options.membership.least = static_cast<std::size_t>(bounds_.least);
  place.options.membership.most = static_cast<std::size_t>(bounds_.most);
  place.options.contacts = contacts_;
  if (agent_.open()) {
    place.options.remember = [this](const fabric::Testimony& testimony) {
      began_ = began_ || testimony.committed.generation > 0;
      TellAgent(agent_.get(), EncodeTestimony(seat_.id, testimony));
    };
    if (!contacts_.empty()) place.options.remember(AboutToJoin());
  }
  place.options.answer = [this](const fabric::Roster& roster, const std::string& order) {
    return Answer(roster, order);
  };
  place.comes = !contacts_.empty();
  place.workers = workers_;
  return place;
}

// What is known of who has asked to be let in, and may be before it learns of it: whom to tell if it ends.
fabric::Testimony ElasticSeat::AboutToJoin() const {
  fabric::Testimony testimony;
  for (const std::string& contact : contacts_) testimony.committed.seats.push_back({.address = contact});
  return testimony;
}

std::string ElasticSeat::Answer(const fabric::Roster& roster, const std::string& order) const {
  WorkerView::Group group{
      .generation = roster.generation, .began_with = workers_, .least = bounds_.least, .most = bounds_.most};
  for (const fabric::Seat& seat : roster.seats) group.members.emplace_back(seat.name, seat.address);
  return view_->Answer(group, order, post_->strangers());
}

// Where nobody has chosen a port, each generation has another.
Result<std::unique_ptr<fabric::Fabric>> ElasticSeat::Connect(const fabric::Roster& roster, int rank,
                                                             const std::atomic<bool>& stop) const {
  fabric::TcpOptions options = options_;
  options.stop = &stop;
  options.rank = rank;
  options.size = static_cast<int>(roster.seats.size());
  options.generation = roster.generation;
  const std::string& first = roster.seats[0].address;
  options.rendezvous =
      Str(first.substr(0, first.rfind(':')), ":",
          fabric::PortOf(Str(options.job, " generation ", roster.generation, " by ", roster.seats[0].id)));
  return std::unique_ptr<fabric::Fabric>(TRY(fabric::TcpFabric::Connect(options, clock_)));
}

}  // namespace freshet::cli
