#include "cli/lab.h"

namespace partita::cli {

void add_lab(CLI::App& app, Command& command) {
  app.require_subcommand(1);
  for (const Verb& lab : kLabs) {
    CLI::App* sub = app.add_subcommand(std::string(lab.name), std::string(lab.summary));
    lab.add(*sub, command);
  }
}

}  // namespace partita::cli
