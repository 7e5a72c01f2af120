#pragma once

#include <mpi.h>

#include <functional>
#include <memory>

#include "base/clock.h"
#include "fabric/fabric_suite_testing.h"
#include "fabric/mpi/call.h"
#include "fabric/mpi/mpi_fabric.h"

namespace freshet::fabric {

inline int WorldRank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}
inline int WorldSize() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

// A communicator of the first `size` processes; null for the others. All processes call it. It is never freed: MPI
// gives the number of one that was freed to the next, and what came late for the one would come to the other.
inline MPI_Comm FirstOf(int size) {
  EXPECT_LE(size, WorldSize()) << "start more processes";
  MPI_Comm some = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, WorldRank() < size ? 0 : MPI_UNDEFINED, WorldRank(), &some);
  return some;
}

// Until all members are here, without keeping a core busy.
inline void Meet(MPI_Comm some, base::Clock& clock) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(some, &request);
  while (!mpi::Ended(request).value()) clock.Sleep(std::chrono::microseconds(200));
}

// Runs the body in the first `size` processes, each of which is one member, and keeps the members until all are done.
// They meet on a communicator of their own: that of the fabric may have been lost.
inline void RunMember(int size, const MpiOptions& options, const MemberBody& body) {
  const MPI_Comm some = FirstOf(size), meeting = FirstOf(size);
  if (some == MPI_COMM_NULL) return;
  base::SystemClock clock;
  auto member = MpiFabric::Connect(some, options, clock);
  ASSERT_TRUE(member.ok()) << member.error().text;
  std::unique_ptr<Fabric> fabric = std::move(member).value();
  body(fabric);
  Meet(meeting, clock);
}

}  // namespace freshet::fabric
