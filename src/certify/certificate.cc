#include "certify/certificate.h"

#include <fmt/format.h>

#include "certify/kernel/walk.h"
#include "certify/memo/driver.h"
#include "certify/refuse.h"
#include "program/check.h"

namespace partita::certify {

std::vector<std::string> certify(const Model& model, const Atoms& atoms, const Program& program) {
  return certify(model, atoms, program, Fold{});
}

// The driver says no more than yes; whatever it does not accept, the kernel looks at and explains.
std::vector<std::string> certify(const Model& model, const Atoms& atoms, const Program& program,
                                 const Fold& fold) {
  std::vector<std::string> wrong = check(program, model, fold);
  if (!wrong.empty() && in_force(Rule::kWellFormed)) return wrong;
  Given given(model, atoms, program, fold);
  return Driver(given).accepts() ? std::vector<std::string>{} : walk(given);
}

std::vector<std::string> certify_plainly(const Model& model, const Atoms& atoms, const Program& program,
                                         const Fold& fold) {
  std::vector<std::string> wrong = check(program, model, fold);
  return !wrong.empty() && in_force(Rule::kWellFormed) ? wrong : walk({model, atoms, program, fold});
}

std::vector<std::string> certify(const Model& model, const Atoms& atoms, const Program& program,
                                 const OptimizerSpec& optimizer, const Fold& fold) {
  if (program.optimizer == optimizer || !in_force(Rule::kPlanNumbers))
    return certify(model, atoms, program, fold);
  auto show = [](const OptimizerSpec& spec) {
    return optimizer_json(spec).dump() + " " + precision_json(spec.precision).dump();
  };
  return {fmt::format("the program updates by {}, its plan by {}", show(program.optimizer), show(optimizer))};
}

}  // namespace partita::certify
