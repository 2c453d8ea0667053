#include "model/row.h"

namespace partita {
namespace {

constexpr OpaqueOnPurpose kOpaque[] = {
    {"aten.as_strided.default", "it addresses memory, not dimensions: a dense piece has other addresses"},
    {"aten.as_strided_scatter.default",
     "it addresses memory, not dimensions: a dense piece has other addresses"},
    {"aten.masked_select.default", "the size of its result depends on values"},
    {"aten._ctc_loss.Tensor", "the size of its second result depends on the longest label of the batch"},
    {"aten._ctc_loss_backward.Tensor", "it reads the result of _ctc_loss whose size depends on values"},
    {"aten.view_as_complex.default", "complex numbers stay whole: ranks exchange and add real ones only"},
    {"aten.view_as_real.default", "complex numbers stay whole: ranks exchange and add real ones only"},
    {"aten._conj.default", "complex numbers stay whole: ranks exchange and add real ones only"},
    {"aten.polar.default", "complex numbers stay whole: ranks exchange and add real ones only"},
};

}  // namespace

std::span<const OpaqueOnPurpose> opaque_on_purpose() { return kOpaque; }

}  // namespace partita
