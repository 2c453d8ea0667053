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
    {.target = "aten.lerp.Scalar", .arguments = "self end weight", .relate = jointly_linear<0, 1>},
    {.target = "aten.lerp.Tensor", .arguments = "self end weight", .relate = jointly_linear<0, 1>},
    {.target = "aten.addcmul.default", .arguments = "self tensor1 tensor2 value", .relate = relate_addcmul},
    {.target = "aten.addcdiv.default",
     .arguments = "self tensor1 tensor2 value",
     .relate = jointly_linear<0, 1>},
    {.target = "aten.xlogy.Tensor",
     .arguments = "self other",
     .relate = linear_in_first,
     .workspace = conversion_workspace},
    {.target = "aten.atan2.default",
     .arguments = "self other",
     .relate = relate_broadcast,
     .workspace = conversion_workspace},
    {.target = "aten.hypot.default",
     .arguments = "self other",
     .relate = relate_broadcast,
     .workspace = conversion_workspace},
    {.target = "aten.logaddexp.default",
     .arguments = "self other",
     .relate = relate_broadcast,
     .workspace = conversion_workspace},
    {.target = "aten.logaddexp2.default",
     .arguments = "self other",
     .relate = relate_broadcast,
     .workspace = conversion_workspace},
    {.target = "aten.copysign.Tensor",
     .arguments = "self other",
     .relate = relate_broadcast,
     .workspace = conversion_workspace},
    {.target = "aten.fmax.default",
     .arguments = "self other",
     .relate = relate_broadcast,
     .workspace = conversion_workspace},
    {.target = "aten.fmin.default",
     .arguments = "self other",
     .relate = relate_broadcast,
     .workspace = conversion_workspace},
    {.target = "aten.fmod.Tensor",
     .arguments = "self other",
     .relate = relate_broadcast,
     .workspace = conversion_workspace},
    {.target = "aten.fmod.Scalar", .arguments = "self other", .relate = relate_broadcast},
    {.target = "aten.remainder.Tensor",
     .arguments = "self other",
     .relate = relate_broadcast,
     .workspace = conversion_workspace},
    {.target = "aten.remainder.Scalar", .arguments = "self other", .relate = relate_broadcast},
    {.target = "aten.floor_divide.default",
     .arguments = "self other",
     .relate = relate_broadcast,
     .workspace = conversion_workspace},
    {.target = "aten.clamp.Tensor",
     .arguments = "self min max",
     .relate = relate_broadcast,
     .workspace = conversion_workspace},
    {.target = "aten.clamp_min.default", .arguments = "self min", .relate = relate_broadcast},
    {.target = "aten.clamp_min.Tensor",
     .arguments = "self min",
     .relate = relate_broadcast,
     .workspace = conversion_workspace},
    {.target = "aten.clamp_max.default", .arguments = "self max", .relate = relate_broadcast},
    {.target = "aten.clamp_max.Tensor",
     .arguments = "self max",
     .relate = relate_broadcast,
     .workspace = conversion_workspace},
    {.target = "aten.bitwise_xor.Tensor", .arguments = "self other", .relate = relate_broadcast},
    {.target = "aten.__lshift__.Scalar",
     .arguments = "self other",
     .relate = relate_broadcast,
     .workspace = shift_workspace},
    {.target = "aten.__rshift__.Scalar",
     .arguments = "self other",
     .relate = relate_broadcast,
     .workspace = shift_workspace},
    {.target = "aten.logical_or.default",
     .arguments = "self other",
     .relate = relate_broadcast,
     .result = Row::kTruth},
    {.target = "aten.logical_xor.default",
     .arguments = "self other",
     .relate = relate_broadcast,
     .result = Row::kTruth},
};

}  // namespace

std::span<const Row> binary_rows() { return kRows; }

}  // namespace partita::model
