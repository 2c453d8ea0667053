#include <gtest/gtest.h>

#include "base/error.h"
#include "schedule/schedule.h"

namespace partita::schedule {
namespace {

std::string row(const std::vector<Step>& steps) {
  std::string text;
  for (const Step& step : steps) text += show(step) + " ";
  return text;
}

TEST(ScheduleRows, OneFOneBIsThePublishedOrder) {
  Schedule schedule = make_schedule("1f1b", {.devices = 2, .microbatches = 3});
  EXPECT_EQ(row(schedule.order[0]), "0F0 0F1 0B0 0F2 0B1 0B2 ");
  EXPECT_EQ(row(schedule.order[1]), "1F0 1B0 1F1 1B1 1F2 1B2 ");
}

TEST(ScheduleRows, EveryRowIsComplete) {
  for (const std::string& name : schedule_names())
    for (int devices : {2, 4, 8}) {
      Schedule schedule = make_schedule(name, {.devices = devices, .microbatches = 2 * devices});
      EXPECT_EQ(check(schedule), std::vector<std::string>{}) << name << " on " << devices;
    }
}

TEST(ScheduleRows, UnknownNameSuggestsTheNearest) {
  try {
    make_schedule("1f1c", {.devices = 2, .microbatches = 2});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "schedule: unknown name '1f1c'; did you mean '1f1b'?");
  }
}

}  // namespace
}  // namespace partita::schedule
