#include "reshard/script.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"

namespace partita::reshard {
namespace {

/// Joins regions that abut, last dimension first: cells of a class become the boxes they are part of.
std::vector<Region> merge(std::vector<Region> regions) {
  if (regions.size() < 2) return regions;
  for (size_t d = regions[0].size(); d-- > 0;) {
    // Neighbours along d must follow each other: sort by the other dimensions first.
    auto key = [d](const Region& region) {
      Region rest = region;
      std::swap(rest[d], rest.back());
      return rest;
    };
    std::sort(regions.begin(), regions.end(),
              [&](const Region& a, const Region& b) { return key(a) < key(b); });
    std::vector<Region> joined;
    for (Region& region : regions) {
      std::optional<Region> both = joined.empty() ? std::nullopt : concat(joined.back(), region);
      if (both)
        joined.back() = std::move(*both);
      else
        joined.push_back(std::move(region));
    }
    regions = std::move(joined);
  }
  return regions;
}

/// A piece of a device and the buffer with it.
struct Held {
  Region region;
  Addend addend;
  int32_t buffer = 0;
};

/// One device while its script is written.
struct Writer {
  Script script;
  std::vector<Held> have, next;  // before and after the hop at hand

  int32_t add_buffer(const Region& region) {
    script.buffers.push_back(region);
    return static_cast<int32_t>(script.buffers.size()) - 1;
  }
  void add(Step step) { script.steps.push_back(std::move(step)); }
  void copy(int32_t from, int32_t to) { add({.kind = StepKind::kCopy, .in = from, .out = to}); }

  /// A buffer with exactly this region of the device's addend. REQUIRES: it has that.
  int32_t fetch(const Region& region, Addend addend) {
    for (const Held& held : have)
      if (held.addend == addend && held.region == region) return held.buffer;
    return fetch_copy(region, [&](const Held& held) { return held.addend == addend; });
  }

  /// The same of all pieces that fit, in a buffer that nobody else reads.
  template <class Fits>
  int32_t fetch_copy(const Region& region, const Fits& fits) {
    int32_t buffer = add_buffer(region);
    for (const Held& held : have)
      if (fits(held) && contains(held.region, region)) {
        copy(held.buffer, buffer);
        return buffer;
      }
    for (const Held& held : have)
      if (fits(held) && intersect(held.region, region)) copy(held.buffer, buffer);
    return buffer;
  }

  /// What a rank of a reducing collective gives: its addends, which may differ from place to place.
  int32_t fetch_addends(const Region& region) {
    return fetch_copy(region, [](const Held& held) { return !held.addend.complete(); });
  }

  /// Into every target that wants some of it.
  void keep(int32_t buffer, Addend addend) {
    for (const Held& target : next)
      if (target.addend == addend && intersect(target.region, script.buffers[buffer]))
        copy(buffer, target.buffer);
  }

  void send(int32_t buffer, int32_t peer) { add({.kind = StepKind::kSend, .in = buffer, .peer = peer}); }
  int32_t receive(const Region& region, int32_t peer) {
    int32_t buffer = add_buffer(region);
    add({.kind = StepKind::kReceive, .out = buffer, .peer = peer});
    return buffer;
  }
};

class Author {
 public:
  explicit Author(const Problem& problem) {
    for (const auto* side : {&problem.from, &problem.to})
      for (const Piece& piece : *side) writers_[piece.device].script.device = piece.device;
    for (const Piece& piece : problem.from) {
      Writer& writer = writers_[piece.device];
      writer.have.push_back({piece.region, piece.addend, writer.add_buffer(piece.region)});
    }
  }

  std::vector<Script> write(const Answer& answer) {
    CHECK(!answer.hops.empty());
    for (const Hop& hop : answer.hops) write_hop(hop);
    std::vector<Script> scripts;
    for (auto& [device, writer] : writers_) {
      for (const Held& target : writer.have) writer.script.targets.push_back(target.buffer);
      scripts.push_back(std::move(writer.script));
    }
    return scripts;
  }

 private:
  Writer& writer(int32_t number) { return writers_.at(cells_->devices[number]); }
  int32_t device(int32_t number) const { return cells_->devices[number]; }

  void write_hop(const Hop& hop) {
    cells_ = hop.cells.get();
    for (const Piece& piece : hop.to) {
      Writer& writer = writers_[piece.device];
      writer.next.push_back({piece.region, piece.addend, writer.add_buffer(piece.region)});
      // What no block brings to an addend is nothing.
      if (!piece.addend.complete()) writer.add({.kind = StepKind::kFill, .out = writer.next.back().buffer});
    }
    if (hop.collectives.empty())
      write_exchange(hop.exchange);
    else
      write_collectives(hop.collectives);
    for (auto& [device, writer] : writers_) writer.have = std::exchange(writer.next, {});
  }

  /// The sum of one part of a block on every device that has one.
  struct Part {
    int32_t block = 0;
    Region region;
    std::map<int32_t, int32_t> sums;  // buffer by device number
  };

  void write_exchange(const Exchange& exchange) {
    std::vector<Part> parts;
    for (size_t b = 0; b + 1 < exchange.blocks.size(); ++b)
      for (Region& region : regions_of(exchange.blocks[b]))
        parts.push_back({static_cast<int32_t>(b), std::move(region), {}});
    for (Part& part : parts) take(exchange, part);
    int rounds = exchange.rounds();
    for (int round = 0; round < rounds; ++round)
      for (Part& part : parts) move(exchange, part, round);
    for (const Part& part : parts) keep(exchange.blocks[part.block], part);
  }

  std::vector<Region> regions_of(const Block& block) const {
    std::vector<Region> regions;
    for (int32_t cell : cells_->cells_of(block.cls)) {
      Region region = region_of(*cells_, cell, block.chunk, block.chunks);
      if (volume(region) > 0) regions.push_back(std::move(region));
    }
    return merge(std::move(regions));
  }

  void take(const Exchange& exchange, Part& part) {
    const Block& block = exchange.blocks[part.block];
    std::vector<Addend> tiles = distinct_addends(cells_->holders(block.cls));
    for (int32_t t = block.take_begin; t < exchange.blocks[part.block + 1].take_begin; ++t) {
      const Take& take = exchange.takes[t];
      Addend addend = take.tile < 0 ? Addend{} : tiles[take.tile];
      Writer& mine = writer(take.device);
      auto sum = part.sums.find(take.device);
      if (sum != part.sums.end())
        mine.add({.kind = StepKind::kAdd, .in = mine.fetch(part.region, addend), .out = sum->second});
      else if (addend.complete())
        part.sums[take.device] = mine.fetch(part.region, addend);
      else  // others are added to it where it lies
        part.sums[take.device] =
            mine.fetch_copy(part.region, [&](const Held& held) { return held.addend == addend; });
    }
  }

  void move(const Exchange& exchange, Part& part, int round) {
    const Block& block = exchange.blocks[part.block];
    for (int32_t m = block.move_begin; m < exchange.blocks[part.block + 1].move_begin; ++m) {
      const Move& move = exchange.moves[m];
      if (move.round != round) continue;
      writer(move.from).send(part.sums.at(move.from), device(move.to));
      Writer& to = writer(move.to);
      int32_t came = to.receive(part.region, device(move.from));
      auto sum = part.sums.find(move.to);
      if (move.add && sum != part.sums.end())
        to.add({.kind = StepKind::kAdd, .in = came, .out = sum->second});
      else
        part.sums[move.to] = came;
    }
  }

  void keep(const Block& block, const Part& part) {
    std::vector<Addend> targets = distinct_addends(cells_->needers(block.cls));
    for (const Token& needer : cells_->needers(block.cls)) {
      int32_t need = -1;
      if (!needer.addend.complete())
        need =
            static_cast<int32_t>(std::find(targets.begin(), targets.end(), needer.addend) - targets.begin());
      if (need == block.need || need == block.also)
        writer(needer.device).keep(part.sums.at(needer.device), needer.addend);
    }
  }

  void write_collectives(const std::vector<Collective>& collectives) {
    for (auto& [device, writer] : writers_)
      for (const Held& held : writer.have)
        if (held.addend.complete()) writer.keep(held.buffer, {});
    for (const Collective& collective : collectives) write_collective(collective);
  }

  void write_collective(const Collective& collective) {
    bool sums = collective.op == Op::kReduceScatter || collective.op == Op::kAllReduce;
    if (collective.op == Op::kAllReduce)
      write_all_reduce(collective);
    else if (collective.op == Op::kBroadcast)
      write_chain(collective);
    else if (collective.dim < 0)
      write_messages(collective, sums);
    else
      write_row(collective, sums);
  }

  std::vector<int32_t> group_of(const Collective& collective) const {
    std::vector<int32_t> group;
    for (int32_t number : collective.ranks) group.push_back(device(number));
    return group;
  }

  void write_all_reduce(const Collective& collective) {
    for (int32_t rank : collective.ranks) {
      Writer& mine = writer(rank);
      const Region& region = collective.blocks[0];
      int32_t buffer = mine.fetch_addends(region);
      mine.add({.kind = StepKind::kAllReduce, .out = buffer, .group = group_of(collective)});
      mine.keep(buffer, {});
    }
  }

  /// Blocks in a row along one dimension: gathered into their hull, or scattered from it.
  void write_row(const Collective& collective, bool sums) {
    Region whole = collective.blocks[0];
    std::vector<int64_t> pieces;
    for (const Region& block : collective.blocks) {
      whole = hull(whole, block);
      pieces.push_back(block[collective.dim].length());
    }
    for (size_t i = 0; i < collective.ranks.size(); ++i) {
      Writer& mine = writer(collective.ranks[i]);
      int32_t in = sums ? mine.fetch_addends(whole) : mine.fetch(collective.blocks[i], {});
      int32_t out = mine.add_buffer(sums ? collective.blocks[i] : whole);
      mine.add({.kind = sums ? StepKind::kReduceScatter : StepKind::kAllGather,
                .in = in,
                .out = out,
                .group = group_of(collective),
                .dim = collective.dim,
                .pieces = pieces});
      mine.keep(out, {});
    }
  }

  /// From one rank to the next.
  void write_chain(const Collective& collective) {
    std::vector<int32_t> chain = chain_of(*cells_, collective);
    const Region& region = collective.blocks[0];
    int32_t buffer = writer(chain[0]).fetch(region, {});
    for (size_t i = 1; i < chain.size(); ++i) {
      writer(chain[i - 1]).send(buffer, device(chain[i]));
      buffer = writer(chain[i]).receive(region, device(chain[i - 1]));
      writer(chain[i]).keep(buffer, {});
    }
  }

  /// Every rank to every other: all-to-all, and blocks that are no row.
  void write_messages(const Collective& collective, bool sums) {
    size_t ranks = collective.ranks.size();
    std::vector<int32_t> own(ranks, -1);  // sums
    for (size_t j = 0; j < ranks && sums; ++j) {
      Writer& mine = writer(collective.ranks[j]);
      own[j] = mine.fetch_addends(collective.blocks[j]);
    }
    for (size_t i = 0; i < ranks; ++i)
      for (size_t j = 0; j < ranks; ++j)
        if (std::optional<Region> region = i == j ? std::nullopt : passed(collective, i, j)) {
          Writer &from = writer(collective.ranks[i]), &to = writer(collective.ranks[j]);
          from.send(sums ? from.fetch_addends(*region) : from.fetch(*region, {}), to.script.device);
          int32_t came = to.receive(*region, from.script.device);
          if (sums)
            to.add({.kind = StepKind::kAdd, .in = came, .out = own[j]});
          else
            to.keep(came, {});
        }
    for (size_t j = 0; j < ranks && sums; ++j) writer(collective.ranks[j]).keep(own[j], {});
  }

  /// The region that goes from position i to position j.
  static std::optional<Region> passed(const Collective& collective, size_t i, size_t j) {
    if (collective.op == Op::kAllGather) return collective.blocks[i];
    if (collective.op == Op::kReduceScatter) return collective.blocks[j];
    return intersect(collective.blocks[i], collective.targets[j]);
  }

  std::map<int32_t, Writer> writers_;  // by device
  const Cells* cells_ = nullptr;       // of the hop at hand
};

}  // namespace

std::string_view to_text(StepKind kind) {
  constexpr std::string_view kNames[] = {"fill",       "copy",           "add",       "send", "receive",
                                         "all-gather", "reduce-scatter", "all-reduce"};
  return kNames[static_cast<int>(kind)];
}

std::vector<Script> write_scripts(const Problem& problem, const Answer& answer) {
  return Author(problem).write(answer);
}

std::string to_text(const Script& script) {
  std::string text;
  for (const Step& step : script.steps) {
    text += std::string(to_text(step.kind));
    if (step.in >= 0) text += fmt::format(" {}{}", step.in, to_text(script.buffers[step.in]));
    if (step.out >= 0)
      text += fmt::format("{} {}{}", step.in >= 0 ? " ->" : "", step.out, to_text(script.buffers[step.out]));
    if (step.peer >= 0)
      text += fmt::format(" {} {}", step.kind == StepKind::kSend ? "to" : "from", step.peer);
    if (!step.group.empty()) text += fmt::format(" over {}", fmt::join(step.group, " "));
    if (step.dim >= 0) text += fmt::format(" along {}", step.dim);
    text += "\n";
  }
  return text;
}

}  // namespace partita::reshard
