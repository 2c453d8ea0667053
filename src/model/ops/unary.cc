// Functions of one number, element by element.
#include "model/ops/elementwise.h"
#include "model/ops/workspace.h"

namespace partita::model {
namespace {

constexpr Row kRows[] = {
    {.target = "aten.deg2rad.default",
     .arguments = "self",
     .relate = linear_in_first,
     .workspace = number_power_workspace},
    {.target = "aten.rad2deg.default",
     .arguments = "self",
     .relate = linear_in_first,
     .workspace = number_power_workspace},
    {.target = "aten.tan.default", .arguments = "self", .relate = relate_broadcast},
    {.target = "aten.asin.default", .arguments = "self", .relate = relate_broadcast},
    {.target = "aten.acos.default", .arguments = "self", .relate = relate_broadcast},
    {.target = "aten.atan.default", .arguments = "self", .relate = relate_broadcast},
    {.target = "aten.sinh.default", .arguments = "self", .relate = relate_broadcast},
    {.target = "aten.cosh.default", .arguments = "self", .relate = relate_broadcast},
    {.target = "aten.asinh.default", .arguments = "self", .relate = relate_broadcast},
    {.target = "aten.acosh.default", .arguments = "self", .relate = relate_broadcast},
    {.target = "aten.atanh.default", .arguments = "self", .relate = relate_broadcast},
    {.target = "aten.erfc.default", .arguments = "self", .relate = relate_broadcast},
    {.target = "aten.erfinv.default", .arguments = "self", .relate = relate_broadcast},
    {.target = "aten.exp2.default", .arguments = "self", .relate = relate_broadcast},
    {.target = "aten.expm1.default", .arguments = "self", .relate = relate_broadcast},
    {.target = "aten.log1p.default", .arguments = "self", .relate = relate_broadcast},
    {.target = "aten.log2.default", .arguments = "self", .relate = relate_broadcast},
    {.target = "aten.log10.default", .arguments = "self", .relate = relate_broadcast},
    {.target = "aten.lgamma.default", .arguments = "self", .relate = relate_broadcast},
    {.target = "aten.digamma.default", .arguments = "self", .relate = relate_broadcast},
    {.target = "aten.polygamma.default", .arguments = "n self", .relate = relate_broadcast},
    {.target = "aten.sinc.default", .arguments = "self", .relate = relate_broadcast},
    {.target = "aten.floor.default",
     .arguments = "self",
     .relate = relate_broadcast,
     .result = Row::kSameDType},
    {.target = "aten.round.default",
     .arguments = "self",
     .relate = relate_broadcast,
     .result = Row::kSameDType},
    {.target = "aten.trunc.default",
     .arguments = "self",
     .relate = relate_broadcast,
     .result = Row::kSameDType},
    {.target = "aten.frac.default",
     .arguments = "self",
     .relate = relate_broadcast,
     .result = Row::kSameDType},
    {.target = "aten.nan_to_num.default",
     .arguments = "self nan posinf neginf",
     .relate = relate_broadcast,
     .result = Row::kSameDType},
    {.target = "aten.isnan.default", .arguments = "self", .relate = relate_broadcast, .result = Row::kTruth},
    {.target = "aten.isinf.default",
     .arguments = "self",
     .relate = relate_broadcast,
     .workspace = infinity_workspace,
     .result = Row::kTruth},
};

}  // namespace

std::span<const Row> unary_rows() { return kRows; }

}  // namespace partita::model
