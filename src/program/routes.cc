#include "program/routes.h"

#include <array>
#include <unordered_map>

namespace partita::program {
namespace {

/// Few numbers that are looked up together.
using Key = std::array<int32_t, 5>;
struct KeyHash {
  size_t operator()(const Key& key) const {
    uint64_t hash = 0;
    for (int32_t part : key)
      hash = (hash ^ static_cast<uint32_t>(part)) * 0x9e3779b97f4a7c15u, hash ^= hash >> 29;
    return hash;
  }
};
template <class T>
using Table = std::unordered_map<Key, T, KeyHash>;

class Router {
 public:
  Routes run(const Program& program) {
    for (size_t r = 0; r < program.ranks.size(); ++r) {
      open_.clear();
      std::vector<int32_t>& row = routes_.transfer.emplace_back();
      row.reserve(program.ranks[r].actions.size());
      for (const Action& action : program.ranks[r].actions)
        row.push_back(route(static_cast<int32_t>(r), action));
    }
    return std::move(routes_);
  }

 private:
  /// Transfers in the order in which they begin, and how many have been taken from the front.
  struct Queue {
    std::vector<int32_t> transfers;
    size_t taken = 0;
  };
  /// Transfers from one rank to another with one tag, and how many each side has begun.
  struct Channel {
    std::vector<int32_t> transfers;
    size_t begun[2] = {};
  };

  static Key end_of(bool sending, const Action& action) {
    return {action.slot.index * 2 + (sending ? 1 : 0), static_cast<int32_t>(action.slot.space),
            action.microbatch, action.peer, action.tag};
  }

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
    Channel& channel =
        channels_[sending ? Key{rank, action.peer, action.tag} : Key{action.peer, rank, action.tag}];
    size_t ordinal = channel.begun[sending ? 0 : 1]++;
    if (ordinal == channel.transfers.size()) channel.transfers.push_back(routes_.transfers++);
    open_[end_of(sending, action)].transfers.push_back(channel.transfers[ordinal]);
    return channel.transfers[ordinal];
  }

  int32_t end(const Action& action) {
    auto found = open_.find(end_of(action.kind == ActionKind::kWaitSend, action));
    if (found == open_.end() || found->second.taken == found->second.transfers.size()) return -1;
    return found->second.transfers[found->second.taken++];
  }

  Routes routes_;
  Table<Channel> channels_;
  Table<Queue> open_;  // of the rank at hand
};

}  // namespace

Routes routes_of(const Program& program) { return Router().run(program); }

}  // namespace partita::program
