#include "fabric/membership/envelope.h"

#include "fabric/tcp/wire.h"

namespace freshet::fabric {
namespace {

using tcp::PutNumber;
using tcp::PutText;
using tcp::WireReader;

constexpr std::uint32_t kMost = 1 << 16;  // of anything that there are several of

void Put(std::string& out, const Ballot& ballot) {
  PutNumber(out, ballot.round);
  PutNumber(out, ballot.by);
}
void Put(std::string& out, const std::vector<Seat>& seats) {
  PutNumber(out, static_cast<std::uint32_t>(seats.size()));
  for (const Seat& seat : seats) {
    PutNumber(out, seat.id);
    PutText(out, seat.address);
    PutText(out, seat.name);
    PutNumber(out, seat.step);
    PutNumber(out, seat.tier);
  }
}
void Put(std::string& out, const Roster& roster) {
  PutNumber(out, roster.generation);
  Put(out, roster.seats);
}
void Put(std::string& out, const Proof& proof) {
  PutNumber(out, proof.id);
  PutText(out, proof.how);
  Put(out, proof.testimony.committed);
  Put(out, proof.testimony.next.promised);
  Put(out, proof.testimony.next.accepted);
  Put(out, proof.testimony.next.value);
}

Ballot TakeBallot(WireReader& reader) {
  Ballot ballot;
  ballot.round = reader.Number<std::uint64_t>();
  ballot.by = reader.Number<std::uint64_t>();
  return ballot;
}
std::vector<Seat> TakeSeats(WireReader& reader) {
  std::vector<Seat> seats;
  const auto count = reader.Number<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && i < kMost && reader.ok(); ++i) {
    Seat& seat = seats.emplace_back();
    seat.id = reader.Number<std::uint64_t>();
    seat.address = reader.Text();
    seat.name = reader.Text();
    seat.step = reader.Number<std::uint64_t>();
    seat.tier = reader.Number<std::uint64_t>();
  }
  return seats;
}
Roster TakeRoster(WireReader& reader) {
  Roster roster;
  roster.generation = reader.Number<std::uint64_t>();
  roster.seats = TakeSeats(reader);
  return roster;
}
Proof TakeProof(WireReader& reader) {
  Proof proof;
  proof.id = reader.Number<std::uint64_t>();
  proof.how = reader.Text();
  proof.testimony.committed = TakeRoster(reader);
  proof.testimony.next.promised = TakeBallot(reader);
  proof.testimony.next.accepted = TakeBallot(reader);
  proof.testimony.next.value = TakeRoster(reader);
  return proof;
}

enum class What : std::uint8_t { kMessage = 1, kProof, kQuestion, kAnswer };

}  // namespace

std::string Envelope::Encode() const {
  std::string out;
  PutNumber(out, to);
  const What what = message ? What::kMessage : proof ? What::kProof : question ? What::kQuestion : What::kAnswer;
  PutNumber(out, static_cast<std::uint8_t>(what));
  if (proof) Put(out, *proof);
  if (question) PutText(out, question->reply_to);
  if (question) PutText(out, question->order);
  if (answer) PutText(out, *answer);
  if (!message) return out;
  PutNumber(out, static_cast<std::uint8_t>(message->kind));
  PutNumber(out, message->from);
  PutNumber(out, message->generation);
  Put(out, message->ballot);
  Put(out, message->accepted);
  Put(out, message->roster);
  Put(out, message->seats);
  PutNumber(out, static_cast<std::uint32_t>(message->proofs.size()));
  for (const Proof& each : message->proofs) Put(out, each);
  return out;
}

Result<Envelope> Envelope::Decode(std::string_view bytes) {
  WireReader reader(bytes);
  Envelope envelope;
  envelope.to = reader.Number<std::uint64_t>();
  const auto what = static_cast<What>(reader.Number<std::uint8_t>());
  if (what == What::kProof) {
    envelope.proof = TakeProof(reader);
  } else if (what == What::kQuestion) {
    Question& question = envelope.question.emplace();
    question.reply_to = reader.Text();
    question.order = reader.Text();
  } else if (what == What::kAnswer) {
    envelope.answer = reader.Text();
  } else if (what == What::kMessage) {
    MembershipMessage& message = envelope.message.emplace();
    const auto kind = reader.Number<std::uint8_t>();
    message.kind = static_cast<MembershipMessage::Kind>(kind);
    message.from = reader.Number<std::uint64_t>();
    message.generation = reader.Number<std::uint64_t>();
    message.ballot = TakeBallot(reader);
    message.accepted = TakeBallot(reader);
    message.roster = TakeRoster(reader);
    message.seats = TakeSeats(reader);
    const auto proofs = reader.Number<std::uint32_t>();
    for (std::uint32_t i = 0; i < proofs && i < kMost && reader.ok(); ++i) message.proofs.push_back(TakeProof(reader));
    if (kind > static_cast<std::uint8_t>(MembershipMessage::Kind::kCommit))
      return Error{Code::kCorrupt, Str("a letter about membership: kind ", static_cast<int>(kind), " is unknown")};
  }
  if (!reader.AtEnd() || (!envelope.message && !envelope.proof && !envelope.question && !envelope.answer))
    return Error{Code::kCorrupt, "a letter about membership is malformed"};
  return envelope;
}

}  // namespace freshet::fabric
