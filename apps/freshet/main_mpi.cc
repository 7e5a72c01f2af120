// freshet-mpi: the same program with one fabric more, so that only this one depends on MPI.

#include <mpi.h>
#include <unistd.h>

#include <optional>

#include "base/bell.h"
#include "base/thread.h"
#include "fabric/collectives/collectives.h"
#include "fabric/mpi/call.h"
#include "fabric/mpi/mpi_fabric.h"
#include "program.h"

namespace freshet::cli {
namespace {

using fabric::mpi::Called;
using std::chrono::seconds;

constexpr seconds kStart{120};  // for all processes to start MPI
constexpr seconds kEnd{30};     // and to end it, when all have said that they want to
constexpr std::chrono::hours kWork{24 * 365};
constexpr int kPeerLostCode = 4;

// MPI's own start and end cannot be told how long to wait. Ends the process when they take too long.
class Watch {
 public:
  Watch(std::string_view what, seconds patience)
      : thread_(clock_, [this, what = std::string(what), patience] {
          if (over_.Wait(patience)) return;
          WriteError(Str("freshet: MPI did not ", what, " within ", patience.count(), " s: a process is missing"));
          _exit(kPeerLostCode);
        }) {}
  ~Watch() {
    over_.Ring();
    thread_.Join();
  }

 private:
  const base::SystemClock clock_;
  base::Bell over_{clock_};
  base::Thread thread_;
};

// MPI in this process: started when it is first needed, ended in order or not at all. A process that fails ends without
// MPI_Finalize, which would wait for those it has lost; launchers see that, and end the others.
class Session {
 public:
  explicit Session(base::Clock& clock) : clock_(clock) {}

  Result<std::unique_ptr<fabric::Fabric>> Connect(const fabric::Place& place, base::Clock::Duration heartbeat) {
    TRY(Start(place));
    const fabric::MpiOptions options{.connect_timeout = kStart, .heartbeat = heartbeat};
    fabric::MpiOptions patient = options;
    patient.wait_timeout = kWork;
    farewell_ = TRY(fabric::MpiFabric::Connect(farewells_, patient, clock_));
    return std::unique_ptr<fabric::Fabric>(TRY(fabric::MpiFabric::Connect(MPI_COMM_WORLD, options, clock_)));
  }

  // What the process ends with, when its work has ended with `code`.
  int End(int code) {
    if (!started_) return code;
    if (code != 0) _exit(code);
    // Rank 0 may have much to do after the others: they wait as long as it is alive.
    const Result<void> all = fabric::Collectives(*farewell_).Barrier();
    if (!all.ok()) {
      WriteError(Str("freshet: ", all.error().text, "; while waiting for all to end"));
      _exit(kPeerLostCode);
    }
    farewell_.reset();
    const Watch watch("end", kEnd);
    return MPI_Finalize() == MPI_SUCCESS ? code : kPeerLostCode;
  }

 private:
  Result<void> Start(const fabric::Place& place) {
    const Watch watch("start", kStart);
    int level = 0, rank = 0, size = 0;
    TRY(Called(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level), "MPI_Init_thread"));
    started_ = true;
    TRY(Called(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank"));
    TRY(Called(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size"));
    if (size != place.size || rank != place.rank)
      return Error{Code::kInvalid, Str("this is rank ", rank, " of ", size, " to MPI, and rank ", place.rank, " of ",
                                       place.size, " by ", place.launcher,
                                       ": start it with the mpirun of the MPI it was built with (srun: --mpi=pmix or "
                                       "pmi2), or use --fabric tcp")};
    return Called(MPI_Comm_dup(MPI_COMM_WORLD, &farewells_), "MPI_Comm_dup");
  }

  base::Clock& clock_;
  bool started_ = false;
  MPI_Comm farewells_ = MPI_COMM_NULL;
  std::unique_ptr<fabric::MpiFabric> farewell_;  // tells until the very end who is alive
};

}  // namespace
}  // namespace freshet::cli

int main(int argc, char** argv) {
  using namespace freshet;
  base::SystemClock clock;
  cli::Session session(clock);
  const auto connect = [&](const fabric::Place& place, base::Clock::Duration heartbeat) {
    return session.Connect(place, heartbeat);
  };
  return session.End(cli::RunProgram(argc, argv, {.connect_mpi = connect}));
}
