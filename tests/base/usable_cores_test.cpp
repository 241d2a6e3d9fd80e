// How many cores a process may use: trees of control groups as kernels, container tools and systemd make them.
// SPDX-License-Identifier: Apache-2.0
#include "base/usable_cores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <fstream>

#include "base/temporary.h"

namespace tenon_tests {

using namespace tenon::base;

namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A folder with /proc and control groups of its own.
class UsableCoresTest : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    const fs::path path = root() / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
    ASSERT_TRUE(fs::exists(path)) << path;
  }
  // The hierarchy of version 2, whose folder `part` is mounted.
  void mount_unified(const std::string& group, const std::string& part = "/",
                     const std::string& point = "/sys/fs/cgroup") const {
    write("proc/self/cgroup", "0::" + group + "\n");
    write("proc/self/mountinfo", "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n29 22 0:26 " + part + " " +
                                     point + " rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
  }
  // That of version 1 for the controllers cpu and cpuacct, beside a unified one without the controller.
  void mount_cpu(const std::string& group, const std::string& part = "/") const {
    write("proc/self/cgroup", "12:cpuset:/none\n5:cpu,cpuacct:" + group + "\n1:name=systemd:" + group + "\n0::/\n");
    write("proc/self/mountinfo",
          "30 22 0:25 / /sys/fs/cgroup ro - tmpfs tmpfs ro\n33 30 0:28 " + part +
              " /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n34 30 0:29 " + part +
              " /sys/fs/cgroup/cpuset rw shared:9 - cgroup cgroup rw,cpuset\n35 30 0:30 / /sys/fs/cgroup/unified rw - "
              "cgroup2 cgroup2 rw\n");
  }
  void set_cpu(const std::string& folder, const std::string& quota, const std::string& period = "100000\n") const {
    write(folder + "/cpu.cfs_quota_us", quota);
    write(folder + "/cpu.cfs_period_us", period);
  }
  [[nodiscard]] UsableCores cores(int32_t affine = 16) const { return usable_cores(root(), affine); }
  [[nodiscard]] const fs::path& root() const { return folder_.path(); }

 private:
  const tenon::base::TemporaryFolder folder_;
};

TEST_F(UsableCoresTest, WithoutAQuotaTheAffinityCounts) {
  EXPECT_EQ(cores().count, 16) << "/proc is not mounted";
  EXPECT_EQ(cores().reason, "the affinity of the process has 16 cores");
  EXPECT_EQ(cores(1).reason, "the affinity of the process has 1 core");
  mount_unified("/user.slice");
  EXPECT_EQ(cores().count, 16) << "the controller is off";
  write("sys/fs/cgroup/user.slice/cpu.max", "max 100000\n");
  EXPECT_EQ(cores().count, 16);
}

TEST_F(UsableCoresTest, AQuotaOfVersion2IsRoundedUp) {
  mount_unified("/kubepods/pod1/box");
  const std::pair<const char*, int> cases[] = {
      {"100000 100000\n", 1}, {"150000 100000\n", 2},      {"200000 100000\n", 2}, {"200001 100000\n", 3},
      {"50000 100000\n", 1},  {"1000 1000000\n", 1},       {"25000 10000", 3},     {"1600000 100000\n", 16},
      {"9000000 100000", 16}, {"1900000000000 100000", 16}};
  for (const auto& [text, count] : cases) {
    write("sys/fs/cgroup/kubepods/pod1/box/cpu.max", text);
    EXPECT_EQ(cores().count, count) << text;
  }
  write("sys/fs/cgroup/kubepods/pod1/box/cpu.max", "150000 100000\n");
  EXPECT_EQ(cores().reason, (root() / "sys/fs/cgroup/kubepods/pod1/box/cpu.max").string() +
                                " allows the time of 1.5 cores, the affinity of the process 16 cores");
  EXPECT_EQ(cores(1).reason, "the affinity of the process has 1 core");
}

TEST_F(UsableCoresTest, TheSmallestOfNestedGroupsCounts) {
  mount_unified("/a/b/c");
  write("sys/fs/cgroup/a/cpu.max", "300000 100000\n");
  write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/a/b/c/cpu.max", "1000000 100000\n");
  EXPECT_EQ(cores().count, 3);
  EXPECT_THAT(cores().reason, HasSubstr("/a/cpu.max allows the time of 3 cores"));
  write("sys/fs/cgroup/a/b/cpu.max", "20000 10000\n");
  EXPECT_EQ(cores().count, 2);
  write("sys/fs/cgroup/a/b/c/cpu.max", "40000 100000\n");
  EXPECT_EQ(cores().count, 1);
  write("sys/fs/cgroup/other/cpu.max", "10000 100000\n");
  EXPECT_THAT(cores().reason, AllOf(HasSubstr("/a/b/c/cpu.max allows the time of 0.4 cores"), HasSubstr("16 cores")));
}

TEST_F(UsableCoresTest, InAContainerTheMountedPartCounts) {
  mount_unified("/");  // with a namespace of control groups, as of Docker and Podman
  write("sys/fs/cgroup/cpu.max", "250000 100000\n");
  EXPECT_EQ(cores().count, 3);
  mount_unified("/docker/0123", "/docker/0123");  // without
  EXPECT_EQ(cores().count, 3);
  mount_unified("/docker/0123/inner", "/docker/0123");
  write("sys/fs/cgroup/inner/cpu.max", "100000 100000\n");
  EXPECT_EQ(cores().count, 1);
  mount_unified("/docker/0123", "/docker/4567");  // the group of another container
  EXPECT_EQ(cores().count, 16);
  mount_unified("/docker/012", "/docker/0123");
  EXPECT_EQ(cores().count, 16);
  mount_unified("/../outside");
  EXPECT_EQ(cores().count, 16);
  mount_unified("/", "/", "/with\\040space");
  write("with space/cpu.max", "200000 100000\n");
  EXPECT_EQ(cores().count, 2);
}

TEST_F(UsableCoresTest, QuotasOfVersion1Count) {
  mount_cpu("/docker/0123");
  EXPECT_EQ(cores().count, 16);
  set_cpu("sys/fs/cgroup/cpu,cpuacct/docker/0123", "-1\n");
  EXPECT_EQ(cores().count, 16);
  set_cpu("sys/fs/cgroup/cpu,cpuacct/docker", "350000\n");
  EXPECT_EQ(cores().count, 4);
  EXPECT_THAT(cores().reason, HasSubstr("/cpu,cpuacct/docker/cpu.cfs_quota_us allows the time of 3.5 cores"));
  set_cpu("sys/fs/cgroup/cpu,cpuacct/docker/0123", "50000\n", "25000\n");
  EXPECT_EQ(cores().count, 2);
  set_cpu("sys/fs/cgroup/cpuset/docker/0123", "10000\n");
  EXPECT_EQ(cores().count, 2) << "of another controller";
  write("sys/fs/cgroup/unified/cpu.max", "100000 100000\n");
  EXPECT_EQ(cores().count, 1) << "systems may have both versions";
  fs::remove(root() / "sys/fs/cgroup/unified/cpu.max");
  mount_cpu("/docker/0123", "/docker/0123");
  set_cpu("sys/fs/cgroup/cpu,cpuacct", "600000\n");
  EXPECT_EQ(cores().count, 6);
}

TEST_F(UsableCoresTest, DamagedFilesStateNoQuota) {
  mount_unified("/a");
  for (const char* text : {"", "max", "100000", "100000 0\n", "0 100000\n", "-5 100000\n", "x y\n", " \n",
                           "100000 max\n", "99999999999999999999 100000\n"}) {
    write("sys/fs/cgroup/a/cpu.max", text);
    EXPECT_EQ(cores().count, 16) << text;
  }
  write("sys/fs/cgroup/a/cpu.max", "100000 100000\n");
  EXPECT_EQ(cores().count, 1);
  for (const char* text : {"", "\n\n", "0:", "0::\n", "x", ":::", "0::a\n"}) {
    write("proc/self/cgroup", text);
    EXPECT_EQ(cores().count, 16) << text;
  }
  mount_unified("/a");
  for (const char* text : {"", "\n", "1 2 3", "- cgroup2", "29 22 0:26 / - cgroup2 cgroup2", "1 2 3 4 5 6 - cgroup2",
                           "29 22 0:26 / /sys/fs/cgroup rw cgroup2 cgroup2 rw"}) {
    write("proc/self/mountinfo", text);
    EXPECT_EQ(cores().count, 16) << text;
  }
}

TEST_F(UsableCoresTest, TheAffinityIsThatOfTheProcess) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(cores_of_affinity(), CPU_COUNT(&before));
  CPU_ZERO(&one);
  for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core)
    if (CPU_ISSET(core, &before)) CPU_SET(core, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(cores_of_affinity(), 1);
  EXPECT_EQ(usable_cores().count, 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

}  // namespace

}  // namespace tenon_tests
