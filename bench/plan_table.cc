// Every recipe and every product of two beside one device: plan_table [SHARE/SHARES] MODEL ...
// MODEL is a captured file or a Hugging Face config. Prints one line a case, with tabs between: model,
// recipe, ranks, and "equal" with the largest relative error, or "refused" with the reason, or "WRONG" with
// what is. Two steps in float64 on thread ranks; the counted peak of every rank must be the predicted one.
// Exit 1 if one is wrong.
#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "model/build/build.h"
#include "model/rewrite/retype.h"
#include "plan/recipes/recipe.h"
#include "plan_trial.h"

namespace partita::run {
namespace {

/// A way to use ranks, or something that one rank does differently.
struct Factor {
  const char* name;
  bool parallel;
  void (*apply)(int64_t ranks, RecipeSpec& spec);
};

template <int kZero>
void zero(int64_t ranks, RecipeSpec& spec) {
  spec.dp = ranks;
  spec.zero = kZero;
}
void hybrid(int64_t ranks, RecipeSpec& spec) {
  zero<3>(ranks, spec);
  spec.replicas = ranks % 2 ? ranks : 2;
}
void slices(int64_t ranks, RecipeSpec& spec) {
  spec.dp = ranks;
  spec.zdp = {"*"};
  spec.slices = 2;
}
void tensor(int64_t ranks, RecipeSpec& spec) { spec.tp = ranks; }
void context(int64_t ranks, RecipeSpec& spec) { spec.cp = ranks; }
void merged_context(int64_t ranks, RecipeSpec& spec) { spec.cp = ranks, spec.merge = true; }
void sequence(int64_t ranks, RecipeSpec& spec) {
  spec.tp = ranks;
  spec.sequence = true;
}
void experts(int64_t ranks, RecipeSpec& spec) {
  spec.dp = ranks;
  spec.experts = true;
}
void pipeline(int64_t ranks, const char* schedule, RecipeSpec& spec) {
  spec.pp = ranks;
  spec.schedule = schedule;
  spec.microbatches = std::max<int64_t>(spec.microbatches, 2);
}
void one_forward_one_backward(int64_t ranks, RecipeSpec& spec) { pipeline(ranks, "1f1b", spec); }
void wave(int64_t ranks, RecipeSpec& spec) {
  pipeline(ranks, "wave", spec);
  spec.chunks = 2;
}
void zero_bubble(int64_t ranks, RecipeSpec& spec) { pipeline(ranks, "zb-v", spec); }
void recycling(int64_t ranks, RecipeSpec& spec) { pipeline(ranks, "3f1b", spec); }
void interlaced(int64_t ranks, RecipeSpec& spec) { pipeline(ranks, "interlaced", spec); }
void pieces(int64_t, RecipeSpec& spec) { spec.pieces = 2; }
void loss_pieces(int64_t, RecipeSpec& spec) { spec.loss_pieces = 2; }
void recompute(int64_t, RecipeSpec& spec) { spec.recompute = true; }
void recompute_part(int64_t, RecipeSpec& spec) {
  spec.recompute = true;
  spec.keep = Keep::kProducts;
}
void accumulate(int64_t, RecipeSpec& spec) { spec.microbatches = 2; }
void clip(int64_t, RecipeSpec& spec) { spec.optimizer.clip = 0.1; }

constexpr Factor kFactors[] = {
    {"dp", true, zero<0>},
    {"zero1", true, zero<1>},
    {"zero2", true, zero<2>},
    {"zero3", true, zero<3>},
    {"hsdp", true, hybrid},
    {"osdp", true, slices},
    {"ep", true, experts},
    {"tp", true, tensor},
    {"sp", true, sequence},
    {"cp", true, context},
    {"cp lse", true, merged_context},
    {"pipeline 1f1b", true, one_forward_one_backward},
    {"pipeline wave", true, wave},
    {"pipeline zb-v", true, zero_bubble},
    {"3f1b", true, recycling},
    {"interlaced", true, interlaced},
    {"co-shard", false, pieces},
    {"loss in pieces", false, loss_pieces},
    {"recompute", false, recompute},
    {"recompute part", false, recompute_part},
    {"accumulation", false, accumulate},
    {"clipping", false, clip},
};

/// dp and its kin, tp and its kin, cp, pipelines: two factors of one kind would use the same axis.
int kind_of(const Factor& factor) {
  RecipeSpec spec;
  factor.apply(2, spec);
  return !factor.parallel ? 0 : spec.dp > 1 ? 1 : spec.tp > 1 ? 2 : spec.cp > 1 ? 4 : 3;
}

struct Case {
  std::string name;
  int64_t ranks = 1;
  RecipeSpec spec;
};

void add_single(const Factor& factor, std::vector<Case>& cases) {
  for (int64_t ranks : {2, 3, 4, 6, 8}) {
    Case one{factor.name, ranks, {}};
    if (!factor.parallel) one.spec.dp = ranks;
    factor.apply(ranks, one.spec);
    cases.push_back(std::move(one));
  }
}

// Two that use ranks have 2 of them and the rest, or the other way round; the others go with all.
void add_pair(const Factor& a, const Factor& b, std::vector<Case>& cases) {
  if (b.parallel) {
    for (int64_t ranks : {4, 6, 8}) {
      Case both{fmt::format("{} x {}", a.name, b.name), ranks, {}};
      int64_t inner = ranks == 6 ? 3 : 2;
      a.apply(ranks / inner, both.spec);
      b.apply(inner, both.spec);
      cases.push_back(std::move(both));
    }
    return;
  }
  for (int64_t ranks : {2, 3, 4, 6, 8}) {
    Case both{fmt::format("{} x {}", a.name, b.name), ranks, {}};
    if (!a.parallel) both.spec.dp = ranks;
    a.apply(ranks, both.spec);
    b.apply(ranks, both.spec);
    cases.push_back(std::move(both));
  }
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const Factor& factor : kFactors) add_single(factor, cases);
  for (const Factor& a : kFactors)
    for (const Factor& b : kFactors)
      if (&a < &b && (kind_of(a) != kind_of(b) || !b.parallel)) add_pair(a, b, cases);
  return cases;
}

Model read(const std::string& path) {
  std::string text = read_file(path);
  bool captured = text.find("\"partita.model\"") != text.npos;
  bool images = text.find("\"image_size\"") != text.npos;
  StepSize size{.batch = 16, .seq = images ? 0 : 8};
  Model model = captured ? parse_model(text, path) : build_model(text, path, size);
  return retype(std::move(model), DType::kFloat64);
}

int table(const std::vector<std::string>& paths, size_t share, size_t shares) {
  bool wrong = false;
  size_t number = share;
  for (const std::string& path : paths) {
    Model model = read(path);
    RecipeBook book(model);
    for (const Case& one : all_cases()) {
      if (number++ % shares) continue;
      std::string answer;
      try {
        Trial trial = try_plan(model, book.plan(one.spec), {.ignored_labels = false});
        answer = trial.fault.empty() ? fmt::format("equal\t{:.1e}", trial.error) : "WRONG\t" + trial.fault;
      } catch (const InputError& error) {
        answer = fmt::format("refused\t{}", error.what());
      } catch (const std::exception& error) {
        answer = fmt::format("WRONG\t{}", error.what());
      }
      wrong |= answer.starts_with("WRONG");
      fmt::print("{}\t{}\t{}\t{}\n", std::filesystem::path(path).stem().stem().string(), one.name, one.ranks,
                 answer);
      std::fflush(stdout);
    }
  }
  return wrong;
}

}  // namespace
}  // namespace partita::run

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  size_t share = 0, shares = 1;
  if (!words.empty() && std::sscanf(words[0].c_str(), "%zu/%zu", &share, &shares) == 2)
    words.erase(words.begin());
  return partita::run::table(words, share, shares);
}
