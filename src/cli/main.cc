#include <cstdio>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/names.h"
#include "cli/verb.h"
#include "cli/verbs.h"

namespace partita {
namespace {

constexpr int kNothingFits = 1, kWrongInput = 2, kRunFailed = 4, kOurBug = 70;

int fail(int code, const char* kind, const std::exception& error) {
  fmt::print(stderr, "{}{}\n", kind, error.what());
  return code;
}

std::vector<std::string> verb_names() {
  std::vector<std::string> names;
  for (const Verb& verb : kVerbs) names.emplace_back(verb.name);
  return names;
}

int run(int argc, char** argv) {
  CLI::App app{"Partita plans, proves, simulates and runs a PyTorch training step on many devices.", "partita"};
  app.require_subcommand(0, 1);
  app.set_version_flag("--version", "partita 0.1.0");
  Command command;
  for (const Verb& verb : kVerbs) {
    CLI::App* sub = app.add_subcommand(std::string(verb.name), std::string(verb.summary));
    verb.add(*sub, command);
  }
  if (argc > 1 && argv[1][0] != '-' && nearest(argv[1], verb_names()) != argv[1])
    input_error("partita: unknown verb '{}'{}", argv[1], did_you_mean(argv[1], verb_names()));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    input_error("partita: {}; see partita {} --help", error.what(), argc > 1 ? argv[1] : "");
  }
  if (app.get_subcommands().empty()) fmt::print("{}", app.help());
  return command.exit_code;
}

}  // namespace

void Command::answer(const Json& object, std::string_view text) const {
  if (json) {
    fmt::print("{}\n", object.dump(2));
  } else if (!quiet) {
    fmt::print("{}{}", text, text.ends_with('\n') ? "" : "\n");
  }
}

}  // namespace partita

int main(int argc, char** argv) {
  using namespace partita;
  try {
    return run(argc, argv);
  } catch (const Infeasible& error) {
    return fail(kNothingFits, "nothing fits: ", error);
  } catch (const InputError& error) {
    return fail(kWrongInput, "error: ", error);
  } catch (const RunError& error) {
    return fail(kRunFailed, "run failed: ", error);
  } catch (const std::exception& error) {
    return fail(kOurBug, "this is a bug in partita, please report it: ", error);
  }
}
