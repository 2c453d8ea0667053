#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "cli/ask.h"
#include "cli/progress_line.h"
#include "cli/verb.h"

namespace partita::cli {

Command::Command() = default;

Command::Command(const Question& question) : quiet(true), question_(&question) {}

Command::~Command() = default;

void Command::print(std::string_view text) const {
  if (question_)
    printed_ += text;
  else
    print_out(text);
}

void Command::answer(const Json& object, std::string_view text) const {
  erase_progress();
  if (json) {
    Json with_notes = object;
    for (const std::string& line : notes) with_notes["notes"].push_back(line);
    print(with_notes.dump(question_ ? -1 : 2) + "\n");
  } else if (!quiet || question_) {
    print(text);
    if (!text.ends_with('\n')) print("\n");
  }
}

void Command::tell(std::string_view line) const {
  if (json || quiet) return;
  erase_progress();
  print_out(fmt::format("{}\n", line));
  flush_out();
}

void Command::note(const std::string& line) {
  if (std::find(notes.begin(), notes.end(), line) != notes.end()) return;
  notes.push_back(line);
  if (quiet) return;
  erase_progress();
  fmt::print(stderr, "note: {}\n", line);
}

void Command::say(std::string_view phase, std::string_view facts) const {
  if (question_) {
    std::string what = facts.empty() ? std::string(phase) : fmt::format("{} {}", phase, facts);
    if (question_->progress) question_->progress({.phase = what});
    return;
  }
  if (quiet || !(progress || isatty(STDERR_FILENO))) return;
  if (!line_) line_ = std::make_unique<ProgressLine>(stderr, isatty(STDERR_FILENO));
  line_->show(fmt::format("{}: {}", verb, phase), facts);
}

void Command::erase_progress() const {
  if (line_) line_->erase();
}

}  // namespace partita::cli
