#pragma once

#include "model/ops/convolution.h"

namespace partita::model {

/// The most bytes that PyTorch and oneDNN hold at once while one of the three tensors of a float32
/// convolution is made of the other two, on one thread of an x86 processor with avx2 or avx512: that tensor
/// as PyTorch returns it, copies of all three as kernels want them, scratchpads. The other two as they are
/// given are not counted.
class OneDnnConvolution {
 public:
  explicit OneDnnConvolution(const Convolution& c);

  Bytes making_result() const;
  Bytes making_image() const;
  /// `bias`: bytes of the gradient of the bias that is made along with it, and counted too; 0 for none.
  Bytes making_weight(Bytes bias) const;

 private:
  bool stays_plain(int64_t least, int64_t most) const;
  Bytes strided_scratch() const;

  const Convolution& c_;
  int64_t in_, out_, window_;  // channels of a group in image and result; places of a window
  bool depthwise_, strided_, unusual_;
  Bytes image_, weight_, result_;       // as PyTorch has them
  Bytes image_blocks_, result_blocks_;  // as direct kernels want them
  Bytes columns_, small_;               // of scratchpads
};

/// Does PyTorch 2.13 give this float32 convolution to oneDNN when it has one thread? If not, to its own
/// kernels.
bool takes_onednn(const Convolution& c);

}  // namespace partita::model
