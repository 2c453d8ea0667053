// Random models under random plans: plan_campaign [COUNT] [SEED].
// COUNT plans (300) that apply are lowered, certified and run two steps in float64 on thread ranks beside one
// device; the counted peak of every rank must be the predicted one. Plans that do not apply are drawn again
// and counted by reason. Exit 1 and the numbers of the case if one fails.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <string>

#include "base/error.h"
#include "lower/lower.h"
#include "model/build/build.h"
#include "model/retype.h"
#include "number_at.h"
#include "plan/recipe.h"
#include "program/certificate.h"
#include "program/memory.h"
#include "run/api.h"
#include "schedule/schedule.h"

namespace partita {
namespace {

class Draw {
 public:
  explicit Draw(uint64_t seed) : bits_(seed) {}

  int64_t number(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(bits_() % static_cast<uint64_t>(high - low + 1));
  }
  bool one_in(int64_t n) { return number(1, n) == 1; }
  template <class T>
  const T& of(const std::vector<T>& list) {
    return list[number(0, static_cast<int64_t>(list.size()) - 1)];
  }

 private:
  std::mt19937_64 bits_;
};

int64_t divisor(Draw& draw, int64_t n) {
  std::vector<int64_t> all;
  for (int64_t d = 1; d <= n; ++d)
    if (n % d == 0) all.push_back(d);
  return draw.of(all);
}

struct Drawn {
  std::string config;
  StepSize size;
};

// Sizes that seldom divide.
Drawn draw_model(Draw& draw) {
  int64_t layers = draw.number(1, 4), heads = draw.number(2, 5), per_head = 2 * draw.number(1, 3);
  int64_t hidden = heads * per_head, wide = draw.number(5, 40), vocab = draw.number(11, 50);
  Drawn out{.size = {.batch = draw.number(1, 9), .seq = draw.number(3, 12)}};
  switch (draw.number(0, 6)) {
    case 0:
      out.config = fmt::format(
          R"({{"model_type": "gpt2", "n_layer": {}, "n_embd": {}, "n_head": {}, "n_inner": {}, "vocab_size": {}, "n_positions": 16}})",
          layers, hidden, heads, wide, vocab);
      break;
    case 1:
    case 2: {
      int64_t groups = divisor(draw, heads);
      bool experts = draw.one_in(3);
      out.config = fmt::format(
          R"({{"model_type": "{}", "num_hidden_layers": {}, "hidden_size": {}, "num_attention_heads": {}, "num_key_value_heads": {}, "intermediate_size": {}, "vocab_size": {}{}}})",
          experts ? "mixtral" : "llama", layers, hidden, heads, groups, wide, vocab,
          experts ? fmt::format(", \"num_local_experts\": {}, \"num_experts_per_tok\": 2", draw.number(2, 5))
                  : "");
      break;
    }
    case 3:
      out.config = fmt::format(
          R"({{"model_type": "bert", "num_hidden_layers": {}, "hidden_size": {}, "num_attention_heads": {}, "intermediate_size": {}, "vocab_size": {}}})",
          layers, hidden, heads, wide, vocab);
      break;
    case 4:
      out.config = fmt::format(
          R"({{"model_type": "t5", "num_layers": {}, "d_model": {}, "d_kv": {}, "num_heads": {}, "d_ff": {}, "vocab_size": {}}})",
          std::min<int64_t>(layers, 2), hidden, per_head, heads, wide, vocab);
      break;
    case 5:
      out.size.seq = 0;
      out.config = fmt::format(
          R"({{"model_type": "vit", "num_hidden_layers": {}, "hidden_size": {}, "num_attention_heads": {}, "intermediate_size": {}, "image_size": 12, "patch_size": {}}})",
          layers, hidden, heads, wide, draw.one_in(2) ? 4 : 6);
      break;
    default:
      out.size.seq = 0;
      out.config = fmt::format(
          R"({{"model_type": "swin", "image_size": 16, "patch_size": 2, "window_size": {}, "embed_dim": {}, "depths": [{}, {}], "num_heads": [{}, {}]}})",
          draw.one_in(2) ? 2 : 4, 4 * draw.number(1, 3), draw.number(1, 2), draw.number(1, 2), 2, 4);
  }
  return out;
}

RecipeSpec draw_plan(Draw& draw) {
  int64_t ranks = draw.number(1, 8);
  RecipeSpec spec{.dp = divisor(draw, ranks)};
  spec.tp = divisor(draw, ranks / spec.dp);
  spec.pp = ranks / spec.dp / spec.tp;
  spec.zero = spec.dp > 1 ? static_cast<int>(draw.number(0, 3)) : 0;
  if (spec.zero) spec.replicas = divisor(draw, spec.dp);
  spec.experts = spec.dp > 1 && draw.one_in(4);
  spec.sequence = spec.tp > 1 && draw.one_in(2);
  spec.recompute = draw.one_in(4);
  if (draw.one_in(5)) spec.pieces = draw.number(2, 4);
  if (draw.one_in(5)) spec.loss_pieces = draw.number(2, 4);
  spec.microbatches = draw.one_in(3) ? 1 : draw.number(2, 6);
  if (spec.pp > 1) spec.schedule = draw.of(schedule_names());
  if (spec.schedule == "wave" || spec.schedule.starts_with("interleaved") || spec.schedule == "looped-bfs")
    spec.chunks = 2;
  if (draw.one_in(3)) spec.optimizer.name = "sgd";
  if (draw.one_in(4)) spec.optimizer.clip = 0.5;
  return spec;
}

/// What is wrong with one case; empty where nothing is. InputError where the plan does not apply.
std::string fault_of(const Model& model, const RecipeSpec& spec) {
  Lowered tried = lower(model, recipe(model, spec));
  Lowered one = lower(model, one_device_plan(model, spec.optimizer));
  if (auto wrong = certify(tried.model, tried.atoms, tried.program); !wrong.empty())
    return "the certificate refuses it: " + wrong[0];
  VerifyReport report = partita_run_api(kRunApiVersion)
                            ->verify({tried.model, tried.program, leaves_of(tried.model, tried.atoms)},
                                     {one.model, one.program, leaves_of(one.model, one.atoms)},
                                     {.run = {.steps = 2, .batch = {.ignored_labels = true}}});
  if (!report.equal)
    return fmt::format("differs from one device by {:.1e} in {}", report.worst_error, report.worst_parameter);
  std::vector<RankMemory> memory = memory_of(tried.model, tried.program);
  for (size_t rank = 0; rank < memory.size(); ++rank)
    if (memory[rank].peak != report.peak_bytes[rank])
      return fmt::format("rank {} holds {} bytes, {} were promised", rank, report.peak_bytes[rank],
                         memory[rank].peak);
  return "";
}

int campaign(size_t count, uint64_t seed) {
  std::map<std::string, size_t> refused;
  size_t run = 0, failed = 0, drawn = 0;
  for (; run < count; ++drawn) {
    Draw draw(seed * 1'000'003 + drawn);
    Drawn picked = draw_model(draw);
    RecipeSpec spec = draw_plan(draw);
    std::string fault;
    try {
      Model model = retype(build_model(picked.config, "config", picked.size), DType::kFloat64);
      fault = fault_of(model, spec);
      ++run;
    } catch (const InputError& error) {
      ++refused[std::string(error.what()).substr(0, 60)];
    } catch (const std::exception& error) {
      fault = error.what();
      ++run;
    }
    if (fault.empty()) continue;
    ++failed;
    fmt::print("case {}: {}, batch {}, seq {}: {}: {}\n", drawn, picked.config, picked.size.batch,
               picked.size.seq, summary(spec), fault);
  }
  if (std::getenv("PARTITA_CAMPAIGN"))
    for (const auto& [why, times] : refused) fmt::print("{:6} {}\n", times, why);
  fmt::print("seed {}: {} random plans of random models, {} failed; {} more did not apply\n", seed, run,
             failed, drawn - run);
  return failed > 0;
}

}  // namespace
}  // namespace partita

int main(int argc, char** argv) {
  using partita::number_at;
  return partita::campaign(number_at(argc, argv, 1, 300), number_at(argc, argv, 2, 1));
}
