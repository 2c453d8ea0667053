#include "plan/recipes/recipe.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/names.h"
#include "layout/packed.h"
#include "layout/unpack.h"
#include "model/rewrite/decompose.h"
#include "model/rewrite/key_chunks.h"
#include "model/rewrite/retype.h"
#include "model/row.h"
#include "plan/recipes/cut.h"
#include "plan/recipes/interlaced_stages.h"
#include "plan/recipes/slices.h"
#include "schedule/csv.h"
#include "schedule/schedule.h"

namespace partita::plan {
namespace {

std::vector<int64_t> prime_factors(int64_t number) {
  std::vector<int64_t> factors;
  for (int64_t p = 2; number > 1; ++p)
    while (number % p == 0) {
      factors.push_back(p);
      number /= p;
    }
  return factors;
}

int64_t size_of(const Atoms& atoms, const std::string& name) {
  for (size_t a = 0; a < atoms.names.size(); ++a)
    if (atoms.names[a] == name) return atoms.sizes[a];
  return 0;
}

std::string dp_summary(const RecipeSpec& spec) {
  std::string copies = spec.replicas > 1 ? fmt::format("{} replicas of ", spec.replicas) : "";
  int64_t each = spec.dp / std::max<int64_t>(spec.replicas, 1);
  if (spec.experts)
    return fmt::format("{}ep{}{}", copies, each, spec.zero ? fmt::format(" zero{}", spec.zero) : "");
  if (!spec.zdp.empty())
    return fmt::format("osdp{} ({}{})", spec.dp, fmt::join(spec.zdp, ", "),
                       spec.slices > 1 ? fmt::format(" in {} slices", spec.slices) : "");
  if (!spec.zero) return fmt::format("dp{}", spec.dp);
  return fmt::format("{}zero{}-{}", copies, spec.zero, each);
}

std::vector<Stage> stages_of(const Model& model, const RecipeSpec& spec) {
  if (spec.pp == 1 && !spec.order.empty())
    input_error("recipe: an order is for a pipeline, and this plan has one stage; give --pp");
  if (spec.pp == 1) return pipeline_stages(model, {0}, spec.dp * spec.cp * spec.tp);
  Schedule schedule = spec.order.empty()
                          ? make_schedule(spec.schedule, {.devices = static_cast<int>(spec.pp),
                                                          .microbatches = static_cast<int>(spec.microbatches),
                                                          .chunks = static_cast<int>(spec.chunks)})
                          : parse_csv(fmt::format("{}\n", fmt::join(spec.order, "\n")), "order");
  if (schedule.devices != spec.pp)
    input_error("recipe: the order is of {} devices, the pipeline has {}", schedule.devices, spec.pp);
  if (schedule.microbatches != spec.microbatches)
    input_error("recipe: the order is of {} micro-batches, not {}; give --microbatches {}",
                schedule.microbatches, spec.microbatches, schedule.microbatches);
  if (schedule.devices_of(0, 0).size() > 1)
    return interlaced_stages(model, spec.pp, spec.dp * spec.cp * spec.tp);
  std::vector<int> sites;
  for (int stream = 0; stream < schedule.streams; ++stream)
    for (int stage = 0; stage < schedule.stages; ++stage) sites.push_back(schedule.device_of(stage, stream));
  return pipeline_stages(model, sites, spec.dp * spec.cp * spec.tp, schedule.passes, schedule.streams);
}

}  // namespace

std::string summary(const RecipeSpec& spec) {
  std::string text;
  auto factor = [&](const std::string& part) { text += (text.empty() ? "" : " x ") + part; };
  if (spec.dp > 1) factor(dp_summary(spec));
  if (spec.cp > 1) factor(fmt::format("cp{}{}", spec.cp, spec.merge ? " merged" : ""));
  if (spec.tp > 1) factor(fmt::format("{}{}", spec.sequence ? "sp" : "tp", spec.tp));
  std::string chunks = spec.chunks > 1 ? fmt::format(" x{}", spec.chunks) : "";
  if (spec.pp > 1) factor(fmt::format("pp{} {}{}", spec.pp, spec.schedule, chunks));
  if (text.empty()) text = "one device";
  if (spec.microbatches > 1) text += fmt::format(", {} micro-batches", spec.microbatches);
  if (spec.pieces > 1) text += fmt::format(", {} pieces", spec.pieces);
  if (spec.loss_pieces > 1) text += fmt::format(", loss in {} pieces", spec.loss_pieces);
  if (spec.recompute) text += ", recompute";
  if (spec.recompute && spec.keep != Keep::kNothing)
    text += fmt::format(" all but {}", kKeepNames[static_cast<int>(spec.keep)]);
  if (spec.overlap) text += kOverlapSummary;
  return text;
}

std::string batch_atom(const Model& model, const Atoms& atoms) {
  for (size_t t = 0; t < model.tensors.size(); ++t)
    if (model.tensors[t].role == Role::kBatchInput && !atoms.dims[t].empty() && !atoms.dims[t][0].empty())
      return atoms.names[atoms.dims[t][0][0].value];
  return "";
}

std::vector<std::string> sequence_atoms(const Model& model, const Atoms& atoms) {
  std::vector<std::string> names;
  for (size_t t = 0; t < model.tensors.size(); ++t) {
    bool tokens = model.tensors[t].role == Role::kBatchInput && !is_floating(model.tensors[t].dtype) &&
                  atoms.dims[t].size() > 1 && !atoms.dims[t][1].empty();
    if (!tokens) continue;
    const std::string& name = atoms.names[atoms.dims[t][1][0].value];
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

int64_t samples_of(const Model& model) {
  int64_t samples = 0;
  for (const Tensor& tensor : model.tensors)
    if (tensor.role == Role::kBatchInput && !tensor.shape.empty() && samples <= 1) samples = tensor.shape[0];
  return samples;
}

int64_t sequence_of(const Model& model) {
  for (const Tensor& tensor : model.tensors)
    if (tensor.role == Role::kBatchInput && !is_floating(tensor.dtype) && tensor.shape.size() > 1)
      return tensor.shape[1];
  return 0;
}

std::string sequence_atom(const Model& model, const Atoms& atoms) {
  std::vector<std::string> names = sequence_atoms(model, atoms);
  return names.empty() ? "" : names[0];
}

std::vector<std::string> expert_atoms(const Model& model, const Atoms& atoms) {
  std::set<AtomId> batched;
  for (size_t i = 0; i < model.ops.size(); ++i)
    if (model.ops[i].target == "aten.bmm.default")
      for (const Loop& loop : atoms.ops[i].loops)
        if (!loop.frozen && loop.ins.size() == 2 && loop.ins[0].dim == 0 && loop.ins[1].dim == 0)
          batched.insert(loop.atom);
  std::vector<std::string> names;
  for (size_t t = 0; t < model.tensors.size(); ++t) {
    const Tensor& tensor = model.tensors[t];
    if (tensor.role != Role::kParameter || tensor.shape.size() != 3 || atoms.dims[t][0].size() != 1) continue;
    AtomId atom = atoms.dims[t][0][0];
    if (batched.contains(atom) &&
        std::find(names.begin(), names.end(), atoms.names[atom.value]) == names.end())
      names.push_back(atoms.names[atom.value]);
  }
  return names;
}

RecipeBook::RecipeBook(const Model& model)
    : model_(model), fingerprint_(fingerprint(model)), split_{.model = decompose(model)} {
  split_.atoms = find_atoms(split_.model);
  if (find_packed(split_.model).empty()) return;
  unpacked_ = Stated{.model = unpack(split_.model), .atoms = {}};
  unpacked_->atoms = find_atoms(unpacked_->model);
}

const std::vector<std::vector<std::string>>& RecipeBook::families(int64_t parts) {
  const Stated& stated = unpacked_ ? *unpacked_ : split_;
  auto [known, fresh] = families_.try_emplace(parts);
  if (fresh) known->second = tensor_atoms(stated.model, stated.atoms, parts);
  return known->second;
}

// One axis if every family has an atom long enough; else an axis per prime factor, so that 2 key heads with 2
// query heads each feed 4 ranks as 2 x 2.
void RecipeBook::add_tensor_axes(int64_t parts, Plan& plan) {
  const Stated& stated = unpacked_ ? *unpacked_ : split_;
  plan.unpack = unpacked_.has_value();
  const std::vector<std::vector<std::string>>& families = this->families(parts);
  if (families.empty())
    input_error("recipe: this model has nothing to split over tp={}; try dp or pp", parts);
  bool fits = std::all_of(families.begin(), families.end(),
                          [&](const auto& family) { return size_of(stated.atoms, family.front()) >= parts; });
  std::vector<int64_t> sizes = fits ? std::vector<int64_t>{parts} : prime_factors(parts);
  for (size_t k = 0; k < sizes.size(); ++k) {
    std::string axis = sizes.size() == 1 ? "tp" : fmt::format("tp{}", k);
    plan.mesh.push_back({axis, sizes[k]});
    plan.split.push_back({.axis = axis});
  }
  size_t first = plan.split.size() - sizes.size();
  for (const auto& family : families) {
    size_t at = 0;
    int64_t left = size_of(stated.atoms, family[0]);
    for (size_t k = 0; k < sizes.size(); ++k) {
      while (at < family.size() && left < sizes[k])
        if (++at < family.size()) left = size_of(stated.atoms, family[at]);
      if (at == family.size()) break;
      plan.split[first + k].atoms.push_back(family[at]);
      left /= sizes[k];
    }
  }
}

// The tokens inside a chunk where there are chunks: the outer leaf is as short as the axis that splits it.
std::string RecipeBook::inner_tokens() const {
  std::string outer = sequence_atom(tokens_->model, tokens_->atoms);
  if (tokens_ == &split_ || outer.empty()) return outer;
  std::string inner = outer.substr(0, outer.rfind('.')) + ".1";
  return size_of(tokens_->atoms, inner) ? inner : outer;
}

// An op takes the first atom it has free, so the tokens come last: norms, dropout and residuals get them.
void RecipeBook::add_sequence(Plan& plan) const {
  std::string tokens = inner_tokens();
  if (tokens.empty()) input_error("recipe: sequence parallel needs a batch input of tokens; try tp");
  for (SplitRule& rule : plan.split)
    if (rule.axis.starts_with("tp")) rule.atoms.push_back(tokens);
}

// Chunks of keys take the tokens apart: what ranks split is the outer leaf, one chunk each.
void RecipeBook::find_tokens(const RecipeSpec& spec) {
  tokens_ = &split_;
  if (!spec.merge || spec.cp == 1) return;
  auto [known, fresh] = chunked_.try_emplace(spec.cp);
  if (fresh) {
    known->second.model = with_key_chunks(split_.model, spec.cp);
    known->second.atoms = find_atoms(known->second.model);
  }
  tokens_ = &known->second;
}

// Every rank has its part of the tokens all the way. Queries meet keys and values that are gathered, as in
// Llama 3, and the gradients of those are summed back into parts; or, merged, every rank's keys meet all
// queries.
void RecipeBook::add_context(const RecipeSpec& spec, Plan& plan) const {
  std::vector<std::string> tokens = sequence_atoms(tokens_->model, tokens_->atoms);
  if (tokens.empty()) input_error("recipe: context parallel needs a batch input of tokens; try dp or tp");
  plan.mesh.push_back({"cp", spec.cp});
  plan.split.push_back({.axis = "cp", .atoms = std::move(tokens)});
  if (spec.merge)
    add_chunks(spec.cp, plan);
  else
    plan.masks = true;
}

void RecipeBook::add_chunks(int64_t parts, Plan& plan) const {
  plan.key_chunks = parts;
  for (const ChunkSplit& split : chunk_splits()) {
    bool any = std::any_of(tokens_->model.ops.begin(), tokens_->model.ops.end(),
                           [&](const Op& op) { return matches(split.ops, op.name); });
    if (any) plan.split.push_back({.ops = split.ops, .axis = "cp", .as = split.as});
  }
}

// SuperScaler's co-shard: what tensor parallel gives to several devices, one device does one after another;
// in backward each piece is made again.
void RecipeBook::add_pieces(int64_t parts, Plan& plan) {
  const Stated& stated = unpacked_ ? *unpacked_ : split_;
  plan.unpack = unpacked_.has_value();
  std::vector<std::string> atoms;
  for (const std::vector<std::string>& family : families(parts)) {
    if (size_of(stated.atoms, family.front()) < parts)
      input_error("recipe: {} has length {}, which cannot be split into {} pieces; try --pieces {}",
                  family.front(), size_of(stated.atoms, family.front()), parts,
                  size_of(stated.atoms, family.front()));
    atoms.push_back(family.front());
  }
  if (atoms.empty()) input_error("recipe: this model has nothing to run in {} pieces", parts);
  for (const RecomputeRule& block : module_rules(model_))
    plan.loops.push_back({.name = "piece", .size = parts, .ops = block.ops, .atoms = atoms});
}

// The ops from the last product that leads to the loss on, with their gradients.
std::vector<std::string> head_and_loss(const Model& model) {
  std::set<TensorId> wanted{model.loss};
  std::vector<std::string> names;
  bool open = true;
  for (size_t i = model.ops.size(); i-- > 0 && open;) {
    const Op& op = model.ops[i];
    bool leads = std::any_of(op.outputs.begin(), op.outputs.end(),
                             [&](TensorId id) { return id && wanted.contains(id); });
    if (op.backward || !leads) continue;
    names.push_back(op.name);
    names.push_back(op.name + ".grad.*");
    for (TensorId id : inputs_of(op)) wanted.insert(id);
    open = !is_product(op);
  }
  std::reverse(names.begin(), names.end());
  return names;
}

void RecipeBook::add_loss_pieces(int64_t parts, Plan& plan) const {
  const Atoms& atoms = tokens_->atoms;
  std::string tokens = inner_tokens();
  if (tokens.empty() || size_of(atoms, tokens) < parts) tokens = batch_atom(tokens_->model, atoms);
  if (tokens.empty() || size_of(atoms, tokens) < parts)
    input_error("recipe: this model has no {} tokens or samples to split its loss into", parts);
  plan.loops.push_back({.name = "tokens",
                        .size = parts,
                        .ops = head_and_loss(split_.model),
                        .atoms = {tokens},
                        .through = true});
}

std::vector<LoopRule> RecipeBook::slices(const Plan& plan, const std::vector<std::string>& params,
                                         int64_t count) const {
  const Stated& stated = plan.unpack ? *unpacked_ : split_;
  std::vector<LoopRule> rules;
  for (size_t t = 0; t < stated.model.tensors.size(); ++t) {
    const Tensor& tensor = stated.model.tensors[t];
    bool named = std::any_of(params.begin(), params.end(),
                             [&](const std::string& pattern) { return matches(pattern, tensor.name); });
    if (!named || !tensor.trainable || tensor.shape.size() < 2) continue;
    auto rule = slice_rule(stated.model, stated.atoms, TensorId{static_cast<int32_t>(t)}, count);
    if (rule) rules.push_back(*std::move(rule));
  }
  return rules;
}

// Loops of other kinds come first: an op is in one loop.
void RecipeBook::add_slices(const RecipeSpec& spec, Plan& plan) const {
  std::vector<std::string> params = spec.zdp;
  if (spec.zero == 3) params = {"*"};
  if (spec.dp == 1 || params.empty())
    input_error(
        "recipe: slices are for operators of sharded parameters; give osdp or zero3, and --dp above 1");
  std::vector<LoopRule> rules = slices(plan, params, spec.slices);
  if (rules.empty())
    input_error("recipe: no operator of {} can run in {} slices; try fewer", fmt::join(params, ", "),
                spec.slices);
  plan.loops.insert(plan.loops.end(), rules.begin(), rules.end());
}

int64_t RecipeBook::experts() const {
  int64_t fewest = 0;
  for (const std::string& atom : expert_atoms(split_.model, split_.atoms))
    if (int64_t size = size_of(split_.atoms, atom); fewest == 0 || size < fewest) fewest = size;
  return fewest;
}

Plan RecipeBook::plan(const RecipeSpec& spec) {
  Plan plan{.model = fingerprint_, .microbatches = spec.microbatches, .schedule = spec.schedule};
  plan.optimizer = spec.optimizer;
  plan.summary = summary(spec);
  std::string batch = batch_atom(split_.model, split_.atoms);
  if (batch.empty() && (spec.dp > 1 || spec.microbatches > 1))
    input_error("recipe: the batch of this model has one sample, which dp and micro-batches cannot split");
  plan.batch = samples_of(model_);
  plan.seq = sequence_of(model_);
  if (spec.microbatches > 1) plan.microbatch_atom = batch;
  if (spec.dp > 1) {
    if (spec.replicas < 1 || spec.dp % spec.replicas)
      input_error("recipe: {} replicas do not divide dp={}", spec.replicas, spec.dp);
    if (spec.replicas > 1) {
      plan.mesh.push_back({"replica", spec.replicas});
      plan.split.push_back({.axis = "replica", .atoms = {batch}});
    }
    plan.mesh.push_back({"dp", spec.dp / spec.replicas});
    std::vector<std::string> atoms;
    if (spec.experts) atoms = expert_atoms(split_.model, split_.atoms);
    if (spec.experts && atoms.empty()) input_error("recipe: this model has no experts to split; try dp");
    atoms.push_back(batch);
    plan.split.push_back({.axis = "dp", .atoms = std::move(atoms)});
    constexpr const char* kCut[] = {"", "state", "gradient", "parameter"};
    for (const std::string& params : spec.zdp) plan.store.push_back({.params = params, .axis = "dp"});
    if (spec.zero) plan.store.push_back({.axis = "dp", .what = kCut[spec.zero]});
  }
  find_tokens(spec);
  if (spec.cp > 1) add_context(spec, plan);
  if (spec.tp > 1) add_tensor_axes(spec.tp, plan);
  if (spec.tp > 1 && spec.sequence) add_sequence(plan);
  if (spec.pieces > 1) add_pieces(spec.pieces, plan);
  if (spec.loss_pieces > 1) add_loss_pieces(spec.loss_pieces, plan);
  if (spec.slices > 1) add_slices(spec, plan);
  plan.overlap = spec.overlap;
  if (spec.recompute || spec.pieces > 1) plan.recompute = module_rules(model_, spec.keep);
  plan.order = spec.order;
  plan.stages = stages_of(model_, spec);
  if (static_cast<int64_t>(plan.stages[0].devices.size()) > plan.mesh_size()) {
    const Stated& stated = plan.unpack ? *unpacked_ : split_;
    plan.mesh.insert(plan.mesh.begin(), {.name = "pp", .size = spec.pp, .across = true});
    plan.split.push_back({.axis = "pp", .atoms = vocabulary_atoms(stated.model, stated.atoms)});
  }
  plan.dtype = parameter_dtype(model_);
  return plan;
}

Plan recipe(const Model& model, const RecipeSpec& spec) { return RecipeBook(model).plan(spec); }

}  // namespace partita::plan
