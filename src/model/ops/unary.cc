// Functions of one number, element by element.
#include "model/ops/elementwise.h"
#include "model/ops/workspace.h"

namespace partita::model {
namespace {

constexpr Row kRows[] = {
    {.target = "aten.deg2rad.default", .relate = linear_in_first, .workspace = number_power_workspace},
    {.target = "aten.rad2deg.default", .relate = linear_in_first, .workspace = number_power_workspace},
    {.target = "aten.tan.default", .relate = relate_broadcast},
    {.target = "aten.asin.default", .relate = relate_broadcast},
    {.target = "aten.acos.default", .relate = relate_broadcast},
    {.target = "aten.atan.default", .relate = relate_broadcast},
    {.target = "aten.sinh.default", .relate = relate_broadcast},
    {.target = "aten.cosh.default", .relate = relate_broadcast},
    {.target = "aten.asinh.default", .relate = relate_broadcast},
    {.target = "aten.acosh.default", .relate = relate_broadcast},
    {.target = "aten.atanh.default", .relate = relate_broadcast},
    {.target = "aten.erfc.default", .relate = relate_broadcast},
    {.target = "aten.erfinv.default", .relate = relate_broadcast},
    {.target = "aten.exp2.default", .relate = relate_broadcast},
    {.target = "aten.expm1.default", .relate = relate_broadcast},
    {.target = "aten.log1p.default", .relate = relate_broadcast},
    {.target = "aten.log2.default", .relate = relate_broadcast},
    {.target = "aten.log10.default", .relate = relate_broadcast},
    {.target = "aten.lgamma.default", .relate = relate_broadcast},
    {.target = "aten.digamma.default", .relate = relate_broadcast},
    {.target = "aten.polygamma.default", .relate = relate_broadcast},
    {.target = "aten.sinc.default", .relate = relate_broadcast},
    {.target = "aten.floor.default", .relate = relate_broadcast, .result = Row::kSameDType},
    {.target = "aten.round.default", .relate = relate_broadcast, .result = Row::kSameDType},
    {.target = "aten.trunc.default", .relate = relate_broadcast, .result = Row::kSameDType},
    {.target = "aten.frac.default", .relate = relate_broadcast, .result = Row::kSameDType},
    {.target = "aten.nan_to_num.default", .relate = relate_broadcast, .result = Row::kSameDType},
    {.target = "aten.isnan.default", .relate = relate_broadcast, .result = Row::kTruth},
    {.target = "aten.isinf.default",
     .relate = relate_broadcast,
     .workspace = infinity_workspace,
     .result = Row::kTruth},
};

}  // namespace

std::span<const Row> unary_rows() { return kRows; }

}  // namespace partita::model
