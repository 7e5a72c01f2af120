#include "fabric/tcp/tcp_fabric.h"

#include <algorithm>
#include <utility>

#include "base/cores.h"
#include "fabric/tcp/bootstrap.h"

namespace freshet::fabric {
namespace {

using Duration = base::Clock::Duration;

// For this long after somebody waited the keeper stays out of the way: waking it for every message would cost as much
// as the message.
constexpr Duration kGrace = std::chrono::milliseconds(5);
constexpr Duration kFarewell = std::chrono::seconds(1);

}  // namespace

Result<std::unique_ptr<TcpFabric>> TcpFabric::Connect(const TcpOptions& options, base::Clock& clock) {
  TRY(options.Validate());
  tcp::Bootstrap bootstrap(options, clock);
  auto engine = std::make_unique<tcp::Engine>(options, TRY(bootstrap.Run()), clock);
  const Settings settings{.generation = options.generation,
                          .wait_timeout = options.wait_timeout,
                          .spin = engine->near() <= base::HostCores() ? options.spin : Duration{}};
  return std::unique_ptr<TcpFabric>(new TcpFabric(std::move(engine), settings, bootstrap.strangers(), clock));
}

TcpFabric::TcpFabric(std::unique_ptr<tcp::Engine> engine, Settings settings, std::uint64_t strangers,
                     base::Clock& clock)
    : ProtocolFabric(std::move(engine), settings, clock),
      strangers_(strangers),
      engine_(static_cast<tcp::Engine&>(this->engine())) {
  Begin();
}

TcpFabric::~TcpFabric() {
  End();
  LeaveInOrder();
}

// What was sent last would be lost with a connection that is closed while it still has something to read.
void TcpFabric::LeaveInOrder() {
  const Duration end = clock().Now() + kFarewell;
  while (!engine_.Quiet() && clock().Now() < end) {
    engine_.Turn();
    if (!engine_.Quiet()) clock().WaitReadable(engine_.descriptor(), clock().Now() + std::chrono::milliseconds(1));
  }
}

// Sleeps until there is something to move, and moves it. The other side of shared memory is told to wake us as long as
// anybody sleeps.
void TcpFabric::Nap(Duration longest) {
  ++asleep_;
  if (engine_.PrepareSleep()) {
    mutex().unlock();
    clock().WaitReadable(engine_.descriptor(), clock().Now() + longest);
    mutex().lock();
  }
  --asleep_;
  bool moved = engine_.Turn();
  if (asleep_ == 0) {
    engine_.Awake();
  } else {
    while (!engine_.PrepareSleep()) moved = engine_.Turn() || moved;
  }
  if (awaited() && (moved || engine_.failure().has_value())) TellWaiting();
}

void TcpFabric::Watch(Duration longest) {
  if (!time_passes() && awaited()) return Snooze(longest);
  if (time_passes() && (awaited() || clock().Now() - last_waited() < kGrace)) return Snooze(std::min(longest, kGrace));
  Nap(longest);
  // Who began to wait meanwhile sleeps on the engine too, or is about to, and what it waits for may just have come.
  if (asleep_ > 0) engine_.Interrupt();
}

bool TcpFabric::Look() {
  return asleep_ == 0 && engine_.Turn();  // who sleeps on the engine is woken to do it
}

TcpFabric::Statistics TcpFabric::statistics() const {
  const base::Lock lock(mutex());
  return {engine_.bytes_sent(), engine_.bytes_shared(), engine_.near(), engine_.sharing(), strangers_};
}

}  // namespace freshet::fabric
