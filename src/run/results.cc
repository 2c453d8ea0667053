#include "run/results.h"

#include <map>

#include "base/error.h"
#include "run/assembly.h"

namespace partita::run {
namespace {

using Key = std::pair<Result::Kind, TensorId>;

template <class Wanted>
std::map<Key, Assembly> assemble(const Model& model, const Program& program, const LeafSizes& leaves,
                                 const Fetch& fetch, const Wanted& wanted) {
  std::map<Key, Assembly> assemblies;
  for (size_t r = 0; r < program.ranks.size(); ++r)
    for (const Result& result : program.ranks[r].results) {
      if (!wanted(result)) continue;
      TensorSpan span = fetch(static_cast<int32_t>(r), result.slot);
      auto [found, added] =
          assemblies.try_emplace(Key(result.kind, result.tensor), model[result.tensor].shape, span.type.dtype,
                                 leaves[result.tensor.value]);
      found->second.add(result.box, span.data, span.type);
    }
  for (const auto& [key, assembly] : assemblies)
    if (int64_t missing = assembly.missing())
      throw RunError(fmt::format("the ranks' results lack {} of {} elements of {}", missing,
                                 numel(model[key.second].shape), model[key.second].name));
  return assemblies;
}

std::vector<std::string> parameters_of(const Model& model, TensorId gradient) {
  std::vector<std::string> names;
  for (const auto& [parameter, its_gradient] : model.gradients)
    if (its_gradient == gradient) names.push_back(model[parameter].name);
  return names;
}

}  // namespace

Values collect_values(const Model& model, const Program& program, const LeafSizes& leaves, const Fetch& fetch,
                      const std::set<Result::Kind>& kinds) {
  Values values;
  auto wanted = [&](const Result& result) { return kinds.contains(result.kind); };
  for (const auto& [key, assembly] : assemble(model, program, leaves, fetch, wanted)) {
    const auto& [kind, tensor] = key;
    if (assembly.disagreement() > values.disagreement) {
      values.disagreement = assembly.disagreement();
      values.disagreeing = model[tensor].name;
    }
    if (kind == Result::kGradient)
      for (const std::string& name : parameters_of(model, tensor))
        values.gradients.emplace(name, assembly.whole());
    if (kind == Result::kParameter) values.parameters.emplace(model[tensor].name, assembly.whole());
    if (kind == Result::kBuffer) values.buffers.emplace(model[tensor].name, assembly.whole());
  }
  return values;
}

double collect_loss(const Model& model, const Program& program, const LeafSizes& leaves, const Fetch& fetch) {
  auto loss = [](const Result& result) { return result.kind == Result::kLoss; };
  auto found = assemble(model, program, leaves, fetch, loss);
  if (found.empty()) throw RunError("no rank holds the loss at the end of the step");
  return to_doubles(found.begin()->second.whole()).at(0);
}

HostTensor collect_update(const Model& model, const Program& program, const LeafSizes& leaves,
                          const Fetch& fetch, TensorId tensor) {
  auto update = [&](const Result& result) {
    return result.tensor == tensor && (result.kind == Result::kParameter || result.kind == Result::kBuffer);
  };
  return assemble(model, program, leaves, fetch, update).begin()->second.whole();
}

}  // namespace partita::run
