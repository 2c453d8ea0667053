#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "schedule/csv.h"
#include "schedule/evaluate.h"

namespace partita::schedule {
namespace {

std::string torch_file(const std::string& name) {
  return read_file(PARTITA_SOURCE_DIR "/tests/data/torch_schedules/" + name + ".csv");
}

// The cells of computation only: what PyTorch's compute-only form has without its idle cells.
std::string compute_cells(const std::string& text) {
  std::string out, cell;
  bool first = true;
  for (char c : text) {
    if (c == '\r') continue;
    if (c != ',' && c != '\n') {
      cell += c;
      continue;
    }
    bool compute = !cell.empty() && cell.find("SEND") == cell.npos && cell.find("RECV") == cell.npos &&
                   cell.find("SHARD") == cell.npos && cell.find("REDUCE") == cell.npos;
    if (compute) out += (first ? "" : ",") + cell;
    if (compute) first = false;
    cell.clear();
    if (c == '\n') out += c, first = true;
  }
  return out;
}

TEST(ScheduleCsv, PyTorchSchedulesImportEvaluateAndRoundTrip) {
  for (const char* name : {"gpipe", "interleaved", "interleaved.comms", "looped_bfs", "looped_bfs.comms",
                           "interleaved_zb", "interleaved_zb.comms", "zbv", "zbv.comms", "dualpipev"}) {
    std::string text = torch_file(name);
    Schedule schedule = parse_csv(text, name);
    Evaluation run = evaluate(schedule, uniform_costs({}, 0, schedule.stages));
    EXPECT_FALSE(run.deadlock) << name;
    EXPECT_GT(run.makespan, Rational(0)) << name;
    EXPECT_EQ(to_csv(schedule), compute_cells(text)) << name;
    EXPECT_EQ(parse_csv(to_csv(schedule), name), schedule) << name;
  }
}

// Schedule1F1B exports 3F1 .. 3F8 on its last rank; it is read, run and written as 3F0 .. 3F7.
TEST(ScheduleCsv, PyTorch1F1BIsMended) {
  std::string text = torch_file("1f1b");
  ASSERT_NE(text.find("3F8"), text.npos);
  Schedule schedule = parse_csv(text, "1f1b");
  EXPECT_EQ(evaluate(schedule, uniform_costs({.forward = 1, .backward = 2}, 0, 4)).makespan, Rational(33));
  EXPECT_EQ(parse_csv(to_csv(schedule), "1f1b"), schedule);
}

TEST(ScheduleCsv, PyTorchOrdersAreOurs) {
  struct {
    const char* file;
    const char* name;
    int microbatches;
  } rows[] = {{"gpipe", "gpipe", 8}, {"1f1b", "1f1b", 8}, {"zbv", "zb-v", 8}};
  for (const auto& row : rows) {
    Schedule theirs = parse_csv(torch_file(row.file), row.file);
    Schedule ours = make_schedule(row.name, {.devices = 4, .microbatches = row.microbatches, .chunks = 2});
    EXPECT_EQ(to_csv(theirs), to_csv(ours)) << row.name;
  }
  // Interleaved: the same length, whatever runs first after the warm-up.
  Schedule theirs = parse_csv(torch_file("interleaved"), "interleaved");
  Schedule ours = make_schedule("interleaved", {.devices = 4, .microbatches = 8, .chunks = 2});
  Costs costs = uniform_costs({}, 0, 8);
  EXPECT_EQ(evaluate(theirs, costs).makespan, evaluate(ours, costs).makespan);
}

TEST(ScheduleCsv, EveryNamedScheduleRoundTrips) {
  for (const std::string& name : schedule_names()) {
    if (name == "interlaced" || name == "3f1b")
      continue;  // shared stages and passes have no place in the form
    Schedule schedule = make_schedule(name, {.devices = 4, .microbatches = 8});
    Schedule again = parse_csv(to_csv(schedule), name);
    again.name = schedule.name;
    EXPECT_EQ(again, schedule) << name;
  }
}

void expect_error(const std::string& text, const std::string& message) {
  try {
    parse_csv(text, "x.csv");
    ADD_FAILURE() << "accepted: " << text;
  } catch (const InputError& error) {
    EXPECT_EQ(std::string(error.what()), message);
  }
}

TEST(ScheduleCsv, WrongFilesSayWhere) {
  const std::string form = "; needs stage, action, micro-batch such as 2F0, 1B3 or (2F4;5B1)OVERLAP_F_B";
  expect_error("0F0,0X0", "x.csv: row 1, cell 2: \"0X0\" has an unknown action" + form);
  expect_error("0F0\nF0", "x.csv: row 2, cell 1: \"F0\" has no number there" + form);
  expect_error("0F0,(0F1;0B0)TOGETHER",
               "x.csv: row 1, cell 2: \"(0F1;0B0)TOGETHER\" is not an overlapped block" + form);
  expect_error("", "x.csv: no steps; needs one row a rank, cells such as 2F0");
  expect_error("0F0,0B0,1F1,1B1",
               "x.csv: micro-batch 0 never runs stage 1; every micro-batch needs every stage");
  expect_error("0F0\n0B0",
               "x.csv: stage 0 of micro-batch 0 is on rank 0 and on rank 1; one rank must run all of it");
  expect_error("0F0,0F0,0B0", "x.csv: device 0: 0F0 runs twice");
}

}  // namespace
}  // namespace partita::schedule
