#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "cli/verb.h"

namespace partita {

void Command::answer(const Json& object, std::string_view text) const {
  if (json) {
    Json with_notes = object;
    for (const std::string& line : notes) with_notes["notes"].push_back(line);
    fmt::print("{}\n", with_notes.dump(2));
  } else if (!quiet) {
    fmt::print("{}{}", text, text.ends_with('\n') ? "" : "\n");
  }
}

void Command::tell(std::string_view line) const {
  if (json || quiet) return;
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

void Command::note(const std::string& line) {
  if (std::find(notes.begin(), notes.end(), line) != notes.end()) return;
  notes.push_back(line);
  if (!quiet) fmt::print(stderr, "note: {}\n", line);
}

void Command::say(std::string_view line) const {
  if (!quiet && (progress || isatty(STDERR_FILENO))) fmt::print(stderr, "{}\n", line);
}

}  // namespace partita
