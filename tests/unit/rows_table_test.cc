// The tables of rows as a whole: nothing that real models use is missing, and docs/evidence/rows.md lists
// them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "model/row.h"

namespace partita::model {
namespace {

const std::string kSource = PARTITA_SOURCE_DIR;

std::set<std::string> used_ops() {
  std::set<std::string> ops;
  std::string text = read_file(kSource + "/tests/data/aten_ops.csv");
  for (size_t at = text.find('\n') + 1; at < text.size(); at = text.find('\n', at) + 1)
    ops.insert(text.substr(at, text.find(',', at) - at));
  return ops;
}

TEST(Rows, EveryOpOfSixtyNineModelsHasARowOrAReason) {
  std::set<std::string> opaque;
  for (const OpaqueOnPurpose& op : opaque_on_purpose()) {
    EXPECT_FALSE(find_row(op.target)) << op.target << " has a row and a reason to have none";
    opaque.emplace(op.target);
  }
  std::set<std::string> used = used_ops();
  EXPECT_EQ(used.size(), 164u);
  for (const std::string& op : used) EXPECT_TRUE(find_row(op) || opaque.contains(op)) << op;
}

std::string document() {
  std::string text =
      "# Op rows\n\nWhat Partita knows about each ATen op: which letters may be split, what is summed, what "
      "stays "
      "whole (the rules are in `src/model/ops`; tests/property/rows_truth_test.cc tries every one of them on "
      "real "
      "tensors).\n"
      "An op in neither table runs replicated, and `profile` names it.\n\n"
      "This page is written by `PARTITA_REWRITE=1 ctest -R rows_table`.\n\n"
      "| op | in models | view | makes attributes local | counts flops | hidden workspace |\n"
      "|---|---|---|---|---|---|\n";
  std::set<std::string> used = used_ops();
  size_t count = 0;
  for (std::span<const Row> table : row_tables())
    for (const Row& row : table) {
      auto mark = [](bool yes) { return yes ? "x" : ""; };
      bool in_models = used.contains(std::string(row.target));
      text += fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", row.target, mark(in_models), mark(row.view),
                          mark(row.localize), mark(row.flops), mark(row.workspace));
      ++count;
    }
  text += fmt::format(
      "\n{} rows. \"In models\": among the 164 ops of 69 captured models.\n\n## Opaque on purpose\n\n"
      "| op | why a row would lie |\n|---|---|\n",
      count);
  for (const OpaqueOnPurpose& op : opaque_on_purpose())
    text += fmt::format("| `{}` | {} |\n", op.target, op.reason);
  return text;
}

TEST(Rows, AreListedInTheDocuments) {
  std::string path = kSource + "/docs/evidence/rows.md";
  if (std::getenv("PARTITA_REWRITE")) std::ofstream(path) << document();
  EXPECT_EQ(read_file(path), document());
}

}  // namespace
}  // namespace partita::model
