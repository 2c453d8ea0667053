#include "simulate/instr_cost.h"

#include <algorithm>

#include "base/error.h"
#include "program/effects.h"
#include "program/local_view.h"
#include "simulate/instr_samples.h"

namespace partita::simulate {

InstrCosts::InstrCosts(const Model& model, const Program& program, const Prices& prices)
    : model_(model), program_(program), prices_(prices) {
  for (const Body& body : program.bodies) known_.emplace_back(body.instrs.size());
}

Seconds InstrCosts::local(BodyId body, int32_t index, const std::vector<TypeId>& in, int rank) {
  Known& known = known_[body.value][index];
  const Device* device = &device_of(prices_.cluster(), rank);
  if (known.seconds < 0 || known.in != in || known.device != device)
    known = {in, device, compute(program_[body].instrs[index], in, *device)};
  return known.seconds;
}

Seconds InstrCosts::call(const Instr& instr, const std::vector<TypeId>& in, const Device& device) const {
  if (instr.view && !prices_.measured()) return 0;
  OpView view = local_view(model_, program_, instr, in);
  auto signature = [&] { return signature_of(view.op->target, program_, instr, in); };
  return prices_.call({view, bytes_moved(program_, instr, in).all(), instr.view, signature}, device).seconds;
}

Seconds InstrCosts::compute(const Instr& instr, const std::vector<TypeId>& in, const Device& device) const {
  if (instr.kind == InstrKind::kCompute) return call(instr, in, device);
  Effects does = effects(instr);
  if (!does.allocates && !does.in_place) return 0;
  TypeId type = in.empty() ? instr.types[0] : in[0];
  return prices_.move(row_of(instr.kind).name, program_[type].dtype, bytes_moved(program_, instr, in).all(),
                      device);
}

Seconds InstrCosts::collective(const Instr& instr, TypeId in, const std::vector<int32_t>& ranks) const {
  // The whole is on the larger side: before a scatter, after a gather.
  return prices_.collective(row_of(instr.kind).name, std::max(bytes(in), bytes(instr.types[0])), ranks);
}

}  // namespace partita::simulate
