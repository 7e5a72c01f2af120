#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "base/simulated_clock.h"
#include "base/thread.h"
#include "fabric/fabric.h"

namespace freshet::fabric {

// The group a test wants.
struct GroupSpec {
  int size = 2;
  std::uint64_t generation = 1;
  base::Clock::Duration timeout = std::chrono::seconds(60);
  std::vector<std::string> hosts = {};  // a wish: only some fabrics can pretend
  OnLoss on_loss = OnLoss::kEndGroup;
  base::SimulatedClock* clock = nullptr;  // by which it lives; none: the system's
};

// What a test does as one member. It may reset the pointer to leave early; whoever called it does the rest.
using MemberBody = std::function<void(std::unique_ptr<Fabric>& member)>;

// One kind of fabric under the tests that every fabric passes (fabric_suite_test.cc, collectives_test.cc). A test of a
// fabric includes this header and says
//
//   INSTANTIATE_TEST_SUITE_P(Tcp, FabricSuite, ::testing::Values(TcpFactory()), NameOfFactory);
//
struct FabricFactory {
  std::string name;
  // Makes a group and runs the body as each member, on a thread of its own (or, where members are processes, as the one
  // this process is); keeps all members until all bodies have returned, then destroys them.
  std::function<void(const GroupSpec& spec, const MemberBody& body)> run;
  bool simulated = true;                      // can it live by a simulated clock?
  int most_members = 9;                       // tests that want more are cut down to this
  int seeds = 200;                            // of tests over seeds: fewer where making a group takes long
  bool two_generations = true;                // can two groups stand side by side?
  bool senders_learn_of_lack_of_room = true;  // is a message too long an error of its sender too?
};

// For factories whose members are threads: runs the body as each of them.
inline void RunAll(std::vector<std::unique_ptr<Fabric>>& members, const base::Clock& clock, const MemberBody& body) {
  std::vector<base::Thread> threads;
  for (std::unique_ptr<Fabric>& member : members) threads.emplace_back(clock, [&] { body(member); });
  for (base::Thread& thread : threads) thread.Join();
}

inline void PrintTo(const FabricFactory& factory, std::ostream* out) { *out << factory.name; }
inline std::string NameOfFactory(const ::testing::TestParamInfo<FabricFactory>& info) { return info.param.name; }

class FabricSuite : public ::testing::TestWithParam<FabricFactory> {
 protected:
  void Run(int size, const std::function<void(Fabric&)>& body) const {
    Run(GroupSpec{.size = size}, [&](std::unique_ptr<Fabric>& member) { body(*member); });
  }
  void Run(const GroupSpec& spec, const MemberBody& body) const { GetParam().run(spec, body); }
};

// A moment of the time that a fabric lives by.
inline void Nap(const Fabric& fabric) {
  base::Mutex mutex;
  const base::Lock lock(mutex);
  fabric.clock().NewCondition()->WaitUntil(mutex, fabric.clock().Now() + std::chrono::microseconds(100));
}

inline std::span<const std::byte> BytesOf(const std::string& text) { return std::as_bytes(std::span(text)); }
inline std::span<std::byte> BytesOf(std::string& text) { return std::as_writable_bytes(std::span(text)); }

}  // namespace freshet::fabric
