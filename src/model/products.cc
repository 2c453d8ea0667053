#include "model/products.h"

namespace partita::model {

bool is_batched_product(const Op& op) {
  return op.target == "aten.bmm.default" || op.target == "aten.baddbmm.default";
}

bool is_product(const Op& op) {
  return op.target == "aten.mm.default" || op.target == "aten.addmm.default" || is_batched_product(op);
}

}  // namespace partita::model
