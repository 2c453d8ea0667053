#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "cli/progress_line.h"
#include "cli/verb.h"

namespace partita::cli {

Command::Command() = default;

Command::~Command() = default;

void Command::answer(const Json& object, std::string_view text) const {
  erase_progress();
  if (json) {
    Json with_notes = object;
    for (const std::string& line : notes) with_notes["notes"].push_back(line);
    print_out(with_notes.dump(2) + "\n");
  } else if (!quiet) {
    print_out(text);
    if (!text.ends_with('\n')) print_out("\n");
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
  if (quiet || !(progress || isatty(STDERR_FILENO))) return;
  if (!line_) line_ = std::make_unique<ProgressLine>(stderr, isatty(STDERR_FILENO));
  line_->show(fmt::format("{}: {}", verb, phase), facts);
}

void Command::erase_progress() const {
  if (line_) line_->erase();
}

}  // namespace partita::cli
