#include "simulate/class_places.h"

#include "cost/cost.h"

namespace partita::simulate {
namespace {

class Finder {
 public:
  Finder(const Program& classes, const Fold& fold, const Cluster& cluster)
      : program_(classes), fold_(fold), cluster_(cluster) {}

  std::vector<ClassPlace> run() {
    std::vector<ClassPlace> places;
    for (size_t c = 0; c < fold_.classes.size() && alike_; ++c) places.push_back(place(static_cast<int>(c)));
    return alike_ ? places : std::vector<ClassPlace>{};
  }

 private:
  ClassPlace place(int rank_class) {
    const RankClass& ranks = fold_.classes[rank_class];
    std::vector<int64_t> first;
    for (const Interval& range : ranks.coordinates) first.push_back(range.begin);
    ClassPlace out{.rank = rank_at(fold_, ranks.site, first)};
    out.peers.resize(fold_.classes.size(), -1);
    for (const Action& action : program_.ranks[rank_class].actions)
      if (action.peer >= 0) out.peers[action.peer] = rank_at(fold_, fold_.classes[action.peer].site, first);
    compare_ranks(ranks, out);
    const std::vector<std::vector<int32_t>>& groups = program_.ranks[rank_class].groups;
    for (size_t g = 0; g < groups.size(); ++g)
      out.groups.push_back(group(ranks, groups[g], fold_.group_axes[rank_class][g]));
    return out;
  }

  void compare_ranks(const RankClass& ranks, const ClassPlace& first) {
    std::vector<int32_t> peers;
    for (size_t c = 0; c < first.peers.size(); ++c)
      if (first.peers[c] >= 0) peers.push_back(static_cast<int32_t>(c));
    for_each_rank(ranks, [&](const std::vector<int64_t>& at) {
      int32_t rank = rank_at(fold_, ranks.site, at);
      alike_ = alike_ && device_of(cluster_, rank) == device_of(cluster_, first.rank);
      for (int32_t peer : peers)
        alike_ = alike_ && link_between(cluster_, rank, rank_at(fold_, fold_.classes[peer].site, at)) ==
                               link_between(cluster_, first.rank, first.peers[peer]);
    });
  }

  // Each group once: by the coordinates that its members share.
  std::vector<int32_t> group(RankClass ranks, const std::vector<int32_t>& classes,
                             const std::vector<int>& axes) {
    for (int axis : axes) ranks.coordinates[axis].end = ranks.coordinates[axis].begin + 1;
    std::vector<int32_t> first;
    Group alike;
    for_each_rank(ranks, [&](const std::vector<int64_t>& at) {
      std::vector<int32_t> members = group_at(fold_, classes, axes, at);
      Group here = group_of(cluster_, members);
      if (first.empty()) first = std::move(members), alike = here;
      alike_ = alike_ && here == alike;
    });
    return first;
  }

  const Program& program_;
  const Fold& fold_;
  const Cluster& cluster_;
  bool alike_ = true;
};

}  // namespace

std::vector<ClassPlace> class_places(const Program& classes, const Fold& fold, const Cluster& cluster) {
  return Finder(classes, fold, cluster).run();
}

}  // namespace partita::simulate
