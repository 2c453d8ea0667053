#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace partita {

/// What every verb shares: --json, --quiet, --progress, and the exit code it wants.
struct Command {
  bool json = false;
  bool quiet = false;
  bool progress = false;
  int exit_code = 0;
  std::vector<std::string> notes;

  /// With --json prints `object` and nothing else on stdout; without it prints `text` (unless --quiet).
  void answer(const Json& object, std::string_view text) const;

  /// A part of the text of an answer that is known before the rest; nothing with --json.
  void tell(std::string_view line) const;

  /// What a reader should know beside the answer: one line on stderr (unless --quiet) and an entry of `notes`
  /// in JSON. A line that was said before is left out.
  void note(const std::string& line);

  /// One line of progress on stderr: only on a terminal or with --progress, never with --quiet.
  void say(std::string_view line) const;
};

/// One verb of the command line: a row of the table in verbs.h. `add` declares flags and the example that
/// --help ends with, and sets the callback. The shared flags are added afterwards to every verb.
struct Verb {
  std::string_view name;
  std::string_view summary;
  void (*add)(CLI::App& app, Command& command);
};

}  // namespace partita
