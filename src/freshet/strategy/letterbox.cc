#include "strategy/letterbox.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/str.h"

namespace freshet::strategy {

Letterbox::Letterbox(fabric::Fabric& fabric, fabric::Tag tag, Serve serve, std::size_t at_once, Beside beside)
    : fabric_(fabric),
      tag_(tag),
      clock_(fabric.clock()),
      serve_(std::move(serve)),
      beside_(std::move(beside)),
      at_once_(at_once),
      changed_(clock_.NewCondition()) {}

void Letterbox::Open() {
  {
    const base::Lock lock(mutex_);
    if (std::exchange(open_, true)) return;
  }
  fabric_.Post([self = shared_from_this()] { self->Listen(); });
}

bool Letterbox::open() const {
  const base::Lock lock(mutex_);
  return open_;
}

template <class Call>
void Letterbox::Now(const Call& call) {
  {
    const base::Lock lock(mutex_);
    if (ended_) return;
    serving_ = true;
  }
  call();
  const base::Lock lock(mutex_);
  serving_ = false;
  if (ended_) changed_->NotifyAll();
}

// Until an empty letter has come for each that is listened for: there is no other way to take back that one listens.
void Letterbox::Listen() {
  while (true) {
    auto letter = TakeIn();
    if (letter.ok() && letter.value() && letter.value()->bytes.empty()) {
      closing_ = !coming_.empty();
      if (closing_) continue;
    }
    if (!letter.ok() && beside_.failed) Now([&] { beside_.failed(letter.error()); });
    const base::Lock lock(mutex_);
    if (!letter.ok()) failed_ = letter.error();
    if (!letter.ok() || (letter.value() && letter.value()->bytes.empty())) open_ = false;
    if (open_ && !ended_ && letter.value()) letters_.push_back(std::move(*letter.value()));
    if (!letter.ok() || letter.value()) changed_->NotifyAll();
    while (open_ && !ended_ && LongOnes() >= kMost) changed_->WaitUntil(mutex_, clock_.Now() + std::chrono::hours(1));
    if (!open_) break;
  }
  TakeBack(fabric_, std::exchange(coming_, {}));
}

void Letterbox::End() {
  {
    const base::Lock lock(mutex_);
    ended_ = true;
    changed_->NotifyAll();
    while (serving_) changed_->WaitUntil(mutex_, clock_.Now() + std::chrono::hours(1));
  }
  std::vector<fabric::Transfer> sent;
  for (const Sent& each : sent_) sent.push_back(each.transfer);
  LetGo(fabric_, sent);
  sent_.clear();
}

void Letterbox::TakeBack(fabric::Fabric& fabric, const std::deque<fabric::Transfer>& borrows) {
  for (const fabric::Transfer each : borrows)
    if (fabric.Wait(each, std::chrono::nanoseconds(1)).ok()) fabric.Release(each);
}

void Letterbox::LetGo(fabric::Fabric& fabric, std::span<const fabric::Transfer> sent) {
  if (!std::all_of(sent.begin(), sent.end(), [&](fabric::Transfer each) { return fabric.Done(each); }))
    fabric.Abort({Code::kPeerLost, "it ended before others had taken its letters in"});
  for (const fabric::Transfer each : sent) (void)fabric.Wait(each, std::chrono::seconds(1));
}

Result<std::optional<Letterbox::Letter>> Letterbox::TakeIn() {
  while (!closing_ && coming_.size() < at_once_) coming_.push_back(TRY(fabric_.StartBorrow(fabric::kAnyRank, tag_)));
  const fabric::Transfer transfer = coming_.front();
  coming_.pop_front();
  while (true) {
    base::Clock::Duration patience = std::chrono::hours(1);
    Now([&] {
      if (const auto due = beside_.due ? beside_.due() : std::nullopt)
        patience = std::clamp<base::Clock::Duration>(*due - clock_.Now(), std::chrono::microseconds(1), patience);
    });
    const auto done = fabric_.WaitAny(std::span(&transfer, 1), patience);
    if (done.ok()) break;
    if (done.error().code != Code::kTimeout) return done.error();
  }
  const fabric::Arrived arrived = TRY(fabric_.Wait(transfer));
  const auto served = ServeNow(arrived);
  std::optional<Letter> letter;
  if (served.ok() && !served.value()) letter = {arrived.from, {arrived.view.begin(), arrived.view.end()}};
  fabric_.Release(transfer);
  if (!served.ok()) fabric_.Abort(served.error());
  TRY(served);
  return letter;
}

Result<bool> Letterbox::ServeNow(const fabric::Arrived& arrived) {
  if (!serve_ || arrived.view.empty()) return false;
  Result<bool> served = true;
  Now([&] { served = serve_(arrived.from, arrived.view); });
  return served;
}

std::size_t Letterbox::LongOnes() const {
  return static_cast<std::size_t>(std::count_if(letters_.begin(), letters_.end(), [this](const Letter& each) {
    return each.from != fabric_.rank() && each.bytes.size() > kShortBytes;
  }));
}

void Letterbox::SendToSelf(std::vector<std::byte> bytes) {
  const base::Lock lock(mutex_);
  letters_.push_back({fabric_.rank(), std::move(bytes)});
  changed_->NotifyAll();
}

Result<std::optional<Letterbox::Letter>> Letterbox::TryTake() {
  const base::Lock lock(mutex_);
  if (letters_.empty() && failed_) return *failed_;
  if (letters_.empty()) return std::optional<Letter>();
  std::optional<Letter> letter = std::move(letters_.front());
  letters_.pop_front();
  changed_->NotifyAll();
  return letter;
}

Result<Letterbox::Letter> Letterbox::Take() {
  {
    const base::Lock lock(mutex_);
    const auto end = clock_.Now() + kPatience;
    while (letters_.empty() && !failed_) {
      CHECK(open_);
      if (clock_.Now() >= end)
        return Error{Code::kTimeout, Str("no other worker has said anything for ", base::Seconds(kPatience), " s")};
      changed_->WaitUntil(mutex_, end);
    }
  }
  return std::move(*TRY(TryTake()));
}

Result<void> Letterbox::Send(int to, std::vector<std::byte> bytes, std::size_t hollow) {
  CHECK(!bytes.empty());
  return StartSend(to, std::move(bytes), hollow);
}

Result<void> Letterbox::StartSend(int to, std::vector<std::byte> bytes, std::size_t hollow) {
  Sent& sent = sent_.emplace_back();
  sent.bytes = std::move(bytes);
  sent.transfer = TRY(fabric_.StartHollowSend(to, tag_, sent.bytes, hollow));
  return {};
}

Result<std::size_t> Letterbox::OnTheirWay() {
  for (std::size_t i = sent_.size(); i-- > 0;) {
    if (!fabric_.Done(sent_[i].transfer)) continue;
    TRY(fabric_.Wait(sent_[i].transfer));
    sent_.erase(sent_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return sent_.size();
}

Result<void> Letterbox::AwaitTaken(std::size_t most) {
  while (TRY(OnTheirWay()) > most) {
    TRY(fabric_.Wait(sent_.front().transfer, kPatience));
    sent_.pop_front();
  }
  return {};
}

Result<void> Letterbox::CloseTogether() {
  for (std::size_t i = 0; i < at_once_; ++i) TRY(StartSend((fabric_.rank() + 1) % fabric_.size(), {}, 0));
  {
    const base::Lock lock(mutex_);
    const auto end = clock_.Now() + kPatience;
    while (open_ && clock_.Now() < end) changed_->WaitUntil(mutex_, end);
    if (failed_) return *failed_;
    if (open_) return Error{Code::kTimeout, "another worker does not stop writing"};
  }
  while (!sent_.empty()) {
    TRY(fabric_.Wait(sent_.front().transfer));
    sent_.pop_front();
  }
  return {};
}

}  // namespace freshet::strategy
