#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "plan/recipes/module_rules.h"

namespace partita::plan {

/// A product of the classic ways to parallelise, by their sizes.
struct RecipeSpec {
  int64_t dp = 1, tp = 1, pp = 1;
  int64_t cp = 1;                // context parallel: tokens are split, also inside attention
  bool merge = false;            // cp: keys stay in pieces, their results are merged by log-sum-exp
  int64_t pieces = 1;            // co-shard: repeated modules run in this many pieces over heads and hidden
  int64_t loss_pieces = 1;       // head and loss, forward and backward, in this many pieces of the tokens
  int zero = 0;                  // in pieces over dp: 1 optimizer states, 2 gradients too, 3 parameters too
  std::vector<std::string> zdp;  // parameters kept in pieces over dp with their gradients and states (OSDP)
  int64_t slices = 1;            // of the operators of those: gathered, used and dropped one at a time
  int64_t replicas = 1;          // of what zero keeps in pieces, each over dp / replicas ranks (HSDP)
  bool experts = false;          // over dp: ops of experts split them instead of the batch (expert parallel)
  bool sequence = false;         // what tp leaves whole is split along the tokens (sequence parallel)
  bool recompute = false;        // repeated modules are run again in backward, each from its inputs
  Keep keep = Keep::kNothing;    // and from what of them is kept
  bool overlap = false;          // sums and gathers over dp run beside computing
  int64_t microbatches = 1;
  std::string schedule = std::string(kPlainSchedule);
  int64_t chunks = 0;              // stages a device, for schedules that take any; 0: as it likes
  std::vector<std::string> order;  // rows of a schedule of one's own instead of a named one
  OptimizerSpec optimizer;
};

/// What `overlap` adds to the summary of a plan.
inline constexpr const char* kOverlapSummary = ", overlap";

/// "dp2 x tp2", "pp4, 1f1b, 8 micro-batches", "one device".
std::string summary(const RecipeSpec& spec);

/// Makes plans of recipes for one model; what they share (atoms, what tensor parallel may split) is found
/// once. Nothing depends on module names: data parallel splits the batch atom, tensor parallel the atoms that
/// `tensor_atoms` finds, stages are cut by balanced flops where few bytes cross.
class RecipeBook {
 public:
  /// `model` must outlive the book.
  explicit RecipeBook(const Model& model);

  /// InputError where it does not apply: no batch dimension, nothing to split, fewer ops than stages.
  Plan plan(const RecipeSpec& spec);
  /// Loops in which operators of the parameters matching one of `params` run in slices (slices.h), those that
  /// can, named as in the form that `plan` has the model in.
  std::vector<LoopRule> slices(const Plan& plan, const std::vector<std::string>& params, int64_t count) const;
  /// How many experts the model has, of the layer that has fewest; 0: none.
  int64_t experts() const;

 private:
  struct Stated {
    Model model;
    Atoms atoms;
  };
  const std::vector<std::vector<std::string>>& families(int64_t parts);
  void add_tensor_axes(int64_t parts, Plan& plan);
  void find_tokens(const RecipeSpec& spec);
  std::string inner_tokens() const;
  void add_sequence(Plan& plan) const;
  void add_context(const RecipeSpec& spec, Plan& plan) const;
  void add_chunks(int64_t parts, Plan& plan) const;
  void add_pieces(int64_t parts, Plan& plan);
  void add_slices(const RecipeSpec& spec, Plan& plan) const;
  void add_loss_pieces(int64_t parts, Plan& plan) const;

  const Model& model_;
  std::string fingerprint_;
  Stated split_;                    // decomposed
  std::optional<Stated> unpacked_;  // where something is packed: what tensor parallel splits
  std::map<int64_t, std::vector<std::vector<std::string>>> families_;  // by number of parts
  std::map<int64_t, Stated> chunked_;  // by number of chunks that attention has its keys in
  const Stated* tokens_ = nullptr;     // the form whose tokens the plan at hand splits
};

/// The plan of one recipe.
Plan recipe(const Model& model, const RecipeSpec& spec);

/// The atom of the batch dimension: dimension 0 of the first batch input.
std::string batch_atom(const Model& model, const Atoms& atoms);

/// Samples of the batch. One sample is no atom, but a plan says it too, so that its step can be built again.
int64_t samples_of(const Model& model);

/// Tokens of a sample: dimension 1 of the first batch input of whole numbers; 0 where there is none.
int64_t sequence_of(const Model& model);

/// The atom of the tokens: dimension 1 of the first batch input of whole numbers; "" where there is none.
std::string sequence_atom(const Model& model, const Atoms& atoms);
/// Those of all such batch inputs: an encoder and a decoder have one each.
std::vector<std::string> sequence_atoms(const Model& model, const Atoms& atoms);

/// The atoms of experts: dimension 0 of parameters that batched products take one by one.
std::vector<std::string> expert_atoms(const Model& model, const Atoms& atoms);

/// Atoms that can be split over `parts` ranks at the price of sums alone: every value that has them is used
/// in pieces, nothing is gathered. Heads and hidden of a Transformer come out. Families of atoms that share a
/// parameter (key heads and their group of query heads) stand together, the cheapest first.
std::vector<std::vector<std::string>> tensor_atoms(const Model& model, const Atoms& atoms, int64_t parts);

/// Contiguous blocks (repeated modules, by the first number in their path) to stages, least work on the
/// busiest. Stage s runs on `devices_each` devices, those of site `site_of_stage[s]`; where that has several
/// times as many entries as there are stages, the later ones are its copies. A model that goes
/// several times through the same weights (`passes`) has the stages of each pass after another.
std::vector<Stage> pipeline_stages(const Model& model, const std::vector<int>& site_of_stage,
                                   int64_t devices_each, int passes = 1, int streams = 1);

}  // namespace partita::plan
