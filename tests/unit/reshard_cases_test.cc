// Every row of tests/data/reshard_cases.csv that has boxes: bytes at the row's minimum, no device busier than
// in the row, bytes across groups at their minimum where the row gives one.
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "reshard/boxes.h"
#include "reshard/reshard.h"

namespace partita::reshard {
namespace {

using Row = std::map<std::string, std::string>;

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells = {""};
  bool quoted = false;
  for (char c : line) {
    if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      cells.emplace_back();
    else
      cells.back() += c;
  }
  return cells;
}

std::vector<Row> read_rows() {
  std::string text = read_file(PARTITA_SOURCE_DIR "/tests/data/reshard_cases.csv");
  std::vector<Row> rows;
  std::vector<std::string> head;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    if (line.ends_with('\r')) line.pop_back();
    std::vector<std::string> cells = cells_of(line);
    if (head.empty()) {
      head = cells;
      continue;
    }
    Row row;
    for (size_t i = 0; i < cells.size(); ++i) row[head[i]] = cells[i];
    rows.push_back(row);
  }
  return rows;
}

TEST(ReshardCases, EveryRowWithBoxes) {
  int checked = 0, crossing = 0;
  for (const Row& row : read_rows()) {
    if (row.at("producer_boxes").empty()) continue;
    SCOPED_TRACE(row.at("id"));
    Problem problem;
    problem.shape = parse_shape(row.at("tensor_shape"), "shape");
    problem.elem_bytes = std::stoll(row.at("elem_bytes"));
    problem.from = parse_boxes(row.at("producer_boxes"), problem.shape, "from");
    problem.to = parse_boxes(row.at("consumer_boxes"), problem.shape, "to");
    if (!row.at("min_cross_group_bytes").empty())
      problem.groups = parse_groups(row.at("producer_devices") + "|" + row.at("consumer_devices"), "groups");
    check_cover(cut(problem), "from", "to");
    Answer answer = solve(problem);
    EXPECT_EQ(answer.total_bytes, std::stoll(row.at("min_total_bytes")));
    EXPECT_EQ(answer.bound_bytes, answer.total_bytes);
    EXPECT_TRUE(answer.proved);
    EXPECT_LE(answer.max_recv_bytes, std::stoll(row.at("max_recv_bytes_per_device")));
    EXPECT_LE(answer.max_send_bytes, std::stoll(row.at("max_send_bytes_per_device")));
    if (!row.at("min_cross_group_bytes").empty()) {
      EXPECT_EQ(answer.cross_group_bytes, std::stoll(row.at("min_cross_group_bytes")));
      ++crossing;
    }
    ++checked;
  }
  std::printf(
      "%d rows with boxes at their least bytes, no device busier than in the row, %d with their least bytes "
      "across groups\n",
      checked, crossing);
  EXPECT_EQ(checked, 28);
  EXPECT_EQ(crossing, 5);
}

}  // namespace
}  // namespace partita::reshard
