#include "schedule/search/warmup.h"

#include <algorithm>

namespace partita::schedule {
namespace {

// What a unit of memory is worth in ticks, `ticks` for each `memory`.
struct Price {
  int64_t ticks, memory;
};

// The lines of one stream on a device. Those of the chain wait for each other, micro-batch by micro-batch;
// a weight gradient stands beside the chain, after its input gradient, or before it with time reversed.
struct Path {
  struct Side {
    int line;
    size_t at;   // place in the chain of the line it belongs to
    bool after;  // may run once that has ended; otherwise must have ended before that starts
  };
  std::vector<int> chain;
  std::vector<Side> sides;
};

bool leads_to(const Flow& flow, int from, int to) {
  std::vector<char> reached(flow.lines.size(), 0);
  reached[from] = 1;
  for (int i = from; i < to; ++i)
    if (reached[i])
      for (const Flow::Feed& feed : flow.lines[i].outputs) reached[feed.line] = 1;
  return reached[to];
}

// The one line of the same stage and device next to this one and to nothing else; -1: there is none.
int only_neighbour(const Flow& flow, const Flow::Line& line) {
  if (line.inputs.size() + line.outputs.size() != 1) return -1;
  int other = line.inputs.empty() ? line.outputs.front().line : line.inputs.front().line;
  return flow.lines[other].device == line.device ? other : -1;
}

// A line that nothing before leads to begins a path of its own: less is known then, not something wrong.
std::vector<Path> paths_of(const Flow& flow, int device) {
  std::vector<Path> paths;
  std::vector<int> beside;
  for (int line : flow.of_device[device]) {
    if (only_neighbour(flow, flow.lines[line]) >= 0) {
      beside.push_back(line);
      continue;
    }
    auto path = std::find_if(paths.begin(), paths.end(),
                             [&](const Path& p) { return leads_to(flow, p.chain.back(), line); });
    if (path == paths.end()) path = paths.insert(paths.end(), Path{});
    path->chain.push_back(line);
  }
  for (int line : beside) {
    int mate = only_neighbour(flow, flow.lines[line]);
    bool placed = false;
    for (Path& path : paths)
      if (auto at = std::find(path.chain.begin(), path.chain.end(), mate); at != path.chain.end()) {
        path.sides.push_back({line, size_t(at - path.chain.begin()), mate < line});
        placed = true;
      }
    if (!placed) paths.push_back({.chain = {line}});
  }
  return paths;
}

class Device {
 public:
  Device(const Flow& flow, const std::vector<int64_t>& head, int device)
      : flow_(flow), head_(head), cap_(flow.cap[device]), paths_(paths_of(flow, device)) {
    prices_.push_back({0, 1});
    if (cap_ == INT64_MAX) return;
    for (const Path& path : paths_) {
      int64_t ticks = 0, memory = 0;
      auto run = [&](int line) {
        const Flow::Line& l = flow.lines[line];
        ticks += l.cost;
        memory += l.take - l.give;
        if (memory > 0) prices_.push_back({ticks, memory});
        if (l.take > 0 && l.cost > 0) prices_.push_back({l.cost, l.take});
      };
      for (size_t i = 0; i < path.chain.size(); ++i) {
        run(path.chain[i]);
        for (const Path::Side& side : path.sides)
          if (side.at == i) run(side.line);
      }
    }
    auto less = [](const Price& a, const Price& b) {
      return __int128(a.ticks) * b.memory < __int128(b.ticks) * a.memory;
    };
    std::sort(prices_.begin(), prices_.end(), less);
    prices_.erase(std::unique(prices_.begin(), prices_.end(),
                              [&](const Price& a, const Price& b) { return !less(a, b) && !less(b, a); }),
                  prices_.end());
  }

  // The most work that can have been done at time t. Memory has a price: what fits is worth no more than the
  // whole of it plus the best every micro-batch can make of that price (Lagrange). Any price bounds, and the
  // bound is convex in it, so the best one is looked for from the one that was best before, `at`.
  int64_t most_work(int64_t t, size_t& at) const {
    int64_t least = worth_at(t, prices_[at]);
    for (int step : {1, -1})
      for (size_t next = at + size_t(step); next < prices_.size(); next += size_t(step)) {
        const int64_t other = worth_at(t, prices_[next]);
        if (other > least) break;
        least = other;
        at = next;
      }
    return std::min(t, least);
  }

 private:
  int64_t worth_at(int64_t t, const Price& price) const {
    __int128 worth = price.ticks == 0 ? 0 : __int128(price.ticks) * cap_;
    for (const Path& path : paths_)
      for (int k = 0, first = first_line(path); k < flow_.microbatches && head_at(first, k) < t; ++k)
        worth += best(path, k, t, price);
    return int64_t(worth / price.memory);
  }

  int64_t head_at(int line, int k) const {
    return head_[size_t(line) * size_t(flow_.microbatches) + size_t(k)];
  }

  int first_line(const Path& path) const {
    int first = path.chain.front();
    for (const Path::Side& side : path.sides)
      if (!side.after && head_at(side.line, 0) < head_at(first, 0)) first = side.line;
    return first;
  }

  // Worth of one operation at time t: the work it can have done, less its memory; a running one holds what it
  // took and has not given.
  __int128 worth(int line, int k, int64_t t, const Price& price) const {
    const Flow::Line& l = flow_.lines[line];
    int64_t done = std::clamp<int64_t>(t - head_at(line, k), 0, l.cost);
    if (t <= head_at(line, k)) return 0;
    int64_t held = done == l.cost ? l.take - l.give : l.take;
    return __int128(done) * price.memory - __int128(held) * price.ticks;
  }

  __int128 best(const Path& path, int k, int64_t t, const Price& price) const {
    __int128 most = 0, sum = 0;
    for (const Path::Side& side : path.sides)
      if (!side.after) sum += std::max<__int128>(0, worth(side.line, k, t, price));
    most = std::max(most, sum);
    for (size_t i = 0; i < path.chain.size(); ++i) {
      int line = path.chain[i];
      if (head_at(line, k) >= t) break;
      for (const Path::Side& side : path.sides)
        if (side.at == i && !side.after) {
          __int128 own = worth(side.line, k, t, price);
          sum += own - std::max<__int128>(0, own);  // no longer a choice
        }
      sum += worth(line, k, t, price);
      for (const Path::Side& side : path.sides)
        if (side.at == i && side.after) sum += std::max<__int128>(0, worth(side.line, k, t, price));
      most = std::max(most, sum);
      if (head_at(line, k) + flow_.lines[line].cost > t) break;
    }
    return most;
  }

  const Flow& flow_;
  const std::vector<int64_t>& head_;
  int64_t cap_;
  std::vector<Path> paths_;
  std::vector<Price> prices_;
};

constexpr size_t kMoments = 300;

}  // namespace

std::vector<Idle> warmup(const Flow& flow, const std::vector<int64_t>& head, int device) {
  Device all_lines(flow, head, device);
  std::vector<int64_t> moments{0};
  for (int line : flow.of_device[device])
    for (int k = 0; k < flow.microbatches; ++k) {
      int64_t at = head[size_t(line) * size_t(flow.microbatches) + size_t(k)];
      moments.push_back(at);
      if (flow.lines[line].give > 0) moments.push_back(at + flow.lines[line].cost);
    }
  std::sort(moments.begin(), moments.end());
  moments.erase(std::unique(moments.begin(), moments.end()), moments.end());
  if (moments.size() > kMoments) moments.resize(kMoments);
  std::vector<Idle> all;
  size_t price = 0;
  for (int64_t t : moments) all.push_back({t, all_lines.most_work(t, price)});
  // No later moment has less done.
  for (size_t i = all.size() - 1; i-- > 0;) all[i].work = std::min(all[i].work, all[i + 1].work);
  return all;
}

// Let a be a moment of the warm end and b one of the cool end whose works together are less than all of it.
// In a step no longer than a.until + b.until the two would cover everything, and the work could not be done;
// so the step is longer, they do not meet, and what is idle in one is not idle in the other.
int64_t between_ends(const std::vector<Idle>& warm, const std::vector<Idle>& cool, int64_t work) {
  int64_t most = 0, idle = 0;
  size_t next = 0;
  for (size_t i = warm.size(); i-- > 0;) {
    if (warm[i].work >= work) continue;
    for (; next < cool.size() && warm[i].work + cool[next].work < work; ++next)
      idle = std::max(idle, cool[next].ticks());
    most = std::max(most, work + warm[i].ticks() + idle);
  }
  return most;
}

}  // namespace partita::schedule
