#include "fabric/tcp/ring_lane.h"

#include <algorithm>
#include <cstring>

#include "fabric/tcp/peer.h"
#include "fabric/tcp/wire.h"

namespace freshet::fabric::tcp {
namespace {

constexpr std::size_t kTurnBytes = 128 * 1024;  // each way, so that both directions and the sockets get their turns

}  // namespace

Result<bool> RingLane::Turn(Peer& peer, FrameHandler& handler) {
  const bool wrote = TRY(Write(handler));
  return TRY(Read(peer, handler)) || wrote;
}

Result<bool> RingLane::Write(FrameHandler& handler) {
  if (out_.empty()) return false;
  Operation& operation = *out_.front();
  if (head_sent_ == 0) {
    Store(&head_out_[0], operation.peer_id);
    Store(&head_out_[8], static_cast<std::uint64_t>(operation.out.size()));
  }
  if (head_sent_ < head_out_.size()) {
    const std::size_t sent = TRY(writer_.Write(std::span(head_out_).subspan(head_sent_)));
    head_sent_ += sent;
    if (head_sent_ < head_out_.size()) return sent > 0;
  }
  const auto rest = operation.out.subspan(operation.moved);
  const std::size_t count = TRY(writer_.Write(rest.first(std::min(rest.size(), kTurnBytes))));
  operation.moved += count;
  bytes_written_ += count;
  if (operation.moved == operation.out.size()) {
    out_.pop_front();
    head_sent_ = 0;
    handler.OnMoved(operation);
    return true;
  }
  return count > 0;
}

Result<bool> RingLane::Read(Peer& peer, FrameHandler& handler) {
  auto bytes = TRY(reader_.Peek());
  if (bytes.empty()) return false;
  if (head_received_ < head_in_.size()) {
    const std::size_t taken = std::min(bytes.size(), head_in_.size() - head_received_);
    std::memcpy(&head_in_[head_received_], bytes.data(), taken);
    head_received_ += taken;
    reader_.Consume(taken);
    if (head_received_ < head_in_.size()) return true;
    TRY(BeginMessage(peer, handler));
    bytes = TRY(reader_.Peek());
  }
  const std::size_t taken = std::min({bytes.size(), left_, kTurnBytes});
  if (landing_on_ != nullptr) landing_on_->landing.Put(bytes.first(taken));
  reader_.Consume(taken);
  left_ -= taken;
  if (left_ > 0) return true;
  head_received_ = 0;
  if (landing_on_ != nullptr) handler.OnMoved(*std::exchange(landing_on_, nullptr));
  return true;
}

Result<void> RingLane::BeginMessage(Peer& peer, FrameHandler& handler) {
  left_ = Load<std::uint64_t>(&head_in_[8]);
  landing_on_ = handler.ReceiveOf(peer, Load<std::uint64_t>(&head_in_[0]));
  if (landing_on_ != nullptr && (left_ != landing_on_->bytes || landing_on_->landing.landed() != 0))
    return Error{Code::kCorrupt,
                 Str("a message of ", left_, " bytes came where ", landing_on_->bytes, " were announced")};
  return {};
}

// Says so first and looks then: the other side moves first and looks then, so one of the two sees the other.
bool RingLane::Sleep(bool sleeping) {
  reader_.Sleep(sleeping);
  writer_.Sleep(sleeping && !out_.empty());
  return !sleeping || (reader_.Empty() && (out_.empty() || writer_.Full()));
}

bool RingLane::Forget(const Operation& operation) {
  if (landing_on_ == &operation) landing_on_ = nullptr;
  const auto found = std::find(out_.begin(), out_.end(), &operation);
  if (found == out_.end()) return true;
  const bool begun = found == out_.begin() && head_sent_ > 0;
  out_.erase(found);
  return !begun;
}

}  // namespace freshet::fabric::tcp
