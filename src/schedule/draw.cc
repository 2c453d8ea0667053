#include "schedule/draw.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace partita::schedule {
namespace {

// One column: a digit of the micro-batch where a step begins, its kind's mark where it goes on.
struct Cell {
  char text = '.';
  int kind = -1;
};

constexpr char kMark[kStepKinds] = {'-', '=', '~', '+'};
constexpr const char* kColour[kStepKinds] = {"\033[44;97m", "\033[42;30m", "\033[46;30m", "\033[43;30m"};

char digit(int microbatch) {
  constexpr std::string_view kDigits = "0123456789abcdefghijklmnopqrstuvwxyz";
  return kDigits[microbatch % int(kDigits.size())];
}

// The coarsest grid on which every start and end falls, but no more columns than fit.
double ticks_per_column(const Evaluation& run, int64_t from, int64_t to, int width) {
  int64_t grid = 0;
  for (size_t device = 0; device < run.start.size(); ++device)
    for (size_t i = 0; i < run.start[device].size(); ++i)
      grid = std::gcd(grid, std::gcd(run.start[device][i] - from, run.end[device][i] - from));
  double exact = double(std::max<int64_t>(grid, 1)) / 2;
  return std::max(exact, double(to - from) / std::max(width, 20));
}

std::vector<Cell> columns(const std::vector<Step>& list, const std::vector<int64_t>& start,
                          const std::vector<int64_t>& end, int64_t from, double scale, int count) {
  std::vector<Cell> row(count);
  for (size_t i = 0; i < list.size(); ++i) {
    int begin = int(double(start[i] - from) / scale + 0.5), stop = int(double(end[i] - from) / scale + 0.5);
    for (int c = begin; c < std::min(std::max(stop, begin + 1), count); ++c)
      row[c] = {c == begin ? digit(list[i].microbatch) : kMark[int(list[i].kind)], int(list[i].kind)};
  }
  return row;
}

std::string paint(const std::vector<Cell>& row, bool colour) {
  std::string text;
  int kind = -1;
  for (const Cell& cell : row) {
    if (colour && cell.kind != kind) text += cell.kind < 0 ? "\033[0m" : kColour[cell.kind];
    kind = cell.kind;
    text += cell.text;
  }
  return colour && kind >= 0 ? text + "\033[0m" : text;
}

}  // namespace

std::string draw(const Schedule& schedule, const Evaluation& run, bool colour, int width) {
  int64_t from = INT64_MAX, to = 0;
  for (size_t device = 0; device < run.start.size(); ++device) {
    if (run.start[device].empty()) continue;
    from = std::min(from, run.start[device].front());
    to = std::max(to, run.end[device].back());
  }
  if (to <= from) return "";
  double scale = ticks_per_column(run, from, to, width - 22);
  int count = int(double(to - from) / scale + 0.999);
  std::string text;
  for (int device = 0; device < schedule.devices; ++device) {
    int64_t busy = 0;
    for (size_t i = 0; i < run.start[device].size(); ++i)
      if (!schedule.order[device][i].with_next) busy += run.end[device][i] - run.start[device][i];
    auto row = columns(schedule.order[device], run.start[device], run.end[device], from, scale, count);
    text += fmt::format("device {:<3} {} idle {:4.1f}%\n", device, paint(row, colour),
                        100 * (1 - double(busy) / double(to - from)));
  }
  return text +
         "a digit starts a step of that micro-batch; - forward, = backward, ~ input-grad, + weight-grad, . "
         "idle\n";
}

}  // namespace partita::schedule
