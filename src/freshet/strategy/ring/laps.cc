#include "strategy/ring/laps.h"

namespace freshet::strategy::ring {

Result<void> Laps::Up(Traffic& traffic, Tidings& mine) {
  if (rank_ > 0) {
    std::vector<Traffic::Handle> handles = {
        TRY(traffic.FromBefore(std::as_writable_bytes(std::span(&in_, 1)), kTidings))};
    if (answers_ < rank_) handles.push_back(TRY(traffic.FromBefore(fabric::AsBytes(mine.scores), kScores)));
    TRY(traffic.Wait(handles));
    mine.stop |= in_.stop;
    mine.save |= in_.save;
    if (answers_ < rank_) mine.loss = in_.loss;
  }
  if (rank_ + 1 == size_) return {};
  up_ = {mine.loss, mine.stop, mine.save};
  TRY(traffic.SendOn(std::as_bytes(std::span(&up_, 1)), kTidings));
  if (answers_ <= rank_) TRY(traffic.SendOn(std::as_bytes(std::span(mine.scores)), kScores));
  return {};
}

Result<void> Laps::Down(Traffic& traffic, Tidings& mine) {
  if (rank_ + 1 < size_) {
    std::vector<Traffic::Handle> handles = {
        TRY(traffic.FromNext(std::as_writable_bytes(std::span(&in_, 1)), kTidings))};
    if (rank_ < answers_) handles.push_back(TRY(traffic.FromNext(fabric::AsBytes(mine.scores), kScores)));
    TRY(traffic.Wait(handles));
    mine.loss = in_.loss;
    mine.stop = in_.stop;
    mine.save = in_.save;
  }
  if (rank_ == 0) return {};
  down_ = {mine.loss, mine.stop, mine.save};
  TRY(traffic.SendBack(std::as_bytes(std::span(&down_, 1)), kTidings));
  if (rank_ <= answers_) TRY(traffic.SendBack(std::as_bytes(std::span(mine.scores)), kScores));
  return {};
}

}  // namespace freshet::strategy::ring
