#include "program/routes.h"

#include <deque>
#include <map>
#include <tuple>

namespace partita {
namespace {

using Channel = std::tuple<int32_t, int32_t, int32_t>;           // source, destination, tag
using Open = std::tuple<bool, Slot, int32_t, int32_t, int32_t>;  // sending, slot, micro-batch, peer, tag

class Router {
 public:
  Routes run(const Program& program) {
    for (size_t r = 0; r < program.ranks.size(); ++r) {
      open_.clear();
      std::vector<int32_t>& row = routes_.transfer.emplace_back();
      for (const Action& action : program.ranks[r].actions)
        row.push_back(route(static_cast<int32_t>(r), action));
    }
    return std::move(routes_);
  }

 private:
  int32_t route(int32_t rank, const Action& action) {
    switch (action.kind) {
      case ActionKind::kSend:
      case ActionKind::kPostReceive:
        return begin(rank, action);
      case ActionKind::kWaitSend:
      case ActionKind::kWaitReceive:
        return end(action);
      default:
        return -1;
    }
  }

  int32_t begin(int32_t rank, const Action& action) {
    bool sending = action.kind == ActionKind::kSend;
    Channel channel =
        sending ? Channel{rank, action.peer, action.tag} : Channel{action.peer, rank, action.tag};
    size_t ordinal = counts_[{sending, channel}]++;
    std::vector<int32_t>& ids = channels_[channel];
    if (ordinal == ids.size()) ids.push_back(routes_.transfers++);
    open_[{sending, action.slot, action.microbatch, action.peer, action.tag}].push_back(ids[ordinal]);
    return ids[ordinal];
  }

  int32_t end(const Action& action) {
    bool sending = action.kind == ActionKind::kWaitSend;
    auto found = open_.find({sending, action.slot, action.microbatch, action.peer, action.tag});
    if (found == open_.end() || found->second.empty()) return -1;
    int32_t transfer = found->second.front();
    found->second.pop_front();
    return transfer;
  }

  Routes routes_;
  std::map<Channel, std::vector<int32_t>> channels_;
  std::map<std::pair<bool, Channel>, size_t> counts_;
  std::map<Open, std::deque<int32_t>> open_;  // of the rank at hand
};

}  // namespace

Routes routes_of(const Program& program) { return Router().run(program); }

}  // namespace partita
