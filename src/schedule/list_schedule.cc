#include "schedule/list_schedule.h"

#include <algorithm>

#include "base/error.h"

namespace partita::schedule {
namespace {

constexpr int64_t kNever = INT64_MAX;
constexpr int kNoDevice = -1;

// Memory of one device under the banker's rule.
class Vault {
 public:
  Vault(const Flow& flow, int device) : cap_(flow.cap[device]) {
    for (int line : flow.of_device[device]) whole_ += flow.lines[line].take;
    if (cap_ == INT64_MAX) return;
    need_.assign(flow.microbatches, whole_);
    hold_.assign(flow.microbatches, 0);
  }

  bool can_hold_one() const { return whole_ <= cap_; }

  // Could a step of micro-batch k take `amount`, and every older one still be finished in turn?
  bool may_take(int k, int64_t amount) const {
    if (cap_ == INT64_MAX || amount == 0) return true;
    int64_t left = cap_ - used_ - amount;
    if (left >= whole_) return true;
    if (left < 0) return false;
    for (int j = oldest_; j < k; ++j) {
      if (need_[j] > left) return false;
      left += hold_[j];
    }
    return need_[k] - amount <= left;
  }

  void run(int k, int64_t take, int64_t give) {
    if (cap_ == INT64_MAX) return;
    used_ += take - give;
    need_[k] -= take;
    hold_[k] += take - give;
    while (oldest_ < int(need_.size()) && need_[oldest_] == 0 && hold_[oldest_] == 0) ++oldest_;
  }

 private:
  int64_t cap_, whole_ = 0, used_ = 0;
  int oldest_ = 0;
  std::vector<int64_t> need_, hold_;
};

class Lister {
 public:
  Lister(const Flow& flow, const Policy& policy)
      : flow_(flow),
        policy_(policy),
        m_(flow.microbatches),
        next_(flow.lines.size(), 0),
        free_(flow.devices, 0),
        ready_(flow.lines.size(), kNever),
        room_(flow.lines.size(), 0),
        best_(flow.devices) {
    listed_.order.resize(flow.devices);
    listed_.end.assign(flow.lines.size() * m_, -1);
    for (int device = 0; device < flow.devices; ++device) vaults_.emplace_back(flow, device);
    find_owners();
    size_t leaves = 2;
    while (leaves < size_t(flow.devices)) leaves *= 2;
    winner_.assign(2 * leaves, kNoDevice);
    for (int device = 0; device < flow.devices; ++device) winner_[leaves + device] = device;
    warmup_ = policy.warmup;
    if (warmup_.empty()) warmup_.assign(flow.devices, INT64_MAX);
  }

  std::optional<Listed> run() {
    for (const Vault& vault : vaults_)
      if (!vault.can_hold_one()) return std::nullopt;
    for (size_t line = 0; line < flow_.lines.size(); ++line) refresh(int(line));
    for (int device = 0; device < flow_.devices; ++device) {
      find_room(device);
      choose(device);
    }
    for (size_t left = flow_.lines.size() * m_; left > 0; --left) append(earliest_device());
    for (int device = 0; device < flow_.devices; ++device) {
      listed_.makespan = std::max(listed_.makespan, free_[device]);
      if (!listed_.order[device].empty())
        listed_.span = std::max(listed_.span, free_[device] - first_start(device));
    }
    return std::move(listed_);
  }

 private:
  struct Choice {
    int line = -1;
    int64_t start = kNever;
  };

  int64_t first_start(int device) const {
    const Turn& op = listed_.order[device].front();
    return listed_.end[size_t(op.line) * m_ + op.microbatch] - flow_.lines[op.line].cost;
  }

  int earliest_device() const {
    CHECK(best_[winner_[1]].line >= 0);
    return winner_[1];
  }

  // Of two devices the one that starts first, of equals the one with the lower number.
  int earlier(int a, int b) const {
    if (b == kNoDevice || a == kNoDevice) return b == kNoDevice ? a : b;
    return best_[b].start < best_[a].start ? b : a;
  }

  // Plays the matches of a device again after its choice changed: a tournament knows the first of many
  // devices without asking them all.
  void compete(int device) {
    for (size_t node = (size_t(device) + winner_.size() / 2) / 2; node > 0; node /= 2)
      winner_[node] = earlier(winner_[2 * node], winner_[2 * node + 1]);
  }

  // The forward line whose micro-batches leave through each line; -1 where none does.
  void find_owners() {
    owner_.assign(flow_.lines.size(), -1);
    live_.assign(flow_.lines.size(), 0);
    if (policy_.quota.empty()) return;
    for (size_t i = 0; i < flow_.lines.size(); ++i) {
      const Flow::Line& line = flow_.lines[i];
      if (line.kind != StepKind::kBackward && line.kind != StepKind::kWeightGrad) continue;
      for (int j : flow_.of_device[line.device])
        if (flow_.lines[j].kind == StepKind::kForward && flow_.lines[j].take > 0 &&
            flow_.lines[j].stage == line.stage && flow_.lines[j].stream == line.stream)
          owner_[i] = j;
    }
  }

  // When the inputs of the next operation of `line` are there; kNever while one is not scheduled. Kept up to
  // date because choosing asks far more often than anything changes.
  void refresh(int line) {
    int k = next_[line];
    ready_[line] = k == m_ ? kNever : 0;
    if (k == m_) return;
    for (const Flow::Feed& feed : flow_.lines[line].inputs) {
      int64_t end = listed_.end[size_t(feed.line) * m_ + k];
      if (end < 0) ready_[line] = kNever;
      if (end < 0) return;
      ready_[line] = std::max(ready_[line], end + feed.delay);
    }
  }

  // When the next operation of `line` could start; kNever while inputs, memory or the warm-up forbid it.
  int64_t start_of(int line) const {
    if (ready_[line] == kNever) return kNever;
    const Flow::Line& l = flow_.lines[line];
    int k = next_[line];
    if (l.kind == StepKind::kForward && k > 0 && l.cost > warmup_[l.device]) return kNever;
    if (!policy_.quota.empty() && l.kind == StepKind::kForward && live_[line] >= policy_.quota[line])
      return kNever;
    if (l.take > 0 && !room_[line]) return kNever;
    return std::max(free_[l.device], ready_[line]);
  }

  // Which lines of a device have room for their next operation: asked anew only when its memory changed, for
  // the banker's rule looks at every live micro-batch.
  void find_room(int device) {
    for (int line : flow_.of_device[device])
      if (const Flow::Line& l = flow_.lines[line]; l.take > 0 && next_[line] < m_)
        room_[line] = vaults_[device].may_take(next_[line], l.take);
  }

  void choose(int device) {
    const std::vector<int>& lines = flow_.of_device[device];
    starts_.resize(lines.size());
    int64_t first_start = kNever, horizon = kNever;
    for (size_t i = 0; i < lines.size(); ++i) {
      starts_[i] = start_of(lines[i]);
      if (starts_[i] == kNever) continue;
      first_start = std::min(first_start, starts_[i]);
      horizon =
          std::min(horizon, starts_[i] + int64_t(policy_.patience * double(flow_.lines[lines[i]].cost)));
    }
    Choice best;
    int64_t best_rank = 0;
    for (size_t i = 0; i < lines.size(); ++i) {
      if (starts_[i] == kNever || (starts_[i] >= horizon && starts_[i] != first_start)) continue;
      int64_t rank = policy_.rank[size_t(lines[i]) * m_ + next_[lines[i]]];
      if (best.line >= 0 && rank >= best_rank) continue;
      best = {lines[i], starts_[i]};
      best_rank = rank;
    }
    best_[device] = best;
    compete(device);
  }

  void append(int device) {
    Choice choice = best_[device];
    const Flow::Line& line = flow_.lines[choice.line];
    int k = next_[choice.line]++;
    free_[device] = choice.start + line.cost;
    listed_.end[size_t(choice.line) * m_ + k] = free_[device];
    listed_.order[device].push_back({choice.line, k});
    vaults_[device].run(k, line.take, line.give);
    find_room(device);
    if (line.kind == StepKind::kForward) ++live_[choice.line];
    if (owner_[choice.line] >= 0) --live_[owner_[choice.line]];
    refresh(choice.line);
    for (const Flow::Feed& feed : line.outputs)
      if (next_[feed.line] == k) refresh(feed.line);
    if (line.kind != StepKind::kForward)
      warmup_[device] = INT64_MAX;
    else if (warmup_[device] != INT64_MAX)
      warmup_[device] -= line.cost;
    choose(device);
    for (const Flow::Feed& feed : line.outputs)
      if (int reader = flow_.lines[feed.line].device; reader != device && ready_[feed.line] != kNever)
        choose(reader);
  }

  const Flow& flow_;
  const Policy& policy_;
  const int m_;
  std::vector<int> next_, owner_, live_;
  std::vector<int64_t> free_, starts_, warmup_, ready_;
  std::vector<char> room_;
  std::vector<Choice> best_;
  std::vector<int> winner_;  // a tournament of the devices: the root is 1, the leaves are the second half
  std::vector<Vault> vaults_;
  Listed listed_;
};

}  // namespace

std::optional<Listed> list_schedule(const Flow& flow, const Policy& policy) {
  return Lister(flow, policy).run();
}

std::optional<Listed> try_retime(const Flow& flow, FlowOrder order) {
  const size_t m = flow.microbatches;
  Listed listed{.order = std::move(order)};
  listed.end.assign(flow.lines.size() * m, -1);
  std::vector<size_t> next(flow.devices, 0);
  std::vector<int64_t> free(flow.devices, 0), first(flow.devices, -1);
  std::vector<int> awake(flow.devices);
  for (int d = 0; d < flow.devices; ++d) awake[d] = flow.devices - 1 - d;
  size_t done = 0;
  auto try_step = [&](int device) {
    if (next[device] == listed.order[device].size()) return false;
    const Turn& op = listed.order[device][next[device]];
    const Flow::Line& line = flow.lines[op.line];
    int64_t start = free[device];
    for (const Flow::Feed& feed : line.inputs) {
      int64_t end = listed.end[feed.line * m + op.microbatch];
      if (end < 0) return false;
      start = std::max(start, end + feed.delay);
    }
    if (first[device] < 0) first[device] = start;
    free[device] = listed.end[op.line * m + op.microbatch] = start + line.cost;
    for (const Flow::Feed& feed : line.outputs)
      if (int reader = flow.lines[feed.line].device; reader != device) awake.push_back(reader);
    ++next[device];
    ++done;
    return true;
  };
  while (!awake.empty()) {
    int device = awake.back();
    awake.pop_back();
    while (try_step(device)) {
    }
  }
  if (done != flow.lines.size() * m) return std::nullopt;
  for (int d = 0; d < flow.devices; ++d) {
    listed.makespan = std::max(listed.makespan, free[d]);
    if (first[d] >= 0) listed.span = std::max(listed.span, free[d] - first[d]);
  }
  return listed;
}

Listed retime(const Flow& flow, FlowOrder order) {
  std::optional<Listed> listed = try_retime(flow, std::move(order));
  CHECK(listed.has_value());
  return std::move(*listed);
}

std::vector<int64_t> starts_of(const Flow& flow, const Listed& listed) {
  std::vector<int64_t> starts = listed.end;
  for (size_t i = 0; i < starts.size(); ++i) starts[i] -= flow.lines[i / flow.microbatches].cost;
  return starts;
}

bool within_caps(const Flow& flow, const FlowOrder& order) {
  for (int device = 0; device < flow.devices; ++device) {
    int64_t used = 0;
    for (const Turn& op : order[device]) {
      used += flow.lines[op.line].take;
      if (used > flow.cap[device]) return false;
      used -= flow.lines[op.line].give;
    }
  }
  return true;
}

}  // namespace partita::schedule
