#pragma once

#include <string>
#include <vector>

#include "cli/verb.h"

namespace partita::cli {

/// Runs the verb that `words` name, as the command line of `partita` does: {"plan", "gpt2-tiny", "--json"}.
/// Throws what the verb throws, and the InputError for words that make no sense.
void run_words(std::vector<std::string> words, Command& command);

}  // namespace partita::cli
