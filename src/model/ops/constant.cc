#include "model/ops/common.h"

namespace partita {
namespace {

// The same value everywhere: any rank may make any part of it.
void relate_nothing(const OpView&, Relation&) {}

void freeze_output(const OpView& op, Relation& r) {
  for (int64_t d = 0; d < op.out_rank(0); ++d) r.freeze(output_dim(0, d), "counts from the start of the dimension");
}

void localize_size(const OpView&, const OpView& local, Op& op) { set_argument(op, 0, "size", Arg::list(local.out[0])); }

constexpr Row kRows[] = {
    {.target = "aten.full.default", .relate = relate_nothing, .localize = localize_size},
    {.target = "aten.zeros.default", .relate = relate_nothing, .localize = localize_size},
    {.target = "aten.ones.default", .relate = relate_nothing, .localize = localize_size},
    {.target = "aten.scalar_tensor.default", .relate = relate_nothing},
    {.target = "aten.arange.default", .relate = freeze_output},
    {.target = "aten.arange.start", .relate = freeze_output},
    {.target = "aten.arange.start_step", .relate = freeze_output},
};

}  // namespace

std::span<const Row> constant_rows() { return kRows; }

}  // namespace partita
