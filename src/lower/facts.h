#pragma once

#include <map>
#include <optional>
#include <vector>

#include "lower/ordered.h"
#include "plan/plan.h"

namespace partita::lower {

/// What is known of ops and tensors before any code is written: found once, changed never.
/// It refers to the model, the plan and the order it was found from, which must outlive it.
struct Facts {
  const Model& model;
  const Plan& plan;
  const Transformed& split;
  const Assigned& assigned;
  const Sites& sites;

  std::vector<int> producer = {};                 // by tensor: the op that makes it; -1 for none
  std::vector<std::vector<size_t>> readers = {};  // by tensor: ops, each as often as it reads it
  std::vector<bool> weight = {};                  // by op: a weight gradient that no other stage waits for
  std::vector<bool> through = {};                 // by op: backward that runs with forward, piece by piece
  std::vector<bool> wanted_after = {};  // by tensor: something after the micro-batches reads the sum
  std::vector<bool> recomputed = {};    // by tensor: not saved for backward, made again there
  std::map<TensorId, TensorId> parameter_of = {};  // by gradient
  TensorId loss_gradient = {};

  Layout replicated() const { return Layout(split.axis_sizes.size()); }
  /// The axis of micro-batches; those after it are loops.
  size_t time() const { return split.time_axis(); }
  bool many_microbatches() const { return plan.microbatches > 1; }

  /// The segment of a stage that an op stands in.
  Segment segment_of(size_t op, int stage, int stream) const;
  std::vector<int> sites_of(const Segment& segment) const { return sites.at(segment.stage, segment.stream); }
  /// The stage that makes a tensor; the first where several do.
  int home_stage(TensorId tensor) const;
  /// Its site; Sites::kAll where each makes it, or its part of it.
  int home(TensorId tensor, int stream) const { return sites.of(home_stage(tensor), stream); }
  bool is_home(int site, TensorId tensor, int stream) const;
  /// The layout its op gives it. REQUIRES: an op makes it.
  const Layout& made_of(TensorId tensor) const;
  /// Does a stage of its own read it, one that is not on all devices?
  bool read_apart(TensorId tensor) const;
  /// Is a site to make it again for this segment?
  bool recomputed_in(int site, const Segment& segment, TensorId tensor) const;
  /// Is the gradient of a parameter reduced in each micro-batch instead of once?
  bool reduced_each_time(TensorId parameter) const;
  /// The dtype in which a gradient is summed, where it is not the tensor's own.
  std::optional<DType> sum_dtype(TensorId tensor) const;
};

Facts find_facts(const Model& model, const Plan& plan, const Ordered& ordered);

}  // namespace partita::lower
