#include "fabric/collectives/algorithms.h"

namespace freshet::fabric {

Result<void> CentralAllReduce(Exchange& exchange, std::span<float> values) {
  TRY(CentralReduce(exchange, values));
  return CentralBroadcast(exchange, values);
}

Result<void> CentralReduce(Exchange& exchange, std::span<float> values) {
  if (exchange.me() != 0) {
    TRY(exchange.Wait(TRY(exchange.Send(0, AsBytes(values)))));
    return {};
  }
  // One after the other: the order of additions must not depend on who comes first.
  for (int place = 1; place < exchange.size(); ++place) TRY(exchange.Wait(TRY(exchange.ReceiveAdd(place, values))));
  return {};
}

Result<void> CentralBroadcast(Exchange& exchange, std::span<float> values) {
  if (exchange.me() != 0) {
    TRY(exchange.Wait(TRY(exchange.Receive(0, AsBytes(values)))));
    return {};
  }
  for (int place = 1; place < exchange.size(); ++place) TRY(exchange.Send(place, AsBytes(values)));
  return exchange.WaitAll();
}

}  // namespace freshet::fabric
