#include "search/recipes.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/names.h"
#include "plan/recipes/aliases.h"

namespace partita::search {
namespace {

/// Stages of recipes are cut between operators, so that there may be more of them than repeated modules.
constexpr int kMostStages = 64;

constexpr const char* kOtherWays[] = {"dp",        "zero1",       "zero2",   "zero3",    "hsdp",
                                      "ep",        "tp",          "sp",      "pipeline", "microbatches",
                                      "recompute", "loss-pieces", "coshard", "slices"};

/// Pieces that are tried where memory is short.
struct PiecesRow {
  bool Freedom::*open;
  int64_t RecipeSpec::*pieces;
  int64_t count;
  bool last;
};
constexpr PiecesRow kPiecesRows[] = {{&Freedom::loss_pieces, &RecipeSpec::loss_pieces, 4, false},
                                     {&Freedom::coshard, &RecipeSpec::pieces, 2, true},
                                     {&Freedom::coshard, &RecipeSpec::pieces, 4, true}};

std::vector<int64_t> divisors(int64_t number) {
  std::vector<int64_t> low, high;
  for (int64_t d = 1; d * d <= number; ++d)
    if (number % d == 0) {
      low.push_back(d);
      if (d * d != number) high.push_back(number / d);
    }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

bool has(const std::vector<std::string>& list, std::string_view way) {
  return std::find(list.begin(), list.end(), way) != list.end();
}

bool open_to(const SearchRequest& request, std::string_view way) {
  return !has(request.forbid, way) && (request.allow.empty() || has(request.allow, way));
}

// A schedule is allowed with "pipeline" unless schedules are named.
bool schedule_open(const SearchRequest& request, std::string_view name) {
  if (has(request.forbid, name)) return false;
  std::vector<const ScheduleRow*> rows = planned_schedules();
  bool named = std::any_of(rows.begin(), rows.end(),
                           [&](const ScheduleRow* row) { return has(request.allow, row->name); });
  return named ? has(request.allow, name) : open_to(request, "pipeline");
}

void check_ways(const std::vector<std::string>& ways, const char* flag) {
  std::vector<std::string> known = known_ways();
  for (const std::string& way : ways)
    if (!has(known, way))
      input_error("{}: unknown \"{}\"{}; known are {}", flag, way, did_you_mean(way, with_aliases(known)),
                  fmt::join(known, ", "));
}

/// Micro-batch counts for `samples` on each rank. Of many divisors those that leave few samples at once,
/// since more of them only fill memory, and all at once.
std::vector<int64_t> microbatch_counts(int64_t samples, int effort) {
  std::vector<int64_t> counts, all = divisors(samples);
  int64_t most = all.size() <= 4 ? samples : int64_t{1} << effort;
  for (int64_t at_once : all)
    if (at_once <= most || at_once == samples) counts.push_back(samples / at_once);
  return counts;
}

/// How many of the data parallel ranks lie in one node; 1 where tensor parallel ranks fill it unevenly.
int64_t ranks_in_node(const SearchRequest& request, int64_t dp, int64_t tp) {
  int64_t in_node = request.prices.cluster().devices_per_node;
  return in_node % tp == 0 ? std::gcd(in_node / tp, dp) : 1;
}

class Enumeration {
 public:
  Enumeration(const SearchRequest& request, const CostBook& book, bool written)
      : request_(request),
        batch_(book.batch()),
        experts_(book.experts()),
        in_line_(book.shrunk().units.in_line),
        large_(book.large()),
        written_(written),
        units_(written    ? kMostStages
               : in_line_ ? static_cast<int>(book.shrunk().stands_for.size())
                          : 1) {}

  std::vector<RecipeSpec> run() {
    int64_t ranks = request_.ranks();
    for (int64_t pp : divisors(ranks)) {
      if (pp > units_ || (pp > 1 && !pipelines()) || pinned(request_.pin_pp, pp, request_.pinned.pp))
        continue;
      for (int64_t tp : divisors(ranks / pp)) {
        if (tp > most_tensor_parallel() || (tp > 1 && !open_to(request_, "tp") && !open_to(request_, "sp")))
          continue;
        if (pinned(request_.pin_tp, tp, request_.pinned.tp)) continue;
        int64_t dp = ranks / pp / tp;
        if (batch_ % dp) continue;
        if (pinned(request_.pin_dp, dp, request_.pinned.dp)) continue;
        for (const Sharing& sharing : sharings(dp, tp))
          for (int64_t microbatches : microbatch_counts(batch_ / dp, request_.effort))
            add({.dp = dp,
                 .tp = tp,
                 .pp = pp,
                 .replicas = sharing.replicas,
                 .experts = sharing.experts,
                 .microbatches = microbatches,
                 .optimizer = request_.optimizer});
      }
    }
    return std::move(out_);
  }

 private:
  // Across nodes tensor parallelism only waits: one doubling beyond a node shows it.
  int64_t most_tensor_parallel() const {
    const Cluster& cluster = request_.prices.cluster();
    return cluster.nodes > 1 ? 2 * cluster.devices_per_node : request_.ranks();
  }

  /// Groups of data parallel ranks that share what is cut, and experts.
  struct Sharing {
    int64_t replicas = 1;
    bool experts = false;
  };

  // Experts are shared by as many ranks as there are experts, or by those of a node.
  std::vector<Sharing> sharings(int64_t dp, int64_t tp) const {
    if (dp == 1) return {{}};
    std::vector<Sharing> out;
    if (data_parallel()) out.emplace_back();
    int64_t replicas = replicas_over_nodes(request_, {.dp = dp, .tp = tp});
    if (written_ && data_parallel() && replicas > 1) out.push_back({replicas});
    if (experts_ == 0 || !open_to(request_, "ep")) return out;
    std::set<int64_t> groups = {std::gcd(dp, experts_), std::gcd(ranks_in_node(request_, dp, tp), experts_)};
    for (int64_t group : groups)
      if (group > 1) out.push_back({dp / group, true});
    return out;
  }

  static bool pinned(bool pin, int64_t value, int64_t to) { return pin && value != to; }

  bool data_parallel() const {
    for (const char* way : {"dp", "zero1", "zero2", "zero3"})
      if (open_to(request_, way)) return true;
    return false;
  }
  bool pipelines() const {
    return std::any_of(schedules_.begin(), schedules_.end(),
                       [&](const ScheduleRow* row) { return schedule_open(request_, row->name); });
  }

  void add(const RecipeSpec& spec) {
    if (spec.microbatches > 1 && !open_to(request_, "microbatches")) return;
    if (pinned(request_.pin_microbatches, spec.microbatches, request_.pinned.microbatches)) return;
    for (bool sequence : {false, true}) {
      if (sequence && (spec.tp == 1 || !open_to(request_, "sp"))) continue;
      if (!sequence && spec.tp > 1 && !open_to(request_, "tp")) continue;
      RecipeSpec split = spec;
      split.sequence = sequence;
      add_schedules(split);
    }
  }

  // Costs by unit know nothing of a stage on many devices or one that is passed several times: these only as
  // their recipes are written. Several passes through the same weights come back to modules that they left.
  bool applies(const ScheduleRow& row) const {
    return !row.has_own_recipe() || (written_ && in_line_ == (row.passes == 1));
  }

  // What others do better is not worth its estimate; more micro-batches fill a pipeline.
  bool idle(const ScheduleRow& row, const RecipeSpec& spec) const {
    bool could_be_full = batch_ / spec.dp >= spec.pp && !request_.pin_microbatches;
    bool asked_for = has(request_.allow, row.name) || request_.pin_schedule;
    return (spec.microbatches < spec.pp && could_be_full) || (row.outdone && !asked_for);
  }

  void add_schedules(RecipeSpec spec) {
    if (spec.pp == 1) {
      out_.push_back(spec);
      return;
    }
    for (const ScheduleRow* planned : schedules_) {
      const ScheduleRow& row = *planned;
      if (!schedule_open(request_, row.name) || !applies(row) || (large_ && idle(row, spec))) continue;
      if (request_.pin_schedule && request_.pinned.schedule != row.name) continue;
      if (spec.microbatches < (row.least_microbatches ? row.least_microbatches : spec.pp)) continue;
      spec.schedule = row.name;
      for (int64_t chunks : chunks_of(row, spec)) {
        spec.chunks = chunks;
        out_.push_back(spec);
      }
    }
  }

  /// 0: a schedule that has one chunk a device.
  std::vector<int64_t> chunks_of(const ScheduleRow& row, const RecipeSpec& spec) const {
    if (row.chunks.front() == 0) return {0};
    std::vector<int64_t> out;
    for (int chunks : row.chunks)
      if (chunks > 0 && spec.microbatches % spec.pp == 0 && chunks * spec.pp <= units_) out.push_back(chunks);
    return out;
  }

  const SearchRequest& request_;
  int64_t batch_, experts_;
  bool in_line_, large_, written_;
  int units_;
  std::vector<const ScheduleRow*> schedules_ = planned_schedules();
  std::vector<RecipeSpec> out_;
};

}  // namespace

std::vector<std::string> known_ways() {
  std::vector<std::string> ways(std::begin(kOtherWays), std::end(kOtherWays));
  for (const ScheduleRow* row : planned_schedules()) ways.emplace_back(row->name);
  return ways;
}

std::vector<RecipeSpec> all_recipes(const SearchRequest& request, const CostBook& book, bool written) {
  check_ways(request.allow, "--allow");
  check_ways(request.forbid, "--forbid");
  return Enumeration(request, book, written).run();
}

int64_t replicas_over_nodes(const SearchRequest& request, const RecipeSpec& spec) {
  int64_t inside = ranks_in_node(request, spec.dp, spec.tp);
  bool several = inside > 1 && !spec.experts && open_to(request, "hsdp");
  return several ? spec.dp / inside : 1;
}

std::vector<RecipeSpec> in_pieces(const RecipeSpec& spec, const Freedom& freedom, bool last) {
  std::vector<RecipeSpec> out = {spec};
  for (const PiecesRow& row : kPiecesRows) {
    if (!(freedom.*row.open) || (row.last && !last)) continue;
    for (size_t i = 0, count = out.size(); i < count; ++i) {
      if (out[i].*row.pieces > 1) continue;
      out.push_back(out[i]);
      out.back().*row.pieces = row.count;
    }
  }
  out.erase(out.begin());
  return out;
}

Freedom freedom_of(const SearchRequest& request) {
  Freedom freedom{.memory = request.memory,
                  .recompute = open_to(request, "recompute"),
                  .loss_pieces = open_to(request, "loss-pieces"),
                  .coshard = open_to(request, "coshard") && open_to(request, "recompute"),
                  .slices = open_to(request, "slices")};
  for (const StoringRow& row : kStoringRows)
    freedom.storings[static_cast<int>(row.storing)] = open_to(request, row.name);
  return freedom;
}

}  // namespace partita::search
