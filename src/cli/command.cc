#include <unistd.h>

#include "base/error.h"
#include "cli/verb.h"

namespace partita {

void Command::answer(const Json& object, std::string_view text) const {
  if (json) {
    fmt::print("{}\n", object.dump(2));
  } else if (!quiet) {
    fmt::print("{}{}", text, text.ends_with('\n') ? "" : "\n");
  }
}

void Command::tell(std::string_view line) const {
  if (json || quiet) return;
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

void Command::say(std::string_view line) const {
  if (!quiet && (progress || isatty(STDERR_FILENO))) fmt::print(stderr, "{}\n", line);
}

}  // namespace partita
