#include "schedule/csv.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "base/error.h"

namespace partita::schedule {
namespace {

constexpr int kMaxIndex = 1 << 20;
constexpr std::string_view kOverlap = "OVERLAP_F_B";
constexpr std::string_view kIgnored[] = {"SEND_F",  "RECV_F",  "SEND_B",     "RECV_B",
                                         "UNSHARD", "RESHARD", "REDUCE_GRAD"};

struct Where {
  std::string_view file;
  int row, cell;

  [[noreturn]] void fail(std::string_view text, std::string_view why) const {
    input_error(
        "{}: row {}, cell {}: \"{}\" {}; needs stage, action, micro-batch such as 2F0, 1B3 or (2F4;5B1){}",
        file, row + 1, cell + 1, text, why, kOverlap);
  }
};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r'))
    text.remove_suffix(1);
  return text;
}

int take_number(std::string_view& rest, std::string_view text, const Where& where) {
  int value = 0;
  auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (error != std::errc() || value < 0 || value >= kMaxIndex) where.fail(text, "has no number there");
  rest.remove_prefix(size_t(end - rest.data()));
  return value;
}

// Appends the step of one action, or nothing for communication.
void parse_action(std::string_view text, const Where& where, std::vector<Step>& list) {
  std::string_view rest = text;
  Step step{.stage = take_number(rest, text, where)};
  size_t letters = 0;
  while (letters < rest.size() && (rest[letters] < '0' || rest[letters] > '9')) ++letters;
  std::string_view action = rest.substr(0, letters);
  if (std::find(std::begin(kIgnored), std::end(kIgnored), action) != std::end(kIgnored)) return;
  int kind = 0;
  while (kind < kStepKinds && letter(StepKind(kind)) != action) ++kind;
  if (kind == kStepKinds) where.fail(text, "has an unknown action");
  step.kind = StepKind(kind);
  rest.remove_prefix(letters);
  step.microbatch = take_number(rest, text, where);
  if (!rest.empty()) where.fail(text, "has text after its micro-batch");
  list.push_back(step);
}

void parse_cell(std::string_view text, const Where& where, std::vector<Step>& list) {
  text = trimmed(text);
  if (text.empty()) return;
  if (text.front() != '(') return parse_action(text, where, list);
  size_t close = text.find(')');
  if (close == text.npos || text.substr(close + 1) != kOverlap)
    where.fail(text, "is not an overlapped block");
  std::string_view inside = text.substr(1, close - 1);
  size_t first = list.size();
  for (size_t at = 0; at <= inside.size();) {
    size_t end = std::min(inside.find(';', at), inside.size());
    parse_action(trimmed(inside.substr(at, end - at)), where, list);
    at = end + 1;
  }
  for (size_t i = first; i + 1 < list.size(); ++i) list[i].with_next = true;
}

std::vector<std::vector<Step>> parse_rows(std::string_view text, std::string_view where) {
  std::vector<std::vector<Step>> rows;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    std::vector<Step>& row = rows.emplace_back();
    int cell = 0;
    for (size_t begin = 0; begin <= line.size(); ++cell) {
      size_t comma = std::min(line.find(',', begin), line.size());
      parse_cell(line.substr(begin, comma - begin), {where, int(rows.size()) - 1, cell}, row);
      begin = comma + 1;
    }
    at = end + 1;
  }
  while (!rows.empty() && rows.back().empty()) rows.pop_back();
  return rows;
}

// PyTorch's Schedule1F1B numbers the forwards of its last rank one too high (3F1 .. 3F8 beside 3B0 .. 3B7;
// seen in 2.13): its counter starts at 0 and is raised before each use, which is right only after a warm-up
// forward, and the last rank has none. Nothing else has a forward without its backward and the reverse, so
// that row is read as meant.
void mend_shifted_forwards(std::vector<Step>& list) {
  std::map<int, std::pair<std::set<int>, std::set<int>>> seen;  // stage -> forwards, backwards
  for (const Step& step : list) {
    if (step.kind == StepKind::kForward)
      seen[step.stage].first.insert(step.microbatch);
    else if (step.kind != StepKind::kWeightGrad)
      seen[step.stage].second.insert(step.microbatch);
  }
  for (const auto& [stage, both] : seen) {
    const auto& [forwards, backwards] = both;
    std::set<int> shifted;
    for (int k : backwards) shifted.insert(k + 1);
    if (forwards != shifted) continue;
    for (Step& step : list)
      if (step.stage == stage && step.kind == StepKind::kForward) --step.microbatch;
  }
}

// Looked at before anything is made that is as large as stages times micro-batches: one cell may name the
// millionth of each.
void need_every_step(const Schedule& schedule, std::string_view where) {
  std::set<std::pair<int, int>> seen;
  for (const std::vector<Step>& list : schedule.order)
    for (const Step& step : list) seen.emplace(step.microbatch, step.stage);
  auto next = seen.begin();
  for (int k = 0; k < schedule.microbatches; ++k)
    for (int stage = 0; stage < schedule.stages; ++stage, ++next)
      if (next == seen.end() || *next != std::pair(k, stage))
        input_error("{}: micro-batch {} never runs stage {}; every micro-batch needs every stage", where, k,
                    stage);
}

// Micro-batches whose stages sit on the same devices form a stream.
void find_streams(Schedule& schedule, std::string_view where) {
  std::vector<std::vector<int>> route(schedule.microbatches, std::vector<int>(schedule.stages, -1));
  for (int device = 0; device < schedule.devices; ++device)
    for (const Step& step : schedule.order[device]) {
      int& at = route[step.microbatch][step.stage];
      if (at >= 0 && at != device)
        input_error(
            "{}: stage {} of micro-batch {} is on rank {} and on rank {}; one rank must run all of it", where,
            step.stage, step.microbatch, at, device);
      at = device;
    }
  std::map<std::vector<int>, int> streams;
  std::vector<int> stream_of(schedule.microbatches);
  schedule.placement.clear();
  for (int k = 0; k < schedule.microbatches; ++k) {
    auto [at, fresh] = streams.try_emplace(route[k], int(streams.size()));
    stream_of[k] = at->second;
    if (fresh)
      for (int device : route[k]) schedule.placement.push_back({device});
  }
  schedule.streams = int(streams.size());
  for (std::vector<Step>& list : schedule.order)
    for (Step& step : list) step.stream = stream_of[step.microbatch];
}

// Where the first stages have no backward, they are passes through the weights of the last ones.
int passes_of(const Schedule& schedule) {
  int first = schedule.stages;
  for (const std::vector<Step>& list : schedule.order)
    for (const Step& step : list)
      if (step.kind != StepKind::kForward) first = std::min(first, step.stage);
  int trained = schedule.stages - first;
  return trained > 0 && schedule.stages % trained == 0 ? schedule.stages / trained : 1;
}

}  // namespace

std::string to_csv(const Schedule& schedule) {
  std::string text;
  for (const std::vector<Step>& list : schedule.order) {
    bool inside = false;
    for (size_t i = 0; i < list.size(); ++i) {
      CHECK_EQ(schedule.devices_of(list[i].stage, list[i].stream).size(), size_t(1));
      if (i > 0) text += inside ? ";" : ",";
      if (!inside && list[i].with_next) text += "(";
      text += show(list[i]);
      if (inside && !list[i].with_next) text += fmt::format("){}", kOverlap);
      inside = list[i].with_next;
    }
    text += "\n";
  }
  return text;
}

Schedule parse_csv(std::string_view text, std::string_view where) {
  Schedule schedule{.name = "csv", .order = parse_rows(text, where)};
  schedule.devices = int(schedule.order.size());
  if (schedule.devices == 0) input_error("{}: no steps; needs one row a rank, cells such as 2F0", where);
  for (std::vector<Step>& list : schedule.order) mend_shifted_forwards(list);
  for (const std::vector<Step>& list : schedule.order)
    for (const Step& step : list) {
      schedule.stages = std::max(schedule.stages, step.stage + 1);
      schedule.microbatches = std::max(schedule.microbatches, step.microbatch + 1);
    }
  need_every_step(schedule, where);
  find_streams(schedule, where);
  schedule.passes = passes_of(schedule);
  if (std::vector<std::string> problems = check(schedule); !problems.empty())
    input_error("{}: {}", where, problems.front());
  return schedule;
}

}  // namespace partita::schedule
