#include "model/row.h"

namespace partita::model {
namespace {

// A conjugate is no view here: PyTorch's is a bit beside the memory, which only PyTorch looks at, so that the
// runtime copies it.
constexpr OpaqueOnPurpose kOpaque[] = {
    {"aten.as_strided.default", "it addresses memory, not dimensions: a dense piece has other addresses",
     true},
    {"aten.as_strided_scatter.default",
     "it addresses memory, not dimensions: a dense piece has other addresses"},
    {"aten.masked_select.default", "the size of its result depends on values"},
    {"aten.masked_scatter.default", "which value an element gets depends on the mask of all before it"},
    {"aten.masked_scatter_backward.default",
     "which value an element gets depends on the mask of all before it"},
    {"aten.mkldnn_rnn_layer.default", "oneDNN decides the size of its last result, which its gradient reads"},
    {"aten.mkldnn_rnn_layer_backward.default",
     "it reads a result of mkldnn_rnn_layer whose size oneDNN decides"},
    {"aten._ctc_loss.Tensor", "the size of its second result depends on the longest label of the batch"},
    {"aten._ctc_loss_backward.Tensor", "it reads the result of _ctc_loss whose size depends on values"},
    {"aten.view_as_complex.default", "complex numbers stay whole: ranks exchange and add real ones only",
     true},
    {"aten.view_as_real.default", "complex numbers stay whole: ranks exchange and add real ones only", true},
    {"aten._fft_r2c.default", "complex numbers stay whole: ranks exchange and add real ones only"},
    {"aten._fft_c2r.default", "complex numbers stay whole: ranks exchange and add real ones only"},
    {"aten._fft_c2c.default", "complex numbers stay whole: ranks exchange and add real ones only"},
    {"aten._conj.default", "complex numbers stay whole: ranks exchange and add real ones only"},
    {"aten.polar.default", "complex numbers stay whole: ranks exchange and add real ones only"},
};

}  // namespace

std::span<const OpaqueOnPurpose> opaque_on_purpose() { return kOpaque; }

}  // namespace partita::model
