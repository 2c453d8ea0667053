// The gate: every row of tests/data/pipeline_cases.csv, exactly where it says "=", met or beaten where "<=".
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "base/file.h"
#include "base/json.h"
#include "schedule/evaluate.h"
#include "schedule/search/search.h"

namespace partita::schedule {
namespace {

using CaseRow = std::map<std::string, std::string>;

std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> out(1);
  bool quoted = false;
  for (char c : line) {
    if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      out.emplace_back();
    else if (c != '\r')
      out.back() += c;
  }
  return out;
}

std::vector<CaseRow> read_cases() {
  std::istringstream text(read_file(PARTITA_SOURCE_DIR "/tests/data/pipeline_cases.csv"));
  std::string line;
  std::getline(text, line);
  std::vector<std::string> head = cells(line);
  std::vector<CaseRow> rows;
  while (std::getline(text, line)) {
    CaseRow row;
    std::vector<std::string> values = cells(line);
    for (size_t i = 0; i < head.size(); ++i) row[head[i]] = i < values.size() ? values[i] : "";
    rows.push_back(row);
  }
  return rows;
}

Rational number(const CaseRow& row, const char* key) { return parse_rational(row.at(key), row.at("id")); }
int whole(const CaseRow& row, const char* key) { return std::stoi(row.at(key)); }

// "wave_W2" -> "wave", "zb_h1_small_m" -> "zb-h1", ...
std::string our_name(const CaseRow& row) {
  std::string name = row.at("schedule");
  if (name.starts_with("wave")) return "wave";
  if (name == "interleaved_1f1b") return "interleaved";
  if (name == "gpipe_hetero") return "gpipe";
  if (name == "zb_h1_small_m") return "zb-h1";
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

Costs case_costs(const CaseRow& row, const Schedule& schedule) {
  bool device_stage = row.at("time_unit").starts_with("F of one device-stage");
  Rational per = device_stage ? Rational(schedule.devices, schedule.stages) : Rational(1);
  StageCost cost{number(row, "cost_F") * per, number(row, "cost_B_or_Bin") * per, 0, 0};
  if (!row.at("cost_W").empty()) cost.weight_grad = number(row, "cost_W") * per;
  cost.backward = cost.input_grad + cost.weight_grad;
  Costs costs = uniform_costs(cost, number(row, "comm"), schedule.stages);
  if (row.at("time_unit").starts_with("stage factors")) {
    std::istringstream factors(row.at("time_unit").substr(sizeof("stage factors") - 1));
    for (StageCost& stage : costs.stages) {
      int factor = 0;
      factors >> factor;
      stage.forward = stage.forward * factor;
      stage.backward = stage.backward * factor;
    }
  }
  return costs;
}

// The published rows give four digits.
std::string as_written(const Rational& value, const std::string& like) {
  return like.find('.') == like.npos ? value.str() : fmt::format("{:.4f}", value.to_double());
}

void compare(const CaseRow& row, const char* key, const Rational& ours) {
  const std::string& wanted = row.at(key);
  if (wanted.empty()) return;
  std::string where = row.at("id") + " " + row.at("schedule") + " " + key;
  if (row.at("relation") == "<=") {
    EXPECT_LE(ours.to_double(), number(row, key).to_double() + (wanted.find('.') == wanted.npos ? 0 : 5e-5))
        << where;
  } else {
    EXPECT_EQ(as_written(ours, wanted), wanted) << where;
  }
}

void compare_peaks(const CaseRow& row, const Evaluation& run) {
  std::string peaks;
  for (int peak : run.peak_chunks) peaks += (peaks.empty() ? "" : " ") + std::to_string(peak);
  int most = *std::max_element(run.peak_chunks.begin(), run.peak_chunks.end());
  const std::string &all = row.at("peak_inflight_per_device"), &max = row.at("peak_inflight_max");
  if (row.at("relation") == "=" && !all.empty()) {
    EXPECT_EQ(peaks, all) << row.at("id");
  }
  if (!max.empty()) {
    EXPECT_LE(most, std::stoi(max)) << row.at("id");
  }
}

TEST(PipelineCases, EveryNamedRowIsMet) {
  int seen = 0;
  for (const CaseRow& row : read_cases()) {
    std::string name = our_name(row);
    if (name.starts_with("optimal") || name.starts_with("zb-auto")) continue;
    int chunks = whole(row, "chunks_per_device");
    Schedule schedule = make_schedule(
        name, {.devices = whole(row, "P"), .microbatches = whole(row, "microbatches"), .chunks = chunks});
    bool single = row.at("source_or_formula").find("one in-order comm queue") != std::string::npos;
    Evaluation run = evaluate(schedule, case_costs(row, schedule), single ? Queue::kSingle : Queue::kPerPeer);
    ASSERT_FALSE(run.deadlock) << row.at("id") << " " << name;
    compare(row, "makespan", run.makespan);
    compare(row, "max_device_span", run.span);
    compare(row, "bubble_fraction_makespan", run.bubble_makespan);
    compare(row, "bubble_rate_span", run.bubble_span);
    compare_peaks(row, run);
    ++seen;
  }
  EXPECT_EQ(seen, 59);
}

Placement placement_of(const CaseRow& row) {
  const std::string& name = row.at("placement");
  return name == "linear" ? Placement::kLinear : name == "loop" ? Placement::kLoop : Placement::kZigzag;
}

SearchProblem case_problem(const CaseRow& row) {
  SearchProblem problem{.devices = whole(row, "P"),
                        .microbatches = whole(row, "microbatches"),
                        .chunks = whole(row, "chunks_per_device"),
                        .placement = placement_of(row),
                        .split = !row.at("cost_W").empty()};
  ScheduleParams params{.devices = problem.devices, .microbatches = problem.microbatches};
  problem.costs = case_costs(row, blank("search", problem.placement, params, problem.chunks));
  return problem;
}

TEST(PipelineCases, EveryOptimumIsFoundAndProved) {
  int seen = 0;
  for (const CaseRow& row : read_cases()) {
    if (!row.at("schedule").starts_with("optimal")) continue;
    SearchProblem problem = case_problem(row);
    problem.cap.assign(problem.devices, std::stoi(row.at("memory_cap").substr(sizeof("in-flight <= ") - 1)));
    Found found = search_schedule(problem);
    Evaluation run = evaluate(found.schedule, problem.costs);
    EXPECT_EQ(run.makespan, found.objective) << row.at("id");
    EXPECT_EQ(found.bound, found.objective) << row.at("id") << " is not proved";
    compare(row, "makespan", run.makespan);
    compare_peaks(row, run);
    ++seen;
  }
  EXPECT_EQ(seen, 22);
}

// Searched schedules of the zero-bubble paper, under 2 P micro-batches of bytes, where a weight gradient
// holds half.
TEST(PipelineCases, EverySearchedRowIsMetOrBeaten) {
  int seen = 0;
  for (const CaseRow& row : read_cases()) {
    if (!row.at("schedule").starts_with("zb_auto")) continue;
    SearchProblem problem = case_problem(row);
    problem.objective = Objective::kSpan;
    problem.costs.memory.assign(problem.devices, {2, 1});
    problem.cap.assign(problem.devices, 2 * 2 * problem.devices);
    Evaluation run = evaluate(search_schedule(problem).schedule, problem.costs);
    EXPECT_LE(*std::max_element(run.peak_memory.begin(), run.peak_memory.end()), problem.cap[0]);
    compare(row, "bubble_rate_span", run.bubble_span);
    ++seen;
  }
  EXPECT_EQ(seen, 7);
}

}  // namespace
}  // namespace partita::schedule
