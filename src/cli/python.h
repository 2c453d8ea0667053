#pragma once

#include <string>
#include <vector>

namespace partita::cli {

/// Replaces this process by `python -m partita WORDS`, in a Python that has torch: PARTITA_PYTHON, else
/// python3 of PATH, else that of the environment around this command. InputError where none has torch.
[[noreturn]] void hand_over_to_python(const std::vector<std::string>& words);

}  // namespace partita::cli
