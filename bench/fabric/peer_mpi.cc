// Sums by MPI_Allreduce, for fabric_bench.py, which compiles this once for each MPI.
//
//   mpirun -n RANKS peer_mpi NAME RANKS SECONDS BYTES…
#include <mpi.h>

#include "contest.h"

namespace {

class MpiMember final : public freshet::bench::Member {
 public:
  MpiMember() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  // An error ends the program: that is MPI's own default.
  void Sum(std::span<float> values) override {
    MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  }
  void Meet() override { MPI_Barrier(MPI_COMM_WORLD); }
  void TakeFromFirst(std::span<std::byte> bytes) override {
    MPI_Bcast(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, 0, MPI_COMM_WORLD);
  }

 private:
  int rank_ = 0, size_ = 1;
};

}  // namespace

int main(int argc, char** argv) {
  const freshet::bench::Task task = freshet::bench::ParseTask(argc, argv, 2);
  MPI_Init(&argc, &argv);
  MpiMember member;
  if (member.size() != task.ranks) freshet::bench::Die("mpirun started another number of ranks");
  freshet::bench::Pin(member.rank());
  freshet::bench::Compete(member, argv[1], task);
  MPI_Finalize();
  return 0;
}
