#include "cli/flags.h"

#include "base/error.h"
#include "base/names.h"

namespace partita {
namespace {

/// The verb that was being read: `lab schedule` of `partita lab schedule --devces 4`.
const CLI::App& innermost(const CLI::App& app) {
  auto inside = app.get_subcommands();
  return inside.empty() ? app : innermost(*inside.front());
}

std::string full_name(const CLI::App& app) {
  return app.get_parent() ? full_name(*app.get_parent()) + " " + app.get_name() : app.get_name();
}

/// Without the name of the command: `lab schedule`.
std::string verb_name(const CLI::App& app) {
  std::string name = full_name(app);
  return name.substr(std::min(name.find(' ') + 1, name.size()));
}

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
    for (const std::string& name : option->get_snames()) flags.push_back("-" + name);
  }
  return flags;
}

std::vector<std::string> verbs_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands(nullptr)) names.push_back(sub->get_name());
  return names;
}

/// The first word nothing took. CLI11 keeps the leftovers in the app that read them or in the one above.
std::string first_leftover(const CLI::App& root) {
  std::vector<std::string> words = root.remaining(true);
  return words.empty() ? "" : words.front();
}

[[noreturn]] void refuse_leftover(const CLI::App& verb, const std::string& word) {
  std::string name = full_name(verb);
  std::string flag = word.substr(0, word.find('='));
  if (word.starts_with("-"))
    input_error("{}: unknown flag {}; see {} --help{}", name, flag, name, did_you_mean(flag, flags_of(verb)));
  if (!verbs_of(verb).empty())
    input_error("{}: unknown verb '{}'; see {} --help{}", name, word, name,
                did_you_mean(word, verbs_of(verb)));
  input_error("{}: '{}' is one argument too many; see {} --help", name, word, name);
}

void add_flag(CLI::App& app, const char* name, bool& value, const char* help) {
  if (!app.get_option_no_throw(name)) app.add_flag(name, value, help);
}

}  // namespace

void add_shared_flags(CLI::App& app, Command& command) {
  auto inside = app.get_subcommands(nullptr);
  for (CLI::App* sub : inside) add_shared_flags(*sub, command);
  if (!inside.empty()) return;
  app.preparse_callback([&app, &command](size_t) { command.verb = verb_name(app); });
  add_flag(app, "--json", command.json, "print one JSON object and nothing else");
  add_flag(app, "--quiet", command.quiet, "print nothing but errors");
  add_flag(app, "--progress", command.progress, "say on stderr what is being done, terminal or not");
}

void refuse(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& verb = innermost(app);
  std::string word = first_leftover(app);
  if (!word.empty()) refuse_leftover(verb, word);
  std::string name = full_name(verb);
  if (!verbs_of(verb).empty())
    input_error("{}: say which one: {}; see {} --help", name, fmt::join(verbs_of(verb), ", "), name);
  input_error("{}: {}; see {} --help", name, error.what(), name);
}

}  // namespace partita
