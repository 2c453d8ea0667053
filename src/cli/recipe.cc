#include "plan/recipes/recipe.h"

#include <memory>
#include <optional>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/names.h"
#include "cli/checks.h"
#include "cli/headline.h"
#include "cli/inputs.h"
#include "cli/model_file.h"
#include "cli/prediction.h"
#include "cli/pricing.h"
#include "cli/training.h"
#include "cli/verbs.h"
#include "lower/lower.h"
#include "plan/form.h"
#include "plan/recipes/aliases.h"
#include "schedule/csv.h"

namespace partita::cli {
namespace {

/// A recipe by name gives its own size the ranks that the other sizes leave.
struct NameRow {
  std::string_view name;
  int64_t RecipeSpec::*takes;
  int zero = 0;
  bool sequence = false;
  int64_t pieces = 1, loss_pieces = 1;
  bool experts = false;
  std::string_view schedule = {};
};
constexpr NameRow kNames[] = {{"dp", &RecipeSpec::dp},
                              {"zero1", &RecipeSpec::dp, 1},
                              {"zero2", &RecipeSpec::dp, 2},
                              {"zero3", &RecipeSpec::dp, 3},
                              {"tp", &RecipeSpec::tp},
                              {"sp", &RecipeSpec::tp, 0, true},
                              {"cp", &RecipeSpec::cp},
                              {"pipeline", &RecipeSpec::pp},
                              {"coshard", &RecipeSpec::dp, 0, false, 2},
                              {"loss-pieces", &RecipeSpec::dp, 0, false, 1, 4},
                              {"osdp", &RecipeSpec::dp},
                              {"ep", &RecipeSpec::dp, 0, false, 1, 1, true}};

std::vector<NameRow> names() {
  std::vector<NameRow> rows(std::begin(kNames), std::end(kNames));
  for (const ScheduleRow& row : schedule_rows())
    if (row.has_own_recipe())
      rows.push_back({.name = row.name, .takes = &RecipeSpec::pp, .schedule = row.name});
  return rows;
}

/// Zero: not given.
struct Options {
  std::string name;
  ModelInput model;
  ClusterInput cluster;
  TrainingInput training;
  int64_t ranks = 0, microbatches = 0;
  RecipeSpec sizes{.dp = 0, .tp = 0, .pp = 0, .cp = 0, .replicas = 0};
  std::string output, order, calibration, merge = "gather", keep = "nothing";
  int64_t waves = 0;
};

NameRow find_name(const std::string& name) {
  if (is_built(name) || name.ends_with(".model.json"))
    input_error("recipe '{}': this is a model; NAME comes first, then MODEL", name);
  std::vector<std::string> known;
  for (const NameRow& row : names()) {
    if (row.name == without_alias(name)) return row;
    known.emplace_back(row.name);
  }
  input_error(
      "recipe '{}' is not known; there are {}, also {}, and products of them with --dp, --cp, --tp, --pp{}",
      name, fmt::join(known, ", "), show_aliases(), did_you_mean(name, with_aliases(known)));
}

// One replica for every node that the data-parallel ranks of a stage lie in.
int64_t replicas_of(const Options& options, const RecipeSpec& spec, const std::optional<Cluster>& cluster) {
  if (spec.replicas || options.name != "hsdp") return std::max<int64_t>(spec.replicas, 1);
  if (!cluster)
    input_error("recipe hsdp: how many replicas? give --replicas, or --cluster: then every node holds one");
  int64_t nodes = spec.dp * spec.cp * spec.tp / cluster->devices_per_node;
  if (nodes < 2 || spec.dp % nodes)
    input_error("recipe hsdp: dp {} of {} has no replica for each node; give --replicas, or take fsdp",
                spec.dp, cluster->name);
  return nodes;
}

int64_t ranks_of(const Options& options, const std::optional<Cluster>& cluster) {
  if (!options.ranks && !cluster)
    input_error("recipe {}: how many ranks? give --ranks or --cluster", options.name);
  int64_t ranks = options.ranks ? options.ranks : num_ranks(*cluster);
  if (cluster && num_ranks(*cluster) < ranks)
    input_error("--ranks {}: {} has {} devices; leave --ranks out, or take a larger cluster", ranks,
                cluster->name, num_ranks(*cluster));
  return ranks;
}

/// The rows of a schedule's file, which must be sound by itself.
std::vector<std::string> rows_of(const std::string& path) {
  std::vector<std::string> rows;
  std::istringstream text(read_file(path));
  parse_csv(text.str(), path);
  for (std::string row; std::getline(text, row);)
    if (!row.empty()) rows.push_back(row);
  return rows;
}

RecipeSpec spec_of(const Options& options, const std::optional<Cluster>& cluster) {
  NameRow row = find_name(options.name);
  int64_t ranks = ranks_of(options, cluster);
  RecipeSpec spec = options.sizes;
  bool open = spec.*row.takes == 0;
  for (int64_t RecipeSpec::*size : {&RecipeSpec::dp, &RecipeSpec::cp, &RecipeSpec::tp, &RecipeSpec::pp}) {
    if (spec.*size == 0) spec.*size = 1;
  }
  int64_t taken = spec.dp * spec.cp * spec.tp * spec.pp;
  if (open && ranks % taken == 0) spec.*row.takes = ranks / taken;
  if (spec.dp * spec.cp * spec.tp * spec.pp != ranks)
    input_error("recipe {}: dp {} x cp {} x tp {} x pp {} are not {} ranks; change --ranks or a size",
                options.name, spec.dp, spec.cp, spec.tp, spec.pp, ranks);
  spec.replicas = replicas_of(options, spec, cluster);
  spec.zero = std::max(spec.zero, row.zero);
  if (options.name == "osdp" && spec.zdp.empty()) spec.zdp = {"*"};
  spec.sequence = row.sequence;
  spec.merge = options.merge == "lse";
  if (spec.merge && spec.cp == 1)
    input_error("recipe {}: --merge lse is for keys that are sharded over cp; give --cp", options.name);
  spec.keep = parse_keep(options.keep, "--keep");
  if (spec.keep != Keep::kNothing && !spec.recompute)
    input_error("recipe {}: --keep says what is not recomputed; give --recompute too", options.name);
  spec.experts = row.experts;
  if (!row.schedule.empty()) spec.schedule = row.schedule;
  spec.pieces = std::max(spec.pieces, row.pieces);
  if (spec.loss_pieces == 1) spec.loss_pieces = row.loss_pieces;
  if (options.waves) spec.chunks = 2 * options.waves;
  if (!options.order.empty()) spec.schedule = "order", spec.order = rows_of(options.order);
  // A pipeline with one micro-batch would leave all stages but one idle.
  spec.microbatches = options.microbatches ? options.microbatches : spec.pp;
  return spec;
}

/// A plan that is written is one that `lower` takes: not every product of recipes suits every model.
void check_plan(const Plan& plan, const Model& model, const std::string& name) {
  try {
    ordered(prepare(model, form_of(plan)), plan);
  } catch (const InputError& error) {
    constexpr std::string_view kPlan = "plan: ";
    std::string_view why = error.what();
    if (why.starts_with(kPlan)) why.remove_prefix(kPlan.size());
    input_error("recipe {}: {}", name, why);
  }
}

/// With a cluster the plan is simulated there; without one nothing is said about what it takes.
void run(Options& options, const Command& command) {
  std::optional<Cluster> cluster;
  if (!options.cluster.cluster.empty()) cluster = load(options.cluster);
  if (!cluster && (!options.cluster.memory.empty() || !options.cluster.reserve.empty()))
    input_error("recipe {}: --memory and --reserve are for a cluster; give --cluster too", options.name);
  RecipeSpec spec = spec_of(options, cluster);
  spec.optimizer = load(options.training, options.model);
  Model model = load(options.model);
  Plan plan = recipe(model, spec);
  check_plan(plan, model, options.name);
  Json json = {{"summary", plan.summary}, {"dtype", plan.dtype}};
  std::string text =
      fmt::format("{}: {}, {}\n", options.output, plan.summary, show_dtype(plan.dtype, plan.optimizer));
  if (cluster) {
    MemoryLimit limit = limit_of(options.cluster, *cluster);
    plan.cluster = cluster->name;
    plan.memory = limit.limit;
    Prices prices = prices_of(*cluster, options.calibration);
    PlanQuestion question{model, plan, prices};
    Prediction found = predict(question, limit);
    json.update(to_json(question, found));
    text = options.output + ": " + to_text(question, found);
  }
  std::string written = to_json(plan);
  json["plan"] = Json::parse(written);
  if (!options.output.empty()) write_file(options.output, written);
  command.answer(json, options.output.empty() ? written : text);
}

}  // namespace

void add_recipe(CLI::App& app, Command& command) {
  auto options = std::make_shared<Options>();
  RecipeSpec& sizes = options->sizes;
  auto positive = whole_number(1, 1 << 20);
  app.add_option("NAME", options->name,
                 fmt::format("dp, zero1, zero2, zero3, osdp, tp, sp (Megatron's tp with "
                             "--sequence-parallel), cp, ep, pipeline, interlaced, 3f1b, coshard or "
                             "loss-pieces, also {}; it gets the ranks the sizes below leave",
                             show_aliases()))
      ->required();
  add_model_input(app, options->model, command);
  app.add_option("--ranks", options->ranks, "ranks in all; by default all of --cluster")->check(positive);
  add_cluster_input(app, options->cluster, "then the plan is simulated there, and it says whether it fits");
  add_calibration_flag(app, options->calibration);
  app.add_option("--dp", sizes.dp, "ranks of a data-parallel group: the batch is split over them")
      ->check(positive);
  app.add_option("--tp", sizes.tp, "ranks of a tensor-parallel group: heads and hidden are split over them")
      ->check(positive);
  app.add_option("--cp", sizes.cp,
                 "ranks of a context-parallel group: tokens are split over them, also inside attention")
      ->check(positive);
  app.add_option("--merge", options->merge,
                 "cp: gather, every rank's queries meet all keys; lse, every rank's keys meet all queries, "
                 "and what they give is merged by its log-sum-exp")
      ->check(one_of({"gather", "lse"}))
      ->capture_default_str();
  app.add_option("--pp", sizes.pp, "stages")->check(positive);
  app.add_option("--zero", sizes.zero,
                 "sharded over dp: 1 optimizer states, 2 gradients too, 3 parameters too")
      ->check(whole_number(0, 3));
  app.add_option("--zdp", sizes.zdp,
                 "osdp: parameters (names, * for any text) that are sharded over dp; the others are whole on "
                 "every rank. All without it");
  app.add_option("--slices", sizes.slices,
                 "operators of sharded parameters run in this many slices: one is gathered at a time")
      ->check(positive);
  app.add_option("--replicas", sizes.replicas,
                 "copies of what --zero shards, each over dp / replicas ranks; 1 by default, for hsdp as "
                 "many as nodes")
      ->check(positive);
  app.add_option("--microbatches", options->microbatches,
                 "micro-batches of the batch, one after another; as many as stages without it")
      ->check(positive);
  app.add_option(
         "--pieces", sizes.pieces,
         "co-shard: repeated modules run in this many pieces over heads and hidden, and are recomputed")
      ->check(positive);
  app.add_option("--loss-pieces", sizes.loss_pieces,
                 "head and loss, forward and backward, in this many pieces of the tokens")
      ->check(positive);
  app.add_flag("--recompute", sizes.recompute,
               "recompute repeated modules in backward instead of saving their activations");
  app.add_option("--keep", options->keep,
                 "with --recompute: activations saved all the same: attention, or products with weights too");
  app.add_flag("--overlap", sizes.overlap,
               "start sums of gradients where they are made and gather parameters ahead, beside computing");
  app.add_option("--schedule", sizes.schedule,
                 "order of a pipeline: 1f1b, gpipe, interleaved, wave, zb-h1, ... (`partita lab schedule`)")
      ->capture_default_str();
  app.add_option("--chunks", sizes.chunks, "stages a device, for interleaved and its like")->check(positive);
  app.add_option("--waves", options->waves, "waves of the schedule wave: twice as many stages a device")
      ->check(positive);
  app.add_option("--order", options->order,
                 "order of a pipeline from a file in PyTorch's form (2F0, one row a rank)");
  add_training_input(app, options->training);
  app.add_option("-o,--output", options->output, "write the plan here instead of printing it");
  app.footer(
      "Example: partita recipe pipeline gpt2.model.json --ranks 4 --tp 2 --microbatches 4 -o plan.json\n"
      "Example: partita recipe fsdp gpt2-small --cluster 8xA100-80GB --precision bf16 -o plan.json");
  app.callback([options, &command] { run(*options, command); });
}

}  // namespace partita::cli
