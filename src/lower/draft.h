#pragma once

#include <vector>

#include "lower/code.h"
#include "lower/jobs.h"

namespace partita::lower {

/// Where code is written: at a site, in one of its segments; inside of a LoopRule's loop for one piece.
struct Place {
  int site = 0;
  Segment segment = kPrologue;
  int loop = -1, piece = -1;

  /// The same piece, in another segment.
  Place in(const Segment& other) const { return {site, other, loop, piece}; }
  /// The same segment, outside of every loop.
  Place outside() const { return {site, segment}; }
};

/// A value that later code of its site may read.
struct Available {
  int value = -1;
  bool segment_only = false;  // a gathered weight or a view of one: made again where it is needed again
};

/// Code while it is written: values, steps and transfers so far, and which values of a tensor are there to be
/// read. Nothing is taken back but availability.
struct Draft {
  Draft(const Facts& facts, const Jobs& jobs);

  const Facts& facts;
  const Jobs& jobs;
  Code code;
  std::vector<std::vector<int>> summed_last;  // by site: values that the epilogue sums in place

  int sites() const { return static_cast<int>(code.sites.size()); }
  const Value& value(int site, int id) const { return code.sites[site].values[id]; }
  const Value& value(const Place& place, int id) const { return value(place.site, id); }
  /// Adds a value: in a storage of its own where it shares none; inside of a loop that cuts it, of that
  /// piece.
  int add(const Place& place, Value value);
  void push(const Place& place, CodeStep step);

  const std::vector<Available>& have(int site, TensorId tensor) const { return have_[site][tensor.value]; }
  /// From now on `id` is there.
  void offer(int site, int id, bool segment_only = false);
  /// Values of a tensor of which `gone(value)` holds are not there any more.
  template <class Gone>
  void withdraw(int site, TensorId tensor, Gone gone) {
    std::erase_if(have_[site][tensor.value], [&](const Available& one) { return gone(one.value); });
  }

 private:
  std::vector<std::vector<std::vector<Available>>> have_;  // site, tensor
};

}  // namespace partita::lower
