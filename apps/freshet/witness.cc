#include "witness.h"

#include <algorithm>

namespace freshet::cli {

Result<std::unique_ptr<Witness>> Witness::Open(const Token& token, std::string job, base::Clock& clock) {
  fabric::TcpPost::Options options{.job = std::move(job)};
  std::copy(token.begin(), token.end(), options.token.begin());
  return std::unique_ptr<Witness>(new Witness(TRY(fabric::TcpPost::Open(options, clock)), clock));
}

Witness::Witness(std::unique_ptr<fabric::TcpPost> post, base::Clock& clock)
    : post_(std::move(post)), clock_(clock), postman_(clock, [this] {
        while (!ending_) (void)post_->Receive(clock_.Now() + std::chrono::seconds(1));
        post_->Flush(clock_.Now() + std::chrono::seconds(1));  // the last may be the one that matters
      }) {}

Witness::~Witness() {
  ending_ = true;
  post_->Wake();
  postman_.Join();
}

bool Witness::MayComeBack(const Worker& ended) const {
  return !others_.empty() && !ended.asked() && (ended.signal() != 0 || (belonged_ && ended.code() == kPeerLost));
}

bool Witness::Tell(Worker& ended) {
  std::optional<fabric::Proof> proof = ended.Testimony();
  belonged_ = proof && proof->testimony.committed.generation > 0;
  began_ = began_ || belonged_;
  // Who is far away and there has told. One here never belonged to a group: it may have been about to join one.
  if (!proof) return ended.far() || !others_.empty();
  proof->how = ended.signal() != 0 ? Str("killed by signal ", ended.signal()) : Str("exit code ", ended.code());
  const std::string letter = fabric::Envelope{.proof = proof}.Encode();
  if (!belonged_) {  // but perhaps the others are about to wait for it
    for (const fabric::Seat& seat : proof->testimony.committed.seats) post_->Send(seat.address, letter);
    return ended.far() || !others_.empty();
  }
  others_.clear();
  for (const fabric::Roster* const roster : {&proof->testimony.committed, &proof->testimony.next.value})
    for (const fabric::Seat& seat : roster->seats)
      if (seat.id != proof->id && std::find(others_.begin(), others_.end(), seat.address) == others_.end())
        others_.push_back(seat.address);
  for (const std::string& address : others_) post_->Send(address, letter);
  return true;
}

}  // namespace freshet::cli
