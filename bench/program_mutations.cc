#include "program_mutations.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "program_mutants.h"

namespace partita::program {
namespace {

using Broken = std::optional<Program>;

// --- Places ---

// An instruction of a body; every body of this name has it at the same place.
struct Site {
  size_t body, instr;
};

template <class Accept>
std::vector<Site> sites(const Program& program, Accept accept) {
  std::vector<Site> found;
  for (size_t b = 0; b < program.bodies.size(); ++b)
    for (size_t i = 0; i < program.bodies[b].instrs.size(); ++i)
      if (accept(program.bodies[b].instrs[i])) found.push_back({b, i});
  return found;
}

auto is(InstrKind kind) {
  return [kind](const Instr& instr) { return instr.kind == kind; };
}
bool collective(const Instr& instr) { return row_of(instr.kind).collective; }

// The shapes of one body: what ranks of other coordinates run at the same time.
std::vector<Body*> alike(Program& program, Site site) {
  std::vector<Body*> bodies;
  const Body& first = program.bodies[site.body];
  for (Body& body : program.bodies)
    if (body.name == first.name && body.instrs.size() > site.instr &&
        body.instrs[site.instr].kind == first.instrs[site.instr].kind)
      bodies.push_back(&body);
  return bodies;
}

// A run of a rank, with an instruction of its body.
struct Place {
  size_t rank, action, instr;
};

template <class Accept>
std::vector<Place> places(const Program& program, Accept accept) {
  std::vector<Place> found;
  for (size_t r = 0; r < program.ranks.size(); ++r)
    for (size_t a = 0; a < program.ranks[r].actions.size(); ++a) {
      const Action& action = program.ranks[r].actions[a];
      if (action.kind != ActionKind::kRun) continue;
      const std::vector<Instr>& instrs = program[action.body].instrs;
      for (size_t i = 0; i < instrs.size(); ++i)
        if (accept(instrs[i])) found.push_back({r, a, i});
    }
  return found;
}

// Changes an instruction in every run of all shapes of a body, rank by rank: each gets a body of its own.
template <class Change>
void change_runs(Program& program, Site site, Change change) {
  const std::string name = program.bodies[site.body].name;
  const InstrKind kind = program.bodies[site.body].instrs[site.instr].kind;
  for (size_t r = 0; r < program.ranks.size(); ++r)
    for (size_t a = 0; a < program.ranks[r].actions.size(); ++a) {
      const Action& action = program.ranks[r].actions[a];
      if (action.kind != ActionKind::kRun) continue;
      const Body& old = program[action.body];
      if (old.name != name || old.instrs.size() <= site.instr || old.instrs[site.instr].kind != kind)
        continue;
      change(r, mutants::own_body(program, r, a));
    }
}

const std::vector<int32_t>& group_of(const Program& program, size_t rank, const Instr& instr) {
  return program.ranks[rank].groups[instr.group];
}
size_t position(const std::vector<int32_t>& group, size_t rank) {
  return size_t(std::find(group.begin(), group.end(), int32_t(rank)) - group.begin());
}

TypeId type_for(Program& program, const TensorType& type) {
  auto found = std::find(program.types.begin(), program.types.end(), type);
  if (found == program.types.end()) found = program.types.insert(found, type);
  return TypeId{int32_t(found - program.types.begin())};
}

// The type a slot has when an instruction reads it; invalid where the body does not say.
TypeId type_read(const Program& program, const Body& body, size_t instr, Slot slot) {
  for (size_t i = instr; i-- > 0;)
    for (size_t o = 0; o < body.instrs[i].out.size(); ++o)
      if (body.instrs[i].out[o] == slot)
        return body.instrs[i].types.size() > o ? body.instrs[i].types[o] : TypeId{};
  for (const RankProgram& rank : program.ranks)
    for (const Load& load : rank.loads)
      if (load.slot == slot) return load.type;
  return {};
}

Shape dense_strides(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

bool contains(const std::vector<Slot>& slots, Slot slot) {
  return std::find(slots.begin(), slots.end(), slot) != slots.end();
}

Slot new_local(Body& body) { return {Space::kLocal, body.locals++}; }

// --- Collectives ---

Broken dropped_all_reduce(Program program, const Model&, Dice& dice) {
  std::vector<Site> all = sites(program, is(InstrKind::kAllReduce));
  if (all.empty()) return {};
  Site site = dice.pick(all);
  for (Body* body : alike(program, site)) mutants::make_idle(*body, int(site.instr));
  return program;
}

// Every member keeps its own piece of its own addend.
Broken dropped_reduce_scatter(Program program, const Model&, Dice& dice) {
  std::vector<Site> all = sites(program, is(InstrKind::kReduceScatter));
  if (all.empty()) return {};
  Site site = dice.pick(all);
  change_runs(program, site, [&](size_t rank, Body& body) {
    Instr& instr = body.instrs[site.instr];
    size_t at = position(group_of(program, rank, instr), rank);
    instr.kind = InstrKind::kSlice;
    instr.begin = std::accumulate(instr.pieces.begin(), instr.pieces.begin() + int64_t(at), int64_t{0});
    instr.length = instr.pieces[at];
    instr.pieces.clear();
    instr.group = -1;
  });
  return program;
}

// Shapes stay right: a sum becomes a gather of each member's part.
bool gather_instead(Program& program, size_t rank, Body& body, size_t at) {
  Instr old = body.instrs[at];
  const std::vector<int32_t>& group = group_of(program, rank, old);
  TensorType type = program[old.types[0]];
  const int64_t members = int64_t(group.size());
  auto dim = std::find_if(type.shape.begin(), type.shape.end(), [&](int64_t n) { return n % members == 0; });
  if (dim == type.shape.end()) return false;
  const int64_t length = *dim / members;
  TensorType part = type;
  part.shape[dim - type.shape.begin()] = length;
  part.strides = dense_strides(part.shape);
  Cut cut{.dim = int32_t(dim - type.shape.begin())};
  Slot local = new_local(body);
  Instr slice{
      .kind = InstrKind::kSlice, .in = {old.in[0]}, .out = {local}, .types = {type_for(program, part)}};
  slice.cut = cut;
  slice.begin = int64_t(position(group, rank)) * length;
  slice.length = length;
  if (old.in[0] == old.out[0] || contains(old.drop, old.in[0])) slice.drop = {old.in[0]};
  Instr gather{
      .kind = InstrKind::kAllGather, .in = {local}, .out = old.out, .types = old.types, .group = old.group};
  gather.cut = cut;
  gather.pieces.assign(group.size(), length);
  gather.drop = {local};
  body.instrs[at] = slice;
  body.instrs.insert(body.instrs.begin() + int64_t(at) + 1, gather);
  return true;
}

// Shapes stay right: the sum of the parts, as often as there are members.
bool sum_instead(const Program& program, size_t rank, Body& body, size_t at) {
  Instr old = body.instrs[at];
  const std::vector<int32_t>& group = group_of(program, rank, old);
  TypeId type = type_read(program, body, at, old.in[0]);
  bool even =
      std::all_of(old.pieces.begin(), old.pieces.end(), [&](int64_t n) { return n == old.pieces[0]; });
  if (!type || !even || group.size() < 2) return false;
  Instr sum{.kind = InstrKind::kAllReduce, .in = old.in, .out = old.in, .types = {type}, .group = old.group};
  Instr join{.kind = InstrKind::kConcat, .out = old.out, .types = old.types};
  join.in.assign(group.size(), old.in[0]);
  join.cut = old.cut;
  join.pieces = old.pieces;
  join.drop = old.drop;
  body.instrs[at] = sum;
  body.instrs.insert(body.instrs.begin() + int64_t(at) + 1, join);
  return true;
}

Broken sum_for_gather(Program program, const Model&, Dice& dice) {
  std::vector<Site> all = sites(program, [](const Instr& instr) {
    return instr.kind == InstrKind::kAllReduce || instr.kind == InstrKind::kAllGather;
  });
  if (all.empty()) return {};
  Site site = dice.pick(all);
  const bool sum = program.bodies[site.body].instrs[site.instr].kind == InstrKind::kAllReduce;
  bool done = true;
  change_runs(program, site, [&](size_t rank, Body& body) {
    done &=
        sum ? gather_instead(program, rank, body, site.instr) : sum_instead(program, rank, body, site.instr);
  });
  if (!done) return {};
  return program;
}

// A new group on every rank that has this one, and the instruction uses it.
template <class Members>
void regroup(Program& program, Site site, Members members) {
  std::vector<std::pair<size_t, int32_t>> added;
  const int32_t old = program.bodies[site.body].instrs[site.instr].group;
  size_t most = 0;
  for (const RankProgram& rank : program.ranks) most = std::max(most, rank.groups.size());
  for (size_t r = 0; r < program.ranks.size(); ++r) {
    RankProgram& rank = program.ranks[r];
    const bool has = size_t(old) < rank.groups.size();
    rank.groups.resize(most, {int32_t(r)});
    rank.groups.push_back(has ? members(r, rank.groups[old]) : std::vector<int32_t>{int32_t(r)});
  }
  for (Body* body : alike(program, site)) body->instrs[site.instr].group = int32_t(most);
}

// Groups of the same size over other ranks, or each rank alone.
Broken wrong_group(Program program, const Model&, Dice& dice) {
  std::vector<Site> all = sites(program, collective);
  if (all.empty()) return {};
  Site site = dice.pick(all);
  const int32_t old = program.bodies[site.body].instrs[site.instr].group;
  std::vector<int32_t> order(program.ranks.size());
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[dice.roll(i)]);
  bool other = false;
  const bool alone = dice.roll(3) == 0;
  std::vector<std::vector<int32_t>> before;
  for (const RankProgram& rank : program.ranks)
    before.push_back(size_t(old) < rank.groups.size() ? rank.groups[old] : std::vector<int32_t>{});
  regroup(program, site, [&](size_t rank, const std::vector<int32_t>& group) {
    if (alone || order.size() % group.size() != 0) return std::vector<int32_t>{int32_t(rank)};
    size_t begin = position(order, rank) / group.size() * group.size();
    std::vector<int32_t> members(order.begin() + int64_t(begin),
                                 order.begin() + int64_t(begin + group.size()));
    std::sort(members.begin(), members.end());
    return members;
  });
  for (size_t r = 0; r < program.ranks.size(); ++r)
    other |= !before[r].empty() && program.ranks[r].groups.back() != before[r];
  if (!other) return {};
  return program;
}

Broken permuted_chunks(Program program, const Model&, Dice& dice) {
  std::vector<Site> all = sites(program, [](const Instr& instr) {
    return (collective(instr) && instr.kind != InstrKind::kAllReduce) ||
           (instr.kind == InstrKind::kConcat && instr.in.size() > 1);
  });
  if (all.empty()) return {};
  Site site = dice.pick(all);
  Instr& instr = program.bodies[site.body].instrs[site.instr];
  if (instr.kind == InstrKind::kConcat) {
    std::swap(instr.in.front(), instr.in.back());
    return program;
  }
  const size_t turn = 1 + dice.roll(2);
  regroup(program, site, [&](size_t, std::vector<int32_t> group) {
    std::rotate(group.begin(), group.begin() + int64_t(turn % group.size()), group.end());
    if (turn % group.size() == 0) std::reverse(group.begin(), group.end());
    return group;
  });
  return program;
}

// --- Accumulation ---

// The sum stays as it was; or, where an op adds its result, the result alone takes the place of the sum.
Broken not_accumulated(Program program, const Model&, Dice& dice) {
  std::vector<Place> all = places(program, mutants::adds);
  if (all.empty()) return {};
  Place place = dice.pick(all);
  Body& body = mutants::own_body(program, place.rank, place.action);
  Instr& instr = body.instrs[place.instr];
  if (instr.into < 0 || dice.roll(2) == 0) {
    mutants::make_idle(body, int(place.instr));
    return program;
  }
  Slot sum = mutants::target(instr);
  instr.in.erase(instr.in.begin() + instr.into);
  instr.into = -1;
  instr.sum = {};
  if (instr.out[0] != sum) return program;
  Instr gone{.kind = InstrKind::kMove, .in = {sum}, .out = {new_local(body)}, .drop = {sum}};
  gone.drop.push_back(gone.out[0]);
  body.instrs.insert(body.instrs.begin() + int64_t(place.instr), gone);
  return program;
}

Broken accumulated_twice(Program program, const Model&, Dice& dice) {
  std::vector<Place> all = places(program, mutants::adds);
  if (all.empty()) return {};
  Place place = dice.pick(all);
  Body& body = mutants::own_body(program, place.rank, place.action);
  Instr again = body.instrs[place.instr];
  Instr& first = body.instrs[place.instr];
  first.drop.clear();
  Slot& sum = mutants::target(again);
  if (again.out[0] != sum && contains(again.drop, sum)) {
    first.drop = {sum};
    std::erase(again.drop, sum);
  }
  sum = again.out[0];
  body.instrs.insert(body.instrs.begin() + int64_t(place.instr) + 1, again);
  return program;
}

bool has_factor(const Instr& instr) {
  return std::any_of(instr.args.begin(), instr.args.end(), [](const Arg& arg) {
    return arg.kind == Arg::kFloat && arg.number != 0 && std::isfinite(arg.number);
  });
}

// What a local mean does: a factor off by the number of ranks or micro-batches. Or the loss scale or clipping
// left out.
Broken wrong_scale(Program program, const Model&, Dice& dice) {
  std::vector<Site> all = sites(program, [](const Instr& instr) {
    return has_factor(instr) || instr.kind == InstrKind::kScale || instr.kind == InstrKind::kClip ||
           instr.kind == InstrKind::kSquares;
  });
  if (all.empty()) return {};
  Site site = dice.pick(all);
  const double by[] = {2, 0.5, double(program.ranks.size()), 1.0 / program.microbatches};
  const double factor = by[dice.roll(4)];
  for (Body* body : alike(program, site)) {
    if (body->instrs[site.instr].kind != InstrKind::kCompute) {
      mutants::make_idle(*body, int(site.instr));
      continue;
    }
    for (Arg& arg : body->instrs[site.instr].args)
      if (arg.kind == Arg::kFloat && std::isfinite(arg.number)) {
        arg.number *= factor;
        break;
      }
  }
  return program;
}

// --- Transfers ---

bool transfers(const Action& action) {
  return action.kind != ActionKind::kRun && action.kind != ActionKind::kFree;
}
bool sends(const Action& action) {
  return action.kind == ActionKind::kSend || action.kind == ActionKind::kWaitSend;
}

// The two ends of a transfer: its start and its wait, the same but for the kind.
template <class Change>
void change_transfer(std::vector<Action>& actions, const Action& like, Change change) {
  for (Action& action : actions)
    if (transfers(action) && sends(action) == sends(like) && action.slot == like.slot &&
        action.microbatch == like.microbatch && action.peer == like.peer && action.tag == like.tag)
      change(action);
}

struct Start {
  size_t rank, action;
};
std::vector<Start> starts(const Program& program, ActionKind kind) {
  std::vector<Start> found;
  for (size_t r = 0; r < program.ranks.size(); ++r)
    for (size_t a = 0; a < program.ranks[r].actions.size(); ++a)
      if (program.ranks[r].actions[a].kind == kind) found.push_back({r, a});
  return found;
}

// Two replicas send to each other's peers, and the peers expect it so; or one end speaks to somebody else.
Broken wrong_peer(Program program, const Model&, Dice& dice) {
  std::vector<Start> all = starts(program, ActionKind::kSend);
  if (all.empty()) return {};
  Start start = dice.pick(all);
  const Action mine = program.ranks[start.rank].actions[start.action];
  for (const Start& other : all) {
    const Action theirs = program.ranks[other.rank].actions[other.action];
    if (other.rank == start.rank || theirs.slot != mine.slot || theirs.microbatch != mine.microbatch ||
        theirs.tag != mine.tag || theirs.peer == mine.peer || dice.roll(4) == 0)
      continue;
    auto speak = [&](size_t rank, const Action& like, int32_t peer) {
      change_transfer(program.ranks[rank].actions, like, [&](Action& action) { action.peer = peer; });
    };
    auto hear = [&](int32_t rank, int32_t from, int32_t to) {
      for (Action& action : program.ranks[rank].actions)
        if (transfers(action) && !sends(action) && action.peer == from && action.tag == mine.tag &&
            action.microbatch == mine.microbatch)
          action.peer = to;
    };
    speak(start.rank, mine, theirs.peer);
    speak(other.rank, theirs, mine.peer);
    hear(mine.peer, int32_t(start.rank), int32_t(other.rank));
    hear(theirs.peer, int32_t(other.rank), int32_t(start.rank));
    return program;
  }
  int32_t peer = int32_t(dice.roll(program.ranks.size()));
  if (peer == mine.peer) return {};
  change_transfer(program.ranks[start.rank].actions, mine, [&](Action& action) { action.peer = peer; });
  return program;
}

Broken swapped_receives(Program program, const Model&, Dice& dice) {
  std::vector<std::pair<Start, Start>> pairs;
  const std::vector<Start> all = starts(program, ActionKind::kPostReceive);
  for (const Start& a : all)
    for (const Start& b : all) {
      const Action &x = program.ranks[a.rank].actions[a.action], &y = program.ranks[b.rank].actions[b.action];
      if (a.rank == b.rank && a.action < b.action && x.type == y.type && x.peer == y.peer)
        pairs.push_back({a, b});
    }
  if (pairs.empty()) return {};
  auto [a, b] = dice.pick(pairs);
  std::vector<Action>& actions = program.ranks[a.rank].actions;
  const Action x = actions[a.action], y = actions[b.action];
  if (x.tag == y.tag) {
    std::swap(actions[a.action], actions[b.action]);
    return program;
  }
  std::vector<Action> before = actions;
  for (size_t i = 0; i < actions.size(); ++i) {
    if (!transfers(before[i]) || sends(before[i]) || before[i].peer != x.peer) continue;
    for (const auto& [from, to] : {std::pair{x, y}, std::pair{y, x}})
      if (before[i].slot == from.slot && before[i].microbatch == from.microbatch && before[i].tag == from.tag)
        actions[i].tag = to.tag;
  }
  return program;
}

// --- When things happen ---

// Without this instruction; what died after it dies after the one before.
void take_out(Body& body, size_t i) {
  std::vector<Slot> drop = body.instrs[i].drop;
  body.instrs.erase(body.instrs.begin() + int64_t(i));
  if (i > 0) body.instrs[i - 1].drop.insert(body.instrs[i - 1].drop.end(), drop.begin(), drop.end());
}

Broken reduced_too_early(Program program, const Model&, Dice& dice) {
  auto reduces = [&](const Instr& instr) {
    return (instr.kind == InstrKind::kAllReduce || instr.kind == InstrKind::kReduceScatter) &&
           instr.in[0].space == Space::kRank && mutants::last_accumulation(program, 0, instr.in[0]) >= 0;
  };
  std::vector<Site> all = sites(program, reduces);
  if (all.empty()) return {};
  Site site = dice.pick(all);
  const std::string name = program.bodies[site.body].name;
  for (size_t r = 0; r < program.ranks.size(); ++r) {
    std::vector<Action>& actions = program.ranks[r].actions;
    auto runs = [&](const Action& action) {
      return action.kind == ActionKind::kRun && program[action.body].name == name &&
             program[action.body].instrs.size() > site.instr &&
             reduces(program[action.body].instrs[site.instr]);
    };
    auto at = std::find_if(actions.begin(), actions.end(), runs);
    if (at == actions.end()) continue;
    const size_t late = size_t(at - actions.begin());
    Instr early = program[at->body].instrs[site.instr];
    const int before = mutants::last_accumulation(program, r, early.in[0]);
    if (before < 0 || size_t(before) > late) return {};
    Body& body = mutants::own_body(program, r, late);
    if (early.kind == InstrKind::kAllReduce)
      mutants::make_idle(body, int(site.instr));
    else
      take_out(body, site.instr);
    if (early.kind == InstrKind::kAllReduce) early.out = early.in;
    early.drop.clear();
    program.bodies.push_back({.name = "early", .instrs = {early}});
    actions.insert(actions.begin() + before,
                   {.kind = ActionKind::kRun, .body = BodyId{int32_t(program.bodies.size()) - 1}});
  }
  return program;
}

// A copy of the whole parameter from before the first step, instead of a gather in every step.
Broken load_instead(Program program, const std::vector<Site>& gathers, Dice& dice) {
  Site site = dice.pick(gathers);
  const Instr gather = program.bodies[site.body].instrs[site.instr];
  const std::string name = program.bodies[site.body].name;
  int32_t slots = 0;
  for (const RankProgram& rank : program.ranks) slots = std::max(slots, rank.rank_slots);
  for (RankProgram& rank : program.ranks) {
    auto part = std::find_if(rank.loads.begin(), rank.loads.end(),
                             [&](const Load& load) { return load.slot == gather.in[0] && load.state < 0; });
    if (part == rank.loads.end()) continue;
    Load whole = *part;
    whole.slot = {Space::kRank, slots};
    whole.type = gather.types[0];
    for (const RankProgram& other : program.ranks)
      for (const Load& load : other.loads)
        if (load.tensor == whole.tensor && load.state < 0)
          for (size_t d = 0; d < whole.box.size(); ++d)
            for (size_t l = 0; l < whole.box[d].size(); ++l)
              whole.box[d][l] = {std::min(whole.box[d][l].begin, load.box[d][l].begin),
                                 std::max(whole.box[d][l].end, load.box[d][l].end)};
    rank.loads.push_back(whole);
    rank.rank_slots = slots + 1;
  }
  for (Body* body : alike(program, site)) {
    Instr& instr = body->instrs[site.instr];
    instr = {.kind = InstrKind::kMove,
             .in = {{Space::kRank, slots}},
             .out = instr.out,
             .types = instr.types,
             .drop = instr.drop};
  }
  return program;
}

// The new parameter is gathered before it is updated.
Broken gather_first(Program program, const std::vector<Site>& updates) {
  for (Site site : updates)
    for (Body* body : alike(program, site)) {
      Instr &update = body->instrs[site.instr], &gather = body->instrs[site.instr + 1];
      update.drop.insert(update.drop.end(), gather.drop.begin(), gather.drop.end());
      gather.drop.clear();
      std::swap(update, gather);
    }
  return program;
}

Broken stale_weight(Program program, const Model& model, Dice& dice) {
  std::set<Slot> loaded;
  for (const RankProgram& rank : program.ranks)
    for (const Load& load : rank.loads)
      if (load.state < 0 && model[load.tensor].role == Role::kParameter) loaded.insert(load.slot);
  std::vector<Site> gathers = sites(program, [&](const Instr& instr) {
    return instr.kind == InstrKind::kAllGather && loaded.contains(instr.in[0]);
  });
  std::vector<Site> updates;
  for (Site site : sites(program, is(InstrKind::kOptimize))) {
    const std::vector<Instr>& instrs = program.bodies[site.body].instrs;
    if (site.instr + 1 < instrs.size() && instrs[site.instr + 1].kind == InstrKind::kAllGather &&
        instrs[site.instr + 1].in[0] == instrs[site.instr].out[0])
      updates.push_back(site);
  }
  if (!gathers.empty() && (updates.empty() || dice.roll(2)))
    return load_instead(std::move(program), gathers, dice);
  if (!updates.empty()) return gather_first(std::move(program), {dice.pick(updates)});
  // Reports, and so keeps for the next step, what another parameter of the same type has become, or nothing
  // new.
  std::vector<Site> all = sites(program, is(InstrKind::kOptimize));
  if (all.empty()) return {};
  Site site = dice.pick(all);
  for (Body* body : alike(program, site)) mutants::make_idle(*body, int(site.instr));
  return program;
}

// --- Pieces ---

Broken wrong_slice(Program program, const Model&, Dice& dice) {
  std::vector<Site> cuts = sites(
      program, [](const Instr& instr) { return instr.kind != InstrKind::kConcat && row_of(instr.kind).cut; });
  if (cuts.empty() || dice.roll(3) == 0) {
    Load& load = dice.pick(dice.pick(program.ranks).loads);
    std::vector<Interval*> leaves;
    for (std::vector<Interval>& dim : load.box)
      for (Interval& leaf : dim) leaves.push_back(&leaf);
    if (leaves.empty()) return {};
    Interval& leaf = *dice.pick(leaves);
    const int64_t by = dice.roll(2) ? leaf.end - leaf.begin : leaf.begin - leaf.end;
    leaf = {leaf.begin + by, leaf.end + by};
    return program;
  }
  Site site = dice.pick(cuts);
  Instr& instr = program.bodies[site.body].instrs[site.instr];
  if (instr.kind == InstrKind::kSlice) {
    const int64_t by[] = {1, -1, instr.length, -instr.length};
    instr.begin += by[dice.roll(4)];
    return program;
  }
  // A remainder given to the wrong member, on all of them; or lost.
  const bool lost = dice.roll(2);
  const bool shares = instr.kind == InstrKind::kAllToAll && dice.roll(2);
  for (Body* body : alike(program, site)) {
    Instr& here = body->instrs[site.instr];
    std::vector<int64_t>& pieces = shares ? here.shares : here.pieces;
    if (pieces.size() < 2) return {};
    if (lost || pieces.front() == pieces.back())
      --pieces.back();
    else
      std::swap(pieces.front(), pieces.back());
  }
  return program;
}

bool tensor_in(const Arg& arg) {
  return arg.kind == Arg::kTensor || std::any_of(arg.items.begin(), arg.items.end(), tensor_in);
}

// Right for every piece: the end of a slice that takes all there is, sizes of which one is what is left.
bool fits_any_piece(const Arg& arg) {
  return (arg.kind == Arg::kInt && (arg.integer == INT64_MAX || arg.integer == -1)) ||
         std::any_of(arg.items.begin(), arg.items.end(), fits_any_piece);
}

Broken global_attribute(Program program, const Model& model, Dice& dice) {
  struct Found {
    Site site;
    size_t arg;
  };
  std::vector<Found> all;
  for (Site site : sites(program, is(InstrKind::kCompute))) {
    const Instr& instr = program.bodies[site.body].instrs[site.instr];
    const std::vector<Arg>& whole = model[instr.op].args;
    for (size_t k = 0; k < std::min(whole.size(), instr.args.size()); ++k)
      if (!tensor_in(whole[k]) && !(whole[k] == instr.args[k]) && !fits_any_piece(whole[k]))
        all.push_back({site, k});
  }
  if (all.empty()) return {};
  Found found = dice.pick(all);
  Instr& instr = program.bodies[found.site.body].instrs[found.site.instr];
  instr.args[found.arg] = model[instr.op].args[found.arg];
  return program;
}

// --- Storage and order ---

// A free, a new value or a read before the copy is done.
Broken reused_in_flight(Program program, const Model&, Dice& dice) {
  std::vector<Start> all = starts(program, ActionKind::kWaitSend),
                     receives = starts(program, ActionKind::kWaitReceive);
  all.insert(all.end(), receives.begin(), receives.end());
  if (all.empty()) return {};
  Start wait = dice.pick(all);
  std::vector<Action>& actions = program.ranks[wait.rank].actions;
  if (dice.roll(2)) {
    actions.erase(actions.begin() + int64_t(wait.action));
    return program;
  }
  // The wait comes some actions later, behind what needed it.
  const size_t to = std::min(actions.size() - 1, wait.action + 1 + dice.roll(3));
  if (to == wait.action) return {};
  std::rotate(actions.begin() + int64_t(wait.action), actions.begin() + int64_t(wait.action) + 1,
              actions.begin() + int64_t(to) + 1);
  return program;
}

// A collective that was started is waited for by nobody, or behind what needed it.
Broken lost_wait(Program program, const Model&, Dice& dice) {
  std::vector<Site> all = sites(program, is(InstrKind::kWait));
  if (all.empty()) return {};
  Site site = dice.pick(all);
  std::vector<Instr>& instrs = program.bodies[site.body].instrs;
  auto wait = instrs.begin() + int64_t(site.instr);
  if (site.instr + 1 < instrs.size() && dice.roll(2)) {
    const size_t by = 1 + dice.roll(std::min<size_t>(8, instrs.size() - site.instr - 1));
    std::rotate(wait, wait + 1, wait + int64_t(by) + 1);
    return program;
  }
  // What it drops dies with another instruction.
  if (instrs.size() == 1) return {};
  Instr& other = site.instr > 0 ? *(wait - 1) : *(wait + 1);
  other.drop.insert(other.drop.end(), wait->drop.begin(), wait->drop.end());
  instrs.erase(wait);
  return program;
}

// Two collectives of one rank in the other order.
Broken crossed_collectives(Program program, Dice& dice) {
  std::vector<Place> all = places(program, collective);
  if (all.size() < 2) return {};
  Place place = dice.pick(all);
  const std::vector<Instr>& instrs = program[program.ranks[place.rank].actions[place.action].body].instrs;
  for (size_t j = place.instr + 1; j < instrs.size(); ++j)
    if (collective(instrs[j])) {
      Body& body = mutants::own_body(program, place.rank, place.action);
      std::rotate(body.instrs.begin() + int64_t(place.instr), body.instrs.begin() + int64_t(place.instr) + 1,
                  body.instrs.begin() + int64_t(j) + 1);
      return program;
    }
  return {};
}

Broken deadlocking_order(Program program, const Model&, Dice& dice) {
  std::vector<Start> all = starts(program, ActionKind::kSend);
  if (all.empty() || dice.roll(3) == 0) return crossed_collectives(std::move(program), dice);
  Start start = dice.pick(all);
  std::vector<Action>& actions = program.ranks[start.rank].actions;
  std::vector<size_t> waits;
  for (size_t a = start.action + 1; a < actions.size(); ++a)
    if (actions[a].kind == ActionKind::kWaitReceive) waits.push_back(a);
  if (waits.empty()) return {};
  const size_t until = dice.pick(waits);
  const Action late = actions[start.action];
  // Its wait and its free go with it.
  std::stable_partition(actions.begin() + int64_t(start.action), actions.begin() + int64_t(until) + 1,
                        [&](const Action& action) {
                          bool follows =
                              action.kind == ActionKind::kWaitSend || action.kind == ActionKind::kFree;
                          bool same = action.slot == late.slot && action.microbatch == late.microbatch;
                          return !(same && (action == late || follows));
                        });
  return program;
}

constexpr Mutation kMutations[] = {
    {"dropped all-reduce", dropped_all_reduce},
    {"dropped reduce-scatter", dropped_reduce_scatter},
    {"all-reduce <-> all-gather", sum_for_gather},
    {"wrong group", wrong_group},
    {"permuted chunk order", permuted_chunks},
    {"micro-batch not accumulated", not_accumulated},
    {"micro-batch accumulated twice", accumulated_twice},
    {"wrong scale or local mean", wrong_scale},
    {"wrong peer", wrong_peer},
    {"two receives swapped", swapped_receives},
    {"reducer before the last micro-batch", reduced_too_early},
    {"stale weight in step 2", stale_weight},
    {"wrong slice or lost remainder", wrong_slice},
    {"attribute not made local", global_attribute},
    {"buffer reused in flight", reused_in_flight},
    {"deadlocking order", deadlocking_order},
    {"started collective not waited for", lost_wait},
};

}  // namespace

std::span<const Mutation> mutations() { return kMutations; }

}  // namespace partita::program
