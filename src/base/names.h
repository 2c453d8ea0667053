#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/namespaces.h"

namespace partita::base {

/// The known name closest to `name` by edit distance, or "" if none is close enough to be meant.
std::string nearest(std::string_view name, const std::vector<std::string>& known);

/// "; did you mean 'wave'?" or "" when nothing is close. For the end of an error sentence.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& known);

/// Does `name` match `pattern`, where `*` stands for any text (dots and slashes too)?
/// Example: `matches("h.*.attn", "h.3.attn")`.
bool matches(std::string_view pattern, std::string_view name);

/// The op that `name` is a part of, where lowering took one apart; else `name` itself. Plans speak of whole
/// ops. Example: "h.0/mm" of "h.0/mm.part.1".
std::string_view whole_op(std::string_view name);

/// A pattern for what is called alike but for its numbers. Example: "h.*.mlp.weight" of "h.3.mlp.weight".
std::string starred(std::string_view name);

}  // namespace partita::base
