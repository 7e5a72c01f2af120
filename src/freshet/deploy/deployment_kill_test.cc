// A process that is killed, on a real disk.

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/scratch_testing.h"
#include "deploy/deployment.h"
#include "deploy/deployment_testing.h"

namespace freshet::deploy {
namespace {

constexpr std::uint64_t kRows = 90;

class KilledDeployment : public testing::Test {
 protected:
  KilledDeployment() {
    options.directory = scratch / "state";
    options.schedule.max_buffer_size = 20;
    options.version_rows = 30;
    options.journal.durability = Durability::kNone;
    options.journal.segment_bytes = 2000;
  }
  Result<std::unique_ptr<Deployment>> Open() {
    return Deployment::Open(env, options, world.runtime, world.memory, world.Ratings(), {});
  }
  // Sends every row in a child that is killed at the fault; returns how many it was told are kept.
  std::uint64_t SendInAChild(const std::string& fault) {
    int ends[2];
    CHECK(pipe(ends) == 0);
    const pid_t child = fork();
    if (child == 0) {
      const auto deployment = Open();
      if (!deployment.ok() || !world.faults.Arm(fault).ok()) _exit(1);
      for (std::uint64_t n = 0; n < kRows; ++n)
        if (World::Send(*deployment.value(), n, Str(n)).ok() && write(ends[1], "k", 1) != 1) _exit(2);
      _exit(0);
    }
    close(ends[1]);
    std::uint64_t kept = 0;
    for (char byte = 0; read(ends[0], &byte, 1) == 1;) ++kept;
    close(ends[0]);
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << fault;
    return kept;
  }

  World world;  // but for its disk
  base::ScratchDirectory scratch;
  base::PosixFiles files;
  base::Env env{files, world.clock, world.log, world.executor, world.faults};
  DeploymentOptions options = world.Options("a");
};

TEST_F(KilledDeployment, HasEverythingItAcknowledgedAndGoesOnAsIfNothingHadHappened) {
  DeploymentOptions in_memory = options;
  in_memory.directory = "/whole";
  const auto whole = world.Open(in_memory, world.Ratings()).value();
  for (std::uint64_t n = 0; n < kRows; ++n) ASSERT_TRUE(World::Send(*whole, n, Str(n)).ok());
  int round = 0;
  for (const char* const fault :
       {"journal.written:1:kill", "journal.written:40:kill", "journal.written:93:kill", "version.save:1:kill",
        "version.save:4:kill", "version.vitals:1:kill", "version.vitals:3:kill"}) {
    SCOPED_TRACE(fault);
    options.directory = scratch / Str("state", round++);
    const std::uint64_t kept = SendInAChild(fault);
    auto recovered = Open();
    ASSERT_TRUE(recovered.ok()) << recovered.error().text;
    EXPECT_EQ(recovered.value()->stats().damaged_places, 0u);
    recovered.value()->Settle();
    std::uint64_t duplicates = 0;
    for (std::uint64_t n = 0; n < kRows; ++n) {
      const LearnReply reply = World::Send(*recovered.value(), n, Str(n)).value();
      duplicates += reply.duplicates;
      ASSERT_TRUE(n >= kept || reply.duplicates == 1) << "row " << n << " was lost";
    }
    EXPECT_LE(duplicates, kept + 1);  // one may have been written and not acknowledged
    EXPECT_EQ(World::Fingerprint(*recovered.value()), World::Fingerprint(*whole));
  }
}

}  // namespace
}  // namespace freshet::deploy
