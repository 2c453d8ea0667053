#include <gtest/gtest.h>

#include <thread>

#include "base/interrupt.h"
#include "base/parallel.h"

namespace partita::base {
namespace {

bool interrupted() {
  try {
    check_interrupt();
  } catch (const Interrupted&) {
    return true;
  }
  return false;
}

TEST(Interrupt, IsOfTheScopeAndOfTheThread) {
  std::atomic<bool> set = true, unset = false;
  EXPECT_FALSE(interrupted());
  {
    Interruptible outer(&set);
    EXPECT_TRUE(interrupted());
    {
      Interruptible inner(&unset), none(nullptr);
      EXPECT_FALSE(interrupted());
    }
    EXPECT_TRUE(interrupted());
    std::thread([] { EXPECT_FALSE(interrupted()); }).join();
  }
  EXPECT_FALSE(interrupted());
}

TEST(Interrupt, ReachesThreadsThatWorkInParallel) {
  constexpr size_t kMany = 1000, kWhen = 10;
  std::atomic<bool> flag = false;
  std::atomic<size_t> done = 0;
  Interruptible scope(&flag);
  EXPECT_THROW(in_parallel(kMany, 2,
                           [&](size_t) {
                             if (++done == kWhen) flag = true;
                           }),
               Interrupted);
  EXPECT_LT(done, kWhen + 2);
}

}  // namespace
}  // namespace partita::base
