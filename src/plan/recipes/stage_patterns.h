#pragma once

#include <string>
#include <vector>

#include "model/model.h"

namespace partita::plan {

/// Patterns for the ops of each stage, where op i of `line` is on stage `stage_of[i]`: whole modules where
/// they are on one stage, else ops by name. REQUIRES: `line` as line_ops (cut.h).
std::vector<std::vector<std::string>> stage_patterns(const Model& model, const std::vector<OpId>& line,
                                                     const std::vector<int>& stage_of);

/// The same where stage s starts with op `firsts[s]`. REQUIRES: firsts ascend from 0.
std::vector<std::vector<std::string>> stage_patterns(const Model& model, const std::vector<OpId>& line,
                                                     const std::vector<size_t>& firsts);

}  // namespace partita::plan
