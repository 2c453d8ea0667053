#include "reshard/exchange.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include "reshard/builder.h"

namespace partita::reshard {
namespace {

constexpr size_t kLargeWork = 1 << 13;    // open classes times devices
constexpr size_t kMostPlacing = 1 << 21;  // blocks times pairs of devices that are looked at for balance
constexpr size_t kManyBlocks = 4096;      // cutting into more is not tried

std::vector<Ways> find_ways(const Cells& cells, const Agenda& agenda, bool bare) {
  std::vector<Ways> ways(agenda.open.size());
  for (size_t open = 0; open < agenda.open.size(); ++open)
    for (const Job& job : agenda.works[open].jobs)
      ways[open].push_back(job.have.empty() ? ways_to_sum(cells, agenda.works[open], job, bare)
                                            : std::vector<SumWay>{});
  return ways;
}

bool is_large(const Cells& cells, const Agenda& agenda) {
  return agenda.open.size() * cells.num_devices() > kLargeWork;
}

/// Groups of a level that must be entered: they want the value and nobody in them has it.
int64_t count_entered(const std::vector<int32_t>& group, const Job& job) {
  std::set<int32_t> having, wanting;
  for (int32_t device : job.have) having.insert(group[device]);
  for (int32_t device : job.want)
    if (!having.count(group[device])) wanting.insert(group[device]);
  return static_cast<int64_t>(wanting.size());
}

/// Transfers of one element that leave a group, by level, the widest groups first.
std::vector<int64_t> least_crossings(const Cells& cells, const ClassWork& work, const Job& job) {
  if (job.have.empty()) return ways_to_sum(cells, work, job, true)[0].crossings;
  std::vector<int64_t> crossings;
  for (size_t level = cells.levels.size(); level-- > 0;)
    crossings.push_back(count_entered(cells.levels[level], job));
  return crossings;
}

}  // namespace

int Exchange::rounds() const {
  int rounds = 0;
  for (const Move& move : moves) rounds = std::max(rounds, move.round + 1);
  return rounds;
}

void Load::add(const Cells& cells, int32_t from, int32_t to, int64_t elements) {
  sent[from] += elements;
  received[to] += elements;
  total += elements;
  int level = shared_level(cells.levels, from, to);
  sent_at[level][from] += elements;
  received_at[level][to] += elements;
  for (int left = 0; left < level; ++left) crossing[crossing.size() - 1 - left] += elements;
}

int64_t Load::max_sent() const { return sent.empty() ? 0 : *std::max_element(sent.begin(), sent.end()); }
int64_t Load::max_received() const {
  return received.empty() ? 0 : *std::max_element(received.begin(), received.end());
}

Load load_of(const Cells& cells, const Exchange& exchange) {
  Load load(cells);
  for (size_t b = 0; b + 1 < exchange.blocks.size(); ++b) {
    const Block& block = exchange.blocks[b];
    int64_t elements = elements_of(cells, block.cls, block.chunk, block.chunks);
    for (int32_t m = block.move_begin; m < exchange.blocks[b + 1].move_begin; ++m)
      load.add(cells, exchange.moves[m].from, exchange.moves[m].to, elements);
  }
  return load;
}

Agenda make_agenda(const Cells& cells) {
  Agenda agenda;
  agenda.forced.reserve(cells.size());
  std::vector<std::shared_ptr<const Sources>> sources(cells.num_lists());  // made where needed
  for (int cls = 0; cls < cells.size(); ++cls) {
    std::span<const Token> holders = cells.holders(cls), needers = cells.needers(cls);
    bool complete = holders.size() == 1 && holders[0].addend.complete();
    int64_t others = 0;
    for (const Token& token : needers) {
      complete = complete && token.addend.complete();
      others += complete && token.device != holders[0].device;
    }
    if (complete && others <= 1) {
      if (!needers.empty()) agenda.forced.push_back(cls);
      continue;
    }
    agenda.open.push_back(cls);
    std::shared_ptr<const Sources>& own = sources[cells.holder_list[cls]];
    if (!own) own = std::make_shared<const Sources>(sources_of(holders));
    agenda.works.push_back(solve(cells, cls, own));
  }
  return agenda;
}

Bound bound_of(const Cells& cells, const Agenda& agenda) {
  Bound bound;
  bound.crossing.resize(cells.levels.size());
  for (int32_t cls : agenda.forced)
    for (const Token& needer : cells.needers(cls)) {
      int32_t from = cells.holders(cls)[0].device;
      if (needer.device == from) continue;
      bound.elements += cells.elements[cls];
      for (int left = shared_level(cells.levels, from, needer.device); left > 0; --left)
        bound.crossing[bound.crossing.size() - left] += cells.elements[cls];
    }
  for (size_t open = 0; open < agenda.open.size(); ++open) {
    const ClassWork& work = agenda.works[open];
    int64_t elements = cells.elements[agenda.open[open]];
    bound.elements += elements * work.bound;
    bound.proved = bound.proved && work.bound == work.transfers;
    if (!cells.grouped) continue;
    for (const Job& job : work.deal(0)) {
      std::vector<int64_t> crossings = least_crossings(cells, work, job);
      for (size_t level = 0; level < crossings.size(); ++level)
        bound.crossing[level] += elements * crossings[level];
    }
  }
  return bound;
}

Exchange make_exchange(const Cells& cells, const Agenda& agenda, int chunks) {
  bool quick = is_large(cells, agenda);
  return build_exchange(cells, agenda, find_ways(cells, agenda, quick), {chunks, quick});
}

Exchange make_exchange(const Cells& cells, const Agenda& agenda) {
  if (is_large(cells, agenda)) return make_exchange(cells, agenda, 1);
  std::vector<Ways> ways = find_ways(cells, agenda, false);
  size_t pairs = size_t(cells.num_devices()) * cells.num_devices();
  std::vector<int> tries = {1, 2, 3, 4, 6, 8, 12, cells.num_devices()};
  std::sort(tries.begin(), tries.end());
  tries.erase(std::unique(tries.begin(), tries.end()), tries.end());
  Exchange best;
  std::tuple<int64_t, int64_t, int> best_score{std::numeric_limits<int64_t>::max(), 0, 0};
  for (int chunks : tries) {
    size_t blocks = chunks * agenda.open.size();
    if (chunks > 1 && (blocks == 0 || blocks > kManyBlocks || blocks * pairs > kMostPlacing)) continue;
    Exchange exchange = build_exchange(cells, agenda, ways, {chunks, false});
    Load load = load_of(cells, exchange);
    int64_t sent = load.max_sent(), received = load.max_received();
    std::tuple<int64_t, int64_t, int> score{std::max(sent, received), sent + received, exchange.rounds()};
    if (score < best_score) best_score = score, best = std::move(exchange);
  }
  return best;
}

}  // namespace partita::reshard
