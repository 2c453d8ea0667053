#include "search/least.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "estimate/cost_book.h"
#include "estimate/estimate.h"
#include "search/recipes.h"
#include "search/search.h"

namespace partita::search {
namespace {

constexpr int kMostInNode = 8;
constexpr int kMostTimes = 64;     // as many devices as there are
constexpr int kConfirmations = 3;  // whole searches for one answer
constexpr int kSmallest = 64;      // part of a batch or sequence
constexpr int kPercent = 3;        // by which costs of units may be off

Bytes with_percent(Bytes bytes, int percent) { return bytes + bytes / 100 * percent; }

/// As people read and type it, rounded up: 338.1 GiB.
Bytes printable(Bytes bytes) {
  for (Bytes more = bytes;; more += bytes / 4096 + 1)
    if (Bytes shown = parse_bytes(show_bytes(more), "least"); shown >= bytes) return shown;
}

/// The least that costs of units know of, and for how many samples at once.
struct Smallest {
  Bytes peak = std::numeric_limits<Bytes>::max();
  int64_t samples = 1;
};

/// Memory is least with most micro-batches, or with one: then no gradients are summed up.
std::vector<RecipeSpec> frugal_recipes(const SearchRequest& request, const Freedom& freedom,
                                       const CostBook& book) {
  SearchRequest narrow = request;
  narrow.effort = 1;
  std::vector<RecipeSpec> all = all_recipes(narrow, book), out;
  std::map<std::pair<int64_t, int64_t>, int64_t> most;
  for (const RecipeSpec& spec : all) {
    int64_t& known = most[{spec.dp, spec.tp}];
    known = std::max(known, spec.microbatches);
  }
  for (RecipeSpec& spec : all) {
    if (spec.microbatches != 1 && spec.microbatches != most[{spec.dp, spec.tp}]) continue;
    // Modules in pieces need less with the loss in pieces too, and where fewest micro-batches are alive.
    for (RecipeSpec& pieces : in_pieces(spec, freedom, spec.schedule == kPlainSchedule))
      if (pieces.pieces == 1 || pieces.loss_pieces > 1 || !freedom.loss_pieces)
        out.push_back(std::move(pieces));
    out.push_back(std::move(spec));
  }
  return out;
}

Smallest smallest(CostBook& book, const SearchRequest& request) {
  Freedom freedom = freedom_of(request);
  freedom.memory = 1;
  std::vector<RecipeSpec> specs = frugal_recipes(request, freedom, book);
  std::set<CostKey> keys;
  for (const RecipeSpec& spec : specs) keys.insert(book.key_of(spec));
  book.measure({keys.begin(), keys.end()});
  if (freedom.recompute) book.measure_parts({keys.begin(), keys.end()});
  Estimator estimator(book);
  Smallest out;
  for (const RecipeSpec& spec : specs) {
    Estimate estimate = estimator.estimate(spec, freedom);
    if (!estimate.refused.empty() || estimate.worst_peak() >= out.peak) continue;
    out = {estimate.worst_peak(), book.key_of(spec).samples};
  }
  return out;
}

Smallest smallest(const Model& model, const SearchRequest& request) {
  CostBook book = book_of(model, request);
  return smallest(book, request);
}

/// The largest value below `from` that passes, among its halves and the quarter steps between two of them;
/// 0: none down to a 64th.
template <class Passes>
int64_t largest_below(int64_t from, Passes passes) {
  int64_t low = from / 2;
  while (low > from / kSmallest && low > 1 && !passes(low)) low /= 2;
  if (low < 1 || !passes(low)) return 0;
  for (int64_t step : {low / 2, low / 4})
    if (step > 0 && low + step < from && passes(low + step)) low += step;
  return low;
}

class Finder {
 public:
  Finder(const Model& model, SearchRequest request, const BuildStep& build)
      : model_(model), request_(std::move(request)), build_(build) {
    show_ = std::exchange(request_.progress, nullptr);
  }

  /// From `known` down as long as less is enough, or up until something fits; 0: nothing did.
  Bytes memory(Bytes known) {
    SearchRequest tried = request_;
    Bytes enough = 0;
    show("memory");
    Bytes floor = smallest(model_, request_).peak;
    for (int k = 0; k < 2 * kConfirmations; ++k) {
      tried.memory = known = printable(known);
      if (Bytes peak = fitting(model_, tried)) {
        enough = known;
        Bytes less = known / 100 * (100 - kPercent);
        tried.memory = less;
        if (floor > less || !(peak = fitting(model_, tried))) return known;
        if (printable(peak) >= known) return known;  // it is rounded up by more than that
        known = peak;
      } else {
        if (enough) return enough;
        known = with_percent(known, kPercent);
      }
    }
    return enough;
  }

  /// Whole numbers of devices in the one node, then of nodes.
  void devices(Least& least) {
    show("devices");
    std::vector<Cluster> options = larger_clusters();
    SearchRequest all = request_;
    all.prices = Prices(options.back());
    CostBook book = book_of(model_, all);
    auto peak = [&](int i) {
      all.devices = num_ranks(options[i]);
      return smallest(book, all).peak;
    };
    int count = static_cast<int>(options.size()), low = -1, high = 0;
    for (int step = 1; high < count && peak(high) > request_.memory; step *= 2)
      low = std::exchange(high, high + step);
    if (high >= count) return;
    while (low + 1 < high) {
      int middle = (low + high) / 2;
      (peak(middle) <= request_.memory ? high : low) = middle;
    }
    bool one_less = low >= 0 && peak(low) <= with_percent(request_.memory, kPercent);
    for (int i = one_less ? low : high; i < std::min(count, high + kConfirmations); ++i) {
      SearchRequest tried = request_;
      tried.prices = Prices(options[i]);
      if (!fitting(model_, tried)) continue;
      least.devices = num_ranks(options[i]);
      least.nodes = options[i].nodes;
      return;
    }
  }

  /// Less work at once, where it is what takes the room.
  void sizes(Least& least) {
    if (!build_) return;
    show("batch and sequence");
    int64_t batch = batch_of(model_), sequence = sequence_of(model_);
    auto likely = [&](const Model& step) {
      return smallest(step, request_).peak <= with_percent(request_.memory, kPercent);
    };
    auto passes = [&](const Model& step) { return likely(step) && fitting(step, request_) > 0; };
    if (smallest(model_, request_).samples > 1)
      least.batch = largest_below(batch, [&](int64_t samples) { return passes(build_(samples, sequence)); });
    int64_t shortest = std::max<int64_t>(sequence / kSmallest, 1);
    if (least.batch || sequence < 2 || !likely(build_(batch, shortest))) return;
    least.sequence = largest_below(sequence, [&](int64_t tokens) { return passes(build_(batch, tokens)); });
  }

  std::vector<PlanFault> faults = {};

 private:
  void show(std::string_view of) const {
    if (show_) show_({fmt::format("looking for the least that would do: {}", of)});
  }

  /// The peak of the best plan; 0: none fits.
  Bytes fitting(const Model& model, const SearchRequest& request) {
    SearchResult result = search(model, request);
    if (result.interrupted) throw Interrupted("interrupted");
    std::move(result.faults.begin(), result.faults.end(), std::back_inserter(faults));
    return result.fitting.empty() ? 0 : result.fitting.front().worst_peak();
  }

  std::vector<Cluster> larger_clusters() const {
    std::vector<Cluster> out;
    Cluster cluster = request_.prices.cluster();
    int most = kMostTimes * num_ranks(cluster);
    while (cluster.nodes == 1 && cluster.devices_per_node < kMostInNode) {
      ++cluster.devices_per_node;
      out.push_back(cluster);
    }
    // Nodes of another kind grow no further: what is bought is of the first kind.
    while (num_ranks(cluster) + cluster.devices_per_node <= most) {
      ++cluster.nodes;
      out.push_back(cluster);
    }
    return out;
  }

  const Model& model_;
  SearchRequest request_;
  ShowProgress show_;
  const BuildStep& build_;
};

std::string in_words(const Least& least, const Candidate& smallest) {
  std::vector<std::string> ways;
  if (least.memory)
    ways.push_back(fmt::format("{} per device ({})", show_bytes(least.memory), smallest.plan.summary));
  if (least.devices)
    ways.push_back(fmt::format("{} devices{}", least.devices,
                               least.nodes > 1 ? fmt::format(" in {} nodes", least.nodes) : ""));
  if (least.batch) ways.push_back(fmt::format("--batch {}", least.batch));
  if (least.sequence) ways.push_back(fmt::format("--seq {}", least.sequence));
  if (ways.empty()) return fmt::format("the smallest plan found needs {}", show_bytes(smallest.worst_peak()));
  return fmt::format("the least that would do: {}", fmt::join(ways, ", or "));
}

}  // namespace

Least least_that_would_do(const Model& model, const SearchRequest& request, const SearchResult& result,
                          const BuildStep& build) {
  Least least;
  if (result.beyond.empty()) {
    least.text = result.refused.empty()
                     ? fmt::format(
                           "no plan was allowed; loosen --allow, --forbid or --pin, or take a batch that "
                           "divides better than {}",
                           batch_of(model))
                     : "no recipe applies: " + result.refused.front();
    return least;
  }
  Interruptible scope(request.stop ? request.stop : interrupt_flag());
  Finder finder(model, request, build);
  least.memory = finder.memory(result.beyond.front().worst_peak());
  // Measurements are of one machine, which has as many devices as it has.
  bool pinned = request.pin_dp || request.pin_tp || request.pin_pp;
  if (!request.prices.measured() && !pinned) finder.devices(least);
  finder.sizes(least);
  least.text = in_words(least, result.beyond.front());
  least.faults = std::move(finder.faults);
  return least;
}

}  // namespace partita::search
