#include "fabric/collectives/algorithms.h"

namespace freshet::fabric {

Result<void> CentralAllReduce(Transfers& transfers, std::span<float> values) {
  TRY(CentralReduce(transfers, values));
  return CentralBroadcast(transfers, values);
}

Result<void> CentralReduce(Transfers& transfers, std::span<float> values) {
  if (transfers.me() != 0) {
    TRY(transfers.Wait(TRY(transfers.Send(0, AsBytes(values)))));
    return {};
  }
  // One after the other: the order of additions must not depend on who comes first.
  for (int place = 1; place < transfers.size(); ++place) TRY(transfers.Wait(TRY(transfers.ReceiveAdd(place, values))));
  return {};
}

Result<void> CentralBroadcast(Transfers& transfers, std::span<float> values) {
  if (transfers.me() != 0) {
    TRY(transfers.Wait(TRY(transfers.Receive(0, AsBytes(values)))));
    return {};
  }
  for (int place = 1; place < transfers.size(); ++place) TRY(transfers.Send(place, AsBytes(values)));
  return transfers.WaitAll();
}

}  // namespace freshet::fabric
