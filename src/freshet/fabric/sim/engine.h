#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fabric/protocol/protocol.h"
#include "fabric/sim/network.h"

namespace freshet::fabric::sim {

// The protocol over a simulated network. What is sent is copied at once, so that an operation's memory is never
// half way.
//
// Threads: one at a time; the caller has a lock. Failure: as Protocol says. Ownership: borrows the network.
class Engine final : public Protocol {
 public:
  Engine(Network& network, Settings settings, const base::Clock& clock);
  ~Engine() override;

  bool Turn() override;
  void Interrupt() override { stirred_->NotifyAll(); }
  base::Condition& stirred() { return *stirred_; }  // notified when there is something to look at
  bool Quiet() const { return mail_.empty(); }      // is there nothing for Turn to do?
  std::uint64_t bytes_sent() const override { return bytes_sent_; }

 private:
  bool Open(int rank) const override { return rank != this->rank() && !shut_[static_cast<std::size_t>(rank)]; }
  void Shut(int rank) override;
  void Send(int to, const Note& note, std::span<const std::byte> payload, Operation* operation) override;
  void SendBulk(Operation& send) override;
  void ExpectBulk(Operation&) override {}
  void Push(int) override {}
  bool Idle(int) const override { return true; }
  bool Forget(const Operation&) override { return true; }
  void OnLost(int) override { stirred_->NotifyAll(); }
  void OnStop() override { stirred_->NotifyAll(); }

  void Post(int to, Letter::Kind kind, const Note& note, std::span<const std::byte> payload);
  void OnLetter(const Letter& letter);

  Network& network_;
  const std::unique_ptr<base::Condition> stirred_;
  std::deque<Letter> mail_;
  std::vector<bool> shut_;
  std::uint64_t bytes_sent_ = 0;
};

}  // namespace freshet::fabric::sim
