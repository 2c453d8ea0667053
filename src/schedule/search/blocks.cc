#include "schedule/search/blocks.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "schedule/search/shake.h"

namespace partita::schedule {
namespace {

constexpr int kNone = -1;

// Longest paths of an order: before every operation (its start) and after its end.
struct Paths {
  std::vector<int64_t> head, tail;
  int64_t makespan = 0;
};

// Swaps operation at `at` of a device with the next one.
struct Move {
  int device, at;
  int64_t estimate;
};

class Blocks {
 public:
  Blocks(const Flow& flow, const FlowOrder& order) : flow_(flow), m_(flow.microbatches) {
    const size_t count = flow.lines.size() * size_t(m_);
    place_.assign(count, 0);
    waits_.assign(count, 0);
    list_.resize(flow.devices);
    used_.resize(flow.devices);
    for (int d = 0; d < flow.devices; ++d) {
      for (const Turn& turn : order[d]) list_[d].push_back(turn.line * m_ + turn.microbatch);
      for (size_t i = 0; i < list_[d].size(); ++i) place_[list_[d][i]] = int(i);
      used_[d].assign(list_[d].size(), 0);
      measure(d, 0, int(list_[d].size()));
    }
    topological_.reserve(count);
  }

  Listed run(const Listed& from, int64_t bound, int64_t work, int64_t& spent) {
    const int64_t ops = int64_t(place_.size());
    std::vector<std::vector<int>> best = list_;
    int64_t shortest = from.makespan, used = 0;
    if (!retime()) return from;
    for (int round = 0, still = 0; used < work && shortest > bound; ++round, ++still) {
      if (still > kPatience) restore(best), still = 0;
      std::optional<Move> move = choose(round, shortest);
      if (!move) break;
      make(*move, round);
      used += ops;
      if (!retime()) {
        undo(*move);
        retime();
        continue;
      }
      if (now_.makespan < shortest) shortest = now_.makespan, best = list_, still = 0;
    }
    spent += used;
    return shortest < from.makespan ? schedule::retime(flow_, to_order(best)) : from;
  }

 private:
  static constexpr int kForbidden = 10, kPatience = 3'000;

  const Flow::Line& line(int op) const { return flow_.lines[op / m_]; }
  int of_line(int other, int op) const { return other * m_ + op % m_; }
  int before(int op) const { return place_[op] > 0 ? list_[line(op).device][place_[op] - 1] : kNone; }
  int after(int op) const {
    const std::vector<int>& list = list_[line(op).device];
    return place_[op] + 1 < int(list.size()) ? list[place_[op] + 1] : kNone;
  }
  int64_t end(int op) const { return now_.head[op] + line(op).cost; }

  // Memory in use before every operation of a part of a device's list.
  void measure(int device, int from, int to) {
    for (int i = std::max(from, 1); i < to; ++i) {
      const Flow::Line& l = line(list_[device][i - 1]);
      used_[device][i] = used_[device][i - 1] + l.take - l.give;
    }
  }

  int64_t arrival(int op) const {
    int64_t at = 0;
    for (const Flow::Feed& feed : line(op).inputs)
      at = std::max(at, end(of_line(feed.line, op)) + feed.delay);
    return at;
  }
  int64_t afterwards(int op) const {
    int64_t most = 0;
    for (const Flow::Feed& feed : line(op).outputs) {
      int reader = of_line(feed.line, op);
      most = std::max(most, feed.delay + line(reader).cost + now_.tail[reader]);
    }
    return most;
  }

  // False if the order deadlocks.
  bool retime() {
    const size_t count = place_.size();
    topological_.clear();
    now_.head.resize(count);
    now_.tail.resize(count);
    for (size_t op = 0; op < count; ++op) {
      waits_[op] = int(line(int(op)).inputs.size()) + (place_[op] > 0);
      if (waits_[op] == 0) topological_.push_back(int(op));
    }
    for (size_t i = 0; i < topological_.size(); ++i) {
      int op = topological_[i], last = before(op), next = after(op);
      now_.head[op] = std::max(arrival(op), last == kNone ? 0 : end(last));
      if (next != kNone && --waits_[next] == 0) topological_.push_back(next);
      for (const Flow::Feed& feed : line(op).outputs)
        if (int reader = of_line(feed.line, op); --waits_[reader] == 0) topological_.push_back(reader);
    }
    if (topological_.size() != count) return false;
    now_.makespan = 0;
    for (size_t i = count; i-- > 0;) {
      int op = topological_[i], next = after(op);
      now_.tail[op] = std::max(afterwards(op), next == kNone ? 0 : line(next).cost + now_.tail[next]);
      now_.makespan = std::max(now_.makespan, end(op));
    }
    return true;
  }

  // The best move of a critical path that is not forbidden, or shortens what was ever the shortest.
  std::optional<Move> choose(int round, int64_t shortest) {
    std::optional<Move> best;
    int64_t ties = 0;
    for (int op = first_critical(); op != kNone;) {
      int next = after(op);
      const bool same = next != kNone && is_critical(next) && now_.head[next] == end(op);
      if (same && may_swap(op, next)) {
        Move move{line(op).device, place_[op], estimate(op, next)};
        auto until = until_.find(key(op, next));
        bool forbidden = until != until_.end() && until->second > round && move.estimate >= shortest;
        if (!forbidden) {
          if (!best || move.estimate < best->estimate)
            best = move, ties = 1;
          else if (move.estimate == best->estimate && dice_.roll(++ties) == 0)
            best = move;
        }
      }
      op = next_critical(op, same ? next : kNone);
    }
    return best;
  }

  bool is_critical(int op) const { return end(op) + now_.tail[op] == now_.makespan; }

  int first_critical() const {
    for (const std::vector<int>& list : list_)
      if (!list.empty() && now_.head[list[0]] == 0 && is_critical(list[0])) return list[0];
    return kNone;
  }

  // The reader where the path goes on there, else the neighbour.
  int next_critical(int op, int neighbour) {
    int chosen = neighbour;
    int64_t ways = neighbour == kNone ? 0 : 1;
    for (const Flow::Feed& feed : line(op).outputs) {
      int reader = of_line(feed.line, op);
      if (now_.head[reader] == end(op) + feed.delay && is_critical(reader) && dice_.roll(++ways) == 0)
        chosen = reader;
    }
    return chosen;
  }

  bool may_swap(int op, int next) const {
    if (op / m_ == next / m_) return false;
    for (const Flow::Feed& feed : line(next).inputs)
      if (of_line(feed.line, next) == op) return false;
    const Flow::Line &first = line(op), &second = line(next);
    const int64_t cap = flow_.cap[first.device];
    if (cap == INT64_MAX || second.take == 0) return true;
    int64_t used = used_[first.device][place_[op]] + second.take;
    return used <= cap && used - second.give + first.take <= cap;
  }

  // The longest path through either after the swap.
  int64_t estimate(int op, int next) const {
    int last = before(op), later = after(next);
    int64_t start = std::max(arrival(next), last == kNone ? 0 : end(last));
    int64_t second = std::max(arrival(op), start + line(next).cost);
    int64_t tail = std::max(afterwards(op), later == kNone ? 0 : line(later).cost + now_.tail[later]);
    int64_t first_tail = std::max(afterwards(next), line(op).cost + tail);
    return std::max(start + line(next).cost + first_tail, second + line(op).cost + tail);
  }

  static uint64_t key(int op, int next) { return uint64_t(op) << 32 | uint32_t(next); }

  void swap(int device, int at) {
    std::vector<int>& list = list_[device];
    std::swap(list[at], list[at + 1]);
    place_[list[at]] = at;
    place_[list[at + 1]] = at + 1;
    measure(device, at + 1, at + 2);
  }
  void make(const Move& move, int round) {
    const std::vector<int>& list = list_[move.device];
    until_[key(list[move.at + 1], list[move.at])] = round + kForbidden + int(dice_.roll(kForbidden));
    swap(move.device, move.at);
  }
  void undo(const Move& move) { swap(move.device, move.at); }

  void restore(const std::vector<std::vector<int>>& lists) {
    list_ = lists;
    for (int d = 0; d < flow_.devices; ++d) {
      for (size_t i = 0; i < list_[d].size(); ++i) place_[list_[d][i]] = int(i);
      measure(d, 0, int(list_[d].size()));
    }
    retime();
  }

  FlowOrder to_order(const std::vector<std::vector<int>>& lists) const {
    FlowOrder order(flow_.devices);
    for (int d = 0; d < flow_.devices; ++d)
      for (int op : lists[d]) order[d].push_back({op / m_, op % m_});
    return order;
  }

  const Flow& flow_;
  const int m_;
  std::vector<std::vector<int>> list_;      // operations of every device, line * microbatches + microbatch
  std::vector<std::vector<int64_t>> used_;  // memory before each of those
  std::vector<int> place_, waits_;          // by operation
  std::vector<int> topological_;
  Paths now_;
  std::unordered_map<uint64_t, int> until_;  // round until which a pair stays in its order
  Dice dice_;
};

}  // namespace

Listed shorten(const Flow& flow, const Listed& from, int64_t bound, int64_t work, int64_t& spent) {
  return Blocks(flow, from.order).run(from, bound, work, spent);
}

}  // namespace partita::schedule
