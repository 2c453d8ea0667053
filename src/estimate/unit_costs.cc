#include "estimate/unit_costs.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "program/rank_bytes.h"
#include "simulate/instr_cost.h"

namespace partita::estimate {
namespace {

/// Backward ops that lead to the gradient of one parameter and to nothing else: what zero-bubble schedules
/// put off (as the lowering does).
std::vector<bool> weight_ops(const Model& model, const Program& program) {
  std::vector<bool> runs(model.ops.size());  // for every micro-batch
  for (const Body& body : program.bodies)
    for (const Instr& instr : body.instrs)
      if (instr.kind == InstrKind::kCompute && in_loop(*body.part)) runs[instr.op.value] = true;
  constexpr int kNobody = -1, kMany = -2;
  std::vector<int> leads(model.tensors.size(), kNobody);
  std::vector<bool> weight(model.ops.size());
  auto join = [](int& to, int gradient) { to = to == kNobody || to == gradient ? gradient : kMany; };
  for (auto [parameter, gradient] : model.gradients) leads[gradient.value] = gradient.value;
  for (size_t i = model.ops.size(); i-- > 0;) {
    const Op& op = model.ops[i];
    if (!op.backward || !runs[i]) continue;
    int to = kNobody;
    for (TensorId id : op.outputs)
      if (id && leads[id.value] != kNobody) join(to, leads[id.value]);
    weight[i] = to >= 0;
    for (TensorId id : inputs_of(op)) join(leads[id.value], to >= 0 ? to : kMany);
  }
  return weight;
}

/// Walks what the first rank does for the first micro-batch, and what stands before and after the loop.
class Meter {
 public:
  Meter(const Prepared& prepared, const Plan& plan, const Prices& prices)
      : model_(prepared.model),
        plan_(plan),
        folded_(lower_first_microbatch(prepared, plan)),
        program_(rank_program(0)),
        rank_(program_.ranks[0]),
        units_(find_units(model_)),
        weight_ops_(weight_ops(model_, program_)),
        prices_(prices),
        costs_(model_, program_, prices),
        shared_(model_, program_),
        bytes_(shared_, rank_, [this](Bytes held) { mark(held); }),
        tensors_(rank_, program_.microbatches) {
    out_.units.resize(units_.all.size());
    for (auto [parameter, gradient] : model_.gradients) gradients_.insert(gradient);
    for (const MeshAxis& axis : plan.mesh) {
      if (axis.name == "dp") dp_ = axis.size;
      if (axis.name == "dp" || axis.name == "replica") data_ranks_ *= axis.size;
    }
    if (dp_ == 1) return;
    int32_t next = static_cast<int32_t>(static_cast<int64_t>(program_.ranks.size()) / data_ranks_);
    next_loads_ = rank_program(next).ranks[next].loads;
  }

  UnitCosts measure() {
    for (const Load& load : rank_.loads)
      if (load.microbatch == 0) take_load(load);
    for (const Action& action : rank_.actions) {
      if (action.microbatch > 0) continue;
      if (action.kind == ActionKind::kFree) bytes_.free(action);
      if (action.kind == ActionKind::kRun) run(action);
    }
    count_leaving();
    write_held();
    write_parameters();
    return std::move(out_);
  }

 private:
  /// What is there for the whole step, by storage.
  struct Lasting {
    TensorId tensor;
    int32_t state = -1;
    bool per_microbatch = false, parameter = false, sum = false;
    std::set<int> units;
    bool forward = false, backward = false;
    TypeId type;
  };

  Program rank_program(int32_t rank) const {
    return folded_.fold.empty() ? folded_.program : expand(folded_.program, folded_.fold, rank);
  }

  int storage_of(Slot slot) { return bytes_.name(slot).storage; }
  TensorId& tensor_of(Slot slot) { return tensors_.at(slot, 0); }
  Bytes bytes_in(int storage) { return bytes_.held().bytes(storage); }
  /// Above what the rank holds all the time.
  Bytes held() { return bytes_.held().held().all - base_; }

  void take_load(const Load& load) {
    Role role = model_[load.tensor].role;
    bytes_.load(load);
    tensor_of(load.slot) = load.tensor;
    lasting_[storage_of(load.slot)] = {.tensor = load.tensor,
                                       .state = load.state,
                                       .per_microbatch = load.slot.space == Space::kFrame,
                                       .parameter = role == Role::kParameter,
                                       .type = load.type};
  }

  void run(const Action& action) {
    const Body& body = program_[action.body];
    part_ = *body.part;
    bytes_.open(body);
    tensors_.open(body);
    if (part_ == BodyPart::kForward) note_prologue();
    if (part_ == BodyPart::kBackward) sum_saved();
    start_ = held();
    unit_ = -1;
    std::vector<int> units = units_of(body);
    for (size_t i = 0; i < body.instrs.size(); ++i) {
      if (units[i] != unit_ && in_loop()) enter(units[i]);
      execute(action.body, static_cast<int32_t>(i));
    }
    if (in_loop()) leave();
  }

  bool in_loop() const { return program::in_loop(part_); }

  // What was made before the loop lasts.
  void note_prologue() {
    bytes_.held().for_each_name([&](Slot slot, int32_t, const RankBytes::Name& known) {
      if (known.storage >= 0 && !lasting_.contains(known.storage))
        lasting_[known.storage] = {.tensor = tensor_of(slot), .type = known.type};
    });
    base_ += held();
  }

  /// The unit of every instruction: of its op, and around ops of the one that a value is made ready for.
  std::vector<int> units_of(const Body& body) const {
    std::vector<int> units(body.instrs.size(), -1);
    int next = -1;
    for (size_t i = body.instrs.size(); i-- > 0;) {
      const Instr& instr = body.instrs[i];
      bool after = instr.kind == InstrKind::kAdd || instr.kind == InstrKind::kCast;
      if (instr.kind == InstrKind::kCompute) next = units_.of_op[instr.op.value];
      if (!after) units[i] = next;
    }
    for (size_t i = 0; i < units.size(); ++i)
      if (units[i] < 0) units[i] = i > 0 ? units[i - 1] : 0;
    // What runs early for a later unit counts where it runs: forward goes up the units, backward down.
    for (size_t i = units.size(); i-- > 1;)
      units[i - 1] =
          part_ == BodyPart::kForward ? std::min(units[i - 1], units[i]) : std::max(units[i - 1], units[i]);
    return units;
  }

  void enter(int unit) {
    if (unit_ >= 0) leave();
    unit_ = unit;
    start_ = held();
    kept_before_ = kept_;
    mark(bytes_.held().held().all);
  }

  void leave() {
    if (part_ != BodyPart::kForward) return;
    out_.units[unit_].saved += held() - start_;
  }

  void execute(BodyId body, int32_t index) {
    const Instr& instr = program_[body].instrs[index];
    std::vector<TypeId> in;
    for (Slot slot : instr.in) in.push_back(bytes_.name(slot).type);
    for (Slot slot : instr.in) read(slot);
    add_seconds(instr, seconds_of(body, index, instr, in));
    if (instr.kind == InstrKind::kOptimize) note_update(instr, in);
    note_sum(instr);
    bytes_.make(instr, index);
    note_outputs(instr);
    bytes_.drop(instr);
  }

  Seconds seconds_of(BodyId body, int32_t index, const Instr& instr, const std::vector<TypeId>& in) {
    if (!row_of(instr.kind).collective) return costs_.local(body, index, in, 0);
    // Sums over data parallel ranks after the loop are priced where their number is known.
    if (part_ == BodyPart::kEpilogue && data_ranks_ > 1) return 0;
    return costs_.collective(instr, in[0], rank_.groups[instr.group]);
  }

  void add_seconds(const Instr& instr, Seconds seconds) {
    if (part_ == BodyPart::kPrologue) out_.prologue += seconds;
    if (part_ == BodyPart::kEpilogue) add_at_end(instr, seconds);
    if (!in_loop()) return;
    UnitCost& cost = out_.units[unit_];
    if (part_ == BodyPart::kForward) {
      cost.forward += seconds;
      return;
    }
    bool adds = instr.kind == InstrKind::kAdd && sums_.contains(storage_of(instr.in[0]));
    if (adds) cost.accumulate += seconds;
    if (instr.kind == InstrKind::kCompute) weight_ = weight_ops_[instr.op.value];
    (weight_ || adds ? cost.weight_grad : cost.input_grad) += seconds;
  }

  // Updates and sums of gradients are where their parameter is.
  void add_at_end(const Instr& instr, Seconds seconds) {
    if (instr.kind == InstrKind::kOptimize) return;
    TensorId tensor = instr.in.empty() ? TensorId{} : tensor_of(instr.in[0]);
    if (tensor && gradients_.contains(tensor) && row_of(instr.kind).collective)
      summed_[tensor] += seconds;
    else
      out_.epilogue += seconds;
  }

  void read(Slot slot) {
    auto found = lasting_.find(storage_of(slot));
    if (found == lasting_.end() || !in_loop()) return;
    found->second.units.insert(unit_);
    (part_ == BodyPart::kForward ? found->second.forward : found->second.backward) = true;
  }

  /// A value is added to a sum over micro-batches: a gradient, or a part of one that several units make.
  /// After the loop, where such parts are added up, there are no units.
  void note_sum(const Instr& instr) {
    Effects does = effects(instr);
    bool adds = instr.into >= 0 || instr.kind == InstrKind::kAdd;
    if (!adds || !sums_.contains(storage_of(instr.in[does.alias]))) return;
    int sum = storage_of(instr.in[does.alias]);
    TensorId tensor = added(instr);
    if (gradients_.contains(tensor)) sum_of_[tensor] = sum;
    if (!in_loop()) return;
    Bytes bytes = bytes_in(instr.into >= 0 ? sum : storage_of(instr.in[1]));
    kept_ += bytes;
    if (!gradients_.contains(tensor)) out_.units[unit_].parts += bytes;
  }

  /// What an instruction adds in place.
  TensorId added(const Instr& instr) {
    if (instr.into < 0) return tensor_of(instr.in[1]);
    return model_[instr.sum ? instr.sum : instr.op].outputs[0];
  }

  /// Which tensors the new names are of.
  void note_outputs(const Instr& instr) {
    Effects does = effects(instr);
    if (instr.kind == InstrKind::kCompute && instr.into < 0) return note_call(instr);
    if (instr.out.empty()) return;
    TensorId tensor = instr.in.empty() ? TensorId{} : tensor_of(instr.in[std::max(does.alias, 0)]);
    bool adds = instr.into >= 0 || instr.kind == InstrKind::kAdd;
    if (adds && sums_.contains(storage_of(instr.out[0]))) {
      tensor = added(instr);
      if (instr.into < 0) tensor_of(instr.in[0]) = tensor;
    }
    if (does.allocates || instr.out[0] != instr.in[does.alias]) tensor_of(instr.out[0]) = tensor;
    if (instr.kind == InstrKind::kZeros && part_ == BodyPart::kPrologue)
      sums_.insert(storage_of(instr.out[0]));
  }

  void note_call(const Instr& instr) {
    const Op& op = model_[instr.op];
    for (size_t o = 0; o < instr.out.size(); ++o) {
      if (!instr.types[o] || instr.out[o].index < 0) continue;
      tensor_of(instr.out[o]) = op.outputs[o];
      if (part_ == BodyPart::kForward) made_[op.outputs[o]] = {unit_, bytes_of(program_[instr.types[o]])};
    }
    if (part_ == BodyPart::kForward)
      for (TensorId id : inputs_of(op)) last_reader_[id] = std::max(last_reader_[id], unit_);
  }

  void note_update(const Instr& instr, const std::vector<TypeId>& in) {
    const TensorType &own = program_[in[0]], &gradient = program_[in[1]];
    bool copied = false;
    for (size_t d = 0; d < own.shape.size(); ++d)
      copied |= own.shape[d] != 1 && own.strides[d] != gradient.strides[d];
    updates_[tensor_of(instr.in[0])] = {bytes_moved(program_, instr, in).all(), own.dtype, copied};
  }

  /// The rank holds this many bytes at some moment of the unit.
  void mark(Bytes all) {
    if (!in_loop()) return;
    UnitCost& cost = out_.units[unit_];
    Bytes now = all - base_;
    if (part_ == BodyPart::kForward) {
      cost.forward_peak = std::max(cost.forward_peak, now - start_);
      return;
    }
    Bytes saved = saved_until_[unit_];
    cost.backward_peak = std::max(cost.backward_peak, now - saved);
    cost.once_peak = std::max(cost.once_peak, now + kept_ - kept_before_ - saved);
  }

  void sum_saved() {
    Bytes saved = 0;
    for (const UnitCost& cost : out_.units) saved_until_.push_back(saved += cost.saved);
  }

  // Made in a unit and read by a later one.
  void count_leaving() {
    for (const auto& [tensor, made] : made_)
      if (auto reader = last_reader_.find(tensor); reader != last_reader_.end())
        for (int u = made.first; u < reader->second; ++u) out_.units[u].leaves += made.second;
  }

  void write_held() {
    std::set<int> sums_of_gradients;
    for (const auto& [tensor, storage] : sum_of_) sums_of_gradients.insert(storage);
    for (const auto& [storage, lasting] : lasting_) {
      bool trainable = lasting.tensor && model_[lasting.tensor].trainable;
      if ((lasting.parameter && trainable) || sums_of_gradients.contains(storage)) continue;
      Held held{.bytes = bytes_in(storage),
                .per_microbatch = lasting.per_microbatch,
                .sum = sums_.contains(storage)};
      held.units.assign(lasting.units.begin(), lasting.units.end());
      out_.held.push_back(std::move(held));
    }
  }

  void write_parameters() {
    std::map<TensorId, ParameterCost> all;
    for (const auto& [storage, lasting] : lasting_) {
      if (!lasting.parameter || !model_[lasting.tensor].trainable) continue;
      ParameterCost& cost = all[lasting.tensor];
      if (lasting.state >= 0) {
        cost.states += bytes_in(storage);
        continue;
      }
      const TensorType& type = program_[lasting.type];
      cost.name = model_[lasting.tensor].name;
      cost.own = bytes_in(storage);
      cost.in_forward = lasting.forward;
      cost.in_backward = lasting.backward;
      for (int64_t size : type.shape) cost.longest = std::max(cost.longest, size);
      cost.units.assign(lasting.units.begin(), lasting.units.end());
      cost.apart = apart(lasting.tensor);
      // Read before the loop alone: positions, of which every micro-batch has the same.
      if (cost.units.empty()) cost.units = {first_reader(lasting.tensor)};
    }
    for (auto [parameter, gradient] : model_.gradients) {
      auto found = all.find(parameter);
      if (found == all.end()) continue;
      ParameterCost& cost = found->second;
      cost.gradient = gradient_bytes(parameter, cost);
      if (auto summed = summed_.find(gradient); summed != summed_.end()) cost.summed = summed->second;
      cost.late = !sums_.empty() && !sum_of_.contains(gradient);
      if (auto update = updates_.find(parameter); update != updates_.end())
        std::tie(cost.moved, cost.dtype, cost.copied) = update->second;
      out_.parameters.push_back(cost);
    }
  }

  // Nothing is cut for storage here: where the next data parallel rank loads another piece, it uses another.
  bool apart(TensorId parameter) const {
    if (dp_ == 1) return false;
    auto box = [&](const std::vector<Load>& loads) {
      for (const Load& load : loads)
        if (load.tensor == parameter && load.state < 0) return load.box;
      return Box{};
    };
    return box(rank_.loads) != box(next_loads_);
  }

  int first_reader(TensorId tensor) const {
    for (size_t i = 0; i < model_.ops.size(); ++i)
      for (TensorId id : inputs_of(model_.ops[i]))
        if (id == tensor) return units_.of_op[i];
    return 0;
  }

  // In half precision gradients are summed up in float32, or what the plan says.
  Bytes gradient_bytes(TensorId parameter, const ParameterCost& cost) const {
    DType own = model_[parameter].dtype;
    DType wide = widened(own, plan_.optimizer.precision.grad.value_or(DType::kFloat32));
    return cost.own / dtype_bytes(own) * dtype_bytes(wide);
  }

  const Model& model_;
  const Plan& plan_;
  const FoldedProgram folded_;
  const Program program_;  // of the first rank
  const RankProgram& rank_;
  std::vector<Load> next_loads_;  // of the next data parallel rank
  const Units units_;
  const std::vector<bool> weight_ops_;
  const Prices& prices_;
  InstrCosts costs_;
  ProgramBytes shared_;
  RankBytes bytes_;
  SlotTable<TensorId> tensors_;  // what each name is of
  std::map<int, Lasting> lasting_;
  std::set<TensorId> gradients_;
  std::set<int> sums_;                              // storages that micro-batches add to
  std::map<TensorId, int> sum_of_;                  // gradients of parameters: their sum
  std::map<TensorId, std::pair<int, Bytes>> made_;  // values of forward: unit, bytes
  std::map<TensorId, int> last_reader_;
  std::map<TensorId, std::tuple<Bytes, DType, bool>> updates_;
  std::map<TensorId, Seconds> summed_;  // gradients
  std::vector<Bytes> saved_until_;      // by unit: what forward left of it and all before it
  Bytes base_ = 0, start_ = 0, kept_ = 0, kept_before_ = 0;
  BodyPart part_ = BodyPart::kPrologue;
  int unit_ = -1;
  bool weight_ = false;
  int64_t dp_ = 1, data_ranks_ = 1;
  UnitCosts out_;
};

}  // namespace

UnitCosts measure_units(const Prepared& prepared, const Plan& plan, const Prices& prices) {
  return Meter(prepared, plan, prices).measure();
}

}  // namespace partita::estimate
