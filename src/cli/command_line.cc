#include "cli/command_line.h"

#include <algorithm>
#include <sstream>

#include "cli/flags.h"
#include "cli/verbs.h"

namespace partita::cli {
namespace {

void add_verbs(CLI::App& app, Command& command) {
  app.footer(
      "Every verb has --help with an example, and --json.\n"
      "Exit codes: 0 done, 1 nothing fits, 2 wrong input or usage, 3 verification failed, 4 a run failed, "
      "70 a bug in partita, 130 interrupted before there was an answer.");
  app.require_subcommand(0, 1);
  app.set_version_flag("--version", "partita " PARTITA_VERSION);
  for (const Verb& verb : kVerbs) {
    CLI::App* sub = app.add_subcommand(std::string(verb.name), std::string(verb.summary));
    verb.add(*sub, command);
    add_shared_flags(*sub, command);
  }
}

}  // namespace

void run_words(std::vector<std::string> words, Command& command) {
  CLI::App app{"Partita plans, proves, simulates and runs a PyTorch training step on many devices.",
               "partita"};
  add_verbs(app, command);
  std::reverse(words.begin(), words.end());  // the parser takes the first from the back
  try {
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) refuse(app, error);
    std::ostringstream text;  // of --help and --version
    app.exit(error, text, text);
    return command.print(text.str());
  }
  if (app.get_subcommands().empty()) command.print(app.help());
}

}  // namespace partita::cli
