#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace partita::cli {

/// Checks of flags that answer as everything else does: what was found, what there is, what is near.

/// One of these words.
CLI::Validator one_of(std::vector<std::string> words);
/// From `least` to `most`.
CLI::Validator whole_number(int64_t least, int64_t most = INT64_MAX);
CLI::Validator number(double least, double most);

}  // namespace partita::cli
