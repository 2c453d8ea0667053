#pragma once

#include <string>

namespace partita::cli {

/// InputError where `file` holds weights, by its name. `needed`: what to give instead.
void refuse_weights(const std::string& file, const std::string& needed);

/// InputError where a file that should be a model holds a plan. `text`: what it holds.
void refuse_plan(const std::string& file, const std::string& text);

}  // namespace partita::cli
