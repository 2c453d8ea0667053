// Which ops share a loop depends on the model and the plan alone, so it is found before any code is written:
// who recomputes a piece later looks up here what ran with it.
#include "lower/jobs.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "layout/same_piece.h"
#include "model/row.h"

namespace partita::lower {
namespace {

class JobList {
 public:
  explicit JobList(const Facts& facts) : facts_(facts) { out_.loop_job.resize(facts.sites.streams); }

  Jobs run() {
    for (int stream = 0; stream < facts_.sites.streams; ++stream) {
      for (size_t op = 0; op < facts_.model.ops.size(); ++op)
        for (const auto& [segment, sites] : places_of(op, stream)) take(segment, sites, op);
      close();
    }
    return std::move(out_);
  }

 private:
  /// Ops of one loop in a row, to which more may come.
  struct Pending {
    int loop = -1;
    Segment segment;
    std::vector<size_t> ops;
    std::vector<std::pair<Segment, size_t>> later;  // ops of no loop, but they read what this one makes
  };

  // Where it runs: once on every site, in the segment that the others on that site come after.
  std::map<Segment, std::vector<int>> places_of(size_t op, int stream) const {
    std::map<int, Segment> of_site;
    for (int stage : facts_.assigned.stages[op]) {
      Segment segment = facts_.segment_of(op, stage, stream);
      for (int site : facts_.sites_of(segment)) {
        auto [known, fresh] = of_site.try_emplace(site, segment);
        if (!fresh) known->second = std::min(known->second, segment);
      }
    }
    std::map<Segment, std::vector<int>> places;
    for (const auto& [site, segment] : of_site) places[segment].push_back(site);
    return places;
  }

  void take(Segment segment, const std::vector<int>& sites, size_t op) {
    int loop = facts_.split.ops[op].loop;
    if (facts_.through[op]) segment.kind = Segment::kForward;
    bool same = loop >= 0 && pending_.loop == loop && pending_.segment == segment;
    bool waits = reads_pending(op);
    // While a loop that goes through to backward is open, what reads its results waits for its end.
    if (loop < 0 && waits && goes_through(pending_.loop, pending_.segment)) {
      pending_.later.emplace_back(segment, op);
      return;
    }
    if (!pending_.ops.empty() && (same ? needs_it_whole(op) : loop >= 0 || waits)) {
      close();
      same = false;
    }
    if (loop < 0) {
      out_.list.push_back({segment, sites, -1, {op}});
      return;
    }
    if (!same) pending_ = {loop, segment, {}, {}};
    pending_.ops.push_back(op);
    // What does not wait for it would be run early, and make again what all of backward needs.
    if (goes_through(loop, segment) && ends_loop(op)) close();
  }

  void close() {
    Pending group = std::exchange(pending_, {});
    if (group.ops.empty()) return;
    for (size_t op : group.ops) out_.loop_job[group.segment.stream][op] = out_.list.size();
    out_.list.push_back({group.segment, facts_.sites_of(group.segment), group.loop, std::move(group.ops)});
    for (const auto& [segment, op] : group.later)
      out_.list.push_back({segment, facts_.sites_of(segment), -1, {op}});
  }

  bool ends_loop(size_t op) const {
    const std::vector<SplitOp>& ops = facts_.split.ops;
    return std::none_of(ops.begin() + static_cast<ptrdiff_t>(op) + 1, ops.end(),
                        [&](const SplitOp& other) { return other.loop == ops[op].loop; });
  }

  bool goes_through(int loop, const Segment& segment) const {
    return loop >= 0 && facts_.plan.loops[loop].through && segment.stage == facts_.assigned.loss_stage &&
           segment.kind == Segment::kForward;
  }

  bool made_in_loop(TensorId tensor) const {
    int producer = facts_.producer[tensor.value];
    return producer >= 0 && std::find(pending_.ops.begin(), pending_.ops.end(),
                                      static_cast<size_t>(producer)) != pending_.ops.end();
  }

  bool made_later(TensorId tensor) const {
    int producer = facts_.producer[tensor.value];
    return std::any_of(pending_.later.begin(), pending_.later.end(), [&](const auto& one) {
      return producer >= 0 && one.second == static_cast<size_t>(producer);
    });
  }

  bool reads_pending(size_t op) const {
    if (pending_.ops.empty()) return false;
    std::vector<TensorId> ins = inputs_of(facts_.model.ops[op]);
    return std::any_of(ins.begin(), ins.end(),
                       [&](TensorId id) { return made_in_loop(id) || made_later(id); });
  }

  // An op of the loop itself that needs other pieces than its own of what the loop makes: the loop ends, and
  // another begins.
  bool needs_it_whole(size_t op) const {
    size_t axis = facts_.split.loop_axis[pending_.loop];
    std::vector<TensorId> ins = inputs_of(facts_.model.ops[op]);
    for (size_t k = 0; k < ins.size(); ++k) {
      if (made_later(ins[k])) return true;
      if (!made_in_loop(ins[k])) continue;
      if (!same_piece(facts_.made_of(ins[k]), facts_.split.ops[op].need[k], axis)) return true;
    }
    return false;
  }

  const Facts& facts_;
  Pending pending_;
  Jobs out_;
};

}  // namespace

const Job* Jobs::loop_with(size_t op, int stream) const {
  auto found = loop_job[stream].find(op);
  return found == loop_job[stream].end() ? nullptr : &list[found->second];
}

Jobs find_jobs(const Facts& facts) { return JobList(facts).run(); }

}  // namespace partita::lower
