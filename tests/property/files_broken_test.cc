// Files broken at random, read in this process: refused with the place, or as right as a real one. The
// campaign through the command is bench/broken_files.py.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <random>
#include <regex>

#include "../unit/program_small.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "certify/certificate.h"
#include "cluster/library.h"
#include "lower/lower.h"
#include "model/build/build.h"
#include "model/fault.h"
#include "plan/recipes/recipe.h"
#include "profile/step.h"
#include "setting.h"

namespace partita::search {
namespace {

/// Changes one thing of a file: a byte, a number, a whole value.
class Breaker {
 public:
  explicit Breaker(uint64_t seed) : random_(seed) {}

  std::string operator()(std::string text) {
    switch (pick(4)) {
      case 0:
        text[pick(text.size())] ^= static_cast<char>(1 << pick(8));
        return text;
      case 1:
        return text.substr(0, pick(text.size()));
      default:
        Json file = Json::parse(text);
        change(file);
        return file.dump(-1, ' ', false, Json::error_handler_t::replace);
    }
  }

 private:
  size_t pick(size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random_); }

  Json* child_of(Json& value) {
    auto child = value.begin();
    std::advance(child, static_cast<ptrdiff_t>(pick(value.size())));
    return &*child;
  }

  /// Goes down to a random value of the tree and puts another in its place.
  void change(Json& value) {
    Json* at = &value;
    for (int depth = 0; at->is_structured() && !at->empty(); ++depth) {
      Json* child = child_of(*at);
      for (int again = 0; depth == 0 && !child->is_structured() && again < 4; ++again) child = child_of(*at);
      at = child;
      if (depth > 1 && pick(6) == 0) break;
    }
    const Json kOthers[] = {nullptr,
                            true,
                            0,
                            1,
                            -1,
                            3,
                            INT64_MAX,
                            INT64_MIN,
                            UINT64_MAX,
                            0.5,
                            "",
                            "%0",
                            "%3",
                            "str:x",
                            "aten.mm.default",
                            "aten.cat.default",
                            Json::array(),
                            Json::array({1, 2}),
                            Json::object()};
    *at = kOthers[pick(std::size(kOthers))];
  }

  std::mt19937_64 random_;
};

struct Counts {
  int refused = 0, valid = 0, lowered = 0;
};

/// What is accepted must be fit for use.
void use(const Model& model, Counts& counts) {
  ++counts.valid;
  profile_step(model, library_cluster("A100-80GB", 1, 1, "test"), 2);
  try {
    lower::lower(model, recipe(model, {.dp = 2}));
    ++counts.lowered;
  } catch (const InputError&) {
  }
}

/// Reads a broken file, and uses what is accepted.
void try_file(const std::function<void()>& read, Counts& counts) {
  try {
    read();
  } catch (const InputError& error) {
    ++counts.refused;
    static const std::regex kPlace("^broken[.]json(:[0-9]+:[0-9]+: .|: [A-Za-z\"][^ ]* .)");
    EXPECT_TRUE(std::regex_search(error.what(), kPlace)) << error.what();
  }
}

using Read = std::function<void(const std::string& text, Counts& counts)>;

/// Breaks the files in turn. The seed of a case that fails makes that case alone.
void campaign(const char* what, const std::vector<std::string>& files, uint64_t count, const Read& read) {
  uint64_t seed = setting("PARTITA_SEED", 1);
  count = setting("PARTITA_FILES", count);
  Counts counts;
  for (uint64_t k = seed; k < seed + count; ++k) {
    SCOPED_TRACE(fmt::format("PARTITA_SEED={} PARTITA_FILES=1", k));
    std::string broken = Breaker(k)(files[k % files.size()]);
    EXPECT_NO_THROW(try_file([&] { read(broken, counts); }, counts));
  }
  fmt::print("seed {}: {} {}, {} refused, {} valid, {} of these lowered\n", seed, count, what, counts.refused,
             counts.valid, counts.lowered);
  EXPECT_GT(counts.refused, 0);
}

TEST(BrokenModels, AreRefusedWithThePlace) {
  std::vector<std::string> files;
  for (const char* name : {"gpt2-tiny", "llama-tiny"})
    files.push_back(read_file(fmt::format("{}/tests/data/{}.model.json", PARTITA_SOURCE_DIR, name)));
  for (const char* name : {"gpt2-tiny", "mixtral-tiny", "evoformer-tiny"})
    files.push_back(to_json(build_model(*find_preset(name))));
  campaign("models", files, 50,
           [](const std::string& text, Counts& counts) { use(parse_model(text, "broken.json"), counts); });
}

// A program that reads well is walked by the certificate, which must say what is wrong with it and no more.
TEST(BrokenPrograms, AreRefusedWithThePlace) {
  SmallProgram grid = grid_program(2, 3, 2), pipeline = pipeline_program(2);
  for (const SmallProgram& small : {grid, pipeline})
    campaign("programs", {to_json(small.program, small.model)}, 200,
             [&](const std::string& text, Counts& counts) {
               Program program = parse_program(text, small.model, "broken.json");
               ++counts.valid;
               certify::certify(small.model, small.atoms, program);
             });
}

// The same of classes of ranks; one that is accepted can be read as ranks.
TEST(BrokenFolds, AreRefusedWithThePlace) {
  Model model = build_model(*find_preset("gpt2-tiny"), {.batch = 6});
  Plan plan = recipe(model, {.dp = 4, .zero = 1});
  Prepared prepared = prepare(model, form_of(plan));
  campaign("programs of classes", {to_json(lower_folded(prepared, plan), prepared.model)}, 200,
           [&](const std::string& text, Counts& counts) {
             auto [program, fold] = parse_folded(text, prepared.model, "broken.json");
             ++counts.valid;
             certify::certify(prepared.model, prepared.atoms, program, fold);
             expand(program, fold);
           });
}

TEST(BrokenPlans, AreRefusedWithThePlace) {
  Model model = build_model(*find_preset("gpt2-tiny"));
  std::vector<std::string> plans;
  for (RecipeSpec spec : {RecipeSpec{.dp = 2, .pp = 2, .microbatches = 2}, RecipeSpec{.tp = 2}})
    plans.push_back(to_json(recipe(model, spec)));
  campaign("plans", plans, 100, [&](const std::string& text, Counts& counts) {
    Plan plan = parse_plan(text, "broken.json");
    ++counts.valid;
    try {
      lower::lower(model, plan);
      ++counts.lowered;
    } catch (const InputError&) {
    }
  });
}

TEST(BrokenClusters, AreRefusedWithThePlace) {
  campaign("clusters", {to_json(library_cluster("A100-80GB", 2, 8, "test"))}, 500,
           [](const std::string& text, Counts& counts) {
             parse_cluster(text, "broken.json");
             ++counts.valid;
           });
}

/// What `check` says after one shape or dtype of a sound model was made up.
std::string lie(const std::function<void(Model&)>& change) {
  Model model = build_model(*find_preset("gpt2-tiny"));
  EXPECT_TRUE(check(model).empty());
  change(model);
  std::vector<ModelFault> faults = faults_of(model);
  return faults.empty() ? "accepted" : faults[0].path + ": " + faults[0].sentence;
}

/// The first op of this kind, and its first output.
Op& op_of(Model& model, std::string_view target) {
  return *std::find_if(model.ops.begin(), model.ops.end(), [&](const Op& op) { return op.target == target; });
}
Tensor& made_by(Model& model, std::string_view target) {
  return model.tensors[op_of(model, target).outputs[0].value];
}

TEST(LyingShapes, AreRefusedWithTheOp) {
  Model model = build_model(*find_preset("gpt2-tiny"));
  EXPECT_EQ(lie([](Model& m) { made_by(m, "aten.addmm.default").shape[1] = 191; }),
            fmt::format("ops[{}]: op transformer.h.0.attn.c_attn/addmm (aten.addmm.default): dimension 1 of "
                        "input 2 is 192, but dimension 1 of output 0 is 191",
                        &op_of(model, "aten.addmm.default") - model.ops.data()));
  EXPECT_NE(lie([](Model& m) {
              made_by(m, "aten.view.default").shape = {5, 16};
            }).find("(aten.view.default)"),
            std::string::npos);
  EXPECT_NE(lie([](Model& m) { made_by(m, "aten.add.Tensor").shape[0] = 2; }).find("(aten.add.Tensor)"),
            std::string::npos);
  EXPECT_NE(lie([](Model& m) {
              op_of(m, "aten.transpose.int").args[1] = Arg::of(int64_t{9});
            }).find("a tensor of 4 dimensions has no dimension 9"),
            std::string::npos);
  EXPECT_NE(lie([](Model& m) {
              made_by(m, "aten.embedding.default").dtype = DType::kInt64;
            }).find("output 0 is int64, needs to be float32"),
            std::string::npos);
  EXPECT_NE(lie([](Model& m) { op_of(m, "aten.mm.default").args.pop_back(); }).find("operand 1 is missing"),
            std::string::npos);
}

}  // namespace
}  // namespace partita::search
