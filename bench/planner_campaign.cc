// planner_campaign budgets MODEL CLUSTER[,CLUSTER] [--batch B] [--dtype D] [--limits 10] [--seed 1] [--run]
// [--write F.md] Plans for ten memory limits, from the least that any rival needs to what the fastest does,
// against every recipe and 100 random plans that fit: is one of them faster in the simulator, is a plan over
// its limit, is one slower than another with less memory. --run: two steps of every plan on thread ranks,
// whose counted peak must be the predicted one; no more than it for models with convolutions in float32, of
// which a bound is known. MODEL `all`: eight small models. --write: a table of all of it.
//
// planner_campaign agree MODEL CLUSTER [--batch B]: estimates against the lowered and simulated plan.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>

#include "base/error.h"
#include "cluster/library.h"
#include "model/rewrite/retype.h"
#include "rival_plans.h"
#include "run/runtime.h"
#include "search/judge.h"
#include "search/recipes.h"
#include "search/search.h"
#include "search/write_plan.h"
#include "small_models.h"

namespace partita::cli {
namespace {

constexpr int kRandomPlans = 100;
/// Sums of the same numbers in another order.
constexpr double kRounding = 1e-9;

struct Options {
  std::string verb;
  std::vector<std::string> models, clusters;
  int64_t batch = 0;
  int limits = 10;
  uint32_t seed = 1;
  bool run = false;
  std::string write, dtype;
};

/// What all limits of one model on one cluster came to.
struct Tally {
  size_t rivals = 0;
  Bytes least = 0, most = 0;
  bool bounded = false;  // the predicted peak may be above the counted one
  int nothing = 0, slower = 0, over = 0, falls = 0, miscounted = 0, ran = 0;
  double fullest = 0;  // counted peak over the limit
  double loosest = 1;  // counted peak over the predicted one, at least
  double lead = 0;     // best rival over the plan, at most
  double cpu = 0;      // seconds of all searches

  int wrong() const { return nothing + slower + over + falls + miscounted; }
};

/// Of all threads.
double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

Bytes counted_peak(const Model& model, const Plan& plan, Tally& tally) {
  RunReport report = load_runtime().run(runnable(prove::prove(model, plan)), {.steps = 2});
  ++tally.ran;
  return *std::max_element(report.peak_bytes.begin(), report.peak_bytes.end());
}

/// In the dtype asked for, if one is.
Model typed(Model model, const std::string& dtype) {
  return dtype.empty() ? model : retype(std::move(model), parse_dtype(dtype, "--dtype"));
}

/// Is the predicted peak a bound, not the peak? What convolutions hold in float32 is oneDNN's choice.
bool is_bounded(const Model& model) {
  return std::any_of(model.ops.begin(), model.ops.end(), [&](const Op& op) {
    return op.target.find("convolution") != std::string::npos && view_of(model, op).dtype == DType::kFloat32;
  });
}

class Budgets {
 public:
  Budgets(const Model& model, const Prices& prices, const Options& options)
      : model_(model), prices_(prices), options_(options) {
    tally_.bounded = is_bounded(model);
  }

  Tally study() {
    others_ = rivals(model_, prices_, kRandomPlans, options_.seed);
    auto least = std::min_element(others_.begin(), others_.end(),
                                  [](const Known& a, const Known& b) { return a.peak < b.peak; });
    auto fastest = std::min_element(others_.begin(), others_.end(), [](const Known& a, const Known& b) {
      return std::pair(a.seconds, a.peak) < std::pair(b.seconds, b.peak);
    });
    tally_.rivals = others_.size();
    tally_.least = least->peak, tally_.most = fastest->peak;
    fmt::print("{} on {}, {} recipes and random plans\n", model_.name, prices_.cluster().name,
               others_.size());
    double ratio = static_cast<double>(tally_.most) / static_cast<double>(tally_.least);
    for (int k = 0; k < options_.limits; ++k)
      at(static_cast<Bytes>(std::ceil(static_cast<double>(tally_.least) *
                                      std::pow(ratio, k / std::max(options_.limits - 1.0, 1.0)))));
    fmt::print("{} wrong, {:.1f} CPU seconds a search\n", tally_.wrong(), tally_.cpu / options_.limits);
    return tally_;
  }

 private:
  const Known* best_within(Bytes memory) const {
    const Known* best = nullptr;
    for (const Known& other : others_)
      if (other.peak <= memory && (!best || other.seconds < best->seconds)) best = &other;
    return best;
  }

  void at(Bytes memory) {
    double begin = cpu_seconds();
    SearchResult result = search::search(model_, {.prices = prices_, .memory = memory});
    tally_.cpu += cpu_seconds() - begin;
    const Known* best = best_within(memory);
    std::string rival = best ? show_seconds(best->seconds) + " " + best->summary : "none";
    if (result.fitting.empty()) {
      fmt::print("{:>10}  NOTHING  (best other {})\n", show_bytes(memory), rival);
      tally_.nothing += best != nullptr;
      return;
    }
    const Candidate& mine = result.fitting.front();
    std::string faults = judge(mine, best, memory);
    fmt::print("{:>10}  {:>10} {:>10}  {}{}  (best other {})\n", show_bytes(memory),
               show_seconds(mine.step_seconds), show_bytes(mine.worst_peak()), mine.plan.summary, faults,
               rival);
    std::fflush(stdout);
  }

  std::string judge(const Candidate& mine, const Known* best, Bytes memory) {
    std::string faults;
    auto fault = [&](bool is, int& count, std::string_view what) {
      count += is;
      if (is) faults += what;
    };
    fault(mine.step_seconds > before_ * (1 + kRounding), tally_.falls, " SLOWER THAN WITH LESS MEMORY");
    fault(best && mine.step_seconds > best->seconds * (1 + kRounding), tally_.slower, " SLOWER");
    Bytes peak = mine.worst_peak();
    if (options_.run) {
      peak = counted_peak(model_, mine.plan, tally_);
      bool wrong = tally_.bounded ? peak > mine.worst_peak() : peak != mine.worst_peak();
      fault(wrong, tally_.miscounted, fmt::format(" COUNTED {}", peak));
      double share = static_cast<double>(peak) / static_cast<double>(mine.worst_peak());
      tally_.loosest = std::min(tally_.loosest, share);
    }
    fault(peak > memory, tally_.over, " OVER");
    before_ = std::min(before_, mine.step_seconds);
    tally_.fullest = std::max(tally_.fullest, static_cast<double>(peak) / static_cast<double>(memory));
    if (best) tally_.lead = std::max(tally_.lead, best->seconds / mine.step_seconds);
    return faults;
  }

  const Model& model_;
  const Prices& prices_;
  const Options& options_;
  std::vector<Known> others_;
  Seconds before_ = HUGE_VAL;
  Tally tally_;
};

int agree(const Model& model, const Prices& prices) {
  CostBook book(model, prices, {});
  Estimator estimator(book);
  double slowest = 0, fastest = 2, least = 2, most = 0;
  int count = 0;
  SearchRequest request{.prices = prices};
  for (const RecipeSpec& spec : all_recipes(request, book)) {
    book.measure({book.key_of(spec)});
    for (Bytes memory : {Bytes{1} << 50, Bytes{1}}) {
      Estimate estimate = estimator.estimate(spec, {.memory = memory});
      if (!estimate.refused.empty()) continue;
      Known real = simulated(model, prices, {write_plan(book, estimate)}).at(0);
      double seconds = estimate.seconds / real.seconds;
      double bytes = static_cast<double>(estimate.worst_peak()) / static_cast<double>(real.peak);
      slowest = std::max(slowest, seconds), fastest = std::min(fastest, seconds);
      most = std::max(most, bytes), least = std::min(least, bytes);
      ++count;
      if (std::abs(seconds - 1) > 0.05 || bytes < 0.99 || bytes > 1.1)
        fmt::print("{:<60} seconds {:.3f} bytes {:.3f}\n", real.summary, seconds, bytes);
    }
  }
  fmt::print("{} on {}: {} plans, seconds {:.3f} to {:.3f}, bytes {:.3f} to {:.3f} of the lowered plan's\n",
             model.name, prices.cluster().name, count, fastest, slowest, least, most);
  return 0;
}

constexpr const char* kHead =
    "| model | cluster | others | limits | slower than another | slower than with less | nothing found | "
    "over | "
    "counted = predicted | fullest | best lead |\n|---|---|---|---|---|---|---|---|---|---|---|\n";

std::string row(const std::string& model, const std::string& cluster, const Tally& tally) {
  std::string counted =
      tally.ran ? fmt::format("{} of {}", tally.ran - tally.miscounted, tally.ran) : "not run";
  if (tally.ran && tally.bounded) counted += fmt::format(" <=, down to {:.2f} %", 100 * tally.loosest);
  return fmt::format("| {} | {} | {} | {} to {} | {} | {} | {} | {} | {} | {:.1f} % | {:.2f} |\n", model,
                     cluster, tally.rivals, show_bytes(tally.least), show_bytes(tally.most), tally.slower,
                     tally.falls, tally.nothing, tally.over, counted, 100 * tally.fullest, tally.lead);
}

std::vector<std::string> listed(const std::string& text) {
  std::vector<std::string> out;
  std::stringstream stream(text);
  for (std::string word; std::getline(stream, word, ',');) out.push_back(word);
  return out;
}

Options options_of(int argc, char** argv) {
  if (argc < 4) input_error("planner_campaign budgets/agree MODEL CLUSTER; see the head of its file");
  Options options{.verb = argv[1], .models = listed(argv[2]), .clusters = listed(argv[3])};
  if (options.models[0] == "all") options.models.assign(std::begin(kSmallModels), std::end(kSmallModels));
  std::map<std::string, std::string> values;
  for (int i = 4; i < argc; ++i) {
    std::string word = argv[i];
    if (word == "--run")
      options.run = true;
    else if (i + 1 < argc)
      values[word] = argv[++i];
  }
  for (const auto& [flag, value] : values) {
    if (flag == "--batch") options.batch = std::stoll(value);
    if (flag == "--limits") options.limits = std::stoi(value);
    if (flag == "--seed") options.seed = static_cast<uint32_t>(std::stoul(value));
    if (flag == "--write") options.write = value;
    if (flag == "--dtype") options.dtype = value;
  }
  return options;
}

int run(const Options& options) {
  int wrong = 0;
  std::string table = kHead;
  for (const std::string& cluster : options.clusters)
    for (const std::string& name : options.models) {
      Prices prices(read_cluster(cluster));
      const Preset& preset = small_or_preset(name);
      StepSize size{options.batch ? options.batch : preset.size.batch, preset.size.seq};
      Model model = typed(build_model(preset.config, preset.name, size), options.dtype);
      model.name = name;
      if (options.verb == "agree") {
        wrong += agree(model, prices);
        continue;
      }
      Tally tally = Budgets(model, prices, options).study();
      table += row(name, cluster, tally);
      wrong += tally.wrong();
    }
  if (!options.write.empty()) std::ofstream(options.write) << table;
  return wrong ? 1 : 0;
}

}  // namespace
}  // namespace partita::cli

int main(int argc, char** argv) {
  try {
    return partita::cli::run(partita::cli::options_of(argc, argv));
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
