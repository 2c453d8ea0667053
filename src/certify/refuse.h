#pragma once

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "certify/rules.h"

namespace partita::certify {

/// `in_force`: may the rule refuse? `refuse` throws Refused with a formatted sentence.
/// In a build with PARTITA_RULES_OFF the environment variable PARTITA_RULE_OFF names what refuses nothing: a
/// rule, by name or number, or one sentence of a rule (bench/rules_off.py). No other build has the switch.
#ifdef PARTITA_RULES_OFF
bool in_force(Rule rule, fmt::string_view sentence = {});

template <class... Args>
void refuse(Rule rule, fmt::format_string<Args...> text, Args&&... args) {
  if (in_force(rule, text)) throw Refused(rule, fmt::format(text, std::forward<Args>(args)...));
}
#else
constexpr bool in_force(Rule, fmt::string_view = {}) { return true; }

template <class... Args>
[[noreturn]] void refuse(Rule rule, fmt::format_string<Args...> text, Args&&... args) {
  throw Refused(rule, fmt::format(text, std::forward<Args>(args)...));
}
#endif

/// The same where nothing can follow: without its rule it is a Bug to come here.
template <class... Args>
[[noreturn]] void stop(Rule rule, fmt::format_string<Args...> text, Args&&... args) {
  std::string why = fmt::format(text, std::forward<Args>(args)...);
  if (in_force(rule, text)) throw Refused(rule, why);
  throw Bug("cannot go on without its rule: " + why);
}

}  // namespace partita::certify
