// Every pass of lowering under random plans of random models: lower_campaign [COUNT] [SEED] [FIRST].
// COUNT plans (100) that apply are lowered with each pass's value checked, as ranks and as rank classes, then
// once more without the passes that only improve a Program; the certificate accepts all three. FIRST begins
// with that case instead of case 0. Exit 1 and the numbers of the case if one fails.
#include <fmt/format.h>

#include <cstdio>

#include "base/error.h"
#include "certify/certificate.h"
#include "lower/lower.h"
#include "number_at.h"
#include "plan_draws.h"

namespace partita::run {
namespace {

struct Tally {
  size_t run = 0, failed = 0, drawn = 0;
};

void accept(const Prepared& prepared, const Plan& plan, const FoldedProgram& made) {
  std::vector<std::string> wrong =
      certify::certify(prepared.model, prepared.atoms, made.program, plan.optimizer, made.fold);
  if (!wrong.empty()) throw Bug("the certificate refuses it: " + wrong[0]);
}

void try_plan(const Model& model, const Plan& plan) {
  Prepared prepared = prepare(model, form_of(plan));
  PassLog ranks{.check = true}, classes{.check = true},
      plain{.check = true, .skip = lower::improving_passes()};
  accept(prepared, plan, {lower::lower(prepared, plan, ranks), {}});
  accept(prepared, plan, lower::lower_folded_logged(prepared, plan, classes));
  accept(prepared, plan, {lower::lower(prepared, plan, plain), {}});
}

void try_case(uint64_t seed, uint64_t number, Tally& tally) {
  Draw draw(seed * 1'000'003 + number);
  std::string text;
  try {
    DrawnModel drawn = draw_model(draw, {});
    Plan plan = draw_plan(draw, drawn);
    text = drawn.text + ": " + plan.summary;
    try_plan(drawn.model, plan);
    ++tally.run;
  } catch (const InputError&) {
  } catch (const std::exception& error) {
    ++tally.run;
    ++tally.failed;
    fmt::print("case {}: {}: {}\n", number, text, error.what());
  }
}

int campaign(size_t count, uint64_t seed, uint64_t first) {
  Tally tally;
  for (; tally.run < count; ++tally.drawn) try_case(seed, first + tally.drawn, tally);
  fmt::print("seed {}: {} random plans lowered, each pass checked, {} failed; {} more did not apply\n", seed,
             tally.run, tally.failed, tally.drawn - tally.run);
  return tally.failed > 0;
}

}  // namespace
}  // namespace partita::run

int main(int argc, char** argv) {
  using namespace partita::run;
  return campaign(number_at(argc, argv, 1, 100), number_at(argc, argv, 2, 1), number_at(argc, argv, 3, 0));
}
