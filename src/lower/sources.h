#pragma once

#include <optional>

#include "lower/draft.h"

namespace partita::lower {

/// May code at `place` read this value: is it there by then, of this piece and stream, and not gone again?
bool usable(const Draft& draft, const Place& place, const Available& one);

/// The value of a tensor that takes the fewest collectives, then the fewest steps, to turn into `need`; -1:
/// none can be turned into it. `as`: its dtype, where it is not the tensor's.
int nearest_source(const Draft& draft, const Place& place, TensorId tensor, const Layout& need,
                   std::optional<DType> as);

/// Can `from` be turned into `to` inside of a micro-batch, and of a piece of a loop?
bool reachable(const Facts& facts, const Layout& from, const Layout& to);

/// Does it take other ranks to turn this value into `need`?
bool takes_others(const Value& value, const Layout& need);

/// The segment after which a tensor can leave its site for `reader`: `made`, where its op stands, but for
/// sums that a later stage of the same devices completed in place.
Segment leaves_after(const Draft& draft, const Place& reader, const Segment& made, TensorId tensor);

/// What the epilogue of another site gets of a tensor: its value before the epilogue of `site`, which may sum
/// it in place. REQUIRES: there is one.
int before_epilogue(const Draft& draft, int site, TensorId tensor);

}  // namespace partita::lower
