#include "plan/recipes/cut.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>

#include "model/row.h"

namespace partita::plan {
namespace {

/// Per op: do the batch and a trainable parameter lead to it?
std::vector<bool> both_lead(const Model& model) {
  std::vector<bool> fed(model.tensors.size()), trained(model.tensors.size()), both;
  for (size_t t = 0; t < model.tensors.size(); ++t) {
    fed[t] = model.tensors[t].role == Role::kBatchInput;
    trained[t] = model.tensors[t].trainable;
  }
  for (const Op& op : model.ops) {
    bool any_fed = false, any_trained = false;
    for (TensorId id : inputs_of(op)) {
      any_fed |= fed[id.value];
      any_trained |= trained[id.value];
    }
    for (TensorId id : op.outputs)
      if (id) fed[id.value] = any_fed, trained[id.value] = any_trained;
    both.push_back(any_fed && any_trained);
  }
  return both;
}

void count_crossing(const Model& model, Line& line) {
  std::vector<int64_t> made(model.tensors.size(), -1), read(model.tensors.size(), -1);
  for (size_t i = 0; i < line.ops.size(); ++i) {
    const Op& op = model[line.ops[i]];
    for (TensorId id : inputs_of(op)) read[id.value] = static_cast<int64_t>(i);
    for (TensorId id : op.outputs)
      if (id) made[id.value] = static_cast<int64_t>(i);
  }
  std::vector<Bytes> change(line.ops.size() + 1);
  for (size_t t = 0; t < model.tensors.size(); ++t) {
    if (made[t] < 0 || read[t] < 0) continue;
    change[made[t] + 1] += bytes_of(model.tensors[t]);
    change[read[t] + 1] -= bytes_of(model.tensors[t]);
  }
  line.crossing.resize(line.ops.size());
  std::partial_sum(change.begin(), change.end() - 1, line.crossing.begin());
}

/// Places where no fewer bytes cross within `window` flops on either side: between blocks, not inside them.
std::vector<size_t> narrow_places(const Line& line, Flops window) {
  std::vector<size_t> places;
  for (size_t i = 1; i < line.ops.size(); ++i) {
    bool narrow = true;
    Flops passed = 0;
    for (size_t j = i; narrow && j-- > 1 && (passed += line.flops[j]) <= window;)
      narrow = line.crossing[i] <= line.crossing[j];
    passed = 0;
    for (size_t j = i; narrow && j + 1 < line.ops.size() && (passed += line.flops[j]) <= window; ++j)
      narrow = line.crossing[i] <= line.crossing[j + 1];
    if (narrow) places.push_back(i);
  }
  return places;
}

struct Best {
  Flops most = 0;   // of one stage
  Bytes bytes = 0;  // over all cuts
  size_t from = 0;  // index of the place before
  auto key() const { return std::pair(most, bytes); }
};

/// `places` are the allowed first ops, the first of them 0; picks `count`.
std::vector<size_t> choose(const Line& line, const std::vector<size_t>& places, size_t count) {
  std::vector<Flops> before(line.ops.size() + 1);
  std::partial_sum(line.flops.begin(), line.flops.end(), before.begin() + 1);
  size_t n = places.size();
  auto start = [&](size_t p) { return p < n ? places[p] : line.ops.size(); };
  constexpr Flops kNever = 1e300;
  // best[k][p]: k stages hold everything before place p.
  std::vector<std::vector<Best>> best(count + 1, std::vector<Best>(n + 1, {.most = kNever}));
  best[0][0] = {};
  for (size_t k = 1; k <= count; ++k)
    for (size_t p = k; p <= n; ++p)
      for (size_t q = k - 1; q < p; ++q) {
        Best here{std::max(best[k - 1][q].most, before[start(p)] - before[start(q)]),
                  best[k - 1][q].bytes + line.crossing[start(q)], q};
        if (here.key() < best[k][p].key()) best[k][p] = here;
      }
  std::vector<size_t> firsts(count);
  for (size_t k = count, p = n; k > 0; --k) firsts[k - 1] = start(p = best[k][p].from);
  return firsts;
}

/// Where the line reads each parameter.
std::vector<std::vector<size_t>> uses_of_weights(const Model& model, const Line& line) {
  std::map<TensorId, std::vector<size_t>> uses;
  for (size_t i = 0; i < line.ops.size(); ++i)
    for (TensorId id : inputs_of(model[line.ops[i]]))
      if (model[id].role == Role::kParameter) uses[id].push_back(i);
  std::vector<std::vector<size_t>> all;
  for (auto& [parameter, of_one] : uses) all.push_back(std::move(of_one));
  return all;
}

Line part_of(const Line& line, size_t begin, size_t end) {
  auto cut = [&](const auto& list) {
    return std::decay_t<decltype(list)>(list.begin() + static_cast<ptrdiff_t>(begin),
                                        list.begin() + static_cast<ptrdiff_t>(end));
  };
  return {cut(line.ops), cut(line.flops), cut(line.crossing)};
}

}  // namespace

std::vector<OpId> line_ops(const Model& model) {
  std::vector<OpId> ops;
  std::vector<bool> both = both_lead(model);
  for (size_t i = 0; i < model.ops.size(); ++i)
    if (both[i] && !model.ops[i].backward) ops.push_back(OpId{static_cast<int32_t>(i)});
  return ops;
}

Line find_line(const Model& model) {
  Line line;
  std::map<std::string, size_t> at;  // forward op -> index in the line
  std::vector<bool> both = both_lead(model);
  for (size_t i = 0; i < model.ops.size(); ++i) {
    const Op& op = model.ops[i];
    Flops flops = flops_of(view_of(model, op));
    auto forward = at.find(op.name.substr(0, op.name.find(".grad.")));
    if (op.backward && forward != at.end()) line.flops[forward->second] += flops;
    if (op.backward || !both[i]) continue;
    at[op.name] = line.ops.size();
    line.ops.push_back(OpId{static_cast<int32_t>(i)});
    line.flops.push_back(flops);
  }
  count_crossing(model, line);
  return line;
}

std::vector<size_t> cut_passes(const Model& model, const Line& line, size_t count, int passes) {
  std::vector<std::vector<size_t>> uses = uses_of_weights(model, line);
  std::vector<size_t> begins(passes, line.ops.size());
  for (const std::vector<size_t>& of_one : uses)
    for (size_t p = 0; p < of_one.size() && p < begins.size(); ++p)
      begins[p] = std::min(begins[p], of_one[p]);
  begins[0] = 0;
  if (begins.back() == line.ops.size()) return {};
  std::vector<size_t> last = cut_line(part_of(line, begins.back(), line.ops.size()), count);
  if (last.empty()) return {};
  std::vector<size_t> firsts;
  for (int p = 0; p < passes; ++p)
    for (size_t s = 0; s < count; ++s) {
      size_t here = begins[p] + last[s];
      // Passes need not be alike op by op: a stage starts as far before its first weight as in the last one.
      size_t weight = line.ops.size();
      for (const std::vector<size_t>& of_one : uses)
        if (of_one.size() == begins.size() && of_one.back() >= begins.back() + last[s] &&
            of_one.back() < weight)
          weight = of_one.back(), here = of_one[p] - (weight - begins.back() - last[s]);
      firsts.push_back(s == 0 ? begins[p] : here);
    }
  return std::is_sorted(firsts.begin(), firsts.end(), std::less_equal<>()) ? firsts : std::vector<size_t>{};
}

std::vector<size_t> cut_line(const Line& line, size_t count) {
  if (line.ops.size() < count) return {};
  Flops total = std::accumulate(line.flops.begin(), line.flops.end(), Flops{0});
  // A quarter of a stage: wide enough to leave a block's inside, narrow enough to keep the balance.
  std::vector<size_t> places = narrow_places(line, total / (4 * static_cast<Flops>(count)));
  if (places.size() + 1 < count) {
    places.resize(line.ops.size() - 1);
    std::iota(places.begin(), places.end(), size_t{1});
  }
  places.insert(places.begin(), 0);
  return choose(line, places, count);
}

}  // namespace partita::plan
