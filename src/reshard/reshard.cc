#include "reshard/reshard.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include "base/error.h"
#include "reshard/replay.h"

namespace partita::reshard {
namespace {

/// Open classes times devices: above this an exchange is not tried beside collectives that reach the bound,
/// and above that compositions are not.
constexpr size_t kExchangeWork = 1 << 12, kComposeWork = 1 << 13;

using SharedCells = std::shared_ptr<const Cells>;

Hop by_exchange(const Problem& problem, const SharedCells& cells, Exchange exchange) {
  Hop hop{.to = problem.to, .cells = cells, .exchange = std::move(exchange)};
  hop.load = load_of(*cells, hop.exchange);
  return hop;
}

std::optional<Hop> by_collectives(const Problem& problem, const SharedCells& cells) {
  Hop hop{.to = problem.to, .cells = cells, .collectives = find_collectives(problem, *cells)};
  if (hop.collectives.empty()) return std::nullopt;
  hop.load = load_of(*cells, hop.collectives);
  return hop;
}

/// Two exchanges for classes with relays: first the wanted addends, to their devices and to the relays, then
/// the rest. Other classes are done in the first.
std::vector<Hop> by_relays(const Problem& problem, const SharedCells& shared, const Agenda& agenda) {
  const Cells& cells = *shared;
  std::vector<const std::vector<int32_t>*> relays(cells.size(), nullptr);
  for (size_t open = 0; open < agenda.open.size(); ++open)
    if (!agenda.works[open].relays.empty()) relays[agenda.open[open]] = &agenda.works[open].relays;
  Problem first = problem, second = problem;
  first.to.clear();
  for (int cls = 0; cls < cells.size(); ++cls) {
    std::vector<Token> tokens(cells.needers(cls).begin(), cells.needers(cls).end());
    if (relays[cls]) {
      std::vector<Addend> addends = distinct_addends(tokens);
      std::erase_if(tokens, [](const Token& token) { return token.addend.complete(); });
      for (int32_t device : *relays[cls])
        for (Addend addend : addends) tokens.push_back({device, addend});
      std::sort(tokens.begin(), tokens.end());
      tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
    }
    for (int32_t cell : cells.cells_of(cls))
      for (const Token& token : tokens)
        first.to.push_back({cells.devices[token.device], region_of(cells, cell), token.addend});
  }
  second.from = first.to;
  std::vector<Hop> hops;
  for (const Problem* step : {&first, &second}) {
    SharedCells own = std::make_shared<const Cells>(cut(*step));
    hops.push_back(by_exchange(*step, own, make_exchange(*own, make_agenda(*own))));
  }
  return hops;
}

bool has_relays(const Agenda& agenda) {
  return std::any_of(agenda.works.begin(), agenda.works.end(),
                     [](const ClassWork& work) { return !work.relays.empty(); });
}

int launches_of(const Hop& hop) { return hop.collectives.empty() ? hop.exchange.rounds() : 1; }

auto rank(const Answer& answer) {
  return std::tuple(answer.total_bytes, answer.crossing_bytes,
                    std::max(answer.max_recv_bytes, answer.max_send_bytes),
                    answer.max_recv_bytes + answer.max_send_bytes, answer.launches, answer.hops.size());
}

Seconds seconds_of(const Hop& hop, const Problem& problem) {
  const Load& load = hop.load;
  if (load.total == 0) return 0;
  double busiest = 0;
  size_t widest = 0;
  for (size_t level = 0; level < load.sent_at.size(); ++level)
    if (std::any_of(load.sent_at[level].begin(), load.sent_at[level].end(), [](int64_t n) { return n > 0; }))
      widest = level;
  for (size_t i = 0; i < load.sent.size(); ++i) {
    double own = 0;
    for (size_t level = 0; level < load.sent_at.size(); ++level)
      own += double(std::max(load.sent_at[level][i], load.received_at[level][i])) /
             problem.links->at(level).bandwidth;
    busiest = std::max(busiest, own * double(problem.elem_bytes));
  }
  int rounds = hop.collectives.empty() ? hop.exchange.rounds() : rounds_of(hop.collectives);
  return rounds * problem.links->at(widest).latency + busiest;
}

/// Keeps the answer with the fewest bytes, and with links the fastest.
struct Best {
  const Problem& problem;
  std::optional<Answer> least, fastest;

  void offer(std::vector<Hop> hops) {
    Answer answer = sum_up(problem, std::move(hops));
    if (problem.links) {
      auto slower = [&](const Answer& other) {
        return std::tuple(answer.seconds, rank(answer)) < std::tuple(other.seconds, rank(other));
      };
      if (!fastest || slower(*fastest)) fastest = answer;
    }
    if (!least || rank(answer) < rank(*least)) least = std::move(answer);
  }

  Answer take() {
    if (!fastest) return std::move(*least);
    fastest->least_bytes_seconds = least->seconds;
    return std::move(*fastest);
  }
};

std::vector<Bytes> in_bytes(std::vector<int64_t> elements, int64_t elem_bytes) {
  for (int64_t& count : elements) count *= elem_bytes;
  return elements;
}

/// Is nothing left to gain but launches, of which collectives have fewest?
bool is_settled(const Answer& answer, const Bound& bound, const Problem& problem, const Cells& cells) {
  Bytes mean = (bound.elements * problem.elem_bytes + cells.num_devices() - 1) / cells.num_devices();
  return answer.total_bytes == bound.elements * problem.elem_bytes &&
         answer.crossing_bytes == in_bytes(bound.crossing, problem.elem_bytes) &&
         std::max(answer.max_recv_bytes, answer.max_send_bytes) <= mean;
}

}  // namespace

Answer sum_up(const Problem& problem, std::vector<Hop> hops) {
  Answer answer;
  std::map<int32_t, int64_t> sent, received;  // by device: hops may know different devices
  for (const Hop& hop : hops) {
    answer.total_bytes += hop.load.total * problem.elem_bytes;
    answer.crossing_bytes.resize(std::max(answer.crossing_bytes.size(), hop.load.crossing.size()));
    // Hops may know fewer levels: those are the innermost ones.
    for (size_t l = hop.load.crossing.size(), at = answer.crossing_bytes.size(); l > 0;)
      answer.crossing_bytes[--at] += hop.load.crossing[--l] * problem.elem_bytes;
    answer.launches += launches_of(hop);
    for (int i = 0; i < hop.cells->num_devices(); ++i) {
      sent[hop.cells->devices[i]] += hop.load.sent[i];
      received[hop.cells->devices[i]] += hop.load.received[i];
    }
  }
  if (!answer.crossing_bytes.empty()) answer.cross_group_bytes = answer.crossing_bytes.back();
  for (const auto& [device, elements] : sent)
    answer.max_send_bytes = std::max(answer.max_send_bytes, elements * problem.elem_bytes);
  for (const auto& [device, elements] : received)
    answer.max_recv_bytes = std::max(answer.max_recv_bytes, elements * problem.elem_bytes);
  for (const Hop& hop : hops)
    if (problem.links) answer.seconds += seconds_of(hop, problem);
  answer.hops = std::move(hops);
  return answer;
}

void check_answer(const Answer& answer) {
  for (const Hop& hop : answer.hops) {
    std::string wrong =
        hop.collectives.empty() ? replay(*hop.cells, hop.exchange) : replay(*hop.cells, hop.collectives);
    if (!wrong.empty()) bug(__FILE__, __LINE__, "reshard replay: " + wrong);
  }
}

Answer solve(const Problem& problem) {
  SharedCells shared = std::make_shared<const Cells>(cut(problem));
  const Cells& cells = *shared;
  check_sources(cells);
  Agenda agenda = make_agenda(cells);
  Bound bound = bound_of(cells, agenda);
  size_t work = agenda.open.size() * cells.num_devices();
  Best best{problem, {}, {}};
  if (std::optional<Hop> hop = by_collectives(problem, shared)) best.offer({std::move(*hop)});
  bool settled = best.least && !problem.links && is_settled(*best.least, bound, problem, cells);
  // Where time counts, more bytes in fewer rounds may win.
  int64_t limit = problem.links ? std::numeric_limits<int64_t>::max() : bound.elements;
  if (!settled && bound.elements > 0 && work <= kComposeWork)
    for (std::vector<Hop>& hops : compose(problem, limit)) best.offer(std::move(hops));
  bool at_bound = best.least && best.least->total_bytes == bound.elements * problem.elem_bytes;
  if (!settled && !(at_bound && work > kExchangeWork)) {
    best.offer({by_exchange(problem, shared, make_exchange(cells, agenda))});
    if (problem.links) best.offer({by_exchange(problem, shared, make_exchange(cells, agenda, 1))});
    if (has_relays(agenda)) best.offer(by_relays(problem, shared, agenda));
  }
  bool reached = best.least->total_bytes == bound.elements * problem.elem_bytes;
  Answer answer = best.take();
  answer.bound_bytes = bound.elements * problem.elem_bytes;
  answer.bound_crossing_bytes = in_bytes(bound.crossing, problem.elem_bytes);
  if (!bound.crossing.empty()) answer.bound_cross_group_bytes = answer.bound_crossing_bytes.back();
  answer.proved = bound.proved || reached;
  check_answer(answer);
  return answer;
}

}  // namespace partita::reshard
