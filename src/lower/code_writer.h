#pragma once

#include <map>
#include <optional>
#include <vector>

#include "lower/code.h"

namespace partita::lower {

/// A value that later code of its site may read.
struct Available {
  int value = -1;
  bool segment_only = false;  // a gathered weight or a view of one: made again where it is needed again
};

/// Writes the code of all sites, op by op: see write_code (passes.h). One noun in four files: write_code.cc
/// writes ops, supply.cc brings their inputs, loop.cc runs some of them in pieces, update.cc ends the step.
class CodeWriter {
 public:
  CodeWriter(const Model& model, const Plan& plan, const Transformed& transformed, const Assigned& assigned,
             const Sites& sites, bool apart);

  Code write();

 private:
  /// Inside which loop code is written, and for which piece.
  struct Place {
    int loop = -1, piece = -1;
  };

  /// Ops of one loop in a row, not yet written: they are written once for each piece.
  struct Pending {
    int loop = -1;
    Segment segment;
    std::vector<size_t> ops;
    std::vector<std::pair<Segment, size_t>> later;  // ops of no loop, but they read what this one makes
  };

  Layout replicated() const { return Layout(split_.axis_sizes.size()); }
  size_t time() const { return split_.time_axis(); }
  bool loops() const { return plan_.microbatches > 1; }
  Segment segment_of(size_t op, int stage, int stream) const {
    if (!model_.ops[op].backward) return {Segment::kForward, stage, stream};
    return {weight_[op] ? Segment::kWeight : Segment::kBackward, stage, stream};
  }
  std::vector<int> sites_of(const Segment& segment) const { return sites_.at(segment.stage, segment.stream); }
  /// The stage that makes it; of several the first.
  int home_stage(TensorId tensor) const {
    const std::vector<int>& stages = assigned_.stages[producer_[tensor.value]];
    return stages.empty() ? 0 : stages.front();
  }
  /// Its site; Sites::kAll where each makes it, or its part of it.
  int home(TensorId tensor, int stream) const { return sites_.of(home_stage(tensor), stream); }
  bool is_home(int site, TensorId tensor, int stream) const {
    int from = home(tensor, stream);
    return from == site || from == Sites::kAll;
  }
  const Layout& made_of(TensorId tensor) const {
    const Op& producer = model_.ops[producer_[tensor.value]];
    size_t o = std::find(producer.outputs.begin(), producer.outputs.end(), tensor) - producer.outputs.begin();
    return split_.ops[producer_[tensor.value]].made[o];
  }
  bool run_again(int site, Segment segment, TensorId tensor) const {
    return dropped_[tensor.value] && segment.backward() && is_home(site, tensor, segment.stream);
  }
  bool cut_by_loop(const Layout& layout) const {
    return place_.loop >= 0 && layout[split_.loop_axis[place_.loop]].kind != AxisLayout::kReplicated;
  }
  const Value& value(int site, int id) const { return code_.sites[site].values[id]; }
  void push(int site, Segment segment, CodeStep step) {
    code_.sites[site].segments[segment].push_back(std::move(step));
  }
  std::vector<Available>& have(int site, TensorId tensor) { return have_[site][tensor.value]; }

  // write_code.cc
  void find_weight_ops();
  std::map<Segment, std::vector<int>> places_of(size_t i, int stream) const;
  void find_wanted_after();
  void find_dropped();
  bool read_in_addends(TensorId tensor) const;
  /// Does a stage of its own read it, one that is not on all devices?
  bool read_apart(TensorId tensor) const;
  /// Is it made by a stage on all devices?
  bool made_together(TensorId tensor) const;
  int block_named(const std::string& name) const;
  int add_value(int site, Value value);
  std::vector<int> emit(int site, Segment segment, size_t i);
  void settle_output(int site, Segment segment, int id);
  void share(int site, Segment segment, int id);
  bool reduced_each_time(TensorId parameter) const;
  std::optional<DType> sum_dtype(TensorId tensor) const;

  // supply.cc
  bool usable(int site, const Available& one, Segment segment) const;
  int want(int site, Segment segment, TensorId tensor, const Layout& need, std::optional<DType> as = {});
  int want_rounded(int site, Segment segment, TensorId tensor, const Layout& need, std::optional<DType> as);
  bool reachable(const Layout& from, const Layout& to) const;
  int best_source(int site, Segment segment, TensorId tensor, const Layout& need, std::optional<DType> as);
  int load(int site, TensorId tensor, const Layout& layout, int stream);
  bool made_from_nothing(TensorId tensor) const;
  bool meets_others(int site, int source, const Layout& need) const;
  int make_alone(int site, TensorId tensor, const Layout& need);
  void obtain(int site, Segment segment, TensorId tensor, const Layout& need);
  void make_again(int site, Segment segment, TensorId tensor, const Layout& need);
  void run_apart(int site, Segment segment, int loop, const std::vector<size_t>& ops);
  Segment first_segment(int site, Segment made, Segment reader, TensorId tensor);
  int before_epilogue(int site, TensorId tensor);
  void bring(int site, Segment segment, TensorId tensor, const Layout& need);
  void merge(int site, TensorId tensor);
  int convert(int site, Segment segment, int source, const Layout& need);
  int cast(int site, Segment segment, int source, DType dtype);
  bool is_segment_only(int site, int id);

  // loop.cc
  void take(Segment segment, const std::vector<int>& sites, size_t i);
  bool ends_loop(size_t i) const;
  void find_through();
  bool goes_through(int loop, const Segment& segment) const;
  bool made_in(const std::vector<size_t>& ops, TensorId tensor) const;
  bool reads_pending(size_t i) const;
  bool needs_it_whole(size_t i) const;
  void run_pending();
  void run_loop(int site, Segment segment, int loop, const std::vector<size_t>& ops);
  int reduced_piece(int site, Segment segment, size_t axis, int id);
  void end_loop(int site, Segment segment, size_t axis, TensorId tensor,
                const std::map<TensorId, std::vector<int>>& made, const std::map<TensorId, int>& sums);
  int join(int site, Segment segment, size_t axis, const std::vector<int>& pieces);
  bool read_outside(Segment segment, TensorId tensor, const std::vector<size_t>& ops) const;
  bool made_again_for(size_t reader, TensorId tensor, int stream) const;
  bool needs_other_pieces(TensorId tensor, size_t reader) const;

  // update.cc
  int held_value(int site, TensorId parameter);
  void fetch_gradient(TensorId parameter, TensorId gradient);
  void fetch(int site, TensorId tensor);
  void compute_late(TensorId parameter, TensorId gradient);
  void complete(TensorId parameter, TensorId gradient);
  void add_norm();
  void clip(int site, int norm);
  void finish(TensorId parameter);
  CodeStep update(int site, TensorId parameter, int piece);

  const Model& model_;
  const Plan& plan_;
  const Transformed& split_;
  const Assigned& assigned_;
  const Sites& sites_;
  Code code_;
  std::vector<std::vector<std::vector<Available>>> have_;  // site, tensor
  std::vector<std::vector<int>> summed_last_;              // by site: values that the epilogue sums in place
  std::vector<int> producer_;
  std::vector<std::vector<size_t>> readers_;  // by tensor: ops
  Pending pending_;
  Place place_;
  std::vector<std::vector<size_t>> groups_;  // ops that ran in one loop
  std::map<size_t, size_t> group_of_;        // by op
  std::vector<bool> wanted_after_;
  std::vector<bool> through_;  // by op: backward that runs with forward, piece by piece
  std::vector<bool> weight_;   // by op: a weight gradient that nothing else waits for
  std::vector<bool> dropped_;  // by tensor: not kept for backward, made again there
  std::map<TensorId, TensorId> parameter_of_;
  TensorId loss_gradient_;
  std::vector<int> norms_;  // by site
};

}  // namespace partita::lower
