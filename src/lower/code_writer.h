#pragma once

#include <map>
#include <optional>
#include <vector>

#include "lower/code.h"

namespace partita {

/// A value that later code of its stage may read.
struct Available {
  int value = -1;
  bool segment_only = false;  // a gathered weight or a view of one: made again where it is needed again
};

/// Writes the code of all stages, op by op: see write_code. One noun in four files: write_code.cc writes ops,
/// supply.cc brings their inputs, loop.cc runs some of them in pieces, update.cc ends the step.
class CodeWriter {
 public:
  CodeWriter(const Model& model, const Plan& plan, const Transformed& transformed, const Assigned& assigned);

  Code write();

 private:
  /// Inside which loop code is written, and for which piece.
  struct Place {
    int loop = -1, piece = -1;
  };

  /// Ops of one loop in a row, not yet written: they are written once for each piece.
  struct Pending {
    int stage = -1, loop = -1;
    Segment segment = Segment::kForward;
    std::vector<size_t> ops;
    std::vector<std::pair<int, size_t>> later;  // stage and op: of no loop, but they read what this one makes
  };

  Layout replicated() const { return Layout(split_.axis_sizes.size()); }
  size_t time() const { return split_.time_axis(); }
  bool loops() const { return plan_.microbatches > 1; }
  Segment segment_of(size_t op) const {
    return model_.ops[op].backward ? Segment::kBackward : Segment::kForward;
  }
  int home(TensorId tensor) const {
    const std::vector<int>& stages = assigned_.stages[producer_[tensor.value]];
    return stages.empty() ? 0 : stages.front();
  }
  const Layout& made_of(TensorId tensor) const {
    const Op& producer = model_.ops[producer_[tensor.value]];
    size_t o = std::find(producer.outputs.begin(), producer.outputs.end(), tensor) - producer.outputs.begin();
    return split_.ops[producer_[tensor.value]].made[o];
  }
  bool run_again(int stage, Segment segment, TensorId tensor) const {
    return dropped_[tensor.value] && segment == Segment::kBackward && home(tensor) == stage;
  }
  bool cut_by_loop(const Layout& layout) const {
    return place_.loop >= 0 && layout[split_.loop_axis[place_.loop]].kind != AxisLayout::kReplicated;
  }
  const Value& value(int stage, int id) const { return code_.stages[stage].values[id]; }
  void push(int stage, Segment segment, CodeStep step) {
    code_.stages[stage].segments[static_cast<int>(segment)].push_back(std::move(step));
  }
  std::vector<Available>& have(int stage, TensorId tensor) { return have_[stage][tensor.value]; }

  // write_code.cc
  void find_wanted_after();
  void find_dropped();
  int block_named(const std::string& name) const;
  int add_value(int stage, Value value);
  std::vector<int> emit(int stage, Segment segment, size_t i);
  void settle_output(int stage, Segment segment, int id);
  bool reduced_each_time(TensorId parameter) const;
  std::optional<DType> sum_dtype(TensorId tensor) const;

  // supply.cc
  bool usable(int stage, const Available& one, Segment segment) const;
  int want(int stage, Segment segment, TensorId tensor, const Layout& need, std::optional<DType> as = {});
  int best_source(int stage, Segment segment, TensorId tensor, const Layout& need, std::optional<DType> as);
  int load(int stage, TensorId tensor, const Layout& layout);
  void obtain(int stage, Segment segment, TensorId tensor, const Layout& need);
  void make_again(int stage, Segment segment, TensorId tensor, const Layout& need);
  void bring(int stage, Segment segment, TensorId tensor, const Layout& need);
  int convert(int stage, Segment segment, int source, const Layout& need);
  int cast(int stage, Segment segment, int source, DType dtype);
  bool is_segment_only(int stage, int id);

  // loop.cc
  void take(int stage, size_t i);
  bool made_in(const std::vector<size_t>& ops, TensorId tensor) const;
  bool reads_pending(size_t i) const;
  bool needs_it_whole(size_t i) const;
  void run_pending();
  void run_loop(int stage, Segment segment, int loop, const std::vector<size_t>& ops);
  void end_loop(int stage, Segment segment, size_t axis, TensorId tensor,
                const std::map<TensorId, std::vector<int>>& made, const std::map<TensorId, int>& sums);
  int join(int stage, Segment segment, size_t axis, const std::vector<int>& pieces);
  bool read_outside(Segment segment, TensorId tensor, const std::vector<size_t>& ops) const;
  bool needs_other_pieces(TensorId tensor, size_t reader) const;

  // update.cc
  int held_value(int stage, TensorId parameter);
  void fetch_gradient(TensorId parameter, TensorId gradient);
  void compute_late(TensorId parameter, TensorId gradient);
  void complete(TensorId parameter, TensorId gradient);
  void add_norm();
  void clip(int stage, int norm);
  void finish(TensorId parameter);
  CodeStep update(int stage, TensorId parameter, int piece);

  const Model& model_;
  const Plan& plan_;
  const Transformed& split_;
  const Assigned& assigned_;
  Code code_;
  std::vector<std::vector<std::vector<Available>>> have_;  // stage, tensor
  std::vector<int> producer_;
  std::vector<std::vector<size_t>> readers_;  // by tensor: ops
  Pending pending_;
  Place place_;
  std::vector<std::vector<size_t>> groups_;  // ops that ran in one loop
  std::map<size_t, size_t> group_of_;        // by op
  std::vector<bool> wanted_after_;
  std::vector<bool> dropped_;  // by tensor: not kept for backward, made again there
  std::map<TensorId, TensorId> parameter_of_;
  TensorId loss_gradient_;
  std::vector<int> norms_;  // by stage
};

}  // namespace partita
