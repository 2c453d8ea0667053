#include "lower/overlap_body.h"

#include <algorithm>
#include <list>
#include <map>
#include <set>
#include <utility>

#include "lower/names.h"
#include "program/words.h"

namespace partita::lower {
namespace {

bool touches(const Instr& instr, Slot slot) {
  bool found = false;
  for_each_slot(instr, [&](Slot other) { found = found || other == slot; });
  return found;
}

// --- Gathers ---

/// A parameter that is gathered for the body.
struct Gather {
  size_t at = 0;     // where it stands
  size_t lead = 0;   // the first instruction that goes with it: a slice or cast of what it gathers, or itself
  size_t use = 0;    // who needs it first
  size_t start = 0;  // before which instruction it begins
  Bytes bytes = 0;
};

class Prefetch {
 public:
  Prefetch(const Program& program, Body body) : program_(program), body_(std::move(body)) {
    for (const Instr& instr : body_.instrs)
      for (Slot slot : changed_by(instr)) changed_.insert(slot);
  }

  std::vector<Instr> run() {
    for (size_t i = 0; i < body_.instrs.size(); ++i) find(i);
    std::set<size_t> places = {0};  // before the body, and where one that was gathered is used
    for (size_t k = 0; k < gathers_.size(); ++k) {
      gathers_[k].start = start_of(k, places);
      places.insert(gathers_[k].use);
    }
    return written();
  }

 private:
  bool fixed(Slot slot) const { return slot.space == Space::kRank && !changed_.contains(slot); }

  void find(size_t i) {
    const Instr& instr = body_.instrs[i];
    if (instr.kind != InstrKind::kAllGather || instr.later || instr.out[0].space != Space::kLocal) return;
    Gather gather{.at = i, .lead = i, .use = i + 1, .bytes = bytes_of(program_[instr.types[0]])};
    if (!fixed(instr.in[0]) && !has_lead(i)) return;
    if (!fixed(instr.in[0])) gather.lead = i - 1;
    while (gather.use < body_.instrs.size() && !touches(body_.instrs[gather.use], instr.out[0])) ++gather.use;
    if (gather.use == body_.instrs.size()) return;
    most_ = std::max(most_, gather.bytes);
    gathers_.push_back(gather);
  }

  /// Does the instruction before cut or cast a parameter for this gather alone?
  bool has_lead(size_t i) const {
    const Instr& instr = body_.instrs[i];
    if (i == 0 || instr.in[0].space != Space::kLocal) return false;
    const Instr& lead = body_.instrs[i - 1];
    bool copies = lead.kind == InstrKind::kSlice || lead.kind == InstrKind::kCast;
    return copies && lead.out[0] == instr.in[0] && lead.drop.empty() && fixed(lead.in[0]);
  }

  // In the order of their use, or a long one that is needed late would stand before short ones that are
  // needed soon.
  size_t start_of(size_t k, const std::set<size_t>& places) const {
    const Gather& mine = gathers_[k];
    auto place = places.lower_bound(k > 0 ? gathers_[k - 1].start : 0);
    for (; place != places.end() && *place < mine.lead; ++place) {
      Bytes ahead = mine.bytes;
      for (size_t j = 0; j < k; ++j) ahead += gathers_[j].use > *place ? gathers_[j].bytes : 0;
      if (ahead <= most_) return *place;
    }
    return mine.lead;
  }

  std::vector<Instr> written() {
    std::vector<std::vector<Instr>> waits(body_.instrs.size()), starts(body_.instrs.size());
    std::vector<bool> gone(body_.instrs.size());
    for (const Gather& gather : gathers_) {
      Instr start = std::move(body_.instrs[gather.at]);
      Instr wait{.kind = InstrKind::kWait, .in = start.out, .drop = std::move(start.drop)};
      start.later = true;
      start.drop.clear();
      for (size_t i = gather.lead; i < gather.at; ++i)
        starts[gather.start].push_back(std::move(body_.instrs[i]));
      starts[gather.start].push_back(std::move(start));
      waits[gather.use].push_back(std::move(wait));
      for (size_t i = gather.lead; i <= gather.at; ++i) gone[i] = true;
    }
    std::vector<Instr> out;
    out.reserve(body_.instrs.size() + gathers_.size());
    for (size_t i = 0; i < body_.instrs.size(); ++i) {
      for (std::vector<Instr>* before : {&waits[i], &starts[i]})
        out.insert(out.end(), std::make_move_iterator(before->begin()),
                   std::make_move_iterator(before->end()));
      if (!gone[i]) out.push_back(std::move(body_.instrs[i]));
    }
    return out;
  }

  const Program& program_;
  Body body_;
  std::set<Slot> changed_;
  std::vector<Gather> gathers_;
  Bytes most_ = 0;
};

// --- Sums ---

/// A collective that is under way, and what is done with its result when it is over.
struct Pending {
  Instr wait;
  int32_t group = -1;
  std::vector<size_t> tail;
  std::set<Slot> made;   // its result and those of collectives in the tail
  std::set<Slot> roots;  // of all that it names
};

class Delay {
 public:
  explicit Delay(std::vector<Instr> instrs) : instrs_(std::move(instrs)), waits_(instrs_.size()) {
    std::map<Slot, std::vector<size_t>> readers;  // of what collectives make
    for (const Instr& instr : instrs_)
      if (row_of(instr.kind).collective) readers[instr.out[0]];
    for (size_t i = 0; i < instrs_.size() && !readers.empty(); ++i)
      for (Slot slot : instrs_[i].in)
        if (auto found = readers.find(slot); found != readers.end()) found->second.push_back(i);
    for (size_t i = instrs_.size(); i-- > 0;) waits_[i] = waits(i, readers);
  }

  std::vector<Instr> run() {
    out_.reserve(instrs_.size());
    for (size_t i = 0; i < instrs_.size(); ++i) take(i);
    while (!pending_.empty()) land(pending_.begin());
    return std::move(out_);
  }

 private:
  /// Is what it makes only added to something, or summed up further and then added?
  bool waits(size_t i, const std::map<Slot, std::vector<size_t>>& readers) const {
    const Instr& instr = instrs_[i];
    if (!row_of(instr.kind).collective || instr.later || row_of(instr.kind).shares) return false;
    if (instr.out[0] == instr.in[0]) return false;
    const std::vector<size_t>& of_it = readers.at(instr.out[0]);
    return std::all_of(of_it.begin(), of_it.end(), [&](size_t k) {
      const Instr& reader = instrs_[k];
      return (reader.kind == InstrKind::kAdd && reader.in[0] != instr.out[0]) || waits_[k];
    });
  }

  static bool joins(const Instr& instr, const Pending& pending) {
    auto made = [&](Slot slot) { return pending.made.contains(slot); };
    return (instr.kind == InstrKind::kAdd || row_of(instr.kind).collective) &&
           std::any_of(instr.in.begin(), instr.in.end(), made);
  }

  bool meets(const Instr& instr, const Pending& pending) const {
    bool found = false;
    for_each_slot(instr, [&](Slot slot) { found = found || pending.roots.contains(names_.root(slot)); });
    return found;
  }

  void take(size_t i) {
    const Instr& instr = instrs_[i];
    land_all([&](const Pending& one) { return !joins(instr, one) && meets(instr, one); });
    names_.make(instr);
    auto whose =
        std::find_if(pending_.begin(), pending_.end(), [&](const Pending& one) { return joins(instr, one); });
    if (whose != pending_.end()) return join(i, *whose);
    if (waits_[i]) return start(i);
    out_.push_back(std::move(instrs_[i]));
  }

  void name_all(const Instr& instr, Pending& pending) const {
    for_each_slot(instr, [&](Slot slot) { pending.roots.insert(names_.root(slot)); });
  }

  void join(size_t i, Pending& pending) {
    pending.tail.push_back(i);
    name_all(instrs_[i], pending);
    if (row_of(instrs_[i].kind).collective) pending.made.insert(instrs_[i].out[0]);
  }

  void start(size_t i) {
    Instr& instr = instrs_[i];
    land_all([&](const Pending& one) { return one.group == instr.group; });
    Pending pending{.wait = {.kind = InstrKind::kWait, .in = instr.out}, .group = instr.group};
    name_all(instr, pending);
    pending.made.insert(instr.out[0]);
    pending.wait.drop = std::exchange(instr.drop, {});
    instr.later = true;
    out_.push_back(std::move(instr));
    pending_.push_back(std::move(pending));
  }

  // What lands may start or land others.
  template <class Accept>
  void land_all(Accept accept) {
    for (auto one = pending_.begin(); one != pending_.end();)
      if (accept(*one))
        land(one), one = pending_.begin();
      else
        ++one;
  }

  void land(std::list<Pending>::iterator one) {
    Pending pending = std::move(*one);
    pending_.erase(one);
    out_.push_back(std::move(pending.wait));
    for (size_t i : pending.tail) take(i);
  }

  std::vector<Instr> instrs_;  // those that were written are empty
  std::vector<bool> waits_;
  Names names_;
  std::list<Pending> pending_;
  std::vector<Instr> out_;
};

}  // namespace

Body overlap_body(const Program& program, Body body) {
  body.instrs = Delay(Prefetch(program, body).run()).run();
  return body;
}

}  // namespace partita::lower
