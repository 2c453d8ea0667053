#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/file.h"

namespace partita::base {
namespace {

namespace fs = std::filesystem;

template <class Work>
std::string refusal(Work work) {
  try {
    work();
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

class Files : public testing::Test {
 protected:
  Files() : folder_(testing::TempDir() + "/partita_files_" + std::to_string(getpid())) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~Files() override { fs::remove_all(folder_); }

  std::string at(const std::string& name) const { return folder_ + "/" + name; }
  std::set<std::string> names() const {
    std::set<std::string> out;
    for (const auto& entry : fs::directory_iterator(folder_)) out.insert(entry.path().filename());
    return out;
  }

  std::string folder_;
};

/// No file may grow beyond `bytes`, as on a disk that is nearly full.
class SmallFiles {
 public:
  explicit SmallFiles(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit small = {bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
  }
  ~SmallFiles() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_;
};

TEST_F(Files, AreWrittenWholeAndReadBack) {
  write_file(at("a"), "text");
  EXPECT_EQ(read_file(at("a")), "text");
  EXPECT_EQ(names(), std::set<std::string>{"a"});
  write_file(at("a"), "");
  EXPECT_EQ(read_file(at("a")), "");
  write_file(at(std::string(255, 'n')), "as long as a name may be");
  EXPECT_EQ(names().size(), 2u);
}

TEST_F(Files, AreNotThereUntilTheyAreCommitted) {
  write_file(at("a"), "old");
  {
    WholeFile file(at("a"));
    file.write("ne");
    EXPECT_EQ(read_file(at("a")), "old");
    file.write("w");
    file.commit();
  }
  EXPECT_EQ(read_file(at("a")), "new");
  {
    WholeFile file(at("a"));
    file.write("given up");
    EXPECT_EQ(names().size(), 2u);
  }
  EXPECT_EQ(read_file(at("a")), "new");
  EXPECT_EQ(names(), std::set<std::string>{"a"});
}

TEST_F(Files, SurviveAFullDisk) {
  write_file(at("a"), "old");
  std::string said;
  {
    SmallFiles limit(1000);
    said = refusal([&] { write_file(at("a"), std::string(1001, 'x')); });
  }
  EXPECT_EQ(said,
            at("a") + ": cannot write this file: File too large; raise the limit of file sizes (ulimit -f)");
  EXPECT_EQ(read_file(at("a")), "old");
  EXPECT_EQ(names(), std::set<std::string>{"a"});
}

TEST_F(Files, ALinkStaysAndItsTargetIsReplaced) {
  write_file(at("to"), "old");
  fs::create_symlink("to", at("link"));
  fs::create_symlink("new", at("nowhere"));
  fs::create_symlink(at("link"), at("chain"));
  for (const char* link : {"link", "nowhere", "chain"}) {
    write_file(at(link), link);
    EXPECT_TRUE(fs::is_symlink(at(link))) << link;
    EXPECT_EQ(read_file(at(link)), link);
  }
  EXPECT_EQ(read_file(at("to")), "chain");
  EXPECT_EQ(read_file(at("new")), "nowhere");
}

TEST_F(Files, KeepTheirPermissions) {
  write_file(at("a"), "old");
  for (fs::perms mode : {fs::perms(0640), fs::perms(0755)}) {
    fs::permissions(at("a"), mode);
    write_file(at("a"), "new");
    EXPECT_EQ(fs::status(at("a")).permissions(), mode);
  }
}

TEST_F(Files, WhatIsNoFileIsWrittenDirectly) {
  write_file("/dev/null", "text");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_EQ(refusal([] { write_file("/dev/full", "text"); }),
            "/dev/full: cannot write this file: No space left on device; free some space or write elsewhere");
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  write_file("/dev/fd/" + std::to_string(ends[1]), "text");
  char got[8] = {};
  EXPECT_EQ(read(ends[0], got, sizeof got), 4);
  EXPECT_STREQ(got, "text");
  close(ends[0]), close(ends[1]);
}

TEST_F(Files, AWrongPlaceIsNamed) {
  EXPECT_EQ(refusal([] { read_file("/absent/x"); }), "/absent/x: cannot read this file; does it exist?");
  EXPECT_EQ(refusal([] { write_file("/absent/x", ""); }),
            "/absent/x: cannot write this file: No such file or directory; does its folder exist?");
  EXPECT_EQ(refusal([&] { write_file(folder_, ""); }),
            folder_ + ": cannot write this file: Is a directory; name a file in this folder");
  write_file(at("a"), "old");
  EXPECT_EQ(refusal([&] { write_file(at("a/b"), ""); }),
            at("a/b") + ": cannot write this file: Not a directory; does its folder exist?");
  EXPECT_EQ(names(), std::set<std::string>{"a"});
}

}  // namespace
}  // namespace partita::base
