// A worker whose launcher is killed. Shells are the launchers here; mpi_test.cc has mpirun.

#include "launch_testing.h"
#include "process_testing.h"

namespace freshet::cli {
namespace {

TEST(LauncherWatch, AWorkerEndsInOrderWhenItsLauncherIsGoneAlsoBehindAScriptOfItsOwn) {
  const std::string train = Str(Binary(),
                                " train sea.csv --epochs 1000000 --quiet --checkpoint run.ckpt --checkpoint-seconds "
                                "0.05 2> err & echo $! > pid; wait");
  const std::string place = "TORCHELASTIC_RUN_ID=job RANK=0 WORLD_SIZE=1 ";
  for (const std::string& launcher : {Str("export ", place, "; ", train), Str(place, "sh -c '", train, "' & wait")}) {
    SCOPED_TRACE(launcher);
    const base::ScratchDirectory scratch;
    ASSERT_EQ(
        Process(scratch, {"data", "generate", "--kind", "sea", "--rows", "1000", "-o", "sea.csv"}, {}).Wait().code, 0);
    Process process(scratch, {"-c", launcher}, {.program = "/bin/sh"});
    ASSERT_TRUE(process.WaitUntil([&] { return access((scratch / "run.ckpt").c_str(), F_OK) == 0; }));
    const pid_t worker = std::atoi(scratch.Read("pid").c_str());
    ASSERT_GT(worker, 1);
    kill(process.pid(), SIGKILL);
    process.Wait();
    EXPECT_TRUE(SoonGone(worker));
    EXPECT_NE(scratch.Read("err").find("is gone; stopping"), std::string::npos) << scratch.Read("err");
    if (!Gone(worker)) kill(worker, SIGKILL);
  }
}

}  // namespace
}  // namespace freshet::cli
