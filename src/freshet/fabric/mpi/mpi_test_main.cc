// Tests in processes that mpirun has started: all run the same tests, each as one member. Rank 0 speaks, the others say
// only what failed.

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdio>

namespace {

class FailuresOnly : public testing::EmptyTestEventListener {
 public:
  explicit FailuresOnly(int rank) : rank_(rank) {}
  void OnTestStart(const testing::TestInfo& test) override { test_ = &test; }
  void OnTestPartResult(const testing::TestPartResult& part) override {
    if (!part.failed()) return;
    std::fprintf(stderr, "rank %d, %s.%s: %s:%d: %s\n", rank_, test_ == nullptr ? "" : test_->test_suite_name(),
                 test_ == nullptr ? "" : test_->name(), part.file_name() == nullptr ? "" : part.file_name(),
                 part.line_number(), part.message());
  }

 private:
  const int rank_;
  const testing::TestInfo* test_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  int level = 0, rank = 0;
  if (MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level) != MPI_SUCCESS) return 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  testing::InitGoogleTest(&argc, argv);
  if (rank > 0) {
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailuresOnly(rank));
  }
  const int code = RUN_ALL_TESTS();
  MPI_Finalize();
  return code;
}
