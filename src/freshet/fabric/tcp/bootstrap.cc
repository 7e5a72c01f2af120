#include "fabric/tcp/bootstrap.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "base/option.h"
#include "fabric/tcp/member_table.h"

namespace freshet::fabric::tcp {
namespace {

constexpr std::chrono::milliseconds kRetry{20};

std::string HostName() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

// The same for all processes under one kernel since it started. Empty where there is none: then nobody is near.
std::string BootId() {
  std::string id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), id);
  return id.substr(0, 64);
}

// Members that came with TLS to one without, or the other way round, are among those that are missing.
std::string Mismatch(std::uint64_t callers, bool tls) {
  if (callers == 0) return "";
  return Str(" (", callers, tls ? " came without TLS" : " came with TLS", ", unlike this one: give ", Option("tls"),
             " to all members, or to none)");
}

}  // namespace

Bootstrap::Bootstrap(const TcpOptions& options, base::Clock& clock)
    : options_(options),
      clock_(clock),
      badge_{options.rank, options.size, options.job, options.token, options.generation},
      deadline_(clock, options.connect_timeout, options.stop),
      links_(static_cast<std::size_t>(options.size)) {
  home_.host = options.host.empty() ? HostName() : options.host;
  home_.boot = BootId();
}

Result<std::vector<Link>> Bootstrap::Run() {
  if (options_.tls && options_.size > 1) tls_ = TRY(TlsKeys::Make(options_.token));
  if (options_.size > 1) TRY((options_.rank == 0 ? RunFirst() : RunOther()).While("the group comes together"));
  links_[static_cast<std::size_t>(options_.rank)].home = home_;
  return std::move(links_);
}

Door::Settings Bootstrap::DoorSettings() const {
  return {badge_, home_, options_.shared_memory ? options_.ring_bytes : 0, tls_};
}

Result<void> Bootstrap::RunFirst() {
  listener_ = TRY(Listen(TRY(ParseAddress(options_.rendezvous))));
  const Address here = LocalAddress(listener_.get());
  home_.address = here.host;
  home_.port = here.port;
  if (options_.listening) TRY(options_.listening(here.port));
  Door door(std::move(listener_), DoorSettings(), clock_);
  TRY(LetIn(door, 1));
  const std::string table = Table();
  for (std::size_t rank = 1; rank < links_.size(); ++rank) TRY(Tell(rank, table));
  TRY(HearFromAll());
  for (std::size_t rank = 1; rank < links_.size(); ++rank) TRY(Tell(rank, "!"));
  return {};
}

Result<void> Bootstrap::RunOther() {
  links_[0] = TRY(DialUntilThere(0, TRY(ParseAddress(options_.rendezvous))));
  const std::vector<Address> table = TRY(ReceiveTable());
  for (int rank = 1; rank < options_.rank; ++rank)
    links_[static_cast<std::size_t>(rank)] = TRY(DialUntilThere(rank, table[static_cast<std::size_t>(rank)]));
  Door door(std::move(listener_), DoorSettings(), clock_);
  TRY(LetIn(door, options_.rank + 1));
  TRY(Tell(0, "!"));
  TRY(Hear(0, 1).While("rank 0 waits for the others"));
  return {};
}

// All at once, since one that dies keeps the others from ever being ready.
Result<void> Bootstrap::HearFromAll() {
  std::vector<pollfd> unheard;
  for (const Link& link : links_) unheard.push_back({.fd = link.conduit.socket(), .events = POLLIN, .revents = 0});
  while (std::any_of(unheard.begin(), unheard.end(), [](const pollfd& entry) { return entry.fd >= 0; })) {
    if (deadline_.Passed()) return Error{Code::kTimeout, "the members did not reach each other in time"};
    Await(unheard, clock_, deadline_.Next());
    for (std::size_t rank = 1; rank < links_.size(); ++rank) {
      if (unheard[rank].fd < 0 || unheard[rank].revents == 0) continue;
      TRY(Hear(rank, 1).While(Str("rank ", rank, " (", links_[rank].home.host, ") joins")));
      unheard[rank].fd = -1;
    }
  }
  return {};
}

Result<void> Bootstrap::LetIn(Door& door, int first) {
  const auto at = [&](int rank) -> Link& { return links_[static_cast<std::size_t>(rank)]; };
  const auto wanted = [&](int rank) -> std::string {
    if (rank < first) return Str("rank ", rank, " is to be dialled, not let in");
    if (at(rank).conduit.open()) return Str("there is a rank ", rank, " already, at ", at(rank).home.host);
    return "";
  };
  const auto enter = [&](int rank, Link link) { at(rank) = std::move(link); };
  while (!MissingFrom(first).empty()) {
    if (deadline_.Passed())
      return Error{Code::kTimeout, Str("not all members came in time: missing ", MissingFrom(first),
                                       "; are they running, and can they reach ", home_.address, ":", home_.port, "?",
                                       Mismatch(door.mismatched(), options_.tls))};
    std::vector<int> watched;
    for (const Link& link : links_)
      if (link.conduit.open()) watched.push_back(link.conduit.socket());
    door.Turn(deadline_.Next(), wanted, enter, watched);
    for (std::size_t rank = 0; rank < links_.size(); ++rank) {
      if (links_[rank].conduit.open() && Closed(links_[rank].conduit))
        return Error{Code::kPeerLost, Str("rank ", rank, " (", links_[rank].home.host, ") left before all were there")};
    }
  }
  strangers_ += door.strangers();
  return {};
}

std::string Bootstrap::MissingFrom(int first) const {
  std::string missing;
  for (int rank = first; rank < options_.size; ++rank)
    if (!links_[static_cast<std::size_t>(rank)].conduit.open()) missing += Str(missing.empty() ? "rank " : ", ", rank);
  return missing;
}

// Whoever is to answer may not have begun to listen, or may be busy with strangers; what a member of ours *says* is
// final.
Result<Link> Bootstrap::DialUntilThere(int rank, const Address& address) {
  const auto doing = [&] { return Str("dialling rank ", rank, " at ", address.host, ":", address.port); };
  while (true) {
    auto socket = Connect(address, deadline_);
    Error error{Code::kIo, ""};
    if (socket.ok()) {
      auto link = Greet(rank, Conduit(std::move(socket).value(), tls_, TlsSession::Side::kDials));
      if (link.ok()) return link;
      error = std::move(link).error();
    } else {
      error = std::move(socket).error();
    }
    if (error.code != Code::kIo && error.code != Code::kNotFound) return std::move(error).While(doing());
    if (rank > 0 && Closed(links_[0].conduit)) return Error{Code::kPeerLost, "rank 0 has gone"}.While(doing());
    if (deadline_.Passed()) return Error{Code::kTimeout, error.text}.While(doing());
    clock_.Sleep(kRetry);
  }
}

Result<Link> Bootstrap::Greet(int rank, Conduit conduit) {
  Tune(conduit);
  if (rank == 0) {  // where we reach rank 0 from is where the others can reach us
    home_.address = options_.bind_address.empty() ? LocalAddress(conduit.socket()).host : options_.bind_address;
    listener_ = TRY(Listen({home_.address, 0}));
    home_.port = LocalAddress(listener_.get()).port;
  }
  const Conduit* watched = rank > 0 ? &links_[0].conduit : nullptr;
  TRY(ShakeHands(conduit, deadline_, watched));
  Dialing dialing(badge_, rank, NewNonce());
  TRY(SendAll(conduit, dialing.Hello(), deadline_));
  const std::string challenge = TRY(ReceiveAll(conduit, kChallengeBytes, deadline_, watched));
  TRY(SendAll(conduit, TRY(dialing.Prove(challenge, home_)), deadline_));
  std::string sealed = TRY(ReceiveAll(conduit, kSealBytes, deadline_, watched));
  sealed += TRY(ReceiveAll(conduit, TRY(SealedBytes(sealed)), deadline_, watched));
  const Dialing::Welcome welcome = TRY(dialing.Welcomed(sealed));
  Link link{.conduit = std::move(conduit), .home = welcome.home, .shared = nullptr};
  if (welcome.offer.bytes > 0 && options_.shared_memory) {
    auto opened = SharedMemory::Open(welcome.offer);
    if (opened.ok()) link.shared = std::move(opened).value();
  }
  TRY(SendAll(link.conduit, dialing.Join(link.shared != nullptr), deadline_));
  return link;
}

std::string Bootstrap::Table() const {
  std::vector<Address> members;
  for (const Link& link : links_) members.push_back({link.home.address, link.home.port});
  return EncodeTable(members);
}

Result<std::vector<Address>> Bootstrap::ReceiveTable() {
  const std::string head = TRY(Hear(0, kTableHeadBytes).While("waiting for the list of members"));
  return DecodeTable(TRY(Hear(0, TRY(TableBytes(head, links_.size())))), links_.size());
}

Result<void> Bootstrap::Tell(std::size_t rank, std::string_view bytes) {
  const auto sent = SendAll(links_[rank].conduit, bytes, deadline_);
  return sent.ok() ? sent : OfMet(rank, sent.error());
}

Result<std::string> Bootstrap::Hear(std::size_t rank, std::size_t bytes) {
  auto heard = ReceiveAll(links_[rank].conduit, bytes, deadline_);
  return heard.ok() ? std::move(heard) : OfMet(rank, heard.error());
}

Error Bootstrap::OfMet(std::size_t rank, const Error& why) const {
  if (why.code != Code::kIo) return why;
  return {Code::kPeerLost, Str("rank ", rank, " (", links_[rank].home.host, ") is gone: ", why.text)};
}

}  // namespace freshet::fabric::tcp
