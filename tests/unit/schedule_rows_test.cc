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

bool any_step(const Schedule& schedule, StepKind kind) {
  for (const std::vector<Step>& list : schedule.order)
    for (const Step& step : list)
      if (step.kind == kind) return true;
  return false;
}

TEST(ScheduleRows, SayWhatTheirSchedulesAre) {
  for (const ScheduleRow& row : schedule_rows()) {
    Schedule made = make_schedule(row.name, {.devices = 4, .microbatches = 8});
    EXPECT_EQ(made.streams, row.streams) << row.name;
    EXPECT_EQ(made.passes, row.passes) << row.name;
    EXPECT_EQ(any_step(made, StepKind::kWeightGrad), row.splits_weight_gradients) << row.name;
    EXPECT_EQ(made.devices_of(0, 0).size() > 1, row.on_all_devices) << row.name;
    for (int chunks : row.chunks) {
      if (chunks == 0) continue;
      made = make_schedule(row.name, {.devices = 4, .microbatches = 8, .chunks = chunks});
      EXPECT_EQ(made.stages, 4 * chunks) << row.name;
    }
  }
}

TEST(ScheduleRows, TwoChunksAreAWave) {
  EXPECT_EQ(make_schedule("wave", {.devices = 2, .microbatches = 4, .chunks = 4}),
            make_schedule("wave", {.devices = 2, .microbatches = 4, .waves = 2}));
  EXPECT_THROW(make_schedule("wave", {.devices = 2, .microbatches = 4, .chunks = 3}), InputError);
}

TEST(ScheduleRows, PlannedOnesComeInTheOrderOfTheirPlaces) {
  std::vector<const ScheduleRow*> rows = planned_schedules();
  EXPECT_EQ(rows.front()->name, kPlainSchedule);
  for (size_t k = 0; k < rows.size(); ++k) EXPECT_EQ(rows[k]->planned, static_cast<int>(k) + 1);
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
