#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fabric/protocol/protocol.h"
#include "fabric/sim/wires.h"

namespace freshet::fabric::sim {

// What it costs a member's processor to take a message, in seconds; none: nothing.
struct Charges {
  static constexpr std::size_t kShortBytes = 256 << 10;
  double message = 0;                                    // each, however short
  double copy_byte = 0;                                  // put to its place
  double add_byte = 0;                                   // added to what is there
  double short_byte = 0;                                 // either, in a message of up to kShortBytes
  double apply_byte = 0;                                 // of a gradient, to parameters
  double codec_byte = 0;                                 // encoded or decoded
  std::map<std::string, double, std::less<>> work = {};  // a byte of what Fabric::Spend names
  std::function<void(double seconds)> spend;             // takes the time, on the member's processor
};

// The protocol over simulated wires. What is sent is copied at once, so that an operation's memory is never half way.
//
// Threads: one at a time; the caller has a lock. Failure: as Protocol says. Ownership: borrows the wires.
class Engine final : public Protocol {
 public:
  Engine(Wires& wires, Settings settings, Charges charges, const base::Clock& clock);
  ~Engine() override;

  // Takes one letter, for as long as the charges say; the caller keeps its lock meanwhile.
  bool Turn() override;
  void Interrupt() override { WakeAll(); }
  // Until there is something to look at: of who drives, and of the keeper, who is woken only when nobody drives.
  void Rest(base::Mutex& held, base::Clock::Duration end) REQUIRES(held);
  void Watch(base::Mutex& held, base::Clock::Duration end) REQUIRES(held) { watched_->WaitUntil(held, end); }
  void WakeKeeper() { watched_->NotifyAll(); }
  bool Quiet() const { return mail_.empty(); }  // is there nothing for Turn to do?
  std::uint64_t bytes_sent() const override { return bytes_sent_; }
  const Charges& charges() const { return charges_; }

 private:
  bool Open(int rank) const override { return rank != this->rank() && !shut_[static_cast<std::size_t>(rank)]; }
  void Shut(int rank) override;
  void Send(int to, const Note& note, std::span<const std::byte> payload, Operation* operation) override;
  void SendBulk(Operation& send) override;
  void ExpectBulk(Operation&) override {}
  void Push(int) override {}
  bool Idle(int) const override { return true; }
  bool Forget(const Operation&) override { return true; }
  void OnLost(int) override { WakeAll(); }
  void OnStop() override { WakeAll(); }
  void WakeAll() {
    stirred_->NotifyAll();
    watched_->NotifyAll();
  }

  void Post(int to, Letter::Kind kind, const Note& note, std::span<const std::byte> payload, std::size_t hollow);
  void OnLetter(const Letter& letter);
  void Charge(const Letter& letter);

  Wires& wires_;
  const Charges charges_;
  const std::unique_ptr<base::Condition> stirred_, watched_;
  bool resting_ = false;  // does somebody who drives?
  std::deque<Letter> mail_;
  std::vector<bool> shut_;
  std::uint64_t bytes_sent_ = 0;
};

}  // namespace freshet::fabric::sim
