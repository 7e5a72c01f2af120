#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "fabric/membership/post.h"

namespace freshet::fabric::sim {

// The letters of one member of a world, whose address is its rank.
//
// Threads: as base::Fibers.
class WorldPost final : public Post {
 public:
  using Carry = std::function<void(const std::string& address, std::string letter)>;
  WorldPost(std::string address, Carry carry, const base::Clock& clock)
      : address_(std::move(address)), carry_(std::move(carry)), come_(clock.NewCondition()) {}

  const std::string& address() const override { return address_; }
  void Send(const std::string& address, std::string letter) override { carry_(address, std::move(letter)); }
  std::optional<std::string> Receive(base::Clock::Duration until) override {
    const base::Lock lock(mutex_);
    if (letters_.empty() && !woken_) come_->WaitUntil(mutex_, until);
    if (std::exchange(woken_, false) || letters_.empty()) return std::nullopt;
    std::string letter = std::move(letters_.front());
    letters_.pop_front();
    return letter;
  }
  void Wake() override {
    woken_ = true;
    come_->NotifyAll();
  }

  void Deliver(std::string letter) {
    letters_.push_back(std::move(letter));
    come_->NotifyAll();
  }

 private:
  const std::string address_;
  const Carry carry_;
  base::Mutex mutex_;  // fibers take turns: for the condition alone
  const std::unique_ptr<base::Condition> come_;
  std::deque<std::string> letters_;
  bool woken_ = false;
};

}  // namespace freshet::fabric::sim
