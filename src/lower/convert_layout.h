#pragma once

#include "lower/draft.h"

namespace partita::lower {

/// Writes the steps that turn a value into the layout `need` and gives the last one's result; all that later
/// code may read is offered. What a sum completes in place is there no more as it was. REQUIRES:
/// reachable(facts, its layout, need) (sources.h).
int convert_layout(Draft& draft, const Place& place, int source, const Layout& need);

/// Writes a copy in another dtype.
int cast_value(Draft& draft, const Place& place, int source, DType dtype);

/// A tensor that lies there before the step, in this layout; `stream`: of micro-batches of that direction
/// alone.
int load_value(Draft& draft, const Place& place, TensorId tensor, const Layout& layout, int stream = -1);

/// Writes, in the prologue, an op without inputs in the shards that `need` has: nobody has to send them.
int make_alone(Draft& draft, const Place& place, TensorId tensor, const Layout& need);

/// Streams sum up the micro-batches that went their way: the sums travel before the epilogue, and are added
/// there.
void merge_streams(Draft& draft, const Place& place, TensorId tensor);

}  // namespace partita::lower
