#pragma once

#include "program/program.h"

namespace partita::run {

/// Refuses (InputError) a Program that would make the runtime touch memory it must not: a slot, type, body or
/// group out of range, a wait without its transfer, a slot written or dropped while it is being sent, touched
/// at all while it is being received, a transfer never waited for. Whether the Program computes the right
/// thing is the certificate's business.
void check_runnable(const Program& program, const Model& model);

}  // namespace partita::run
