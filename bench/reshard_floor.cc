#include "reshard_floor.h"

#include <algorithm>
#include <bit>

#include "reshard/exchange.h"

namespace partita::reshard {
namespace {

constexpr int kManyDeals = 16;  // the engine may have listed only some

using Mask = uint32_t;

Mask mask_of(const std::vector<int32_t>& devices) {
  Mask mask = 0;
  for (int32_t device : devices) mask |= Mask{1} << device;
  return mask;
}

/// Elements by the set of devices of which some must send (or receive) them.
struct Demand {
  std::vector<int64_t> by_set;
  explicit Demand(int devices) : by_set(size_t{1} << devices) {}

  int64_t floor() {
    for (Mask bit = 1; bit < by_set.size(); bit <<= 1)  // sums over all subsets
      for (Mask set = 0; set < by_set.size(); ++set)
        if (set & bit) by_set[set] += by_set[set ^ bit];
    int64_t floor = 0;
    for (Mask set = 1; set < by_set.size(); ++set) {
      int64_t devices = std::popcount(set);
      floor = std::max(floor, (by_set[set] + devices - 1) / devices);
    }
    return floor;
  }
};

/// What one element asks of single devices, and of which others the rest may be asked.
struct Ask {
  std::vector<int64_t> alone;  // by device
  Mask any = 0;
  explicit Ask(int devices) : alone(devices, 0) {}
};

/// Who wants the value and lacks it receives; holders of addends may, for a sum.
void ask_receivers(const ClassWork& work, const Job& job, Ask& ask) {
  for (int32_t device : job.want)
    if (!std::binary_search(job.have.begin(), job.have.end(), device)) {
      ++ask.alone[device];
      ask.any |= Mask{1} << device;
    }
  if (job.have.empty())
    for (int32_t tile : job.tiles) ask.any |= mask_of(work.holders()[tile]);
}

/// The only device that can make a value sends it if anybody lacks it; the only holder of an addend sends
/// unless nobody else wants the sum; who gets the value may pass it on.
void ask_senders(const ClassWork& work, const Job& job, Ask& ask) {
  Mask have = mask_of(job.have), lacking = mask_of(job.want) & ~have;
  if (lacking == 0) return;
  ask.any |= have | (std::popcount(lacking) > 1 || !have ? lacking : 0);
  if (job.have.size() == 1) ++ask.alone[job.have[0]];
  if (have) return;
  Mask single = 0;
  for (int32_t tile : job.tiles) {
    const std::vector<int32_t>& holders = work.holders()[tile];
    ask.any |= mask_of(holders);
    if (holders.size() == 1 && holders != job.want) single |= mask_of(holders);
  }
  for (; single; single &= single - 1) ++ask.alone[std::countr_zero(single)];
}

/// Over all deals: what each asks at least.
template <class AskJob>
void add_class(const ClassWork& work, int64_t elements, int devices, const AskJob& ask_job, Demand& demand) {
  Ask least(devices);
  for (int d = 0; d < work.num_deals(); ++d) {
    Ask own(devices);
    for (const Job& job : work.deal(d)) ask_job(work, job, own);
    for (int i = 0; i < devices; ++i)
      least.alone[i] = d == 0 ? own.alone[i] : std::min(least.alone[i], own.alone[i]);
    least.any |= own.any;
  }
  if (work.num_deals() >= kManyDeals) least = Ask(devices), least.any = (Mask{1} << devices) - 1;
  int64_t rest = work.transfers;
  for (int i = 0; i < devices; ++i) {
    demand.by_set[Mask{1} << i] += elements * least.alone[i];
    rest -= least.alone[i];
  }
  if (rest > 0) demand.by_set[least.any] += elements * rest;
}

}  // namespace

int64_t busiest_floor(const Problem& problem) {
  Cells cells = cut(problem);
  int devices = cells.num_devices();
  Demand sent(devices), received(devices);
  Agenda agenda = make_agenda(cells);
  for (int32_t cls : agenda.forced)
    for (const Token& needer : cells.needers(cls))
      if (int32_t from = cells.holders(cls)[0].device; needer.device != from) {
        sent.by_set[Mask{1} << from] += cells.elements[cls];
        received.by_set[Mask{1} << needer.device] += cells.elements[cls];
      }
  for (size_t open = 0; open < agenda.open.size(); ++open) {
    int64_t elements = cells.elements[agenda.open[open]];
    add_class(agenda.works[open], elements, devices, ask_senders, sent);
    add_class(agenda.works[open], elements, devices, ask_receivers, received);
  }
  return std::max(sent.floor(), received.floor());
}

}  // namespace partita::reshard
