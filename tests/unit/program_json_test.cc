#include <gtest/gtest.h>

#include "base/error.h"
#include "program/check.h"
#include "program_small.h"

namespace partita::program {
namespace {

template <class Read>
std::string message_of(Read read) {
  try {
    read();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(ProgramJson, ComesBackAsItWas) {
  for (const SmallProgram& small :
       {grid_program(2, 3, 2), pipeline_program(2), with_growing_sums(grid_program(1, 1, 2))}) {
    std::string text = to_json(small.program, small.model);
    Program back = parse_program(text, small.model, "p.json");
    EXPECT_EQ(back, small.program);
    EXPECT_EQ(to_json(back, small.model), text);
  }
}

TEST(ProgramJson, KeepsWhichPartABodyIs) {
  SmallProgram small = pipeline_program(1);
  Body& body = small.program.bodies[0];
  body.part = BodyPart::kBackward;
  body.stage = 2;
  body.stream = 1;
  std::string text = to_json(small.program, small.model);
  EXPECT_NE(text.find("\"part\": \"backward\", \"stage\": 2, \"stream\": 1"), text.npos);
  EXPECT_EQ(parse_program(text, small.model, "p.json"), small.program);
  // A file from before says nothing of it.
  std::string old = replaced(text, ", \"part\": \"backward\", \"stage\": 2, \"stream\": 1", "");
  EXPECT_FALSE(parse_program(old, small.model, "p.json").bodies[0].part.has_value());
  std::string other = replaced(text, "\"backward\"", "\"backwards\"");
  EXPECT_EQ(message_of([&] { parse_program(other, small.model, "p.json"); }),
            "p.json: bodies[0].part: unknown word \"backwards\"; did you mean 'backward'?");
}

TEST(ProgramJson, RefusesWhatItDoesNotKnow) {
  SmallProgram small = pipeline_program(1);
  std::string text = to_json(small.program, small.model);
  auto message = [&](const std::string& changed) {
    return message_of([&] { parse_program(changed, small.model, "p.json"); });
  };
  EXPECT_EQ(message(replaced(text, "\"zeros\"", "\"zeroes\"")),
            "p.json: bodies[0].instrs[0].do: unknown word \"zeroes\"; did you mean 'zeros'?");
  EXPECT_EQ(message(replaced(text, "\"fc1/addmm\"", "\"fc1/adm\"")),
            "p.json: bodies[2].instrs[0].op: the model has no op \"fc1/adm\"; did you mean 'fc1/addmm'?");
  EXPECT_EQ(
      message(replaced(text, "\"post_receive\", \"f2\"", "\"post_receive\", \"q2\"")),
      "p.json: ranks[1].actions[1][1]: \"q2\" is not a slot; write r, f or l and its number, as in \"f3\"");
  EXPECT_EQ(message(replaced(text, "\"version\": 1", "\"version\": 7")),
            "p.json: version: is 7, this partita reads version 1; lower the plan again");
  EXPECT_NE(
      message(replaced(text, "two_layers#", "three_layers#")).find("this program belongs to three_layers#"),
      std::string::npos);
  EXPECT_NE(message(text.substr(0, text.size() / 2)).find("cut short"), std::string::npos);
}

TEST(ProgramJson, EndsWithTheStructuralCheck) {
  SmallProgram small = pipeline_program(1);
  small.program.ranks[0].actions[2].peer = 5;
  EXPECT_EQ(check(small.program, small.model),
            std::vector<std::string>{"rank 0, action 2 (send): its peer is rank 5"});
  std::string text = to_json(small.program, small.model);
  EXPECT_EQ(message_of([&] { parse_program(text, small.model, "p.json"); }),
            "p.json: rank 0, action 2 (send): its peer is rank 5; lower the plan again");
}

TEST(ProgramJson, StartsAndWaits) {
  SmallProgram small = grid_program(2, 1, 1);
  Instr& sum = small.program.bodies[1].instrs[0];
  ASSERT_EQ(sum.kind, InstrKind::kAllReduce);
  sum.later = true;
  Instr wait{.kind = InstrKind::kWait, .in = sum.out};
  small.program.bodies[1].instrs.insert(small.program.bodies[1].instrs.begin() + 1, wait);
  std::string text = to_json(small.program, small.model);
  EXPECT_EQ(parse_program(text, small.model, "p.json"), small.program);
  EXPECT_NE(text.find("\"group\": 0, \"later\": true}"), text.npos);
  EXPECT_NE(text.find("{\"do\": \"wait\", \"in\": [\"r3\"], \"out\": []}"), text.npos);
  EXPECT_NE(to_text(small.program, small.model).find("over group 0, started\n  1: wait(r3)\n"), text.npos);
  small.program.bodies[1].instrs[0].drop = {{Space::kRank, 3}};
  small.program.bodies[1].instrs[1].later = true;
  EXPECT_EQ(check(small.program, small.model),
            (std::vector<std::string>{
                "body after, instruction 0 (all_reduce): drops what is under way; let its wait drop it",
                "body after, instruction 1 (wait): is started, but is no collective"}));
}

TEST(ProgramText, ShowsEveryBodyOnce) {
  SmallProgram small = pipeline_program(1);
  std::string text = to_text(small.program, small.model);
  EXPECT_NE(
      text.find("body stage0.forward\n  0: f2 float32[4,6] = aten.addmm.default(r1, f0, r0)  # fc1/addmm\n"),
      text.npos)
      << text;
  EXPECT_NE(text.find("  2: send f2 micro-batch 0 to rank 1 tag 5\n"), text.npos) << text;
  EXPECT_NE(text.find("  load r0 = fc1.weight[0:3, 0:6]\n"), text.npos) << text;
}

}  // namespace
}  // namespace partita::program
