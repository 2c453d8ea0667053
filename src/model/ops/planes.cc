#include "model/ops/planes.h"

namespace partita::model {

void relate_planes(DimOf a, int i, DimOf b, int j, int64_t rank, int64_t places, const char* why,
                   Relation& r) {
  for (int64_t d = 0; d < rank; ++d) {
    if (d < rank - places) {
      r.same(a(i, d), b(j, d));
    } else {
      r.freeze(a(i, d), why);
      r.freeze(b(j, d), why);
    }
  }
}

}  // namespace partita::model
