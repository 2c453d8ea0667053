#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

#include "base/namespaces.h"

namespace partita::base {

/// The user gave something wrong. `what()` reads: where: what was found; what was needed; try this.
/// Commands end with exit code 2.
struct InputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Nothing fits: the binding limit and the least that would do. Commands end with exit code 1.
struct Infeasible : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A rank failed while running; names rank, step, action and peer. Commands end with exit code 4.
struct RunError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Our own bug. Commands end with exit code 70.
struct Bug : std::logic_error {
  using std::logic_error::logic_error;
};

/// Throws InputError with a formatted sentence.
template <class... Args>
[[noreturn]] void input_error(fmt::format_string<Args...> text, Args&&... args) {
  throw InputError(fmt::format(text, std::forward<Args>(args)...));
}

[[noreturn]] void bug(const char* file, int line, const std::string& text);

}  // namespace partita::base

// Torch's logging has macros of the same names; a file that includes both includes torch first.
#undef CHECK
#undef CHECK_EQ

#define CHECK(condition)                                                    \
  do {                                                                      \
    if (!(condition)) ::partita::base::bug(__FILE__, __LINE__, #condition); \
  } while (0)

/// Always on; prints both sides.
#define CHECK_EQ(a, b)                                                                    \
  do {                                                                                    \
    if (const auto& lhs_ = (a); true)                                                     \
      if (const auto& rhs_ = (b); !(lhs_ == rhs_))                                        \
        ::partita::base::bug(__FILE__, __LINE__,                                          \
                             fmt::format("{} == {}: {} against {}", #a, #b, lhs_, rhs_)); \
  } while (0)
