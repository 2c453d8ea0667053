#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/namespaces.h"

namespace partita::plan {

/// What other frameworks call a recipe or a way of the planner.
struct Alias {
  std::string_view alias, name;
};
/// `hsdp` is zero3 within groups of ranks, each of which holds a replica of the model; as a way of the
/// planner it is a name of its own.
inline constexpr Alias kAliases[] = {
    {"ddp", "dp"}, {"fsdp", "zero3"}, {"hsdp", "zero3"}, {"megatron-sp", "sp"}};

/// The name that an alias stands for; a name stands for itself.
std::string without_alias(const std::string& name);
/// `known` and every alias of one of them that is not among them.
std::vector<std::string> with_aliases(std::vector<std::string> known);
/// "ddp = dp, fsdp = zero3, ...": for help and errors.
std::string show_aliases();

}  // namespace partita::plan
