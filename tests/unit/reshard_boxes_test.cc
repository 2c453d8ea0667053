#include <gtest/gtest.h>

#include "base/error.h"
#include "reshard/boxes.h"

namespace partita::reshard {
namespace {

std::string message(std::string_view text) {
  try {
    parse_boxes(text, {1024, 1024}, "--from");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ReshardBoxes, ReadsWhatItWrites) {
  std::string text = "0[0:512,0:1024] | 1[512:1024,0:1024]v1/2";
  std::vector<Piece> pieces = parse_boxes(text, {1024, 1024}, "--from");
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[1].device, 1);
  EXPECT_EQ(pieces[1].region, (Region{{512, 1024}, {0, 1024}}));
  EXPECT_EQ(pieces[1].addend, (Addend{1, 2}));
  EXPECT_EQ(to_text(pieces), text);
  EXPECT_EQ(parse_boxes(" 0 [ 0 : 512 , 0:1024 ]|1[512:1024,0:1024] v1/2 ", {1024, 1024}, "--from"), pieces);
}

TEST(ReshardBoxes, SaysWhereWhatAndWhatToTry) {
  EXPECT_EQ(message(""), "--from: no boxes; write for example 0[0:512,0:1024] | 1[512:1024,0:1024]v1/2");
  EXPECT_EQ(message("0[0:512,0:1024] | | 1[0:1,0:1]"),
            "--from: box 1 is missing between two |; remove one | or write a box");
  EXPECT_EQ(message("0[0:512]"),
            "--from: box 0: '0[0:512]' has 1 of the 2 dimensions of --shape; write one begin:end for each");
  EXPECT_EQ(message("0[0:512,0:1,0:1]"),
            "--from: box 0: '0[0:512,0:1,0:1]' has more than the 2 dimensions of --shape; write one "
            "begin:end for each");
  EXPECT_EQ(message("0[512:0,0:1024]"),
            "--from: box 0: '0[512:0,0:1024]' is empty in dimension 0 (512:0); the end is "
            "exclusive and must be larger than the begin");
  EXPECT_EQ(message("0[0:2048,0:1024]"),
            "--from: box 0: '0[0:2048,0:1024]' ends at 2048 in dimension 0, which has only "
            "1024 elements; end it at 1024 or change --shape");
  EXPECT_EQ(message("0[0:1024,0:1024]v2/2"),
            "--from: box 0: '0[0:1024,0:1024]v2/2' is partial 2 of 2; partials count from "
            "0, so the last one is v1/2");
  EXPECT_EQ(message("0[0:1024,0:1024] | 0[0:1024,0:1024]"),
            "--from: box 1: '0[0:1024,0:1024]' stands twice on device 0; list it once");
  EXPECT_EQ(message("0(0:1024,0:1024)"),
            "--from: box 0: '0(0:1024,0:1024)' needs '[' after the device number, not "
            "'(0:1024,0:1024)'; a box looks like 0[0:512,0:1024]");
  EXPECT_EQ(message("x[0:1024,0:1024]"),
            "--from: box 0: 'x[0:1024,0:1024]' needs a device number where "
            "'x[0:1024,0:1024]' stands; a box looks like 0[0:512,0:1024]");
  EXPECT_EQ(message("0[0:1024,0:1024]v1/2 1[0:1,0:1]"),
            "--from: box 0: '0[0:1024,0:1024]v1/2 1[0:1,0:1]' has '1[0:1,0:1]' after its end; separate boxes "
            "with | and "
            "write a partial as v0/2");
}

TEST(ReshardBoxes, RefusesShapesAndGroups) {
  EXPECT_THROW(parse_shape("1024x", "--shape"), InputError);
  EXPECT_THROW(parse_shape("0x4", "--shape"), InputError);
  EXPECT_THROW(parse_shape("99999999999999999999", "--shape"), InputError);
  EXPECT_THROW(parse_shape("1048576x1048576x1048576", "--shape"), InputError);
  EXPECT_THROW(parse_groups("0 1|1 2", "--groups"), InputError);
  EXPECT_THROW(parse_groups("0 1||2", "--groups"), InputError);
  EXPECT_EQ(parse_groups("0 1 | 2", "--groups"), (Groups{{0, 1}, {2}}));
  EXPECT_EQ(parse_levels("0|1;2|3;;4", "--groups"),
            (std::vector<Groups>{{{0}, {1}, {2}, {3}, {4}}, {{0, 1}, {2, 3}, {4}}, {{0, 1, 2, 3}, {4}}}));
  EXPECT_THROW(parse_levels("0 1;", "--groups"), InputError);
  EXPECT_THROW(parse_groups("0;1", "--groups"), InputError);
}

}  // namespace
}  // namespace partita::reshard
