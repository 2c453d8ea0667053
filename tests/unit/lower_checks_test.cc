// Each check of a pass accepts what the pass made, and says what is wrong with a broken copy of it.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "lower/accumulate.h"
#include "lower/checks.h"
#include "lower/facts.h"
#include "lower/jobs.h"
#include "lower/passes.h"
#include "lower/protect.h"
#include "lower_program.h"
#include "plan/recipes/recipe.h"

namespace partita::lower {
namespace {

using Faults = std::vector<std::string>;

/// What all passes up to the classes make of a recipe.
struct Made {
  Model model;
  Atoms atoms;
  Plan plan;
  Partitioned parts;
  Ordered ordered;
  Code code;
  std::vector<Placement> placements;
  std::vector<Frees> frees;
  RankClasses classes;
};

Made made(const std::string& name, const RecipeSpec& spec) {
  Model whole = program::captured(name);
  Made out{.plan = recipe(whole, spec)};
  Prepared prepared = prepare(whole, form_of(out.plan));
  out.model = std::move(prepared.model);
  out.atoms = std::move(prepared.atoms);
  out.parts = partition(out.model, out.atoms, out.plan);
  out.ordered = order(out.parts, out.plan);
  out.code = protect(out.model, accumulate(out.model, write_code(out.model, out.plan, out.ordered)));
  out.placements = place(out.code);
  out.frees = free_slots(out.code, out.placements, out.plan.microbatches > 1);
  out.classes = fold_ranks(out.atoms, out.plan, out.ordered, out.code, true);
  return out;
}

const Made& pipeline() {
  static const Made kMade = made("gpt2-tiny", {.dp = 2, .pp = 2, .microbatches = 2, .schedule = "zb-h1"});
  return kMade;
}

const Segment kForward{Segment::kForward, 0, 0}, kBackward{Segment::kBackward, 0, 0};

testing::AssertionResult says(const Faults& faults, const std::string& words) {
  for (const std::string& fault : faults)
    if (fault.find(words) != fault.npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "nobody says '" << words
                                     << "' but: " << (faults.empty() ? "nothing is wrong" : faults.front());
}

TEST(LowerChecks, AcceptWhatPassesMake) {
  const RecipeSpec kSpecs[] = {{},
                               {.dp = 3, .zero = 3},
                               {.tp = 2, .loss_pieces = 2, .microbatches = 2},
                               {.dp = 2, .pp = 2, .microbatches = 2, .schedule = "zb-h1"},
                               {.pp = 2, .recompute = true, .microbatches = 4, .schedule = "chimera"},
                               {.pp = 2, .microbatches = 4, .schedule = "interlaced"}};
  for (const RecipeSpec& spec : kSpecs) {
    Made all = made("gpt2-tiny", spec);
    EXPECT_EQ(check_parts(all.model, all.atoms, all.plan, all.parts), Faults{}) << summary(spec);
    EXPECT_EQ(check_order(all.plan, all.ordered), Faults{}) << summary(spec);
    EXPECT_EQ(check_code(all.model, all.ordered, all.code), Faults{}) << summary(spec);
    EXPECT_EQ(check_protected(all.model, all.code), Faults{}) << summary(spec);
    EXPECT_EQ(check_placements(all.code, all.placements), Faults{}) << summary(spec);
    EXPECT_EQ(check_frees(all.code, all.frees), Faults{}) << summary(spec);
    EXPECT_EQ(check_classes(all.plan, all.ordered, all.classes), Faults{}) << summary(spec);
  }
}

TEST(LowerChecks, PartsWithoutBoxesOrStages) {
  const Made& all = pipeline();
  auto wrong = [&](const Partitioned& parts) { return check_parts(all.model, all.atoms, all.plan, parts); };
  Partitioned parts = all.parts;
  parts.split.ops[0].made[0][0] = AxisLayout::shard(7, 0);
  EXPECT_TRUE(says(wrong(parts), "cuts leaf 0 of dimension 7, which is not there"));
  parts = all.parts;
  parts.split.ops[0].made[0].pop_back();
  EXPECT_TRUE(says(wrong(parts), "output 0 has 1 axes of 2"));
  parts = all.parts;
  size_t inside = 0;
  while (parts.split.ops[inside].level != Level::kInside) ++inside;
  parts.assigned.stages[inside].clear();
  EXPECT_TRUE(says(wrong(parts), "is inside the micro-batches and has 0 stages"));
  parts.assigned.stages[inside] = {2};
  EXPECT_TRUE(says(wrong(parts), "is on stage 2 of 2"));
}

TEST(LowerChecks, OrdersThatDoNotComeToAnEnd) {
  const Made& all = pipeline();
  auto wrong = [&](const Ordered& ordered) { return check_order(all.plan, ordered); };
  Ordered broken = all.ordered;
  std::swap(broken.schedule.order[1][0], broken.schedule.order[1][1]);
  EXPECT_TRUE(says(wrong(broken), "before what it runs first"));
  broken = all.ordered;
  broken.schedule.order[0].push_back(broken.schedule.order[0][0]);
  EXPECT_TRUE(says(wrong(broken), "device 0 runs forward of stage 0 of micro-batch 0 twice"));
  broken = all.ordered;
  std::swap(broken.starts.at({Segment::kForward, 0, 0})[1], broken.starts.at({Segment::kForward, 1, 0})[1]);
  EXPECT_TRUE(says(wrong(broken),
                   "forward of stage 1 of micro-batch 1 starts before forward of stage 0 of micro-batch 1"));
  broken = all.ordered;
  broken.starts.at(kForward)[1] = Ordered::kNever;
  EXPECT_TRUE(says(wrong(broken), "forward of stage 0 of micro-batch 1 runs 0 times"));
}

TEST(LowerChecks, CodeThatReadsWhatIsNotThere) {
  const Made& all = pipeline();
  auto wrong = [&](const Code& code) { return check_code(all.model, all.ordered, code); };
  Code code = all.code;
  std::vector<CodeStep>& forward = code.sites[0].segments.at(kForward);
  std::swap(forward.front(), forward.back());
  EXPECT_TRUE(says(wrong(code), "is not there yet"));
  code = all.code;
  code.sites[0].segments.at(kForward).clear();
  EXPECT_TRUE(says(wrong(code), "is sent after forward of stage 0, where it is not there yet"));
  code = all.code;
  code.transfers[0].to_value = static_cast<int>(code.sites[1].values.size()) - 1;
  EXPECT_TRUE(says(wrong(code), "arrives at site 1 as another tensor"));
  code = all.code;
  code.sites[0].segments.at(kForward)[0].in.push_back(100'000);
  EXPECT_TRUE(says(wrong(code), "names a value that does not exist"));
  code = all.code;
  code.sites[0].gradients.push_back({-1, all.model.gradients[0].first});
  EXPECT_TRUE(says(wrong(code), "a gradient is never made"));
  code = all.code;
  code.sites[0].segments[{Segment::kForward, 1, 0}] = {};
  code.sites[0].segments[{Segment::kForward, 5, 0}] = {};
  EXPECT_TRUE(says(wrong(code), "code of a segment that the schedule never runs"));
}

TEST(LowerChecks, CodeThatIsMadeTwiceOrNowhere) {
  const Made& all = pipeline();
  auto wrong = [&](const Code& code) { return check_code(all.model, all.ordered, code); };
  Code code = all.code;
  int arrives = code.transfers[0].to_value;
  SiteCode& receiver = code.sites[code.transfers[0].to_site];
  receiver.segments.begin()->second[0].out = {arrives};
  EXPECT_TRUE(says(wrong(code), "is brought, and made here too"));
  code = all.code;
  std::vector<Value>& values = code.sites[0].values;
  size_t moved = 0;
  while (values[moved].made != kBackward || values[moved].loaded) ++moved;
  while (code.transfers.back().to_value == static_cast<int>(moved)) ++moved;
  values[moved].made = kEpilogue;
  EXPECT_TRUE(says(wrong(code), "and said to be in epilogue"));
  code = all.code;
  values[moved].storage = 100'000;
  EXPECT_TRUE(says(wrong(code), "which is not its own"));
}

// One more reader of what a sum over ranks changes in place: the sum gets a copy to work on.
TEST(LowerChecks, SumsInPlaceThatOthersSee) {
  Made all = made("gpt2-tiny", {.tp = 2});
  std::vector<CodeStep>& steps = all.code.sites[0].segments.at(kForward);
  auto sum = std::find_if(steps.begin(), steps.end(),
                          [](const CodeStep& step) { return step.kind == InstrKind::kAllReduce; });
  ASSERT_NE(sum, steps.end());
  std::vector<Value>& values = all.code.sites[0].values;
  int read = static_cast<int>(values.size()), summed = sum->in[0];
  values.push_back(values[summed]);
  values[read].storage = read;
  steps.push_back({.kind = InstrKind::kCast, .in = {summed}, .out = {read}});
  EXPECT_TRUE(says(check_protected(all.model, all.code), "is changed in place, and read as it was"));
  EXPECT_EQ(check_protected(all.model, protect(all.model, all.code)), Faults{});
}

TEST(LowerChecks, SlotsThatTwoValuesWrite) {
  const Made& all = pipeline();
  auto wrong = [&](const std::vector<Placement>& placements) {
    return check_placements(all.code, placements);
  };
  std::vector<Placement> placements = all.placements;
  std::vector<Slot>& slots = placements[0].slots;
  auto in = [&](Space space) {
    size_t v = 0;
    while (slots[v].space != space) ++v;
    return v;
  };
  size_t lasting = in(Space::kRank), saved = in(Space::kFrame);
  slots[lasting + 1] = slots[lasting];
  EXPECT_TRUE(says(wrong(placements), "are both in r"));
  slots = all.placements[0].slots;
  slots[lasting].index = placements[0].rank_slots;
  EXPECT_TRUE(says(wrong(placements), "which does not exist"));
  slots = all.placements[0].slots;
  slots[lasting] = {Space::kFrame, 0};
  EXPECT_TRUE(says(wrong(placements), "which does not last"));
  slots = all.placements[0].slots;
  while (all.placements[0].uses[saved].segments.size() < 2 || slots[saved].space != Space::kFrame) ++saved;
  slots[saved] = {Space::kLocal, 0};
  EXPECT_TRUE(says(wrong(placements), "in l0, but is "));
  placements[0].slots.pop_back();
  EXPECT_TRUE(says(wrong(placements), "slots for"));
}

TEST(LowerChecks, ValuesThatDieTooEarlyOrNever) {
  const Made& all = pipeline();
  auto wrong = [&](const std::vector<Frees>& frees) { return check_frees(all.code, frees); };
  auto of = [&](Death death) {
    size_t v = 0;
    while (all.frees[0].values[v].death != death) ++v;
    return v;
  };
  std::vector<Frees> frees = all.frees;
  frees[0].values[of(Death::kNever)].death = Death::kInBody;
  EXPECT_TRUE(says(wrong(frees), "lasts, but is freed"));
  frees = all.frees;
  frees[0].values[of(Death::kInBody)].death = Death::kNever;
  EXPECT_TRUE(says(wrong(frees), "is never freed"));
  frees = all.frees;
  size_t v = of(Death::kInBody);
  while (frees[0].values[v].death != Death::kInBody || frees[0].values[v].index == 0) ++v;
  frees[0].values[v].index = 0;
  EXPECT_TRUE(says(wrong(frees), "after it was freed"));
  frees = all.frees;
  frees[0].values[of(Death::kByAction)].users.pop_back();
  EXPECT_TRUE(says(wrong(frees), "after it was freed"));
  frees = all.frees;
  Freed& sent = frees[0].values[all.code.transfers[0].from_value];
  sent = {.death = Death::kInBody, .segment = kForward, .index = 100'000};
  EXPECT_TRUE(says(wrong(frees), "is freed before site 1 has it"));
}

TEST(LowerChecks, ClassesThatMissRanks) {
  const Made& all = pipeline();
  auto wrong = [&](const RankClasses& classes) { return check_classes(all.plan, all.ordered, classes); };
  ASSERT_TRUE(all.classes.folded);
  RankClasses classes = all.classes;
  ClassRanges ranges = classes.grids[1].ranges();
  ranges[0].back().end -= 1;
  classes.grids[1] = Grid(ranges);
  EXPECT_TRUE(says(wrong(classes), "site 1: classes do not cover axis 0 once"));
  classes = all.classes;
  classes.numbers[1] = classes.numbers[0];
  EXPECT_TRUE(says(wrong(classes), "are not numbered from 0, each once"));
  classes = all.classes;
  classes.numbers[0].push_back(7);
  EXPECT_TRUE(says(wrong(classes), "site 0: 2 numbers for 1 classes"));
}

TEST(LowerChecks, RanksThatWaitForEver) {
  Model model = program::captured("gpt2-tiny");
  Program program = lower(model, recipe(model, {.pp = 2, .microbatches = 2})).program;
  EXPECT_EQ(check_walk(program), Faults{});
  std::vector<Action>& actions = program.ranks[0].actions;
  std::erase_if(actions, [](const Action& action) { return action.kind == ActionKind::kSend; });
  EXPECT_TRUE(says(check_walk(program), "waits"));
}

// What a pass made is looked at as soon as it is made; what only improves a Program can be left out.
TEST(LowerChecks, PassesAreCheckedAndLeftOut) {
  Model model = program::captured("gpt2-tiny");
  Plan plan = recipe(model, {.dp = 2, .overlap = true, .microbatches = 2});
  EXPECT_EQ(improving_passes(), (std::vector<std::string>{"accumulate", "overlap"}));
  PassLog all{.check = true}, plain{.check = true, .skip = improving_passes()};
  Program whole = lower(model, plan, all).program;
  Program bare = lower(model, plan, plain).program;
  EXPECT_EQ(all.entries.size(), plain.entries.size() + 2);
  auto grows = [](const Program& program) {
    size_t n = 0;
    for (const Body& body : program.bodies)
      for (const Instr& instr : body.instrs) n += instr.into >= 0;
    return n;
  };
  EXPECT_GT(grows(whole), 0u);
  EXPECT_EQ(grows(bare), 0u);
  PassLog needed{.skip = {"protect"}};
  EXPECT_THROW(lower(model, plan, needed), Bug);
}

// One loop of ops is one job, once for each of its pieces.
TEST(LowerChecks, OpsOfALoopAreOneJob) {
  Model whole = program::captured("gpt2-tiny");
  Plan plan = recipe(whole, {.loss_pieces = 2, .microbatches = 2});
  Prepared from = prepare(whole, form_of(plan));
  Ordered ordered = order(partition(from.model, from.atoms, plan), plan);
  Facts facts = find_facts(from.model, plan, ordered);
  Jobs jobs = find_jobs(facts);
  size_t ops = 0, loops = 0;
  for (const Job& job : jobs.list) {
    ops += job.ops.size();
    loops += job.loop >= 0;
    for (size_t op : job.ops) EXPECT_EQ(job.loop >= 0, jobs.loop_with(op, 0) == &job);
  }
  EXPECT_EQ(loops, 1u);
  size_t inside = 0;
  for (const SplitOp& op : ordered.parts.split.ops) inside += op.level == Level::kInside;
  EXPECT_EQ(ops, inside);
}

}  // namespace
}  // namespace partita::lower
