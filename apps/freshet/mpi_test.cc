// Workers that mpirun has started, over MPI and over TCP.

#include <filesystem>
#include <fstream>
#include <memory>

#include "launch_testing.h"
#include "process_testing.h"

namespace freshet::cli {
namespace {

class MpiTest : public testing::Test {
 protected:
  using Arguments = std::vector<std::string>;

  void SetUp() override {
#ifdef FRESHET_MPIRUN
    const Finished generated =
        Process(scratch_, {"data", "generate", "--kind", "sea", "--rows", "3000", "-o", "sea.csv"}, {}).Wait();
    ASSERT_EQ(generated.code, 0) << generated.err;
#else
    GTEST_SKIP() << "MPI WAS NOT FOUND: install libopenmpi-dev and openmpi-bin, and build again";
#endif
  }
  // As many processes as asked for, although there may be fewer cores, and although root asks.
  std::unique_ptr<Process> Start(int count, Arguments arguments) {
    Surroundings around;
#ifdef FRESHET_MPIRUN
    around.program = FRESHET_MPIRUN;
#endif
    around.environment = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                          {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                          {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
                          {"OMPI_MCA_mpi_yield_when_idle", "1"},
                          {"OMPI_MCA_hwloc_base_binding_policy", "none"},
                          {"ASAN_OPTIONS", "detect_leaks=0"}};  // MPI's own
    arguments.insert(arguments.begin(), {"-n", Str(count), Binary()});
    return std::make_unique<Process>(scratch_, arguments, around);
  }
  // The processes of freshet below one.
  static std::vector<pid_t> Workers(pid_t parent) {
    std::vector<pid_t> found;
    std::ifstream children(Str("/proc/", parent, "/task/", parent, "/children"));
    for (pid_t child = 0; children >> child;) {
      std::string name;
      std::ifstream(Str("/proc/", child, "/comm")) >> name;
      if (name.starts_with("freshet")) found.push_back(child);
      for (const pid_t below : Workers(child)) found.push_back(below);
    }
    return found;
  }
  bool Exists(const std::string& name) const { return access((scratch_ / name).c_str(), F_OK) == 0; }

  base::ScratchDirectory scratch_;
};

TEST_F(MpiTest, ProcessesOfMpirunGiveTheModelOfThreadsOverMpiAndOverTcp) {
  const Arguments train = {"train", "sea.csv", "--batch", "24", "--topology", "ring", "--quiet"};
  const auto with = [&](const Arguments& more) {
    Arguments all = train;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const Finished threads = Process(scratch_, with({"--workers", "4", "-o", "threads.model"}), {}).Wait();
  ASSERT_EQ(threads.code, 0) << threads.err;
  for (const std::string fabric : {"mpi", "tcp"}) {
    const Finished processes = Start(4, with({"--fabric", fabric, "-o", fabric + ".model"}))->Wait();
    ASSERT_EQ(processes.code, 0) << processes.err;
    EXPECT_EQ(processes.err, "");
    EXPECT_EQ(processes.out.find("trained"), processes.out.rfind("trained"));  // rank 0 speaks
    EXPECT_EQ(scratch_.Read("threads.model"), scratch_.Read(fabric + ".model")) << fabric;
  }
}

TEST_F(MpiTest, MeasuresMpisOwnSumsToo) {
  const Finished bench = Start(2, {"bench", "fabric", "--fabric", "mpi", "--seconds", "0.001"})->Wait();
  ASSERT_EQ(bench.code, 0) << bench.err;
  EXPECT_NE(bench.out.find("fabric mpi"), std::string::npos) << bench.out;
  EXPECT_NE(bench.out.find("native"), std::string::npos) << bench.out;
}

TEST_F(MpiTest, AFrozenProcessIsNamedAndEndsAll) {
  const auto mpirun =
      Start(3, {"train", "sea.csv", "--batch", "24", "--epochs", "1000000", "--quiet", "--fabric", "mpi", "--heartbeat",
                "50", "--checkpoint", "run.ckpt", "--checkpoint-seconds", "0.05"});
  ASSERT_TRUE(mpirun->WaitUntil([&] { return Exists("run.ckpt"); }));
  const std::vector<pid_t> workers = Workers(mpirun->pid());
  ASSERT_EQ(workers.size(), 3U);
  kill(workers[1], SIGSTOP);
  const Finished finished = mpirun->Wait();
  EXPECT_EQ(finished.code, 4) << finished.err;
  ASSERT_FALSE(finished.ErrorLines().empty()) << finished.err;
  EXPECT_NE(finished.ErrorLines()[0].find("silent"), std::string::npos) << finished.err;
}

TEST_F(MpiTest, WorkersEndWhenMpirunIsKilled) {
  for (const std::string fabric : {"mpi", "tcp"}) {
    SCOPED_TRACE(fabric);
    const std::string checkpoint = fabric + ".ckpt";
    const auto mpirun = Start(2, {"train", "sea.csv", "--batch", "24", "--epochs", "1000000", "--quiet", "--fabric",
                                  fabric, "--checkpoint", checkpoint, "--checkpoint-seconds", "0.05"});
    ASSERT_TRUE(mpirun->WaitUntil([&] { return Exists(checkpoint); }));
    const std::vector<pid_t> workers = Workers(mpirun->pid());
    ASSERT_EQ(workers.size(), 2U);
    kill(mpirun->pid(), SIGKILL);
    mpirun->Wait();
    for (const pid_t worker : workers) {
      EXPECT_TRUE(SoonGone(worker));
      if (!Gone(worker)) kill(worker, SIGKILL);
    }
  }
}

TEST_F(MpiTest, RefusesALauncherThatIsNotOfMpi) {
  Surroundings around;
  around.environment = {{"RANK", "0"}, {"WORLD_SIZE", "2"}};
  const Finished finished = Process(scratch_, {"train", "sea.csv", "--fabric", "mpi"}, around).Wait();
  EXPECT_EQ(finished.code, 2) << finished.err;
  EXPECT_NE(finished.err.find("rank 0 of 1 to MPI"), std::string::npos) << finished.err;
}

TEST(MpiProgram, SaysHowToGetItWhereItIsNot) {
  const base::ScratchDirectory scratch;
  Surroundings around;
  around.program = scratch / "freshet";
  std::filesystem::copy_file(Binary(), around.program);
  const Finished finished = Process(scratch, {"train", "sea.csv", "--fabric", "mpi"}, around).Wait();
  EXPECT_EQ(finished.code, 2) << finished.err;
  EXPECT_NE(finished.err.find("libopenmpi-dev"), std::string::npos) << finished.err;
}

}  // namespace
}  // namespace freshet::cli
