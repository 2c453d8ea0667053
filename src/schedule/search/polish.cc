#include "schedule/search/polish.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.h"

namespace partita::schedule {
namespace {

// Two neighbours on a device, by the position of the first.
struct Swap {
  int device;
  int at;
};

class Tabu {
 public:
  Tabu(const Flow& flow, Aim aim) : flow_(flow), aim_(aim), m_(flow.microbatches) {}

  Listed run(const Listed& from, int64_t bound, int64_t work, int64_t& spent) {
    Listed now = from, best = from;
    const int64_t ops = int64_t(flow_.lines.size()) * m_;
    int64_t used = 0;
    for (int round = 0; used < work && score(best, aim_.path).first > bound; ++round) {
      std::optional<Listed> next;
      std::pair<Turn, Turn> made;
      for (const Swap& swap : critical_swaps(now)) {
        Turn first = now.order[swap.device][swap.at], second = now.order[swap.device][swap.at + 1];
        if (!allowed(now, swap)) continue;
        FlowOrder order = now.order;
        std::swap(order[swap.device][swap.at], order[swap.device][swap.at + 1]);
        std::optional<Listed> trial = try_retime(flow_, std::move(order));
        used += ops;
        if (!trial) continue;
        bool forbidden =
            until_[{first, second}] > round && score(*trial, aim_.score) >= score(best, aim_.score);
        if (forbidden || (next && score(*trial, aim_.score) >= score(*next, aim_.score))) continue;
        next = std::move(trial);
        made = {second, first};
      }
      if (!next) break;
      until_[made] = round + kForbidden;
      now = std::move(*next);
      if (score(now, aim_.score) < score(best, aim_.score)) best = now;
    }
    spent += used;
    return best;
  }

 private:
  static constexpr int kForbidden = 12;

  int64_t end(const Listed& listed, const Turn& op) const {
    return listed.end[size_t(op.line) * m_ + op.microbatch];
  }
  int64_t start(const Listed& listed, const Turn& op) const {
    return end(listed, op) - flow_.lines[op.line].cost;
  }

  bool allowed(const Listed& listed, const Swap& swap) const {
    const std::vector<Turn>& list = listed.order[swap.device];
    Turn first = list[swap.at], second = list[swap.at + 1];
    if (first.line == second.line) return false;
    for (const Flow::Feed& feed : flow_.lines[second.line].inputs)
      if (feed.line == first.line && second.microbatch == first.microbatch) return false;
    if (flow_.cap[swap.device] == INT64_MAX || flow_.lines[second.line].take == 0) return true;
    int64_t used = 0;
    for (int i = 0; i < swap.at; ++i) used += flow_.lines[list[i].line].take - flow_.lines[list[i].line].give;
    used += flow_.lines[second.line].take;
    if (used > flow_.cap[swap.device]) return false;
    return used - flow_.lines[second.line].give + flow_.lines[first.line].take <= flow_.cap[swap.device];
  }

  // Walks back from the operation that ends the objective to a start nothing delays.
  std::vector<Swap> critical_swaps(const Listed& listed) {
    place_.assign(listed.end.size(), 0);
    for (const std::vector<Turn>& list : listed.order)
      for (size_t i = 0; i < list.size(); ++i)
        place_[size_t(list[i].line) * m_ + list[i].microbatch] = int(i);
    std::vector<Swap> swaps;
    Turn at = last_op(listed);
    for (;;) {
      int device = flow_.lines[at.line].device, place = place_[size_t(at.line) * m_ + at.microbatch];
      int64_t began = start(listed, at);
      const Turn* before = place > 0 ? &listed.order[device][place - 1] : nullptr;
      if (before && end(listed, *before) == began) swaps.push_back({device, place - 1});
      const Flow::Feed* cause = nullptr;
      for (const Flow::Feed& feed : flow_.lines[at.line].inputs)
        if (listed.end[size_t(feed.line) * m_ + at.microbatch] + feed.delay == began) cause = &feed;
      if (cause)
        at = {cause->line, at.microbatch};
      else if (before && end(listed, *before) == began)
        at = *before;
      else
        break;
    }
    return swaps;
  }

  Turn last_op(const Listed& listed) const {
    int chosen = -1;
    int64_t most = -1;
    for (int device = 0; device < flow_.devices; ++device) {
      if (listed.order[device].empty()) continue;
      int64_t length = end(listed, listed.order[device].back());
      if (aim_.path == Objective::kSpan) length -= start(listed, listed.order[device].front());
      if (length > most) most = length, chosen = device;
    }
    return listed.order[chosen].back();
  }

  const Flow& flow_;
  Aim aim_;
  int m_;
  std::vector<int> place_;
  std::map<std::pair<Turn, Turn>, int> until_;
};

}  // namespace

std::pair<int64_t, int64_t> score(const Listed& listed, Objective objective) {
  if (objective == Objective::kSpan) return {listed.span, listed.makespan};
  return {listed.makespan, listed.span};
}

Listed polish(const Flow& flow, const Listed& from, Aim aim, int64_t bound, int64_t work, int64_t& spent) {
  return Tabu(flow, aim).run(from, bound, work, spent);
}

}  // namespace partita::schedule
