#include "fabric/tcp/peer.h"

#include <sys/uio.h>

#include <algorithm>
#include <cstring>

#include "base/crc32c.h"

namespace freshet::fabric::tcp {
namespace {

constexpr std::size_t kStagingBytes = 256 * 1024;
static_assert(kStagingBytes >= kHeaderBytes + kEagerBytes && kEagerBytes >= kTextBytes);
constexpr std::size_t kGather = 8;           // frames in one write
constexpr std::size_t kTurnBytes = 1 << 20;  // read in one turn, so that other peers get theirs
constexpr std::size_t kBehindBytes = 4096;  // read behind a piece that goes to its place: the next header, and not much
                                            // that would have to be copied to its place

}  // namespace

Peer::Peer(int rank, Link link, Settings settings)
    : rank_(rank),
      home_(std::move(link.home)),
      settings_{settings.generation, settings.checksum && !link.conduit.encrypted()},
      shared_(std::move(link.shared)),
      conduit_(std::move(link.conduit)),
      staging_(conduit_.open() ? kStagingBytes : 0) {
  if (shared_ != nullptr) lane_.emplace(*shared_);
}

void Peer::Send(Header header, std::span<const std::byte> payload, Operation* operation) {
  header.generation = settings_.generation;
  header.sequence = sequence_out_++;
  header.length = payload.size();
  header.checked = settings_.checksum;
  header.payload_crc = settings_.checksum ? base::Crc32c(payload) : 0;
  queue_.push_back({Encode(header), payload, operation, {}});
}

void Peer::SendText(Header header, std::string text) {
  text.resize(std::min(text.size(), kTextBytes));
  Send(header, std::as_bytes(std::span(text)));
  Outgoing& last = queue_.back();
  last.text = std::move(text);
  last.payload = std::as_bytes(std::span(last.text));
}

void Peer::SendBulk(Operation& operation) {
  if (lane_.has_value()) {
    lane_->Push(operation);
  } else {
    bulk_.push_back(&operation);
  }
}

// Pieces are cut when the socket has room for them, so that short frames never queue behind a long message.
void Peer::PushNextPiece() {
  Operation& operation = *bulk_.front();
  const auto rest = operation.out.subspan(operation.moved);
  const auto piece = rest.first(std::min(rest.size(), kPieceBytes));
  Header header{.type = FrameType::kData, .id = operation.peer_id, .argument = operation.moved};
  operation.moved += piece.size();
  if (operation.moved == operation.out.size()) bulk_.pop_front();
  Send(header, piece, &operation);
}

void Peer::Flush(FrameHandler& handler) {
  while (!broken_ && conduit_.open()) {
    if (queue_.empty() && !bulk_.empty()) PushNextPiece();
    if (queue_.empty() && !conduit_.unwritten()) return;
    iovec parts[2 * kGather];
    std::size_t count = 0, skip = sent_, total = 0;
    for (std::size_t i = 0; i < queue_.size() && i < kGather; ++i) {
      for (const std::span<const std::byte> part : {std::span<const std::byte>(queue_[i].header), queue_[i].payload}) {
        const std::size_t skipped = std::min(skip, part.size());
        skip -= skipped;
        if (part.size() == skipped) continue;
        parts[count++] = {const_cast<std::byte*>(part.data() + skipped), part.size() - skipped};
        total += part.size() - skipped;
      }
    }
    const Result<std::size_t> sent = conduit_.Write({parts, count});
    broken_ = !sent.ok();
    if (broken_) return;
    Sent(sent.value(), handler);
    if (sent.value() < total || conduit_.unwritten()) return;
  }
}

void Peer::Sent(std::size_t bytes, FrameHandler& handler) {
  sent_ += bytes;
  while (!queue_.empty() && sent_ >= kHeaderBytes + queue_.front().payload.size()) {
    sent_ -= kHeaderBytes + queue_.front().payload.size();
    Operation* const operation = queue_.front().operation;
    const bool last = operation != nullptr && operation->moved == operation->out.size();
    queue_.pop_front();
    if (last) handler.OnMoved(*operation);
  }
}

// Ends only with nothing left that was read: the socket would not tell of it again.
Result<bool> Peer::Read(FrameHandler& handler) {
  bool any = false;
  received_ = 0;
  while (received_ < kTurnBytes || begin_ < end_) {
    if (!TRY(piece_.has_value() ? ReadPiece(handler) : ReadFrames(handler))) return any;
    any = true;
  }
  return any;
}

Result<std::size_t> Peer::Receive(std::span<std::byte> direct) {
  if (begin_ == end_) begin_ = end_ = 0;
  if (staging_.size() - end_ < kHeaderBytes + kEagerBytes) {
    std::memmove(staging_.data(), staging_.data() + begin_, end_ - begin_);
    end_ -= std::exchange(begin_, 0);
  }
  const std::size_t behind = std::min(staging_.size() - end_, direct.empty() ? staging_.size() : kBehindBytes);
  iovec parts[2] = {{direct.data(), direct.size()}, {staging_.data() + end_, behind}};
  const std::size_t got = TRY(conduit_.Read(std::span(parts).subspan(direct.empty() ? 1 : 0)));
  if (got == 0) return got;
  heard = true;
  received_ += got;
  end_ += got - std::min(got, direct.size());
  return got;
}

// Looks at all whole frames that were read; reads once when there is none.
Result<bool> Peer::ReadFrames(FrameHandler& handler) {
  bool any = false;
  while (true) {
    const auto staged = Staged();
    std::size_t whole = kHeaderBytes;
    std::optional<Header> header;
    if (staged.size() >= kHeaderBytes) {
      header = TRY(Decode(staged.first<kHeaderBytes>()));
      if (header->type != FrameType::kData) whole += header->length;
    }
    if (staged.size() < whole) {
      if (any || TRY(Receive({})) == 0) return any;
      any = true;
      continue;
    }
    TRY(BeginFrame(handler, *header));
    any = true;
    if (piece_.has_value()) return true;
  }
}

Result<void> Peer::BeginFrame(FrameHandler& handler, const Header& header) {
  if (header.generation != settings_.generation || header.sequence != sequence_in_)
    return Error{Code::kCorrupt, Str("frame ", header.sequence, " of generation ", header.generation, " came where ",
                                     sequence_in_, " of ", settings_.generation, " was due")};
  if (settings_.checksum && !header.checked)
    return Error{Code::kCorrupt, "it sends without checksums; set them on or off in all members"};
  ++sequence_in_;
  begin_ += kHeaderBytes;
  if (header.type != FrameType::kData) {
    const auto payload = Staged().first(header.length);
    TRY(CheckPayload(header, settings_.checksum ? base::Crc32c(payload) : 0));
    begin_ += header.length;
    return handler.OnFrame(*this, header, payload);
  }
  Operation* const receive = handler.ReceiveOf(*this, header.id);
  if (header.length == 0 || (receive != nullptr && (header.argument != receive->landing.landed() ||
                                                    header.length > receive->bytes - receive->landing.landed())))
    return Error{Code::kCorrupt,
                 Str("a piece of ", header.length, " bytes at ", header.argument, " does not continue its message")};
  piece_ = header;
  landing_on_ = receive;
  piece_left_ = header.length;
  piece_crc_ = 0;
  return {};
}

Result<bool> Peer::ReadPiece(FrameHandler& handler) {
  const auto staged = Staged();
  if (!staged.empty()) {
    const std::size_t taken = std::min(staged.size(), piece_left_);
    begin_ += taken;
    TRY(Landed(staged.first(taken), false, handler));
    return true;
  }
  std::span<std::byte> direct;
  if (landing_on_ != nullptr) direct = landing_on_->landing.Direct();
  direct = direct.first(std::min(direct.size(), piece_left_));
  const std::size_t got = TRY(Receive(direct));
  if (got == 0) return false;
  if (!direct.empty()) TRY(Landed(direct.first(std::min(got, direct.size())), true, handler));
  return true;
}

Result<void> Peer::Landed(std::span<const std::byte> bytes, bool direct, FrameHandler& handler) {
  if (settings_.checksum) piece_crc_ = base::Crc32c(bytes, piece_crc_);
  if (landing_on_ != nullptr && direct) landing_on_->landing.Advance(bytes.size());
  if (landing_on_ != nullptr && !direct) landing_on_->landing.Put(bytes);
  piece_left_ -= bytes.size();
  if (piece_left_ > 0) return {};
  TRY(CheckPayload(*std::exchange(piece_, std::nullopt), piece_crc_));
  Operation* const receive = std::exchange(landing_on_, nullptr);
  if (receive != nullptr && receive->landing.landed() == receive->bytes) handler.OnMoved(*receive);
  return {};
}

Result<void> Peer::CheckPayload(const Header& header, std::uint32_t crc) const {
  if (!settings_.checksum || header.payload_crc == crc) return {};
  return Error{Code::kCorrupt, Str("the checksum of ", header.length, " bytes does not match")};
}

Result<bool> Peer::TurnLane(FrameHandler& handler) {
  if (!lane_.has_value() || !conduit_.open()) return false;
  const bool moved = TRY(lane_->Turn(*this, handler));
  if (!moved) return false;
  heard = true;
  if (lane_->TakeWake()) {
    Send({.type = FrameType::kWake});
    Flush(handler);
  }
  return true;
}

bool Peer::Forget(const Operation& operation) {
  bool whole = !lane_.has_value() || lane_->Forget(operation);
  if (landing_on_ == &operation) landing_on_ = nullptr;
  for (Outgoing& out : queue_) {
    if (out.operation != &operation) continue;
    out.text.assign(reinterpret_cast<const char*>(out.payload.data()), out.payload.size());
    out.payload = std::as_bytes(std::span(out.text));
    out.operation = nullptr;
  }
  const auto found = std::find(bulk_.begin(), bulk_.end(), &operation);
  if (found == bulk_.end()) return whole;
  whole = operation.moved == 0;
  bulk_.erase(found);
  return whole;
}

}  // namespace freshet::fabric::tcp
