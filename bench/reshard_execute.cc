#include "reshard_execute.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <numeric>
#include <random>
#include <thread>

namespace partita::reshard {
namespace {

using Values = std::vector<int64_t>;

/// A tensor whose shape is the whole; only the elements of the device's pieces mean something.
using Tensors = std::map<Addend, Values>;

/// Messages from one device to another, in order.
class Channel {
 public:
  void send(Values values) {
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(values));
    arrived_.notify_one();
  }
  Values receive() {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return !queue_.empty(); });
    Values values = std::move(queue_.front());
    queue_.pop_front();
    return values;
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Values> queue_;
};

/// Offsets of the elements of a region in the whole tensor, row-major.
std::vector<int64_t> offsets(const Region& region, const std::vector<int64_t>& shape) {
  std::vector<int64_t> list = {0};
  for (size_t d = 0; d < shape.size(); ++d) {
    std::vector<int64_t> next;
    for (int64_t base : list)
      for (int64_t i = region[d].begin; i < region[d].end; ++i) next.push_back(base * shape[d] + i);
    list = std::move(next);
  }
  return list;
}

class Machine {
 public:
  Machine(const std::vector<int64_t>& shape, const Hop& hop, std::map<int32_t, Tensors> before)
      : shape_(shape), hop_(hop), before_(std::move(before)) {
    elements_ = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
    channels_ = std::vector<std::deque<Channel>>(hop.cells->num_devices());
    for (auto& row : channels_) row.resize(hop.cells->num_devices());
    after_.resize(hop.cells->num_devices());
  }

  std::map<int32_t, Tensors> run() {
    std::vector<std::thread> threads;
    for (int32_t me = 0; me < hop_.cells->num_devices(); ++me)
      threads.emplace_back([this, me] {
        prepare(me);
        if (hop_.collectives.empty())
          exchange(me);
        else
          for (const Collective& collective : hop_.collectives) collect(me, collective);
      });
    for (std::thread& thread : threads) thread.join();
    std::map<int32_t, Tensors> after;
    for (int32_t me = 0; me < hop_.cells->num_devices(); ++me)
      after[hop_.cells->devices[me]] = std::move(after_[me]);
    return after;
  }

 private:
  const Values& mine(int32_t me, Addend addend) const {
    return before_.at(hop_.cells->devices[me]).at(addend);
  }
  bool holds(int32_t me, Addend addend) const {
    auto at = before_.find(hop_.cells->devices[me]);
    return at != before_.end() && at->second.count(addend);
  }

  /// Targets start as zeros; around collectives, what is complete at home is simply kept.
  void prepare(int32_t me) {
    for (const Piece& piece : hop_.to)
      if (piece.device == hop_.cells->devices[me]) after_[me].try_emplace(piece.addend, elements_, 0);
    if (hop_.collectives.empty() || !after_[me].count(Addend{})) return;
    for (int cls = 0; cls < hop_.cells->size(); ++cls)
      for (const Token& token : hop_.cells->holders(cls))
        if (token == Token{me, Addend{}})
          for (int64_t at : offsets_of(cls, 0, 1)) after_[me][Addend{}][at] = mine(me, Addend{})[at];
  }

  std::vector<int64_t> offsets_of(int32_t cls, int32_t chunk, int32_t chunks) const {
    std::vector<int64_t> list;
    for (int32_t cell : hop_.cells->cells_of(cls)) {
      std::vector<int64_t> part = offsets(region_of(*hop_.cells, cell, chunk, chunks), shape_);
      list.insert(list.end(), part.begin(), part.end());
    }
    return list;
  }

  void exchange(int32_t me) {
    const Exchange& exchange = hop_.exchange;
    for (size_t b = 0; b + 1 < exchange.blocks.size(); ++b) {
      const Block& block = exchange.blocks[b];
      std::vector<int64_t> where = offsets_of(block.cls, block.chunk, block.chunks);
      Values sum(where.size(), 0);
      for (int32_t t = block.take_begin; t < exchange.blocks[b + 1].take_begin; ++t)
        if (exchange.takes[t].device == me) {
          const Values& own = mine(me, tile_of(block.cls, exchange.takes[t].tile));
          for (size_t i = 0; i < where.size(); ++i) sum[i] += own[where[i]];
        }
      for (int32_t m = block.move_begin; m < exchange.blocks[b + 1].move_begin; ++m) {
        const Move& move = exchange.moves[m];
        if (move.from == me) channels_[move.to][me].send(sum);
        if (move.to != me) continue;
        Values came = channels_[me][move.from].receive();
        if (!move.add) sum.assign(where.size(), 0);
        for (size_t i = 0; i < where.size(); ++i) sum[i] += came[i];
      }
      keep(me, block, where, sum);
    }
  }

  static std::vector<Addend> distinct(std::span<const Token> tokens) {
    std::vector<Addend> addends;
    for (const Token& token : tokens)
      if (!token.addend.complete()) addends.push_back(token.addend);
    std::sort(addends.begin(), addends.end());
    addends.erase(std::unique(addends.begin(), addends.end()), addends.end());
    return addends;
  }
  Addend tile_of(int32_t cls, int32_t tile) const {
    return tile < 0 ? Addend{} : distinct(hop_.cells->holders(cls))[tile];
  }

  void keep(int32_t me, const Block& block, const std::vector<int64_t>& where, const Values& sum) {
    std::vector<Addend> targets = distinct(hop_.cells->needers(block.cls));
    for (const Token& needer : hop_.cells->needers(block.cls)) {
      if (needer.device != me) continue;
      int32_t need = needer.addend.complete()
                         ? -1
                         : static_cast<int32_t>(std::find(targets.begin(), targets.end(), needer.addend) -
                                                targets.begin());
      if (need != block.need && need != block.also) continue;
      for (size_t i = 0; i < where.size(); ++i) after_[me][needer.addend][where[i]] = sum[i];
    }
  }

  /// What a rank gives of a region: its complete copy, or its addend.
  Values give(int32_t me, const std::vector<int64_t>& where, const Region& region) const {
    for (int cls = 0; cls < hop_.cells->size(); ++cls) {
      if (!contains(region, region_of(*hop_.cells, hop_.cells->cells_of(cls)[0]))) continue;
      for (const Token& token : hop_.cells->holders(cls))
        if (token.device == me) {
          Values values;
          for (int64_t at : where) values.push_back(mine(me, token.addend)[at]);
          return values;
        }
    }
    return Values(where.size(), 0);
  }

  void store(int32_t me, const std::vector<int64_t>& where, const Values& values, bool add) {
    if (!after_[me].count(Addend{})) return;
    Values& mine = after_[me][Addend{}];
    for (size_t i = 0; i < where.size(); ++i) mine[where[i]] = (add ? mine[where[i]] : 0) + values[i];
  }

  void collect(int32_t me, const Collective& collective) {
    auto at = std::find(collective.ranks.begin(), collective.ranks.end(), me);
    if (at == collective.ranks.end()) return;
    size_t i = at - collective.ranks.begin();
    size_t ranks = collective.ranks.size();
    bool sums = collective.op == Op::kReduceScatter || collective.op == Op::kAllReduce;
    for (size_t j = 0; j < ranks; ++j) {
      // What I send to rank j, then what comes from rank j: every pair has its own queue, so nobody waits in
      // a circle.
      if (std::optional<Region> region = passed(collective, i, j)) {
        std::vector<int64_t> where = offsets(*region, shape_);
        channels_[collective.ranks[j]][me].send(give(me, where, *region));
      }
    }
    if (sums)
      if (std::optional<Region> region = passed(collective, i, i)) {
        std::vector<int64_t> where = offsets(*region, shape_);
        store(me, where, Values(where.size(), 0), false);
      }
    for (size_t j = 0; j < ranks; ++j)
      if (std::optional<Region> region = passed(collective, j, i)) {
        std::vector<int64_t> where = offsets(*region, shape_);
        Values values = channels_[me][collective.ranks[j]].receive();
        store(me, where, values, sums);
      }
  }

  /// The region that goes from rank position i to position j.
  static std::optional<Region> passed(const Collective& collective, size_t i, size_t j) {
    switch (collective.op) {
      case Op::kAllGather:
        return collective.blocks[i];
      case Op::kReduceScatter:
        return collective.blocks[j];
      case Op::kAllReduce:
        return collective.blocks[0];
      case Op::kAllToAll:
        return intersect(collective.blocks[i], collective.targets[j]);
      case Op::kBroadcast:
        return i == 0 ? std::optional(collective.blocks[0]) : std::nullopt;
    }
    return std::nullopt;
  }

  const std::vector<int64_t>& shape_;
  const Hop& hop_;
  std::map<int32_t, Tensors> before_;
  int64_t elements_ = 1;
  std::vector<std::deque<Channel>> channels_;  // [to][from]
  std::vector<Tensors> after_;
};

/// Atoms of the value: as many as the finest addend needs; addend i of k is the sum of its share of them.
std::map<int32_t, Tensors> start(const Problem& problem, std::mt19937_64& random, Values& truth) {
  int64_t elements =
      std::accumulate(problem.shape.begin(), problem.shape.end(), int64_t{1}, std::multiplies<>());
  int64_t atoms = 1;
  for (const Piece& piece : problem.from) atoms = std::lcm(atoms, piece.addend.count);
  std::vector<Values> atom(atoms, Values(elements));
  truth.assign(elements, 0);
  for (Values& values : atom)
    for (int64_t e = 0; e < elements; ++e)
      truth[e] += values[e] = static_cast<int64_t>(random() % 2001) - 1000;
  std::map<int32_t, Tensors> tensors;
  for (const Piece& piece : problem.from) {
    // What a device does not have is poison, so that reading it shows.
    Values& values =
        tensors[piece.device].try_emplace(piece.addend, elements, int64_t{1} << 40).first->second;
    int64_t share = atoms / piece.addend.count;
    for (int64_t at : offsets(piece.region, problem.shape)) {
      values[at] = 0;
      for (int64_t a = piece.addend.index * share; a < (piece.addend.index + 1) * share; ++a)
        values[at] += atom[a][at];
    }
  }
  return tensors;
}

std::string compare(const Problem& problem, std::map<int32_t, Tensors>& ended, const Values& truth) {
  std::map<int64_t, std::map<Addend, int64_t>> dealt;  // element -> addend -> value
  for (const Piece& piece : problem.to)
    for (int64_t at : offsets(piece.region, problem.shape)) {
      int64_t value = ended[piece.device][piece.addend][at];
      if (piece.addend.complete()) {
        if (value != truth[at])
          return fmt::format("element {} on device {} is {}, not {}", at, piece.device, value, truth[at]);
      } else if (auto [known, fresh] = dealt[at].emplace(piece.addend, value);
                 !fresh && known->second != value) {
        return fmt::format("element {}: equal addends differ on device {}", at, piece.device);
      }
    }
  for (const auto& [at, addends] : dealt) {
    int64_t sum = 0;
    for (const auto& [addend, value] : addends) sum += value;
    if (sum != truth[at]) return fmt::format("element {}: addends make {}, not {}", at, sum, truth[at]);
  }
  return {};
}

}  // namespace

std::string execute(const Problem& problem, const Answer& answer, uint64_t seed) {
  std::mt19937_64 random(seed);
  Values truth;
  std::map<int32_t, Tensors> tensors = start(problem, random, truth);
  for (const Hop& hop : answer.hops) tensors = Machine(problem.shape, hop, std::move(tensors)).run();
  return compare(problem, tensors, truth);
}

}  // namespace partita::reshard
