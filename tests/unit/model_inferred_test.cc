#include <gtest/gtest.h>

#include "model/inferred.h"
#include "model_small.h"

namespace partita::model {
namespace {

/// The small model with an op of nobody's whose row was inferred.
Model with_inferred_row() {
  Model model = small_model();
  model.ops[0].target = "mylib.op.default";
  model.ops[0].axes = "!z1 c, b -> b c";
  model.ops[0].inferred = true;
  return model;
}

TEST(InferredRows, GoThroughTheFile) {
  EXPECT_EQ(parse_model(to_json(with_inferred_row()), "file"), with_inferred_row());
  EXPECT_EQ(to_json(small_model()).find("inferred"), std::string::npos);
}

TEST(InferredRows, AreTakenOutWithTheirMark) {
  Model model = with_inferred_row();
  EXPECT_EQ(inferred_targets(model), std::vector<std::string>{"mylib.op.default"});
  model.ops[1].axes = "given";  // by the user
  Model without = without_inferred_rows(model);
  EXPECT_EQ(without.ops[0].axes, "");
  EXPECT_FALSE(without.ops[0].inferred);
  EXPECT_EQ(without.ops[1].axes, "given");
  EXPECT_TRUE(inferred_targets(without).empty());
}

TEST(InferredRows, CountNothingBesideABuiltInRow) {
  Model model = with_inferred_row();
  model.ops[0].target = "aten.relu.default";
  EXPECT_FALSE(is_inferred(model.ops[0]));
}

TEST(InferredRows, MakeThePlanOfTheSameRowsGiven) {
  Model given = with_inferred_row();
  given.ops[0].inferred = false;
  EXPECT_EQ(fingerprint(given), fingerprint(with_inferred_row()));
  EXPECT_NE(fingerprint(given), fingerprint(without_inferred_rows(with_inferred_row())));
}

TEST(InferredRows, NeedLetters) {
  Model model = with_inferred_row();
  model.ops[0].axes.clear();
  std::vector<std::string> wrong = check(model);
  ASSERT_EQ(wrong.size(), 1u);
  EXPECT_NE(wrong[0].find("its row is marked inferred, but it has none"), std::string::npos);
}

}  // namespace
}  // namespace partita::model
