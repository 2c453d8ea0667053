#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/row.h"
#include "rows_sample.h"

namespace partita::run {

/// What a row claims about one op; a mutant changes one thing in it.
struct Claim {
  Relation relation;
  std::function<Op(const OpView& whole, const OpView& local)> localize;
  bool view = false;
};
Claim claim_of(const Instance& instance);

struct Verdict {
  std::string fault;  // the first one found; empty when the claim is true
  int letters = 0;    // loops that were split
  int calls = 0;      // of the op on pieces
};

using LinearSets = std::set<std::vector<int>>;
/// Minimal sets of floating inputs that this op is jointly linear in and that the claim does not name.
LinearSets unclaimed_linear_sets(const Instance& instance, const Claim& claim);

/// Tries everything the claim says on real tensors:
/// - every free loop, cut into 2 and 3 even and uneven parts, and every pair of them cut into 2 x 2: the op
/// on the
///   parts, recombined by the roles of the loop, is the op on the whole;
/// - every frozen loop must be so: cutting it, or two together, or (with `mixtures`) a part of it or of two
/// gives
///   something else, whatever role the outputs without it are given;
/// - no loop stands twice in one tensor: two letters were tied that are not one;
/// - sums pass through the linear sets, and through no other set but `excused` ones;
/// - a view shares the storage of its first input, others do not.
Verdict judge(const Instance& instance, const Claim& claim, const LinearSets& excused, uint64_t seed,
              bool mixtures);

/// What a claim allows, in words: equal for two claims that allow the same.
std::string allowed(const Instance& instance, const Claim& claim);

/// What a true claim says of an instance: the loops it splits, those it keeps whole (with the mixtures of
/// two), and what it is linear in.
struct Known {
  std::set<std::string> free, frozen;
  LinearSets linear;
};
Known known_of(const Instance& instance, const Claim& claim);

/// What is false in a mutant, by what it says beyond a claim that is known to be true; empty if it survives.
/// `next`: the first of its frozen loops to try, raised before each; after a crash one can go on behind it.
std::string fault_of_mutant(const Instance& instance, const Claim& mutant, const Known& known,
                            const LinearSets& excused, uint64_t seed, int& next);

}  // namespace partita::run
