#include <gtest/gtest.h>

#include "base/error.h"
#include "base/json.h"
#include "base/names.h"
#include "base/rational.h"
#include "base/units.h"

namespace partita::base {
namespace {

std::string refusal(void (*call)()) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Names, NearestAllowsATypingMistakeButNotAnotherWord) {
  std::vector<std::string> known = {"float64", "float32", "wave", "out"};
  EXPECT_EQ(nearest("float23", known), "float32");
  EXPECT_EQ(nearest("wav", known), "wave");
  EXPECT_EQ(nearest("inputs", known), "");
  EXPECT_EQ(did_you_mean("waev", known), "; did you mean 'wave'?");
  EXPECT_EQ(did_you_mean("gpipe", known), "");
}

TEST(Names, StarsMatchAnyText) {
  EXPECT_TRUE(matches("h.*.attn", "h.3.attn"));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("a*b*c", "a.b/bb.c"));
  EXPECT_FALSE(matches("h.*.attn", "h.3.attn.x"));
  EXPECT_FALSE(matches("", "a"));
}

TEST(Rational, IsExactAndInLowestTerms) {
  EXPECT_EQ(Rational(1, 3) + Rational(1, 6), Rational(1, 2));
  EXPECT_EQ(Rational(2, -4).str(), "-1/2");
  EXPECT_EQ((Rational(7, 3) * Rational(3)).str(), "7");
  EXPECT_LT(Rational(1, 3), Rational(34, 100));
  EXPECT_EQ(parse_rational("0.05", "x"), Rational(1, 20));
  EXPECT_EQ(parse_rational("6/5", "x"), Rational(6, 5));
}

TEST(Rational, OverflowIsNeverAWrongAnswer) {
  Rational big(INT64_MAX);
  EXPECT_THROW(big * Rational(2), Bug);
  EXPECT_THROW(big + Rational(1), Bug);
  EXPECT_LT(Rational(INT64_MAX - 1, INT64_MAX), Rational(1));
}

TEST(Rational, RefusesWhatIsNoNumber) {
  for (const char* text : {"", "1/0", "a", "1/", "--1", "1e5", "0x3", "99999999999999999999"})
    EXPECT_THROW(parse_rational(text, "--forward"), InputError) << text;
}

TEST(Units, ReadsSizes) {
  EXPECT_EQ(parse_bytes("80GiB", "x"), Bytes{80} << 30);
  EXPECT_EQ(parse_bytes("80GB", "x"), 80'000'000'000);
  EXPECT_EQ(parse_bytes("1.5 KiB", "x"), 1536);
  EXPECT_EQ(parse_bytes("123456", "x"), 123456);
  for (const char* text : {"", "GiB", "-1", "1.2.3", "80gibi", "1e3", "99999999999TiB"})
    EXPECT_THROW(parse_bytes(text, "--memory"), InputError) << text;
}

TEST(Units, ShowsSizesAndTimes) {
  EXPECT_EQ(show_bytes(512), "512 B");
  EXPECT_EQ(show_bytes(Bytes{80} << 30), "80.0 GiB");
  EXPECT_EQ(show_seconds(1.5), "1.50 s");
  EXPECT_EQ(show_seconds(0.0456), "45.60 ms");
  EXPECT_EQ(show_seconds(7.8e-6), "7.8 us");
}

TEST(Json, NamesLineAndColumn) {
  EXPECT_EQ(refusal([] { parse_json("{\n \"a\": ?\n}", "f.json"); }),
            "f.json:2:7: this is not JSON: unexpected '?'");
  EXPECT_EQ(refusal([] { parse_json("{\n \"a\": [1,\n", "f.json"); }),
            "f.json:3:1: the file ends in the middle of a JSON value; it seems cut short: write it again");
  EXPECT_EQ(refusal([] { parse_json("", "f.json"); }),
            "f.json:1:1: the file ends in the middle of a JSON value; it seems cut short: write it again");
}

TEST(Json, BoundsNestingAndNumbers) {
  EXPECT_EQ(refusal([] { parse_json(std::string(100000, '['), "f.json"); }),
            "f.json:1:201: nested more than 200 levels deep");
  EXPECT_EQ(refusal([] { parse_json("[1e999]", "f.json"); }), "f.json:1:2: the number 1e999 is too large");
  EXPECT_EQ(refusal([] { parse_json("[\"\xff\"]", "f.json"); }).substr(0, 24), "f.json:1:3: this is not ");
}

TEST(Json, StrictReadingNamesThePath) {
  Json json = Json::parse(R"({"ops": [{"name": 3, "size": 18446744073709551615}]})");
  JsonIn in(json, "m");
  auto message = [](auto read) {
    try {
      read();
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(message([&] { in["ops"][0]["name"].text(); }), "m: ops[0].name: needs to be text");
  EXPECT_EQ(message([&] { in["ops"][0]["size"].integer(); }),
            "m: ops[0].size: is larger than a 64-bit integer");
  EXPECT_EQ(message([&] { in["ops"][0]["nome"]; }), "m: ops[0]: \"nome\" is missing");
  EXPECT_EQ(message([&] {
              in["ops"][0].only({"names", "size"});
            }),
            "m: ops[0]: unknown key \"name\"; did you mean 'names'?");
  EXPECT_EQ(in["ops"][0]["name"].integer(0, 3), 3);
}

TEST(Check, PrintsBothSides) {
  try {
    CHECK_EQ(1 + 1, 3);
    FAIL();
  } catch (const Bug& error) {
    EXPECT_NE(std::string(error.what()).find("1 + 1 == 3: 2 against 3"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace partita::base
