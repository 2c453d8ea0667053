#include "reshard/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace partita::reshard {
namespace {

/// How often every tile of the class is in a sum; a complete copy counts every tile once.
using Content = std::vector<int32_t>;

class Replayer {
 public:
  Replayer(const Cells& cells, const Exchange& exchange) : cells_(cells), exchange_(exchange) {}

  std::string run() {
    std::map<std::pair<int32_t, int32_t>, std::vector<int32_t>> open;  // (class, chunk) -> blocks
    std::vector<int32_t> chunks(cells_.size(), 0);
    std::vector<bool> simple(cells_.size(), false);
    for (size_t b = 0; b + 1 < exchange_.blocks.size(); ++b) {
      const Block& block = exchange_.blocks[b];
      if (is_plain(block.cls) && block.chunks == 1 && !simple[block.cls]) {
        simple[block.cls] = true;
        if (std::string wrong = replay_copies(b); !wrong.empty()) return wrong;
      } else {
        open[{block.cls, block.chunk}].push_back(static_cast<int32_t>(b));
        if (chunks[block.cls] && chunks[block.cls] != block.chunks)
          return say(block.cls, "is cut in two ways");
        chunks[block.cls] = block.chunks;
      }
    }
    for (const auto& [key, blocks] : open)
      if (std::string wrong = replay_blocks(key.first, blocks); !wrong.empty()) return wrong;
    return check_all_served(simple, chunks, open);
  }

 private:
  std::string say(int32_t cls, std::string_view what) const {
    return fmt::format("cells {} {}", to_text(region_of(cells_, cells_.cells_of(cls)[0])), what);
  }

  static bool complete(std::span<const Token> tokens) {
    return std::all_of(tokens.begin(), tokens.end(),
                       [](const Token& token) { return token.addend.complete(); });
  }
  bool is_plain(int32_t cls) const { return complete(cells_.holders(cls)) && complete(cells_.needers(cls)); }

  int32_t end_takes(size_t b) const { return exchange_.blocks[b + 1].take_begin; }
  int32_t end_moves(size_t b) const { return exchange_.blocks[b + 1].move_begin; }

  /// Complete copies only: a list of devices that have it is all there is to track.
  std::string replay_copies(size_t b) {
    const Block& block = exchange_.blocks[b];
    have_.clear();
    auto has = [&](int32_t device) { return std::find(have_.begin(), have_.end(), device) != have_.end(); };
    for (int32_t t = block.take_begin; t < end_takes(b); ++t) {
      const Take& take = exchange_.takes[t];
      if (take.tile != -1 || !holds(block.cls, {take.device, Addend{}}))
        return say(block.cls, "are taken where they are not");
      have_.push_back(take.device);
    }
    for (int32_t m = block.move_begin; m < end_moves(b); ++m) {
      const Move& move = exchange_.moves[m];
      if (move.add || !has(move.from)) return say(block.cls, "are sent before they came");
      if (has(move.to)) return say(block.cls, "come twice");
      have_.push_back(move.to);
    }
    for (const Token& needer : cells_.needers(block.cls))
      if (!has(needer.device))
        return say(block.cls, fmt::format("never reach device {}", cells_.devices[needer.device]));
    return {};
  }

  bool holds(int32_t cls, const Token& token) const {
    std::span<const Token> holders = cells_.holders(cls);
    return std::find(holders.begin(), holders.end(), token) != holders.end();
  }

  /// All blocks of one chunk of a class, then what every needer ended with.
  std::string replay_blocks(int32_t cls, const std::vector<int32_t>& blocks) {
    std::vector<Addend> tiles = distinct_addends(cells_.holders(cls)),
                        targets = distinct_addends(cells_.needers(cls));
    size_t size = std::max<size_t>(1, tiles.size());
    std::map<int32_t, std::map<int32_t, Content>> ends;  // need -> device -> content
    for (int32_t b : blocks) {
      std::map<int32_t, Content> sums;
      if (std::string wrong = take_all(b, tiles, size, sums); !wrong.empty()) return wrong;
      if (std::string wrong = move_all(b, sums); !wrong.empty()) return wrong;
      const Block& block = exchange_.blocks[b];
      for (int32_t need : {block.need, block.also})
        if (need >= -1 && !ends.emplace(need, sums).second) return say(cls, "are served twice");
    }
    return check_ends(cls, ends, targets, size);
  }

  std::string take_all(int32_t b, const std::vector<Addend>& tiles, size_t size,
                       std::map<int32_t, Content>& sums) const {
    const Block& block = exchange_.blocks[b];
    for (int32_t t = block.take_begin; t < end_takes(b); ++t) {
      const Take& take = exchange_.takes[t];
      bool known = take.tile < static_cast<int32_t>(tiles.size());
      if (!known || !holds(block.cls, {take.device, take.tile < 0 ? Addend{} : tiles[take.tile]}))
        return say(block.cls, "are taken where they are not");
      Content& content = sums.try_emplace(take.device, size, 0).first->second;
      if (take.tile >= 0)
        ++content[take.tile];
      else
        for (int32_t& count : content) ++count;
    }
    return {};
  }

  std::string move_all(int32_t b, std::map<int32_t, Content>& sums) const {
    const Block& block = exchange_.blocks[b];
    std::map<int32_t, int32_t> ready;  // the round in which a device's sum last changed, plus one
    for (int32_t m = block.move_begin; m < end_moves(b); ++m) {
      const Move& move = exchange_.moves[m];
      auto from = sums.find(move.from);
      if (from == sums.end() || ready[move.from] > move.round)
        return say(block.cls, "are sent before they came");
      Content content = from->second;
      Content& to = sums.try_emplace(move.to, content.size(), 0).first->second;
      if (!move.add)
        to = content;
      else
        for (size_t i = 0; i < content.size(); ++i) to[i] += content[i];
      ready[move.to] = move.round + 1;
    }
    return {};
  }

  std::string check_ends(int32_t cls, const std::map<int32_t, std::map<int32_t, Content>>& ends,
                         const std::vector<Addend>& targets, size_t size) const {
    Content whole(size, 1), dealt(size, 0);
    std::vector<Content> by_target(targets.size());
    for (const Token& needer : cells_.needers(cls)) {
      int32_t need = needer.addend.complete()
                         ? -1
                         : static_cast<int32_t>(std::find(targets.begin(), targets.end(), needer.addend) -
                                                targets.begin());
      Content content(size, 0);  // without a block: zeros
      if (auto served = ends.find(need); served != ends.end()) {
        auto at = served->second.find(needer.device);
        if (at == served->second.end())
          return say(cls, fmt::format("never reach device {}", cells_.devices[needer.device]));
        content = at->second;
      }
      if (need == -1) {
        if (content != whole)
          return say(cls, fmt::format("are not complete on device {}", cells_.devices[needer.device]));
      } else if (by_target[need].empty()) {
        by_target[need] = content;
        for (size_t i = 0; i < size; ++i) dealt[i] += content[i];
      } else if (by_target[need] != content) {
        return say(cls, "differ on devices that want the same partial");
      }
    }
    if (!targets.empty() && dealt != whole) return say(cls, "do not add up to the value");
    return {};
  }

  std::string check_all_served(
      const std::vector<bool>& simple, const std::vector<int32_t>& chunks,
      const std::map<std::pair<int32_t, int32_t>, std::vector<int32_t>>& open) const {
    for (int cls = 0; cls < cells_.size(); ++cls) {
      if (cells_.needers(cls).empty() || simple[cls]) continue;
      if (chunks[cls] == 0) return say(cls, "are forgotten");
      for (int32_t chunk = 0; chunk < chunks[cls]; ++chunk)
        if (!open.count({cls, chunk})) return say(cls, fmt::format("miss part {}", chunk));
    }
    return {};
  }

  const Cells& cells_;
  const Exchange& exchange_;
  std::vector<int32_t> have_;
};

}  // namespace

std::string replay(const Cells& cells, const Exchange& exchange) { return Replayer(cells, exchange).run(); }

}  // namespace partita::reshard
