#pragma once

#include <functional>
#include <vector>

namespace partita::run {

/// The first of `count` questions whose answer is yes, or -1. They are asked in a process apart: a kernel
/// given what it does not expect may write outside of memory. A crash is a no.
int first_that_holds(int count, const std::function<bool(int)>& question);

/// For each of `count` mutants whether it survives. They are asked in one process apart; where it crashes, a
/// new one asks again, and a survivor is asked once more alone: what an earlier mutant did to memory is no
/// answer.
std::vector<bool> survivors(int count, const std::function<bool(int mutant, int& next)>& survives);

}  // namespace partita::run
