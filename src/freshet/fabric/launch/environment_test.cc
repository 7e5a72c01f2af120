#include "fabric/launch/environment.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/option.h"
#include "fabric/launch/environment_slurm.h"

namespace freshet::fabric {
namespace {

using Variables = std::map<std::string, std::string>;

Result<Place> Find(const Variables& variables, const PlaceFlags& flags = {}) {
  const Environment environment = [&](const char* name) -> const char* {
    const auto at = variables.find(name);
    return at == variables.end() ? nullptr : at->second.c_str();
  };
  return FindPlace(environment, flags);
}

Place Must(const Variables& variables, const PlaceFlags& flags = {}) {
  auto place = Find(variables, flags);
  EXPECT_TRUE(place.ok()) << place.error().text;
  return place.ok() ? std::move(place).value() : Place{};
}

// Refused, with all these words.
void Refused(const Variables& variables, const std::vector<std::string>& words, const PlaceFlags& flags = {}) {
  const auto place = Find(variables, flags);
  ASSERT_FALSE(place.ok()) << place.value().launcher << " rank " << place.value().rank;
  EXPECT_EQ(place.error().code, Code::kInvalid);
  const std::string text = ShowOptions(place.error().text);
  for (const std::string& word : words)
    EXPECT_NE(text.find(word), std::string::npos) << "'" << word << "' not in: " << text;
}

// Rank, size, local rank, local size, launcher, rendezvous, job.
std::string Line(const Place& p) {
  return Str(p.rank, "/", p.size, " ", p.local_rank, "/", p.local_size, " ", p.launcher, " ", p.rendezvous, " ", p.job);
}

Variables Freshet() {
  return {{"FRESHET_RANK", "5"},         {"FRESHET_WORLD", "8"}, {"FRESHET_LOCAL_RANK", "1"},
          {"FRESHET_LOCAL_WORLD", "4"},  {"FRESHET_NODE", "1"},  {"FRESHET_RENDEZVOUS", "a:21000"},
          {"FRESHET_JOB_ID", "0123abcd"}};
}
Variables Torchrun() {
  return {{"RANK", "5"},
          {"WORLD_SIZE", "8"},
          {"LOCAL_RANK", "1"},
          {"LOCAL_WORLD_SIZE", "4"},
          {"MASTER_ADDR", "10.0.0.3"},
          {"MASTER_PORT", "29500"},
          {"TORCHELASTIC_RUN_ID", "none"}};
}
Variables OpenMpi() {
  return {{"OMPI_COMM_WORLD_RANK", "2"},
          {"OMPI_COMM_WORLD_SIZE", "4"},
          {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
          {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
          {"PMIX_RANK", "2"},
          {"PMIX_NAMESPACE", "3141592"}};
}
Variables Hydra() {
  return {{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "2"}, {"MPI_LOCALNRANKS", "4"}, {"PMI_FD", "9"}};
}
Variables Slurm() {
  return {{"SLURM_STEP_ID", "0"},
          {"SLURM_JOB_ID", "77"},
          {"SLURM_PROCID", "6"},
          {"SLURM_NTASKS", "7"},
          {"SLURM_STEP_NUM_TASKS", "7"},
          {"SLURM_LOCALID", "0"},
          {"SLURM_NODEID", "3"},
          {"SLURM_STEP_NODELIST", "n[08-10],m2"},
          {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"}};
}

Variables With(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}
Variables Without(Variables variables, const std::vector<std::string>& names) {
  for (const std::string& name : names) variables.erase(name);
  return variables;
}

TEST(LaunchEnvironment, FindsThePlaceOfEveryLauncher) {
  EXPECT_EQ(Line(Must({})), "0/1 0/1 single  ");
  EXPECT_EQ(Line(Must({}, {.rank = 1, .size = 3, .rendezvous = "a:1234"})), "1/3 0/1 flags a:1234 freshet");
  EXPECT_EQ(Line(Must(Freshet())), "5/8 1/4 freshet a:21000 0123abcd");
  EXPECT_EQ(Line(Must(Torchrun())), "5/8 1/4 torchrun 10.0.0.3:29500 freshet");
  EXPECT_EQ(Line(Must(OpenMpi())), Str("2/4 2/4 openmpi 127.0.0.1:", PortOf("3141592"), " 3141592"));
  const std::string hydra = Str("127.0.0.1:", PortOf(""));
  EXPECT_EQ(Line(Must(Hydra())), Str("2/4 2/4 hydra ", hydra, " freshet"));
  EXPECT_EQ(Line(Must(Slurm())), Str("6/7 0/1 slurm n08:", PortOf("77.0"), " 77.0"));
}

TEST(LaunchEnvironment, WhoFindsTheOthersWithoutAMeetingPlaceNeedsNone) {
  Variables spread = OpenMpi();
  spread["OMPI_COMM_WORLD_LOCAL_RANK"] = "0";
  spread["OMPI_COMM_WORLD_LOCAL_SIZE"] = "2";
  Refused(spread, {"rendezvous HOST:PORT"});
  EXPECT_EQ(Must(spread, {.needs_rendezvous = false}).rendezvous, "");
  EXPECT_EQ(Must(spread, {.needs_rendezvous = false}).rank, 2);
}

TEST(LaunchEnvironment, FlagsWinOverEverything) {
  EXPECT_EQ(Line(Must(Freshet(), {.rank = 0, .size = 2, .rendezvous = "b:9", .job = "mine"})),
            "0/2 0/1 flags b:9 mine");
  EXPECT_EQ(Line(Must(OpenMpi(), {.rendezvous = "b:9", .job = "mine"})), "2/4 2/4 openmpi b:9 mine");
  EXPECT_EQ(Line(Must(With(OpenMpi(), {{"FRESHET_RENDEZVOUS", "c:9"}}))), "2/4 2/4 openmpi c:9 3141592");
}

TEST(LaunchEnvironment, TakesTheFirstOfTwoLaunchersThatAgree) {
  EXPECT_EQ(Must(With(Torchrun(), Freshet())).launcher, "freshet");
  EXPECT_EQ(Must(With(Hydra(), OpenMpi())).launcher, "openmpi");
}

TEST(LaunchEnvironment, ALaterLauncherTellsWhatTheFirstDoesNot) {
  // srun --mpi=pmi2 sets ranks and sizes in two ways, and hosts in one.
  const Variables pmi = With(Slurm(), {{"PMI_RANK", "6"}, {"PMI_SIZE", "7"}});
  EXPECT_EQ(Line(Must(pmi)), Str("6/7 0/1 hydra n08:", PortOf("77.0"), " 77.0"));
}

TEST(LaunchEnvironment, RefusesTwoLaunchersWithDifferentSizes) {
  Refused(With(OpenMpi(), Torchrun()), {"WORLD_SIZE=8", "OMPI_COMM_WORLD_SIZE=4", "torchrun", "openmpi"});
  Refused(With(Hydra(), Freshet()), {"FRESHET_WORLD=8", "PMI_SIZE=4"});
  Refused(With(Slurm(), {{"RANK", "0"}, {"WORLD_SIZE", "1"}}), {"WORLD_SIZE=1", "SLURM_STEP_NUM_TASKS=7"});
}

TEST(LaunchEnvironment, SlurmMayStartTheAgentsOfAnotherLauncherOneOnEachNode) {
  const Variables agents = {{"SLURM_STEP_NUM_TASKS", "2"},
                            {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"},
                            {"SLURM_PROCID", "1"},
                            {"SLURM_NODEID", "1"}};
  EXPECT_EQ(Line(Must(With(With(Slurm(), agents), Torchrun()))), "5/8 1/4 torchrun 10.0.0.3:29500 freshet");
  // Two tasks on a node are no agents.
  Refused(With(With(With(Slurm(), agents),
                    {{"SLURM_STEP_TASKS_PER_NODE", "2"}, {"SLURM_NODEID", "0"}, {"SLURM_LOCALID", "1"}}),
               Torchrun()),
          {"WORLD_SIZE=8", "SLURM_STEP_NUM_TASKS=2"});
}

TEST(LaunchEnvironment, SlurmCountsOnlyWithinAStep) {
  EXPECT_EQ(Line(Must(Without(Slurm(), {"SLURM_STEP_ID"}))), "0/1 0/1 single  ");
  EXPECT_EQ(Must(Without(Slurm(), {"SLURM_STEP_NUM_TASKS"})).size, 7);
}

TEST(LaunchEnvironment, RefusesWhatCannotBe) {
  Refused(With(Torchrun(), {{"RANK", "8"}}), {"RANK=8", "WORLD_SIZE=8"});
  Refused(With(Torchrun(), {{"RANK", "two"}}), {"RANK", "'two'"});
  Refused(With(Torchrun(), {{"RANK", "-1"}}), {"RANK", "-1"});
  Refused(With(Torchrun(), {{"WORLD_SIZE", "99999999999"}}), {"WORLD_SIZE"});
  Refused(With(Torchrun(), {{"WORLD_SIZE", "0"}}), {"RANK=5", "WORLD_SIZE=0"});
  Refused(With(Torchrun(), {{"MASTER_PORT", "x"}}), {"MASTER_PORT"});
  Refused(With(Torchrun(), {{"MASTER_PORT", "70000"}}), {"70000", "HOST:PORT"});
  Refused(With(Torchrun(), {{"LOCAL_RANK", "4"}}), {"LOCAL_RANK=4", "LOCAL_WORLD_SIZE=4"});
  Refused(With(Torchrun(), {{"LOCAL_WORLD_SIZE", "9"}}), {"LOCAL_WORLD_SIZE=9", "WORLD_SIZE=8"});
  Refused({{"RANK", "1"}}, {"RANK is set", "WORLD_SIZE is not"});
  Refused({{"WORLD_SIZE", "2"}}, {"WORLD_SIZE is set", "RANK is not"});
  Refused({{"PMIX_RANK", "1"}}, {"PMIX_RANK=1", "world"});
  Refused(With(Slurm(), {{"SLURM_NODEID", "4"}}), {"SLURM_NODEID=4", "SLURM_STEP_TASKS_PER_NODE"});
  Refused(With(Slurm(), {{"SLURM_STEP_NODELIST", "n[1-"}}), {"SLURM_STEP_NODELIST", "'n[1-'"});
  Refused({}, {"rank 3", "world 3"}, {.rank = 3, .size = 3});
  Refused({}, {"rank -1", "world 3"}, {.size = 3});
  Refused({}, {"'nowhere'", "HOST:PORT"}, {.rank = 0, .size = 2, .rendezvous = "nowhere"});
  Refused({}, {"'a:0'", "announce"}, {.rank = 0, .size = 2, .rendezvous = "a:0"});
  Refused({}, {"'a:0'", "announce"}, {.rank = 1, .size = 2, .rendezvous = "a:0", .announces = true});
  EXPECT_EQ(Must({}, {.rank = 0, .size = 2, .rendezvous = "a:0", .announces = true}).rendezvous, "a:0");
}

TEST(LaunchEnvironment, AsksForAnAddressWhenHostsAreSeveralAndNoneIsKnown) {
  Refused(With(OpenMpi(), {{"OMPI_COMM_WORLD_LOCAL_SIZE", "3"}}), {"openmpi", "rendezvous HOST:PORT"});
  Refused(With(Hydra(), {{"MPI_LOCALNRANKS", "3"}}), {"hydra", "rendezvous HOST:PORT"});
  Refused(Without(Torchrun(), {"MASTER_ADDR"}), {"torchrun", "rendezvous HOST:PORT"});
  Refused({}, {"flags", "rendezvous HOST:PORT"}, {.rank = 0, .size = 2});
}

TEST(LaunchEnvironment, WorkersThatMeetOnLoopbackAreAllOnThisHost) {
  const Variables plain = {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "localhost"}};
  EXPECT_EQ(Line(Must(plain)), "1/2 1/2 torchrun localhost:29400 freshet");
  EXPECT_EQ(Line(Must(With(plain, {{"MASTER_ADDR", "::1"}}))), "1/2 1/2 torchrun [::1]:29400 freshet");
  EXPECT_EQ(Line(Must(With(plain, {{"MASTER_ADDR", "far"}}))), "1/2 0/1 torchrun far:29400 freshet");
}

TEST(LaunchEnvironment, LeavesThePortToTheAgentThatListensThere) {
  EXPECT_EQ(Must(With(Torchrun(), {{"TORCHELASTIC_USE_AGENT_STORE", "True"}})).rendezvous, "10.0.0.3:29501");
  EXPECT_EQ(Must(With(Torchrun(), {{"TORCHELASTIC_USE_AGENT_STORE", "False"}})).rendezvous, "10.0.0.3:29500");
}

TEST(LaunchEnvironment, KnowsALauncherByAVariableThatNobodySetsByHand) {
  EXPECT_EQ(Must(OpenMpi()).mark, "OMPI_COMM_WORLD_RANK");
  EXPECT_EQ(Must(Hydra()).mark, "PMI_RANK");
  EXPECT_EQ(Must(Slurm()).mark, "SLURM_PROCID");
  EXPECT_EQ(Must(Torchrun()).mark, "TORCHELASTIC_RUN_ID");
  Variables by_hand = Torchrun();
  by_hand.erase("TORCHELASTIC_RUN_ID");
  EXPECT_EQ(Must(by_hand).mark, "");
  EXPECT_EQ(Must(Freshet()).mark, "");
  EXPECT_EQ(Must(OpenMpi(), {.rank = 0, .size = 4, .rendezvous = "a:21000"}).mark, "");
}

TEST(LaunchEnvironment, IsAloneWithoutTheVariablesItLists) {
  for (const Variables& variables : {Freshet(), Torchrun(), OpenMpi(), Hydra(), Slurm()})
    EXPECT_EQ(Line(Must(Without(variables, PlaceVariables()))), "0/1 0/1 single  ");
}

TEST(LaunchEnvironment, PortsOfJobsLieBelowThoseOfOutgoingConnections) {
  std::set<int> ports;
  for (int job = 0; job < 1000; ++job) {
    const int port = PortOf(Str("job ", job));
    EXPECT_GE(port, 20'000);
    EXPECT_LT(port, 32'000);
    EXPECT_NE(port, PortOf(Str("job ", job), 1));
    ports.insert(port);
  }
  EXPECT_GT(ports.size(), 900u);
}

std::string Nodes(const std::string& list) {
  const auto nodes = ExpandNodes(list);
  return nodes.ok() ? Join(nodes.value(), " ") : "refused";
}

TEST(SlurmLists, ExpandNodes) {
  EXPECT_EQ(Nodes("n1"), "n1");
  EXPECT_EQ(Nodes("n[1-3,7],m2"), "n1 n2 n3 n7 m2");
  EXPECT_EQ(Nodes("n[08-11]"), "n08 n09 n10 n11");
  EXPECT_EQ(Nodes("r[0-1]n[01-02]-ib,login.site.org"), "r0n01-ib r0n02-ib r1n01-ib r1n02-ib login.site.org");
  for (const char* const bad : {"", ",", "a,", "n[", "n]", "n[]", "n[1", "n]1[", "n[3-1]", "n[a-b]", "n[1-]", "n[-1]",
                                "n[1-999999999]", "n[1-9999]m[1-9999]"})
    EXPECT_EQ(Nodes(bad), "refused") << bad;
}

TEST(SlurmLists, ExpandTheTasksOfEachNode) {
  EXPECT_EQ(ExpandCounts("2(x3),1").value(), (std::vector<int>{2, 2, 2, 1}));
  EXPECT_EQ(ExpandCounts("16").value(), (std::vector<int>{16}));
  for (const char* const bad : {"", "x", "2(x", "2(x3", "2(3)", "2(x-1)", "1(x999999999)", "1,,2"})
    EXPECT_FALSE(ExpandCounts(bad).ok()) << bad;
}

}  // namespace
}  // namespace freshet::fabric
