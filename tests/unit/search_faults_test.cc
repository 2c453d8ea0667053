#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "cluster/library.h"
#include "model/build/build.h"
#include "search/batch_sweep.h"
#include "search/fault_report.h"
#include "search/least.h"
#include "search/objective.h"
#include "search/search.h"

namespace partita::search {
namespace {

Model tiny(int64_t batch = 0) { return build_model(*find_preset("gpt2-tiny"), {batch, 0}); }

SearchRequest lenient() {
  SearchRequest request{.prices = Prices(read_cluster("2xcpu")), .memory = 2'000'000, .effort = 1};
  request.strict = false;
  return request;
}

using Fails = std::function<bool(const Plan&)>;

/// A lowering with a bug in some plans.
void break_lowering(SearchRequest& request, const Fails& fails) {
  request.evaluators.lower = [fails](const Prepared& from, const Plan& plan) {
    if (fails(plan)) throw Bug("planted: " + plan.summary);
    return lower_folded(from, plan);
  };
}

bool same_plan(Plan a, Plan b) {
  for (Plan* plan : {&a, &b}) plan->summary.clear(), plan->overlap = false;
  return a == b;
}

std::string text_of(const SearchResult& result) {
  std::string text;
  for (const Candidate& one : result.fitting)
    text += fmt::format("{} {} {} {}\n", to_json(one.plan), one.step_seconds, one.certified, one.reason);
  for (const PlanFault& fault : result.faults) text += fmt::format("{}: {}\n", fault.summary, fault.message);
  return text;
}

TEST(Faults, ThereAreNoneWithoutABug) {
  Model model = tiny();
  SearchRequest request = lenient();
  SearchResult result = search(model, request);
  EXPECT_TRUE(result.faults.empty());
  request.strict = true;
  EXPECT_EQ(text_of(search(model, request)), text_of(result));
}

TEST(Faults, TheBestFailsAndTheNextIsGiven) {
  Model model = tiny();
  SearchRequest request = lenient();
  SearchResult clean = search(model, request);
  ASSERT_GT(clean.fitting.size(), 1u);
  const Plan best = clean.fitting[0].plan;
  break_lowering(request, [&](const Plan& plan) { return same_plan(plan, best); });
  SearchResult found = search(model, request);
  ASSERT_EQ(found.faults.size(), 1u);
  EXPECT_EQ(found.faults[0].message, "planted: " + found.faults[0].summary);
  EXPECT_TRUE(same_plan(*found.faults[0].plan, best));
  ASSERT_FALSE(found.fitting.empty());
  for (const Candidate& one : found.fitting) EXPECT_FALSE(same_plan(one.plan, best));
  EXPECT_TRUE(found.fitting[0].certified);
  EXPECT_LE(found.fitting[0].step_seconds, clean.fitting[1].step_seconds);
  request.strict = true;
  EXPECT_THROW(search(model, request), Bug);
}

TEST(Faults, OfLookingForTheLeastThatWouldDoAreToldToo) {
  Model model = tiny();
  SearchRequest request = lenient();
  request.memory = 100'000;
  SearchResult nothing = search(model, request);
  ASSERT_TRUE(nothing.fitting.empty() && nothing.faults.empty());
  Least clean = least_that_would_do(model, request, nothing, nullptr);
  EXPECT_GT(clean.memory, request.memory);
  EXPECT_TRUE(clean.faults.empty());
  break_lowering(request, [&](const Plan& plan) { return plan.memory > 100'000; });
  Least least = least_that_would_do(model, request, nothing, nullptr);
  ASSERT_FALSE(least.faults.empty());
  EXPECT_TRUE(least.faults[0].message.starts_with("planted: "));
  EXPECT_EQ(least.memory, 0) << "what no search confirmed is not named";
}

TEST(Faults, AreTheSameOnAnyNumberOfThreads) {
  Model model = tiny();
  SearchRequest request = lenient();
  request.threads = 1;
  break_lowering(request, [](const Plan& plan) { return to_json(plan).size() % 3 == 0; });
  SearchResult alone = search(model, request);
  EXPECT_GT(alone.faults.size(), 3u);
  EXPECT_TRUE(alone.fitting[0].certified);
  for (size_t threads : {2, 4}) {
    request.threads = threads;
    EXPECT_EQ(text_of(search(model, request)), text_of(alone)) << threads << " threads";
  }
}

TEST(Faults, TheCertificateRefusesTheBest) {
  Model model = tiny();
  SearchRequest request = lenient();
  const Plan best = search(model, request).fitting[0].plan;
  std::string refused;
  request.evaluators.certify = [&](const Prepared& from, const Plan& plan, const FoldedProgram& lowered) {
    std::string program = fmt::format("{}", lowered.program.ranks[0].actions.size());
    if (refused.empty()) refused = program;
    return refused == program ? std::vector<std::string>{"planted"}
                              : Evaluators{}.certify(from, plan, lowered);
  };
  request.threads = 1;  // so that the first that is certified is the best
  SearchResult found = search(model, request);
  ASSERT_FALSE(found.faults.empty());
  EXPECT_EQ(found.faults[0].message, "the certificate refuses the lowered program: planted");
  EXPECT_EQ(found.faults[0].plan, best);
  ASSERT_FALSE(found.fitting.empty());
  EXPECT_TRUE(found.certified && found.fitting[0].certified);
  EXPECT_NE(found.fitting[0].plan, best);
  refused.clear();
  SearchResult small = search_for(Objective::kMemory, 0, model, request);
  EXPECT_FALSE(small.faults.empty());
  EXPECT_TRUE(small.certified && small.fitting.at(0).certified);
}

TEST(Faults, AWayThatCannotBeMeasuredIsRefused) {
  Model model = tiny();
  SearchRequest request = lenient();
  request.evaluators.measure = [](const Prepared& from, const Plan& plan, const Prices& prices) {
    for (const MeshAxis& axis : plan.mesh)
      if (axis.name.starts_with("tp")) throw Bug("planted");
    return measure_units(from, plan, prices);
  };
  SearchResult found = search(model, request);
  EXPECT_FALSE(found.faults.empty());
  ASSERT_FALSE(found.fitting.empty());
  for (const Candidate& one : found.fitting) EXPECT_EQ(one.spec.tp, 1);
}

// What is only estimated then says so, and nothing that failed is among it.
TEST(Faults, NothingCanBeLowered) {
  Model model = tiny();
  SearchRequest request = lenient();
  break_lowering(request, [](const Plan&) { return true; });
  SearchResult found = search(model, request);
  ASSERT_FALSE(found.faults.empty());
  for (const Candidate& one : found.fitting) {
    EXPECT_FALSE(one.lowered);
    for (const PlanFault& fault : found.faults) EXPECT_FALSE(same_plan(*fault.plan, one.plan));
  }
}

TEST(Faults, WrongInputAndInterruptsStayWhatTheyAre) {
  Model model = tiny();
  SearchRequest request = lenient();
  request.evaluators.lower = [](const Prepared& from, const Plan& plan) {
    if (plan.stages.size() > 1) throw InputError("does not suit");
    return lower_folded(from, plan);
  };
  EXPECT_TRUE(search(model, request).faults.empty());
  request.evaluators.lower = [](const Prepared&, const Plan&) -> FoldedProgram { throw Interrupted("stop"); };
  SearchResult stopped = search(model, request);
  EXPECT_TRUE(stopped.interrupted && stopped.faults.empty());
}

TEST(Faults, OfAllBatchesOfASweepAreTold) {
  SearchRequest request = lenient();
  std::set<int64_t> failed;
  request.threads = 1;
  break_lowering(request, [&](const Plan& plan) { return failed.insert(plan.batch).second; });
  BatchSweep sweep = sweep_batches([](int64_t batch) { return tiny(batch); }, request);
  EXPECT_GT(failed.size(), 1u);
  EXPECT_EQ(sweep.result.faults.size(), failed.size());
}

struct Folder {
  std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "partita_faults";
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
};

TEST(FaultReport, AFileForEachOfTheFirstThreeReasons) {
  Model model = tiny();
  Plan plan = recipe(model, {.dp = 2});
  std::vector<PlanFault> faults;
  for (const char* message : {"a of 1", "b", "a of 12", "c", "d", "e", "d"})
    faults.push_back({"dp2", message, plan});
  Folder folder;
  FaultSetting setting{model, "2xcpu", "1.0", folder.path};
  std::vector<std::string> warnings = report_faults(faults, setting);
  ASSERT_EQ(warnings.size(), 4u);
  EXPECT_TRUE(warnings[0].starts_with("2 plans left out, first dp2: a of 1; a bug in partita, please report"))
      << warnings[0];
  EXPECT_TRUE(warnings[1].starts_with("1 plan left out")) << warnings[1];
  EXPECT_EQ(warnings[3], "3 plans left out for 2 other reasons");
  std::set<std::string> files;
  for (const auto& file : std::filesystem::directory_iterator(folder.path)) {
    Json json = Json::parse(read_file(file.path()));
    EXPECT_EQ(json["model"]["fingerprint"], fingerprint(model));
    EXPECT_EQ(parse_plan(json["plan"].dump(), "fault"), plan);
    files.insert(json["message"]);
  }
  EXPECT_EQ(files, (std::set<std::string>{"a of 1", "b", "c"}));
  EXPECT_EQ(report_faults(faults, setting), warnings);  // the same names
}

TEST(FaultReport, AFileThatCannotBeWrittenIsSaid) {
  Model model = tiny();
  FaultSetting setting{model, "2xcpu", "1.0", "/dev/null/no"};
  std::vector<std::string> warnings = report_faults({{"dp2", "a", std::nullopt}}, setting);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("its file could not be written"), std::string::npos) << warnings[0];
}

}  // namespace
}  // namespace partita::search
