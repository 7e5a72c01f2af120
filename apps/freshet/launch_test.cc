// freshet launch as its users meet it. What it takes for ssh are scripts that stay on this machine.

#include <sys/stat.h>

#include <algorithm>

#include "launch_testing.h"
#include "process_testing.h"

namespace freshet::cli {
namespace {

class LaunchTest : public testing::Test {
 protected:
  LaunchTest() {  // here only what a launcher sets should be seen
    for (const char* const of_tests : {"FRESHET_DATA", "FRESHET_SEED", "FRESHET_SEEDS"}) unsetenv(of_tests);
  }

  using Arguments = std::vector<std::string>;

  static Arguments Launch(Arguments flags, const Arguments& rest) {
    flags.insert(flags.begin(), "launch");
    flags.push_back("--");
    flags.insert(flags.end(), rest.begin(), rest.end());
    return flags;
  }
  Finished Run(const Arguments& arguments, const Surroundings& around = {}) {
    return Process(scratch_, arguments, around).Wait();
  }
  // A command in place of ssh: $1 is the host, $2 what to run there.
  std::string Ssh(const std::string& script) {
    const std::string path = scratch_.Write("ssh", "#!/bin/sh\n" + script + "\n");
    chmod(path.c_str(), 0755);
    return path;
  }
  // The process whose number a script wrote to this file.
  pid_t Pid(const std::string& name) const { return std::atoi(scratch_.Read(name).c_str()); }
  static void ExpectMentions(const std::string& text, const std::string& piece) {
    EXPECT_NE(text.find(piece), std::string::npos) << "'" << piece << "' is not in: " << text;
  }

  // Runs until it is told to end.
  const Arguments endless_ = {"data", "generate", "--kind", "sea", "--rows", "1000000000000", "-o", "/dev/null"};
  base::ScratchDirectory scratch_;
};

TEST_F(LaunchTest, RankZeroSpeaksForAllUnlessAllAreToBeHeard) {
  const Finished one = Run(Launch({"-n", "3"}, {"--version"}));
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_TRUE(one.out.starts_with("freshet ")) << one.out;
  EXPECT_EQ(one.out, Run({"--version"}).out);
  const Finished all = Run(Launch({"-n", "3", "--all-output"}, {"--version"}));
  EXPECT_EQ(all.code, 0) << all.err;
  ExpectMentions(all.out, "[rank 1] freshet ");
  ExpectMentions(all.out, "[rank 2] freshet ");
  ExpectMentions(all.out, one.out.substr(0, one.out.find('\n')));
}

TEST_F(LaunchTest, AFailureIsReportedWithItsCodeAndItsWords) {
  const Finished finished = Run(Launch({"-n", "2"}, {"inspect", "nowhere.model"}));
  EXPECT_EQ(finished.code, 1);
  ExpectMentions(finished.err, "[rank 0] freshet: ");
  ExpectMentions(finished.err, "[rank 1] freshet: ");
  const auto lines = finished.ErrorLines();
  ASSERT_EQ(lines.size(), 1u) << finished.err;
  ExpectMentions(lines[0], " on localhost: exit code 1");
  EXPECT_EQ(Run(Launch({"-n", "2"}, {"inspct"})).code, 2);
}

TEST_F(LaunchTest, RefusesCommandsThatMakeNoSense) {
  EXPECT_EQ(Run({"launch", "-n", "2"}).code, 2);
  EXPECT_EQ(Run({"launch", "-n", "2", "--"}).code, 2);
  EXPECT_EQ(Run({"launch", "--", "--version"}).code, 2);
  EXPECT_EQ(Run(Launch({"-n", "5", "-H", "a:2,b:2"}, {"--version"})).code, 2);
  EXPECT_EQ(Run(Launch({"-H", "-oProxyCommand=x"}, {"--version"})).code, 2);
  EXPECT_EQ(Run(Launch({"--agent"}, {"--version"})).code, 2) << "no token on standard input";
  ExpectMentions(Run({"launch", "--help"}).out, "freshet launch -n 4 -- train");
}

TEST_F(LaunchTest, OtherHostsAreReachedBySsh) {
  const std::string ssh = Ssh("echo \"$1\" >> hosts; env | grep ^FRESHET_ >> outer; exec sh -c \"$2\"");
  const Finished finished = Run(Launch({"-H", "a:2,me@b", "--ssh", ssh + " ", "--all-output"}, {"--version"}));
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(scratch_.Read("hosts").size(), std::string("a\na\nme@b\n").size());
  ExpectMentions(scratch_.Read("hosts"), "me@b\n");
  EXPECT_EQ(scratch_.Read("outer"), "") << "what belongs to workers";
  EXPECT_TRUE(finished.out.starts_with("freshet ") || finished.out.starts_with("[rank ")) << finished.out;
  ExpectMentions(finished.out, "[rank 2] freshet ");
}

TEST_F(LaunchTest, ArgumentsArriveAsTheyWereGivenAndCodesComeBack) {
  const std::string name = "it's \"$HOME\" *; `x`.model";
  const Finished finished = Run(Launch({"-H", "far:2", "--ssh", Ssh("exec sh -c \"$2\"")}, {"inspect", name}));
  EXPECT_EQ(finished.code, 1);
  ExpectMentions(finished.err, name);
  ExpectMentions(finished.err, " on far: exit code 1");
}

TEST_F(LaunchTest, SaysWhatToTryWhenSshFails) {
  const Finished finished = Run(Launch({"-H", "far:1", "--ssh", Ssh("echo no route >&2; exit 255")}, {"--version"}));
  EXPECT_EQ(finished.code, 255);
  ExpectMentions(finished.err, "[rank 0] no route");
  ExpectMentions(finished.err, "ssh far true");
}

TEST_F(LaunchTest, PassesSignalsOnToWorkersHereAndThere) {
  for (const int signal : {SIGTERM, SIGINT}) {
    const std::string ssh = Ssh("echo $$ > far.pid; exec sh -c \"$2\"");
    Process process(scratch_, Launch({"-H", "localhost:2,far:1", "--ssh", ssh}, endless_), {});
    ASSERT_TRUE(process.WaitUntil([&] { return Pid("far.pid") > 0; }));
    kill(process.pid(), signal);
    const Finished finished = process.Wait();
    EXPECT_EQ(finished.code, 128 + signal) << finished.err;
    EXPECT_TRUE(Gone(Pid("far.pid")));
    unlink((scratch_ / "far.pid").c_str());
  }
}

TEST_F(LaunchTest, WorkersDieWithTheLauncher) {
  // The first kind of ssh is our child; of the second only the connection is left when we are gone.
  for (const char* const script :
       {"echo $$ > far.pid; exec sh -c \"$2\"", "exec 3<&0; setsid sh -c \"echo \\$\\$ > far.pid; $2\" <&3 & wait"}) {
    Process process(scratch_, Launch({"-H", "far:1", "--ssh", Ssh(script)}, endless_), {});
    ASSERT_TRUE(process.WaitUntil([&] { return Pid("far.pid") > 0; }));
    const pid_t far = Pid("far.pid");
    std::string workers;  // of the agent
    ASSERT_TRUE(process.WaitUntil([&] {
      std::ifstream(Str("/proc/", far, "/task/", far, "/children")) >> workers;
      return !workers.empty();
    }));
    kill(process.pid(), SIGKILL);
    process.Wait();
    EXPECT_TRUE(SoonGone(far)) << script;
    EXPECT_TRUE(SoonGone(std::atoi(workers.c_str()))) << script;
    unlink((scratch_ / "far.pid").c_str());
  }
}

TEST_F(LaunchTest, ItsWordOnPlacesReplacesThatOfAnyOtherLauncher) {
  const std::string ssh = Ssh("env > outer; exit 3");
  const Surroundings under_slurm{.environment = {{"SLURM_STEP_ID", "0"}, {"RANK", "7"}, {"FRESHET_TOKEN_FILE", "x"}}};
  EXPECT_EQ(Run(Launch({"-H", "far:1", "--ssh", ssh}, {"--version"}), under_slurm).code, 3);
  for (const char* const name : {"\nSLURM_STEP_ID=", "\nRANK=", "\nFRESHET_"})
    EXPECT_EQ(Str("\n", scratch_.Read("outer")).find(name), std::string::npos) << name;
}

}  // namespace
}  // namespace freshet::cli
