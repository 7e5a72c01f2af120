#include "fabric/sim/engine.h"

#include <utility>

namespace freshet::fabric::sim {

Engine::Engine(Network& network, Settings settings, const base::Clock& clock)
    : Protocol(std::move(settings), clock),
      network_(network),
      stirred_(clock.NewCondition()),
      shut_(static_cast<std::size_t>(size())) {
  network_.Attach(rank(), [this](Letter letter) {
    mail_.push_back(std::move(letter));
    stirred_->NotifyAll();
  });
}

Engine::~Engine() {
  network_.Detach(rank());
  for (int other = 0; other < size(); ++other)
    if (Open(other)) network_.Close(rank(), other);
}

bool Engine::Turn() {
  if (mail_.empty()) return false;
  while (!mail_.empty()) {
    const Letter letter = std::move(mail_.front());
    mail_.pop_front();
    OnLetter(letter);
  }
  return true;
}

void Engine::OnLetter(const Letter& letter) {
  if (shut_[static_cast<std::size_t>(letter.from)]) return;
  if (letter.kind == Letter::Kind::kClosed) return Lose(letter.from, "its connection was closed");
  Heard(letter.from);
  if (letter.kind == Letter::Kind::kBulk) {
    Operation* const receive = ReceiveOf(letter.from, letter.note.id);
    if (receive == nullptr) return;  // it was given up
    receive->landing.Put(letter.payload);
    return Moved(*receive);
  }
  if (const Result<void> taken = OnNote(letter.from, letter.note, letter.payload); !taken.ok())
    Lose(letter.from, taken.error().text);
}

void Engine::Shut(int rank) {
  if (!Open(rank)) return;
  shut_[static_cast<std::size_t>(rank)] = true;
  network_.Close(this->rank(), rank);
}

void Engine::Post(int to, Letter::Kind kind, const Note& note, std::span<const std::byte> payload) {
  Letter letter{.from = rank(), .kind = kind, .note = note, .payload = {payload.begin(), payload.end()}};
  bytes_sent_ += letter.bytes();
  network_.Send(to, std::move(letter));
}

void Engine::Send(int to, const Note& note, std::span<const std::byte> payload, Operation* operation) {
  Post(to, Letter::Kind::kNote, note, payload);
  if (operation != nullptr) Moved(*operation);
}

void Engine::SendBulk(Operation& send) {
  Post(send.peer, Letter::Kind::kBulk, {.type = NoteType::kData, .id = send.peer_id}, send.out);
  Moved(send);
}

}  // namespace freshet::fabric::sim
