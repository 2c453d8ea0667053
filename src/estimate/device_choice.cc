#include "estimate/device_choice.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"
#include "choose/search.h"

namespace partita::estimate {
namespace {

/// Partial choices that one device is worth; within 1e-3 of the bound with far fewer.
constexpr int64_t kWork = 20'000;
enum Moment { kLooping, kEnded, kMoments };

/// Equal things of a device that each take one option: units of a stage, or parameters.
struct Item {
  bool is_unit = false;
  int index = 0;             // unit or parameter of the shrunk step
  int alive = 1;             // units: micro-batches
  std::vector<int> places;   // units of the whole step
  std::vector<int> options;  // units: 0 keep, kAgain and more compute again; parameters: Storing
};

class DeviceProblem {
 public:
  DeviceProblem(const DeviceContext& context, const std::vector<StageRange>& stages)
      : context_(context),
        stages_(stages),
        stands_for_(context.book.shrunk().stands_for),
        keep_(context.table.keep),
        loops_(context.microbatches > 1) {}

  DeviceChoice choose() {
    auto [known, fresh] = context_.known.try_emplace(signature());
    if (fresh) known->second = solve();
    if (known->second.hopeless) return {.hopeless = true};
    list_items(known->second.gathered);
    return price(known->second.counts);
  }

 private:
  /// Equal for devices whose problems are.
  std::string signature() const {
    std::string text = fmt::format("{};", context_.memory);
    for (const StageRange& stage : stages_) {
      text += fmt::format("{}:{}:{}:", stage.alive, leaves(stage.begin - 1), leaves(stage.end - 1));
      for (int u = stage.begin; u < stage.end; ++u) text += fmt::format("{},", stands_for_[u]);
    }
    return text;
  }

  SolvedDevice solve() {
    std::optional<SolvedDevice> whole = solve(false);
    if (whole && whole->proved) return *whole;
    std::optional<SolvedDevice> cut = context_.prices.size() > 1 ? solve(true) : std::nullopt;
    if (whole && cut) return whole->seconds <= cut->seconds ? *whole : *cut;
    if (whole) return *whole;
    if (cut) return *cut;
    return context_.freedom.below < HUGE_VAL ? SolvedDevice{.hopeless = true} : least();
  }

  const UnitCost& cost(int unit, int way) const {
    return (way ? *context_.table.again[way - kAgain] : keep_).units[unit];
  }
  double microbatches() const { return static_cast<double>(context_.microbatches); }

  Bytes leaves(int unit) const {
    bool inside = unit >= 0 && unit + 1 < static_cast<int>(stands_for_.size());
    return inside ? keep_.units[stands_for_[unit]].leaves : 0;
  }

  bool runs(const std::vector<int>& units) const {
    for (const StageRange& stage : stages_)
      for (int u = stage.begin; u < stage.end; ++u)
        if (std::binary_search(units.begin(), units.end(), stands_for_[u])) return true;
    return false;
  }

  void list_items(bool gathered) {
    items_.clear();
    for (const StageRange& stage : stages_) {
      std::map<int, Item> by_unit;
      for (int u = stage.begin; u < stage.end; ++u) {
        auto [item, fresh] = by_unit.try_emplace(stands_for_[u]);
        item->second.places.push_back(u);
        if (!fresh) continue;
        bool module = !context_.book.shrunk().units.all[u].module.empty();
        item->second = {
            .is_unit = true, .index = stands_for_[u], .alive = stage.alive, .places = {u}, .options = {0}};
        for (int keep = 0; module && context_.freedom.recompute && keep < kKeeps; ++keep)
          if (context_.table.again[keep]) item->second.options.push_back(kAgain + keep);
      }
      for (auto& [unit, item] : by_unit) items_.push_back(std::move(item));
    }
    for (size_t p = 0; p < keep_.parameters.size(); ++p) list_parameter(static_cast<int>(p), gathered);
  }

  void list_parameter(int p, bool gathered) {
    const ParameterCost& parameter = keep_.parameters[p];
    Item item{.index = p};
    for (const StageRange& stage : stages_)
      for (int u = stage.begin; u < stage.end; ++u)
        if (std::binary_search(parameter.units.begin(), parameter.units.end(), stands_for_[u]))
          item.places.push_back(u);
    if (item.places.empty()) return;
    // One parameter that several units read is there once.
    if (parameter.units.size() > 1) item.places.resize(1);
    for (Storing storing :
         storings_of(context_.prices, context_.freedom, parameter, gathered, context_.tied[p], loops_))
      item.options.push_back(static_cast<int>(storing));
    items_.push_back(std::move(item));
  }

  ChoiceOption option(const Item& item, int code) const {
    if (item.is_unit) {
      const UnitCost& unit = cost(item.index, code);
      Seconds seconds = unit.forward + unit.backward() - (loops_ ? 0 : unit.accumulate);
      return {.seconds = microbatches() * seconds,
              .bytes = {unit.saved * item.alive, 0},
              .transient = {std::max(unit.backward_peak + gathered_beside(item.index, code),
                                     unit.forward_peak - unit.saved),
                            0}};
    }
    const ParameterCost& parameter = keep_.parameters[item.index];
    StoringCost stored = context_.prices.cost(parameter, static_cast<Storing>(code), loops_);
    return {.seconds = microbatches() * (stored.forward + stored.backward) + stored.once,
            .bytes = {stored.looping, stored.ended},
            .transient = {0, updating(parameter, code)}};
  }

  /// What is gathered to make a unit again stays until its gradients are made: all but the largest, which
  /// every unit has room for, as far as everything is cut.
  Bytes gathered_beside(int unit, int way) const {
    if (!gathered_ || !multiplies_again(way)) return 0;
    Bytes all = 0, largest = 0;
    for (const ParameterCost& parameter : keep_.parameters) {
      if (!context_.prices.cuts(parameter) ||
          !std::binary_search(parameter.units.begin(), parameter.units.end(), unit))
        continue;
      all += parameter.own;
      largest = std::max(largest, parameter.own);
    }
    return all - largest;
  }
  static bool multiplies_again(int way) {
    return way && keep_of(static_cast<uint8_t>(way)) != Keep::kProducts;
  }

  /// What the update of a parameter needs for a short while.
  Bytes updating(const ParameterCost& parameter, int code) const {
    bool whole = static_cast<Storing>(code) == Storing::kWhole;
    Bytes gradient = parameter.gradient / (whole ? 1 : context_.prices.size());
    Bytes pieces = whole ? 0 : gradient + parameter.own / context_.prices.size();
    return pieces + (parameter.copied ? gradient : 0);
  }

  Bytes held_by_all() const {
    Bytes held = 0;
    for (const Held& one : keep_.held)
      if ((loops_ || !one.sum) && (one.units.empty() || runs(one.units)))
        held += one.bytes * (one.per_microbatch ? context_.microbatches : 1);
    return held;
  }

  ChoiceProblem problem(bool gathered) {
    gathered_ = gathered;
    list_items(gathered);
    ChoiceProblem out{.budget = context_.memory};
    Bytes held = held_by_all(), looping = held;
    for (const StageRange& stage : stages_)
      looping += leaves(stage.begin - 1) * (stage.alive + 2) - leaves(stage.end - 1) * (stage.alive - 2);
    if (gathered) {
      Bytes largest = 0;
      for (const Item& item : items_)
        if (!item.is_unit && context_.prices.cuts(keep_.parameters[item.index]))
          largest = std::max(largest, keep_.parameters[item.index].own);
      looping += largest;
    }
    out.held = {looping, held};
    for (const Item& item : items_) {
      ChoiceOperator& op = out.operators.emplace_back();
      op.count = static_cast<int64_t>(item.places.size());
      for (int code : item.options) op.options.push_back(option(item, code));
    }
    return out;
  }

  /// Nothing: nothing fits, or nothing that is below Freedom::below.
  std::optional<SolvedDevice> solve(bool gathered) {
    ChoiceProblem out = problem(gathered);
    ChoiceCounts fastest;
    for (const ChoiceOperator& op : out.operators) {
      auto best = std::min_element(op.options.begin(), op.options.end(),
                                   [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
      std::vector<int64_t>& counts = fastest.emplace_back(op.options.size());
      counts[best - op.options.begin()] = op.count;
    }
    Choice all = choose::measure(out, fastest);
    if (all.worst_peak() <= out.budget)
      return SolvedDevice{.gathered = gathered, .proved = true, .seconds = all.seconds, .counts = fastest};
    ChoiceAnswer answer = search_choices(out, kWork, context_.freedom.enough, context_.freedom.below);
    if (!answer.best) return std::nullopt;
    return SolvedDevice{.gathered = gathered, .seconds = answer.best->seconds, .counts = answer.best->counts};
  }

  SolvedDevice least() {
    ChoiceCounts counts;
    bool gathered = context_.prices.size() > 1;
    ChoiceProblem out = problem(gathered);
    for (const ChoiceOperator& op : out.operators) {
      auto best = std::min_element(op.options.begin(), op.options.end(), [](const auto& a, const auto& b) {
        return a.bytes[kLooping] + a.bytes[kEnded] + a.transient[kLooping] <
               b.bytes[kLooping] + b.bytes[kEnded] + b.transient[kLooping];
      });
      counts.emplace_back(op.options.size())[best - op.options.begin()] = op.count;
    }
    return {.gathered = gathered, .counts = counts};
  }

  /// What parameters add to one unit of the whole step.
  struct UnitStorage {
    Seconds forward = 0, backward = 0;
    Bytes gathered = 0, scattered = 0, gradients = 0;
    Bytes gathered_together = 0;
    Bytes cut = 0;  // of gradients, as soon as they are made
  };

  DeviceChoice price(const ChoiceCounts& counts) {
    DeviceChoice out;
    std::map<int, UnitStorage> storage;
    out.looping = out.ended = held_by_all();
    Bytes update = 0;
    for (size_t i = 0; i < items_.size(); ++i) {
      size_t place = 0;
      for (size_t o = 0; o < items_[i].options.size(); ++o)
        for (int64_t k = 0; k < counts[i][o]; ++k, ++place) {
          int unit = items_[i].places[place], code = items_[i].options[o];
          if (items_[i].is_unit) {
            if (code) out.again[unit] = static_cast<uint8_t>(code);
            continue;
          }
          const ParameterCost& parameter = keep_.parameters[items_[i].index];
          StoringCost stored = context_.prices.cost(parameter, static_cast<Storing>(code), loops_);
          UnitStorage& there = storage[unit];
          there.forward += stored.forward;
          there.backward += stored.backward;
          there.gathered = std::max(there.gathered, stored.gathered);
          there.gathered_together += stored.gathered;
          // Where several units add to one gradient it stays whole until the last of them has.
          if (loops_ && parameter.units.size() > 1)
            out.looping += stored.scattered;
          else
            there.scattered = std::max(there.scattered, stored.scattered);
          Bytes kept = loops_ || parameter.late ? 0 : stored.ended - stored.looping;
          there.gradients += kept;
          if (kept > 0 && stored.scattered > 0) there.cut += stored.scattered - kept;
          out.looping += stored.looping;
          out.ended += stored.ended;
          // The parts of a tied weight's gradient meet on each of its devices.
          if (context_.tied[items_[i].index])
            out.ended += parameter.gradient * (static_cast<Bytes>(parameter.units.size()) - 1);
          out.once += stored.once;
          update = std::max(update, updating(parameter, code));
          out.stored.push_back({items_[i].index, unit, static_cast<Storing>(code)});
        }
    }
    out.ended += update;
    for (const StageRange& stage : stages_) price_stage(stage, storage, out);
    return out;
  }

  void price_stage(const StageRange& stage, std::map<int, UnitStorage>& storage, DeviceChoice& out) const {
    auto way_of = [&](int u) {
      auto again = out.again.find(u);
      return again == out.again.end() ? 0 : again->second;
    };
    auto cost_of = [&](int u) -> const UnitCost& { return cost(stands_for_[u], way_of(u)); };
    StageSeconds seconds;
    StageBytes bytes;
    Bytes saved = 0;
    std::vector<Bytes> after;
    for (int u = stage.begin; u < stage.end; ++u) {
      const UnitCost& unit = cost_of(u);
      const UnitStorage& there = storage[u];
      seconds.forward += unit.forward + there.forward;
      seconds.input_grad += unit.input_grad + there.backward;
      seconds.weight_grad += unit.weight_grad - (loops_ ? 0 : unit.accumulate);
      bytes.forward_peak = std::max(bytes.forward_peak, saved + unit.forward_peak + there.gathered);
      after.push_back(saved += unit.saved);
    }
    Bytes gradients = 0;
    for (int u = stage.end; u-- > stage.begin;) {
      const UnitCost& unit = cost_of(u);
      Bytes own = std::max(unit.backward_peak, unit.once_peak - storage[u].cut);
      Bytes most = loops_ ? unit.backward_peak : own + gradients;
      Bytes gathered = multiplies_again(way_of(u)) ? storage[u].gathered_together : storage[u].gathered;
      bytes.backward_peak =
          std::max(bytes.backward_peak, after[u - stage.begin] + most + gathered + storage[u].scattered);
      gradients += storage[u].gradients + unit.parts;
    }
    // A stage holds what it received until its backward, and what it sent until that has arrived.
    Bytes in = leaves(stage.begin - 1), sent = leaves(stage.end - 1);
    bytes.saved = in + saved - sent;
    bytes.forward_peak += in;
    bytes.backward_peak += in;
    out.looping += sent + in + std::max(sent, in);
    out.seconds.push_back(seconds);
    out.bytes.push_back(bytes);
  }

  const DeviceContext& context_;
  const std::vector<StageRange>& stages_;
  const std::vector<int>& stands_for_;
  const UnitCosts& keep_;
  bool loops_;
  bool gathered_ = false;  // parameters may be cut and gathered where used
  std::vector<Item> items_;
};

}  // namespace

std::vector<Storing> storings_of(const StoringPrices& prices, const Freedom& freedom,
                                 const ParameterCost& parameter, bool gathered, bool tied, bool loops) {
  std::vector<Storing> out;
  bool cuts = prices.cuts(parameter);
  for (const StoringRow& row : kStoringRows) {
    bool cut = row.storing == Storing::kParameter || row.storing == Storing::kParameterOnce;
    if (row.storing != Storing::kWhole && !cuts) continue;
    if (cuts && !freedom.storings[static_cast<int>(row.storing)]) continue;
    if (cut && (!gathered || tied)) continue;
    if (tied && row.storing == Storing::kGradient) continue;
    if (row.storing == Storing::kParameterOnce && !loops) continue;
    out.push_back(row.storing);
  }
  if (out.empty()) out = {Storing::kWhole};
  return out;
}

DeviceChoice choose_device(const DeviceContext& context, const std::vector<StageRange>& stages) {
  return DeviceProblem(context, stages).choose();
}

std::vector<LeastBytes> least_bytes(const DeviceContext& context) {
  const std::vector<int>& stands_for = context.book.shrunk().stands_for;
  const UnitCosts& costs =
      context.table.again[0] && context.freedom.recompute ? *context.table.again[0] : context.table.keep;
  std::vector<LeastBytes> of_shrunk;
  for (const UnitCost& unit : costs.units)
    of_shrunk.push_back({0, unit.saved, std::max(unit.backward_peak, unit.forward_peak - unit.saved)});
  for (const ParameterCost& parameter : context.table.keep.parameters) {
    Bytes least = context.prices.cost(parameter, Storing::kWhole, true).looping;
    for (const StoringRow& row : kStoringRows)
      if (context.freedom.storings[static_cast<int>(row.storing)] && context.prices.cuts(parameter))
        least = std::min(least, context.prices.cost(parameter, row.storing, true).looping);
    for (int unit : parameter.units) of_shrunk[unit].held += least;
  }
  std::vector<LeastBytes> out;
  for (int unit : stands_for) out.push_back(of_shrunk[unit]);
  return out;
}

}  // namespace partita::estimate
