#include "base/cores.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cmath>
#include <filesystem>
#include <thread>

#include "base/scratch_testing.h"

namespace freshet::base {
namespace {

constexpr char kSecond[] = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
constexpr char kFirst[] =
    "31 23 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "32 23 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n";

// A machine of files.
class CoresTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ / path).parent_path());
    root_.Write(path, text);
  }
  void Groups(const std::string& mounts, const std::string& groups) {
    Write("proc/self/mountinfo", "22 1 0:20 / /proc rw - proc proc rw\n" + mounts);
    Write("proc/self/cgroup", groups);
  }
  double Quota() const { return QuotaCores(root_.path()); }

  ScratchDirectory root_;
};

TEST_F(CoresTest, HaveNoQuotaWhereNothingSaysSo) {
  EXPECT_TRUE(std::isinf(Quota()));
  Groups(kSecond, "0::/\n");
  EXPECT_TRUE(std::isinf(Quota()));
  Write("sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_TRUE(std::isinf(Quota()));
}

TEST_F(CoresTest, AreLimitedByTheGroupsQuota) {
  Groups(kSecond, "0::/user.slice/job\n");
  Write("sys/fs/cgroup/user.slice/job/cpu.max", "150000 100000\n");
  EXPECT_EQ(Quota(), 1.5);
}

TEST_F(CoresTest, AreLimitedByTheLeastQuotaOfTheGroupsAbove) {
  Groups(kSecond, "0::/a/b/c\n");
  Write("sys/fs/cgroup/a/b/c/cpu.max", "400000 100000\n");
  Write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  Write("sys/fs/cgroup/a/cpu.max", "25000 10000\n");
  EXPECT_EQ(Quota(), 2.5);
}

TEST_F(CoresTest, AreLimitedByAQuotaOfTheFirstVersion) {
  Groups(kFirst, "4:memory:/big\n3:cpu,cpuacct:/docker/1234\n0::/\n");
  Write("sys/fs/cgroup/cpu,cpuacct/docker/1234/cpu.cfs_quota_us", "50000\n");
  Write("sys/fs/cgroup/cpu,cpuacct/docker/1234/cpu.cfs_period_us", "100000\n");
  Write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  Write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Quota(), 0.5);
}

// Mounted is then the container's own group, while the path is that of the host.
TEST_F(CoresTest, AreLimitedInAContainerThatDoesNotSeeTheHostsGroups) {
  Groups(kFirst, "3:cpu,cpuacct:/docker/1234\n");
  Write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "300000\n");
  Write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Quota(), 3);
}

TEST_F(CoresTest, AreNotLimitedByWhatMakesNoSense) {
  Groups("not a mount\n 1 - \n" + std::string(kSecond), "nonsense\n1\n0::\n0::/..\n");
  for (const char* const text : {"", "\n", "0 100000\n", "100000 0\n", "-5 100000\n", "many few\n", "100000\n"}) {
    Write("sys/fs/cgroup/cpu.max", text);
    EXPECT_TRUE(std::isinf(Quota())) << text;
  }
}

TEST_F(CoresTest, AreAsManyAsTheQuotaBegins) {
  Groups(kSecond, "0::/\n");
  const int all = HostCores(root_.path());
  for (const auto& [text, most] : {std::pair{"1000 100000", 1}, {"100000 100000", 1}, {"150000 100000", 2}}) {
    Write("sys/fs/cgroup/cpu.max", text);
    EXPECT_EQ(HostCores(root_.path()), std::min(most, all)) << text;
    EXPECT_EQ(AvailableCores(root_.path()), std::min(most, AvailableCores(root_ / "nothing"))) << text;
  }
}

TEST_F(CoresTest, AreThoseTheThreadIsTiedTo) {
  int available = 0, host = 0;
  std::thread([&] {  // of which this process keeps the affinity it has
    cpu_set_t mine, one;
    ASSERT_EQ(sched_getaffinity(0, sizeof mine, &mine), 0);
    CPU_ZERO(&one);
    for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core)
      if (CPU_ISSET(core, &mine)) CPU_SET(core, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    available = AvailableCores(root_.path());
    host = HostCores(root_.path());
  })
      .join();
  EXPECT_EQ(available, 1);
  EXPECT_EQ(host, HostCores(root_.path()));
}

TEST(Cores, OfThisMachineAreAtLeastOne) {
  EXPECT_GE(AvailableCores(), 1);
  EXPECT_GE(HostCores(), 1);
}

}  // namespace
}  // namespace freshet::base
