#include "simulate/instr_samples.h"

#include <fmt/format.h>

#include "program/local_view.h"
#include "program/slot_types.h"

namespace partita::simulate {
namespace {

OpSample sample_of(const Model& model, const Program& program, const Instr& instr,
                   const std::vector<TypeId>& in) {
  Bytes moved = bytes_moved(program, instr, in).all();
  if (instr.kind == InstrKind::kCompute) {
    OpView view = local_view(model, program, instr, in);
    OpSample sample = cost::sample_of(view, instr.view ? 0 : moved);
    sample.signature = signature_of(view.op->target, program, instr, in);
    sample.workspace = workspace_of(view);
    return sample;
  }
  std::string target = std::string("partita.") + row_of(instr.kind).name;
  TypeId type = in.empty() ? instr.types[0] : in[0];
  return {.signature = fmt::format("{} {} {}", target, dtype_name(program[type].dtype), moved),
          .target = target,
          .dtype = program[type].dtype,
          .moved = moved};
}

/// Follows the types of a rank's slots through its actions.
class Sampling {
 public:
  Sampling(const Model& model, const Program& program, int32_t rank)
      : model_(model), program_(program), rank_(rank), types_(program.ranks[rank], program.microbatches) {}

  std::vector<InstrSample> run() {
    const std::vector<Action>& actions = program_.ranks[rank_].actions;
    for (size_t a = 0; a < actions.size(); ++a) {
      const Action& action = actions[a];
      types_.take(action);
      if (action.kind == ActionKind::kRun) body(action, static_cast<int32_t>(a));
    }
    return std::move(samples_);
  }

 private:
  void body(const Action& action, int32_t number) {
    const Body& body = program_[action.body];
    types_.open(body);
    for (size_t i = 0; i < body.instrs.size(); ++i) {
      const Instr& instr = body.instrs[i];
      const std::vector<TypeId>& in = types_.in(instr, action.microbatch);
      if (!is_stop(instr.kind) && !row_of(instr.kind).renames)
        samples_.push_back(
            {{rank_, number, static_cast<int32_t>(i)}, sample_of(model_, program_, instr, in)});
      types_.make(instr, action.microbatch);
    }
  }

  const Model& model_;
  const Program& program_;
  int32_t rank_;
  SlotTypes types_;
  std::vector<InstrSample> samples_;
};

}  // namespace

std::string signature_of(std::string_view target, const Program& program, const Instr& instr,
                         const std::vector<TypeId>& in) {
  std::string text = cost::signature_of(target, instr.args, instr.kwargs, [&](TensorId id) {
    const TensorType& type = program[in[id.value]];
    return TensorLook{type.shape, type.strides, type.dtype};
  });
  return instr.into >= 0 ? text + " into" : text;
}

std::vector<InstrSample> instr_samples(const Model& model, const Program& program, int32_t rank) {
  return Sampling(model, program, rank).run();
}

}  // namespace partita::simulate
