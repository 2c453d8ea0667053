#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace partita::cli {

class ProgressLine;
struct Question;

/// Exit code of a plan or a Program that does not compute its model.
inline constexpr int kVerificationFailed = 3;

/// What every verb shares: --json, --quiet, --progress, the exit code it wants, where it reads and writes.
struct Command {
  std::string verb;  // that was asked for: `plan`, `lab schedule`
  bool json = false;
  bool quiet = false;
  bool progress = false;
  int exit_code = 0;
  std::vector<std::string> notes;

  /// What is asked, where a verb runs within a process that has other work too: then it takes no Ctrl-C for
  /// itself, writes on no stream and finds some files in the question (ask.h). Null: on the command line.
  const Question* question() const { return question_; }

  /// On stdout; within a process kept in `printed`.
  void print(std::string_view text) const;
  const std::string& printed() const { return printed_; }
  /// With --json prints `object` and nothing else on stdout; without it prints `text` (unless --quiet).
  void answer(const Json& object, std::string_view text) const;

  /// A part of the text of an answer that is known before the rest; nothing with --json.
  void tell(std::string_view line) const;

  /// What a reader should know beside the answer: one line on stderr (unless --quiet) and an entry of `notes`
  /// in JSON. A line that was said before is left out.
  void note(const std::string& line);

  /// What the verb is doing, on stderr: only on a terminal or with --progress, never with --quiet.
  /// `facts`: what changes while it does that. Example: say("lowering", "2 of 9").
  /// The first call must be of the thread that runs the verb, the others may be of any.
  void say(std::string_view phase, std::string_view facts = "") const;
  /// To be called before something else is written on stderr.
  void erase_progress() const;

  Command();
  /// Within a process. `question` must outlive it.
  explicit Command(const Question& question);
  ~Command();

 private:
  mutable std::unique_ptr<ProgressLine> line_;  // made when there is something to say
  const Question* question_ = nullptr;
  mutable std::string printed_;
};

/// One verb of the command line: a row of the table in verbs.h. `add` declares flags and the example that
/// --help ends with, and sets the callback. The shared flags are added afterwards to every verb.
struct Verb {
  std::string_view name;
  std::string_view summary;
  void (*add)(CLI::App& app, Command& command);
};

}  // namespace partita::cli
