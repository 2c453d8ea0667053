// A process may own one rank of many. Every process finds in the Program which rank holds which box, asks for
// the values of one tensor at a time, and puts the answers together: so all of them make the same calls in
// the same order, only values travel, and no more than one tensor is held twice.
#include "run/results.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace partita::run {
namespace {

/// A box of a tensor that a rank holds: its result or load of this number.
struct Part {
  const Box* box = nullptr;
  size_t number = 0;
};
using Parts = std::vector<std::vector<Part>>;  // by rank
using Read = std::function<HostTensor(int32_t rank, size_t number)>;
using Key = std::pair<Result::Kind, TensorId>;

/// Every process knows from the Program who holds what; only the values are asked for.
template <class Wanted>
std::map<Key, Parts> result_parts(const Program& program, const Wanted& wanted) {
  std::map<Key, Parts> parts;
  for (size_t r = 0; r < program.ranks.size(); ++r)
    for (size_t k = 0; k < program.ranks[r].results.size(); ++k) {
      const Result& result = program.ranks[r].results[k];
      if (!wanted(result)) continue;
      Parts& of = parts.try_emplace(Key(result.kind, result.tensor), program.ranks.size()).first->second;
      of[r].push_back({&result.box, k});
    }
  return parts;
}

Read read_results(const Gather& gather) {
  return [&gather](int32_t rank, size_t number) {
    return gather.read(rank, gather.program.ranks[rank].results[number].slot);
  };
}

std::vector<HostTensor> values_of(const std::vector<Part>& parts, int32_t rank, const Read& read) {
  std::vector<HostTensor> values;
  for (const Part& part : parts) values.push_back(read(rank, part.number));
  return values;
}

Assembly assemble(const Gather& gather, TensorId tensor, const Parts& parts,
                  const std::vector<Answer>& answers) {
  std::optional<Assembly> assembly;
  for (size_t r = 0; r < parts.size(); ++r) {
    CHECK_EQ(answers[r].values.size(), parts[r].size());
    for (size_t k = 0; k < parts[r].size(); ++k) {
      const HostTensor& value = answers[r].values[k];
      if (!assembly) assembly.emplace(gather.model[tensor].shape, value.dtype, gather.leaves[tensor.value]);
      assembly->add(*parts[r][k].box, value);
    }
  }
  return std::move(*assembly);
}

Assembly ask_for(const Gather& gather, TensorId tensor, const Parts& parts, const Read& read) {
  return assemble(gather, tensor, parts, gather.ranks.ask([&](int32_t rank) {
    return Answer{{}, values_of(parts[rank], rank, read)};
  }));
}

void check_covered(const Assembly& assembly, const Tensor& tensor) {
  if (int64_t missing = assembly.missing())
    throw RunError(fmt::format("the ranks' results lack {} of {} elements of {}", missing,
                               numel(tensor.shape), tensor.name));
}

std::vector<std::string> parameters_of(const Model& model, TensorId gradient) {
  std::vector<std::string> names;
  for (const auto& [parameter, its_gradient] : model.gradients)
    if (its_gradient == gradient) names.push_back(model[parameter].name);
  return names;
}

void add(Values& values, const Key& key, const Assembly& assembly, const Model& model) {
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

}  // namespace

Values collect_values(const Gather& gather, const std::set<Result::Kind>& kinds) {
  Values values;
  auto wanted = [&](const Result& result) { return kinds.contains(result.kind); };
  for (const auto& [key, parts] : result_parts(gather.program, wanted)) {
    Assembly assembly = ask_for(gather, key.second, parts, read_results(gather));
    check_covered(assembly, gather.model[key.second]);
    add(values, key, assembly, gather.model);
  }
  return values;
}

HostTensor collect_update(const Gather& gather, TensorId tensor) {
  auto update = [&](const Result& result) {
    return result.tensor == tensor && (result.kind == Result::kParameter || result.kind == Result::kBuffer);
  };
  std::map<Key, Parts> found = result_parts(gather.program, update);
  Assembly assembly = ask_for(gather, tensor, found.begin()->second, read_results(gather));
  check_covered(assembly, gather.model[tensor]);
  return assembly.whole();
}

StepEnd collect_step(const Gather& gather, const std::function<RankEnd(int32_t)>& end) {
  std::map<Key, Parts> found =
      result_parts(gather.program, [](const Result& result) { return result.kind == Result::kLoss; });
  Parts none(gather.program.ranks.size());
  const Parts& parts = found.empty() ? none : found.begin()->second;
  std::vector<Answer> answers = gather.ranks.ask([&](int32_t rank) {
    RankEnd own = end(rank);
    return Answer{{own.skipped ? 1.0 : 0.0, own.seconds, own.optimizer_seconds},
                  values_of(parts[rank], rank, read_results(gather))};
  });
  StepEnd all;
  for (const Answer& answer : answers) {
    all.skipped |= answer.numbers[0] != 0;
    all.seconds = std::max(all.seconds, answer.numbers[1]);
    all.optimizer_seconds = std::max(all.optimizer_seconds, answer.numbers[2]);
  }
  if (found.empty()) return all;
  all.tensor = found.begin()->first.second;
  all.assembled = assemble(gather, all.tensor, parts, answers);
  return all;
}

double StepEnd::loss(const Model& model) const {
  if (!assembled) throw RunError("no rank holds the loss at the end of the step");
  check_covered(*assembled, model[tensor]);
  return to_doubles(assembled->whole()).at(0);
}

Lasting collect_lasting(const Gather& gather, const std::vector<std::vector<NextLoad>>& plans,
                        const std::function<HostTensor(int32_t rank, const NextLoad& next)>& read) {
  std::map<std::pair<TensorId, int32_t>, Parts> held;  // tensor, state
  for (size_t r = 0; r < plans.size(); ++r)
    for (size_t k = 0; k < plans[r].size(); ++k) {
      const auto& [load, next, from] = plans[r][k];
      bool here = next == Next::kStay || next == Next::kCarry;
      if (!here || !lasts(gather.model[load->tensor])) continue;
      held.try_emplace({load->tensor, load->state}, plans.size()).first->second[r].push_back({&load->box, k});
    }
  Lasting out;
  out.states.resize(optimizer_states(gather.program.optimizer) + 1);
  for (const auto& [key, parts] : held) {
    auto [tensor, state] = key;
    Assembly assembly = ask_for(gather, tensor, parts,
                                [&](int32_t rank, size_t number) { return read(rank, plans[rank][number]); });
    (state < 0 ? out.tensors : out.states[state]).emplace(gather.model[tensor].name, assembly.whole());
  }
  return out;
}

}  // namespace partita::run
