#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "run/host_memory.h"

namespace partita::run {
namespace {

namespace fs = std::filesystem;

constexpr Bytes kGiB = Bytes{1} << 30;

/// A folder with the files that Linux would have.
class Machine {
 public:
  Machine() {
    auto* test = testing::UnitTest::GetInstance()->current_test_info();
    root_ = fs::path(testing::TempDir()) / test->name();
    fs::remove_all(root_);
    write("proc/meminfo", "MemTotal:       33554432 kB\nMemFree: 1048576 kB\nMemAvailable:   20971520 kB\n");
  }
  ~Machine() { fs::remove_all(root_); }

  Machine& write(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
    return *this;
  }
  Bytes available() const { return available_memory(root_.string()); }

 private:
  fs::path root_;
};

TEST(HostMemory, IsWhatLinuxCallsAvailable) { EXPECT_EQ(Machine().available(), 20 * kGiB); }

TEST(HostMemory, IsNotKnownWithoutProc) { EXPECT_EQ(available_memory("/nowhere-at-all"), 0); }

// 8 GiB allowed, 5 GiB used of which 2 GiB are pages of files.
TEST(HostMemory, IsWhatTheControlGroupLeaves) {
  Machine machine;
  machine.write("proc/self/cgroup", "0::/a/b\n")
      .write("sys/fs/cgroup/a/b/memory.max", "max\n")
      .write("sys/fs/cgroup/a/b/memory.current", "5368709120\n")
      .write("sys/fs/cgroup/a/memory.max", "8589934592\n")
      .write("sys/fs/cgroup/a/memory.current", "5368709120\n")
      .write("sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 2147483648\n");
  EXPECT_EQ(machine.available(), 5 * kGiB);
}

TEST(HostMemory, KnowsControlGroupsOfTheFirstVersion) {
  Machine machine;
  machine.write("proc/self/cgroup", "9:memory:/docker\n3:cpu:/docker\n")
      .write("sys/fs/cgroup/memory/memory.limit_in_bytes", "4294967296\n")
      .write("sys/fs/cgroup/memory/memory.usage_in_bytes", "1073741824\n");
  EXPECT_EQ(machine.available(), 3 * kGiB);
}

TEST(HostMemory, ANeedAboveItIsRefused) {
  EXPECT_NO_THROW(need_memory("train", 20 * kGiB, 4, 20 * kGiB));
  EXPECT_NO_THROW(need_memory("train", 20 * kGiB, 4, 0));  // not known
  try {
    need_memory("train", 1126 * kGiB, 128, 20 * kGiB);
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_EQ(std::string(error.what()).substr(0, 69),
              "train: needs 1.1 TiB for 128 ranks, this machine has 20.0 GiB free; `");
  }
}

TEST(OneProcess, IsNeeded) {
  setenv("WORLD_SIZE", "8", 1);
  EXPECT_THROW(need_one_process("train"), InputError);
  setenv("WORLD_SIZE", "1", 1);
  EXPECT_NO_THROW(need_one_process("train"));
  unsetenv("WORLD_SIZE");
  EXPECT_NO_THROW(need_one_process("train"));
}

}  // namespace
}  // namespace partita::run
