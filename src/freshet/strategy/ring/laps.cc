#include "strategy/ring/laps.h"

namespace freshet::strategy::ring {

Result<void> Laps::Up(Traffic& traffic, Tidings& mine, double busy) {
  before_knows_ = false;
  if (rank_ > 0) {
    std::vector<Traffic::Handle> handles = {
        TRY(traffic.FromBefore(std::as_writable_bytes(std::span(&in_, 1)), kTidings))};
    TRY(traffic.Wait(handles));
    mine.stop |= in_.stop;
    mine.save |= in_.save;
    mine.admit |= in_.admit;
    busy_before_ = in_.busy;
    before_knows_ = in_.answered != 0;
    if (before_knows_) {
      handles.push_back(TRY(traffic.FromBefore(fabric::AsBytes(mine.scores), kScores)));
      TRY(traffic.Wait(handles));
      mine.loss = in_.loss;
      mine.answered = true;
    }
  }
  if (rank_ + 1 == size_) return {};
  up_ = {mine.loss, busy, mine.stop, mine.save, mine.admit, mine.answered ? 1U : 0U};
  TRY(traffic.SendOn(std::as_bytes(std::span(&up_, 1)), kTidings));
  if (mine.answered) TRY(traffic.SendOn(std::as_bytes(std::span(mine.scores)), kScores));
  return {};
}

Result<void> Laps::Down(Traffic& traffic, Tidings& mine, double busy) {
  if (rank_ + 1 < size_) {
    std::vector<Traffic::Handle> handles = {
        TRY(traffic.FromNext(std::as_writable_bytes(std::span(&in_, 1)), kTidings))};
    if (!mine.answered) handles.push_back(TRY(traffic.FromNext(fabric::AsBytes(mine.scores), kScores)));
    TRY(traffic.Wait(handles));
    mine.loss = in_.loss;
    mine.stop = in_.stop;
    mine.save = in_.save;
    mine.admit = in_.admit;
    mine.answered = true;
    busy_next_ = in_.busy;
  }
  if (rank_ == 0) return {};
  down_ = {mine.loss, busy, mine.stop, mine.save, mine.admit, 1U};
  TRY(traffic.SendBack(std::as_bytes(std::span(&down_, 1)), kTidings));
  if (!before_knows_) TRY(traffic.SendBack(std::as_bytes(std::span(mine.scores)), kScores));
  return {};
}

}  // namespace freshet::strategy::ring
