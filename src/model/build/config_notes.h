#pragma once

#include "model/build/family.h"

namespace partita::model::build {

/// Throws InputError for a key that changes what is computed and that no builder honours: attention other
/// than scaled_dot_product_attention, quantized weights, another loss.
void refuse_unbuilt(const Config& config, const Family& family);

/// What a reader should know of a config that was built: sizes it leaves out, keys nobody knows, dropout that
/// the step lacks. One sentence each, beginning with the file. REQUIRES: the builder has read `config`.
std::vector<std::string> notes_on(const Config& config, const Family& family);

}  // namespace partita::model::build
