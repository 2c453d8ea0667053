// Functions of two or three numbers, element by element.
#include "model/ops/elementwise.h"
#include "model/ops/workspace.h"

namespace partita::model {
namespace {

// addcmul(x, a, b, value): x + value * a * b
void relate_addcmul(const OpView& op, Relation& r) {
  jointly_linear<0, 1>(op, r);
  r.linear.push_back({0, 2});
}

constexpr Row kRows[] = {
    {.target = "aten.lerp.Scalar", .relate = jointly_linear<0, 1>},
    {.target = "aten.lerp.Tensor", .relate = jointly_linear<0, 1>},
    {.target = "aten.addcmul.default", .relate = relate_addcmul},
    {.target = "aten.addcdiv.default", .relate = jointly_linear<0, 1>},
    {.target = "aten.xlogy.Tensor", .relate = linear_in_first, .workspace = conversion_workspace},
    {.target = "aten.atan2.default", .relate = relate_broadcast, .workspace = conversion_workspace},
    {.target = "aten.hypot.default", .relate = relate_broadcast, .workspace = conversion_workspace},
    {.target = "aten.logaddexp.default", .relate = relate_broadcast, .workspace = conversion_workspace},
    {.target = "aten.logaddexp2.default", .relate = relate_broadcast, .workspace = conversion_workspace},
    {.target = "aten.copysign.Tensor", .relate = relate_broadcast, .workspace = conversion_workspace},
    {.target = "aten.fmax.default", .relate = relate_broadcast, .workspace = conversion_workspace},
    {.target = "aten.fmin.default", .relate = relate_broadcast, .workspace = conversion_workspace},
    {.target = "aten.fmod.Tensor", .relate = relate_broadcast, .workspace = conversion_workspace},
    {.target = "aten.fmod.Scalar", .relate = relate_broadcast},
    {.target = "aten.remainder.Tensor", .relate = relate_broadcast, .workspace = conversion_workspace},
    {.target = "aten.remainder.Scalar", .relate = relate_broadcast},
    {.target = "aten.floor_divide.default", .relate = relate_broadcast, .workspace = conversion_workspace},
    {.target = "aten.clamp.Tensor", .relate = relate_broadcast, .workspace = conversion_workspace},
    {.target = "aten.clamp_min.default", .relate = relate_broadcast},
    {.target = "aten.clamp_min.Tensor", .relate = relate_broadcast, .workspace = conversion_workspace},
    {.target = "aten.clamp_max.default", .relate = relate_broadcast},
    {.target = "aten.clamp_max.Tensor", .relate = relate_broadcast, .workspace = conversion_workspace},
    {.target = "aten.bitwise_xor.Tensor", .relate = relate_broadcast},
    {.target = "aten.__lshift__.Scalar", .relate = relate_broadcast, .workspace = shift_workspace},
    {.target = "aten.__rshift__.Scalar", .relate = relate_broadcast, .workspace = shift_workspace},
    {.target = "aten.logical_or.default", .relate = relate_broadcast, .result = Row::kTruth},
    {.target = "aten.logical_xor.default", .relate = relate_broadcast, .result = Row::kTruth},
};

}  // namespace

std::span<const Row> binary_rows() { return kRows; }

}  // namespace partita::model
