#include "plan_draws.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/names.h"
#include "layout/atoms.h"
#include "model/build/build.h"
#include "model/rewrite/decompose.h"
#include "model/rewrite/retype.h"
#include "plan/design.h"
#include "plan/recipes/recipe.h"
#include "schedule/schedule.h"

namespace partita::run {
namespace {

/// Sizes that seldom divide.
struct Sizes {
  int64_t layers, heads, per_head, hidden, wide, vocab;
};

Sizes draw_sizes(Draw& draw) {
  Sizes s{.layers = draw.one_in(3) ? draw.number(2, 3) : 1,
          .heads = draw.number(2, 5),
          .per_head = 2 * draw.number(1, 3)};
  s.hidden = s.heads * s.per_head;
  s.wide = draw.number(5, 24);
  s.vocab = draw.number(11, 40);
  return s;
}

using Family = std::string (*)(Draw& draw, const Sizes& s);

std::string gpt2(Draw&, const Sizes& s) {
  return fmt::format(
      R"({{"model_type": "gpt2", "n_layer": {}, "n_embd": {}, "n_head": {}, "n_inner": {}, "vocab_size": {}, "n_positions": 16}})",
      s.layers, s.hidden, s.heads, s.wide, s.vocab);
}

std::string llama_keys(Draw& draw, const Sizes& s) {
  return fmt::format(
      R"("num_hidden_layers": {}, "hidden_size": {}, "num_attention_heads": {}, "num_key_value_heads": {}, "intermediate_size": {}, "vocab_size": {})",
      s.layers, s.hidden, s.heads, draw.divisor(s.heads), s.wide, s.vocab);
}

std::string llama(Draw& draw, const Sizes& s) {
  return fmt::format(R"({{"model_type": "llama", {}}})", llama_keys(draw, s));
}

std::string mixtral(Draw& draw, const Sizes& s) {
  return fmt::format(R"({{"model_type": "mixtral", {}, "num_local_experts": {}, "num_experts_per_tok": 2}})",
                     llama_keys(draw, s), draw.number(2, 5));
}

std::string bert(Draw&, const Sizes& s) {
  return fmt::format(
      R"({{"model_type": "bert", "num_hidden_layers": {}, "hidden_size": {}, "num_attention_heads": {}, "intermediate_size": {}, "vocab_size": {}}})",
      s.layers, s.hidden, s.heads, s.wide, s.vocab);
}

std::string t5(Draw&, const Sizes& s) {
  return fmt::format(
      R"({{"model_type": "t5", "num_layers": {}, "d_model": {}, "d_kv": {}, "num_heads": {}, "d_ff": {}, "vocab_size": {}}})",
      std::min<int64_t>(s.layers, 2), s.hidden, s.per_head, s.heads, s.wide, s.vocab);
}

std::string mbart(Draw& draw, const Sizes& s) {
  return fmt::format(
      R"({{"model_type": "mbart", "encoder_layers": {0}, "decoder_layers": {1}, "d_model": {2}, "encoder_attention_heads": {3}, "decoder_attention_heads": {3}, "encoder_ffn_dim": {4}, "decoder_ffn_dim": {4}, "vocab_size": {5}, "max_position_embeddings": 16}})",
      draw.number(1, 2), draw.number(1, 2), s.hidden, s.heads, s.wide, s.vocab);
}

std::string vit(Draw& draw, const Sizes& s) {
  return fmt::format(
      R"({{"model_type": "vit", "num_hidden_layers": {}, "hidden_size": {}, "num_attention_heads": {}, "intermediate_size": {}, "image_size": 12, "patch_size": {}}})",
      s.layers, s.hidden, s.heads, s.wide, draw.one_in(2) ? 4 : 6);
}

std::string swin(Draw& draw, const Sizes&) {
  return fmt::format(
      R"({{"model_type": "swin", "image_size": 16, "patch_size": 2, "window_size": {}, "embed_dim": {}, "depths": [{}, {}], "num_heads": [2, 4]}})",
      draw.one_in(2) ? 2 : 4, 4 * draw.number(1, 3), draw.number(1, 2), draw.number(1, 2));
}

std::string evoformer(Draw& draw, const Sizes& s) {
  return fmt::format(
      R"({{"model_type": "evoformer", "num_blocks": {}, "c_m": {}, "c_z": {}, "msa_heads": {}, "pair_heads": 2, "c_head": 3, "c_outer": 3, "c_triangle": 5, "transition": 2, "sequences": {}, "recycles": {}, "bins": 4, "msa_features": 3, "target_features": 3}})",
      draw.one_in(4) ? 2 : 1, s.hidden, draw.number(4, 7), s.heads, draw.number(2, 4),
      draw.one_in(4) ? draw.number(2, 3) : 1);
}

struct FamilyRow {
  Family config;
  bool tokens;                 // its sequence length is drawn
  bool ignores_labels = true;  // mBART looks for the last label of every sample
};
constexpr FamilyRow kFamilies[] = {{gpt2, true}, {llama, true}, {mixtral, true},
                                   {bert, true}, {t5, true},    {mbart, true, false},
                                   {vit, false}, {swin, false}, {evoformer, true}};

/// A stage and the device of a schedule that runs it; everything else follows.
struct Pipeline {
  int devices = 1, microbatches = 1;
  std::vector<int> device_of;  // by stage

  int stages() const { return static_cast<int>(device_of.size()); }
};

/// Any order that one device after another could run in: what is ready is drawn.
std::vector<std::string> draw_order(Draw& draw, const Pipeline& pipe) {
  int stages = pipe.stages();
  std::vector<Step> open;
  bool apart = draw.one_in(2);
  for (int m = 0; m < pipe.microbatches; ++m) open.push_back({.microbatch = m});
  std::vector<std::vector<std::string>> rows(pipe.devices);
  while (!open.empty()) {
    size_t k = draw.number(0, static_cast<int64_t>(open.size()) - 1);
    Step step = open[k];
    open.erase(open.begin() + static_cast<ptrdiff_t>(k));
    rows[pipe.device_of[step.stage]].push_back(show(step));
    auto backward = [&](int stage) {
      StepKind kind = apart && draw.one_in(2) ? StepKind::kInputGrad : StepKind::kBackward;
      return Step{.kind = kind, .stage = stage, .microbatch = step.microbatch};
    };
    if (step.kind == StepKind::kForward && step.stage + 1 < stages)
      open.push_back({.stage = step.stage + 1, .microbatch = step.microbatch});
    else if (step.kind == StepKind::kForward)
      open.push_back(backward(step.stage));
    else if (step.kind != StepKind::kWeightGrad && step.stage > 0)
      open.push_back(backward(step.stage - 1));
    if (step.kind == StepKind::kInputGrad)
      open.push_back({.kind = StepKind::kWeightGrad, .stage = step.stage, .microbatch = step.microbatch});
  }
  std::vector<std::string> out;
  for (const std::vector<std::string>& row : rows) out.push_back(fmt::format("{}", fmt::join(row, ",")));
  return out;
}

// Up to three stages a device, in any order; every device has one.
void stages_by_hand(Draw& draw, const Model& model, int64_t sites, Plan& plan) {
  Pipeline pipe{.devices = static_cast<int>(sites), .microbatches = static_cast<int>(plan.microbatches)};
  int64_t stages = draw.number(sites, std::min<int64_t>(3 * sites, 8));
  for (int64_t s = 0; s < stages; ++s)
    pipe.device_of.push_back(static_cast<int>(s < sites ? s : draw.number(0, sites - 1)));
  for (int64_t s = stages - 1; s > 0; --s) std::swap(pipe.device_of[s], pipe.device_of[draw.number(0, s)]);
  plan.stages = pipeline_stages(model, pipe.device_of, plan.mesh_size());
  plan.order = draw_order(draw, pipe);
  plan.summary += fmt::format(", order {}", fmt::join(plan.order, " | "));
}

std::vector<std::string> draw_atoms(Draw& draw, const Model& model, int64_t least) {
  Atoms atoms = find_atoms(decompose(model));
  std::vector<std::string> long_enough, out;
  for (size_t a = 0; a < atoms.names.size(); ++a)
    if (atoms.sizes[a] >= least && !atoms.names[a].empty()) long_enough.push_back(atoms.names[a]);
  if (long_enough.empty()) input_error("draw: no atom has length {}", least);
  for (int64_t k = draw.number(1, 6); k > 0; --k)
    if (const std::string& name = draw.of(long_enough); std::find(out.begin(), out.end(), name) == out.end())
      out.push_back(name);
  return out;
}

// A part of what was data parallel splits atoms that no recipe would.
void split_by_hand(Draw& draw, const Model& model, Plan& plan) {
  auto dp =
      std::find_if(plan.mesh.begin(), plan.mesh.end(), [](const MeshAxis& a) { return a.name == "dp"; });
  if (dp == plan.mesh.end()) return;
  int64_t parts = draw.divisor(dp->size);
  if (parts == 1) return;
  dp->size /= parts;
  plan.mesh.push_back({"any", parts});
  plan.split.push_back({.axis = "any", .atoms = draw_atoms(draw, model, parts)});
  plan.summary += fmt::format(", {} parts of {}", parts, fmt::join(plan.split.back().atoms, " or "));
}

void loop_by_hand(Draw& draw, const Model& model, Plan& plan) {
  int64_t pieces = draw.number(2, 3);
  const std::string& op = model.ops[draw.number(0, static_cast<int64_t>(model.ops.size()) - 1)].name;
  std::string module = op.substr(0, op.find('/'));
  plan.loops.push_back({.name = "any_loop",
                        .size = pieces,
                        .ops = {module + "/*", module + ".*"},
                        .atoms = draw_atoms(draw, model, pieces)});
  plan.summary +=
      fmt::format(", {} in {} pieces of {}", module, pieces, fmt::join(plan.loops.back().atoms, " or "));
}

// OSDP's mixture: every parameter in its own way.
void store_by_hand(Draw& draw, const Model& model, Plan& plan) {
  if (plan.mesh.empty()) return;
  plan.store.clear();
  for (const Tensor& tensor : model.tensors) {
    if (tensor.role != Role::kParameter || draw.one_in(3)) continue;
    plan.store.push_back({.params = tensor.name,
                          .axis = draw.of(plan.mesh).name,
                          .reduce = draw.one_in(2) ? "each" : "once",
                          .what = draw.of(std::vector<std::string>{"state", "gradient", "parameter"})});
  }
  plan.summary += ", stored each in its own way";
}

void recompute_by_hand(Draw& draw, const Model& model, Plan& plan) {
  std::vector<std::string> forward;
  for (const Op& op : model.ops)
    if (!op.backward) forward.push_back(op.name);
  const std::string& op = draw.of(forward);
  std::string module = op.substr(0, op.find('/'));
  plan.recompute = {{.ops = {module + "/*", module + ".*"}}};
  std::erase_if(forward, [&](const std::string& name) {
    return !matches(module + "/*", name) && !matches(module + ".*", name);
  });
  for (const char* kind : {"*/mul*", "*/addmm*", "*/mm*", "*/view*", "*/t*", "*/_*"}) {
    bool there = std::any_of(forward.begin(), forward.end(),
                             [&](const std::string& name) { return matches(kind, name); });
    if (there && draw.one_in(4)) plan.recompute[0].keep.emplace_back(kind);
  }
  plan.summary += fmt::format(", {} again but for {} kinds", module, plan.recompute[0].keep.size());
}

// OSDP: some parameters, or all, in pieces over dp, their operators in slices.
void draw_osdp(Draw& draw, const Model& model, RecipeSpec& spec) {
  spec.zero = 0;
  spec.replicas = 1;
  spec.zdp = {"*"};
  if (draw.one_in(2)) {
    spec.zdp.clear();
    for (const Tensor& tensor : model.tensors)
      if (tensor.role == Role::kParameter && draw.one_in(2)) spec.zdp.push_back(tensor.name);
  }
}

// Mostly what the batch can feed.
RecipeSpec draw_recipe(Draw& draw, const DrawnModel& drawn) {
  int64_t ranks = draw.number(1, 8);
  RecipeSpec spec{.dp = draw.divisor(ranks)};
  while (spec.dp > drawn.batch) spec.dp = draw.divisor(ranks);
  spec.tp = draw.divisor(ranks / spec.dp);
  spec.pp = ranks / spec.dp / spec.tp;
  spec.zero = spec.dp > 1 ? static_cast<int>(draw.number(0, 3)) : 0;
  if (spec.zero) spec.replicas = draw.divisor(spec.dp);
  if (spec.dp > 1 && draw.one_in(4)) draw_osdp(draw, drawn.model, spec);
  if ((!spec.zdp.empty() || spec.zero == 3) && draw.one_in(2)) spec.slices = draw.number(2, 4);
  spec.experts = spec.dp > 1 && drawn.model.name == "mixtral" && draw.one_in(2);
  if (spec.tp > 1 && draw.one_in(4)) {
    spec.cp = spec.tp % 2 || draw.one_in(2) ? spec.tp : 2;
    spec.tp /= spec.cp;
    spec.merge = draw.one_in(2);
  }
  spec.sequence = spec.tp > 1 && draw.one_in(2);
  spec.recompute = draw.one_in(4);
  if (spec.recompute) spec.keep = static_cast<Keep>(draw.number(0, kKeeps - 1));
  if (draw.one_in(6)) spec.pieces = draw.number(2, 4);
  if (draw.one_in(5)) spec.loss_pieces = draw.number(2, 4);
  spec.microbatches = draw.number(1, std::min<int64_t>(drawn.batch / spec.dp, 6));
  if (spec.pp > 1) spec.schedule = draw.one_in(4) ? "interlaced" : draw.of(schedule_names());
  if (spec.schedule == "wave") spec.chunks = draw.one_in(3) ? 4 : 2;
  if (spec.schedule.starts_with("interleaved") || spec.schedule == "looped-bfs")
    spec.chunks = draw.one_in(3) ? 3 : 2;
  return spec;
}

// The sign of a gradient that is zero but for rounding decides Adam's first step: in single precision that
// is no comparison.
OptimizerSpec draw_optimizer(Draw& draw, DType dtype) {
  OptimizerSpec optimizer;
  bool single = dtype == DType::kFloat32;
  if (draw.one_in(3) || single) optimizer.name = "sgd";
  if (draw.one_in(2)) optimizer.momentum = 0.5;
  if (draw.one_in(4)) optimizer.clip = 0.5;
  if (draw.one_in(6)) optimizer.precision.loss_scale = 1024;
  if (single && draw.one_in(2)) optimizer.precision.grad = DType::kFloat64;
  if (single && draw.one_in(2)) optimizer.precision.master = DType::kFloat64;
  return optimizer;
}

}  // namespace

int64_t Draw::divisor(int64_t n) {
  std::vector<int64_t> all;
  for (int64_t d = 1; d <= n; ++d)
    if (n % d == 0) all.push_back(d);
  return of(all);
}

DrawnModel draw_model(Draw& draw, const std::vector<Captured>& captured) {
  constexpr int64_t kBuilt = std::size(kFamilies);
  int64_t files = std::min(static_cast<int64_t>(captured.size()), kBuilt);  // about as often as built ones
  int64_t which = draw.number(0, kBuilt + files - 1);
  if (which >= kBuilt) {
    const auto& [model, constants] = draw.of(captured);
    for (const Tensor& tensor : model.tensors)
      if (tensor.role == Role::kBatchInput && !tensor.shape.empty())
        return {model, model.name, tensor.shape[0], true, views_of(constants)};
  }
  StepSize size{.batch = draw.one_in(8) ? 1 : draw.number(2, 8)};
  if (kFamilies[which].tokens) size.seq = draw.number(3, 8);
  std::string config = kFamilies[which].config(draw, draw_sizes(draw));
  Model model = build_model(config, "config", size);        // in single precision
  bool single = kFamilies[which].tokens && draw.one_in(8);  // of convolutions only a bound is known
  if (!single) model = retype(model, DType::kFloat64);
  return {std::move(model),
          fmt::format("{}, batch {}, seq {}{}", config, size.batch, size.seq, single ? ", float32" : ""),
          size.batch, kFamilies[which].ignores_labels};
}

Plan draw_plan(Draw& draw, const DrawnModel& drawn) {
  const Model& model = drawn.model;
  RecipeSpec spec = draw_recipe(draw, drawn);
  spec.optimizer = draw_optimizer(draw, model[model.loss].dtype);
  bool own_stages = draw.one_in(3);
  int64_t sites = spec.pp;
  if (own_stages) {
    spec.dp *= spec.pp;
    spec.pp = 1;
    if (spec.zero) spec.replicas = 1;
  }
  Plan plan = recipe(model, spec);
  if (own_stages) {
    for (MeshAxis& axis : plan.mesh)
      if (axis.name == "dp") axis.size /= sites;
    stages_by_hand(draw, model, sites, plan);
  }
  if (draw.one_in(4)) split_by_hand(draw, model, plan);
  if (draw.one_in(6)) loop_by_hand(draw, model, plan);
  if (draw.one_in(4)) store_by_hand(draw, model, plan);
  if (draw.one_in(8)) recompute_by_hand(draw, model, plan);
  plan.overlap = draw.one_in(3);
  if (plan.overlap) plan.summary += ", overlap";
  return plan;
}

}  // namespace partita::run
