#include "cli/program_file.h"

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/file.h"
#include "certify/certificate.h"
#include "lower/unmade.h"
#include "plan/form.h"
#include "program/assumed.h"

namespace partita::cli {

// The model in the form that the plan gives it: a Program names the ops of that.
void certify_file(const std::string& file, const Model& model, const Plan& plan, Command& command) {
  Model named = without_unmade(in_form(model, form_of(plan)));
  command.say("certifying", file);
  FoldedProgram read = parse_folded(read_file(file), named, file);
  std::vector<std::string> wrong =
      certify::certify(named, find_atoms(named), read.program, plan.optimizer, read.fold);
  std::vector<std::string> assumed = assumed_rows(named, read.program);
  size_t ranks = classes_by_rank(read.program, read.fold).size(), classes = read.program.ranks.size();
  std::string text = fmt::format("{}: {} ranks in {} classes; {}\n", file, ranks, classes,
                                 wrong.empty() ? "certified" : "REFUSED");
  for (const std::string& sentence : wrong) text += sentence + "\n";
  if (!assumed.empty()) text += fmt::format("certified_assuming: [{}]\n", fmt::join(assumed, ", "));
  command.answer({{"ranks", ranks},
                  {"classes", classes},
                  {"certified", wrong.empty()},
                  {"certified_assuming", assumed},
                  {"refused", wrong}},
                 text);
  if (!wrong.empty()) command.exit_code = kVerificationFailed;
}

}  // namespace partita::cli
