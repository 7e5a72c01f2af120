#include "fabric/sim/engine.h"

#include <utility>

namespace freshet::fabric::sim {

Engine::Engine(Wires& wires, Settings settings, Charges charges, const base::Clock& clock)
    : Protocol(std::move(settings), clock),
      wires_(wires),
      charges_(std::move(charges)),
      stirred_(clock.NewCondition()),
      watched_(clock.NewCondition()),
      shut_(static_cast<std::size_t>(size())) {
  wires_.Attach(rank(), [this](Letter letter) {
    mail_.push_back(std::move(letter));
    (resting_ ? stirred_ : watched_)->NotifyAll();
  });
}

Engine::~Engine() {
  wires_.Detach(rank());
  for (int other = 0; other < size(); ++other)
    if (Open(other)) wires_.Close(rank(), other);
}

void Engine::Rest(base::Mutex& held, base::Clock::Duration end) {
  resting_ = true;
  stirred_->WaitUntil(held, end);
  resting_ = false;
}

bool Engine::Turn() {
  // One at a time: each may take a while, and whoever waits for it goes on at once.
  if (mail_.empty()) return false;
  const Letter letter = std::move(mail_.front());
  mail_.pop_front();
  OnLetter(letter);
  return true;
}

void Engine::OnLetter(const Letter& letter) {
  if (shut_[static_cast<std::size_t>(letter.from)]) return;
  if (letter.kind == Letter::Kind::kClosed) return Lose(letter.from, "its connection was closed");
  Heard(letter.from);
  if (charges_.spend) Charge(letter);
  if (letter.kind == Letter::Kind::kBulk) {
    Operation* const receive = ReceiveOf(letter.from, letter.note.id);
    if (receive == nullptr) return;  // it was given up
    receive->landing.Put(letter.payload());
    return Moved(*receive);
  }
  if (const Result<void> taken = OnNote(letter.from, letter.note, letter.payload()); !taken.ok())
    Lose(letter.from, taken.error().text);
}

void Engine::Charge(const Letter& letter) {
  double seconds = charges_.message;
  if (letter.kind == Letter::Kind::kBulk) {
    const Operation* const receive = ReceiveOf(letter.from, letter.note.id);
    const bool adds = receive != nullptr && receive->landing.adds();
    const double each = letter.bytes() <= Charges::kShortBytes ? charges_.short_byte
                        : adds                                 ? charges_.add_byte
                                                               : charges_.copy_byte;
    seconds += static_cast<double>(letter.bytes()) * each;
  } else if (letter.note.type != NoteType::kEager) {
    return;
  }
  charges_.spend(seconds);
}

void Engine::Shut(int rank) {
  if (!Open(rank)) return;
  shut_[static_cast<std::size_t>(rank)] = true;
  wires_.Close(this->rank(), rank);
}

void Engine::Post(int to, Letter::Kind kind, const Note& note, std::span<const std::byte> payload, std::size_t hollow) {
  Letter letter{.from = rank(), .kind = kind, .note = note, .content = {}, .hollow = hollow};
  if (kind == Letter::Kind::kNote && base::IsHollow(payload.data()))
    letter.content.resize(payload.size());  // short, and kept by who is not ready for it
  else
    letter.Carry(payload);
  bytes_sent_ += letter.bytes();
  wires_.Send(to, std::move(letter));
}

void Engine::Send(int to, const Note& note, std::span<const std::byte> payload, Operation* operation) {
  Post(to, Letter::Kind::kNote, note, payload, operation == nullptr ? 0 : operation->hollow);
  if (operation != nullptr) Moved(*operation);
}

void Engine::SendBulk(Operation& send) {
  Post(send.peer, Letter::Kind::kBulk, {.type = NoteType::kData, .id = send.peer_id}, send.out, send.hollow);
  Moved(send);
}

}  // namespace freshet::fabric::sim
