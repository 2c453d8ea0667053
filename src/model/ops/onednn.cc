#include "model/ops/onednn.h"

#include <algorithm>

namespace partita::model {
namespace {

constexpr Bytes kElement = 4, kPage = 4096;
// Channels of a block: 16 where registers have 512 bits, 8 where they have 256, which is never more.
constexpr int64_t kBlock = 16;
// oneDNN aligns each part of a scratchpad.
constexpr Bytes kAlignment = 512;
// Parts of the scratchpad of a strided gradient, each on a page of its own.
constexpr Bytes kStridedParts = 7;
// Direct kernels refuse the gradient of a window this wide (oneDNN 3.12: more than 14 places on avx512, 14
// or more seen on avx2).
constexpr int64_t kWideWindow = 14;

int64_t up_to(int64_t size, int64_t multiple) { return (size + multiple - 1) / multiple * multiple; }
int64_t blocks(int64_t channels) { return up_to(channels, kBlock); }
// Kernels on matrices take one to four blocks of 8 or 16 channels at once, no more than there are.
int64_t wide_blocks(int64_t channels) {
  int64_t most = 0;
  for (int64_t block : {kBlock / 2, kBlock})
    for (int64_t count = 1; count <= std::min<int64_t>(4, (channels + block - 1) / block); ++count)
      most = std::max(most, up_to(channels, count * block));
  return most;
}

// A file may say anything; sums of a few stay far from overflow.
Bytes bytes_of(std::initializer_list<int64_t> factors) {
  double elements = 1;
  for (int64_t factor : factors) elements *= static_cast<double>(factor);
  return kElement * static_cast<Bytes>(std::min(elements, 0x1p56));
}
int64_t at(const std::vector<int64_t>& values, size_t d) {
  return std::clamp<int64_t>(Convolution::at(values, d), 0, int64_t{1} << 20);
}

bool any_other(const std::vector<int64_t>& values, int64_t than) {
  return std::any_of(values.begin(), values.end(), [&](int64_t value) { return value != than; });
}

Bytes blocked(const Shape& shape) { return bytes_of({shape[0], blocks(shape[1]), pixels(shape)}); }

// From the first to the last place that a window reads.
int64_t extent(const Convolution& c, size_t d) { return at(c.dilation, d) * (c.weight[d] - 1) + 1; }

// Shapes for which there may be no direct kernel. oneDNN then multiplies matrices: the windows of one sample
// beside each other. What is refused differs between processors, so both are considered.
bool is_unusual(const Convolution& c, bool depthwise) {
  if ((c.groups > 1 && !depthwise) || any_other(c.dilation, 1)) return true;
  for (size_t d = 2; d < c.weight.size(); ++d)
    if (at(c.padding, d) > extent(c, d) / 2 || c.weight[d] >= kWideWindow || c.image[d] < extent(c, d))
      return true;
  return false;
}

// Direct kernels want weights in blocks of both channels, or of the results' where they read the image as it
// is; depthwise ones in blocks of groups.
Bytes weight_blocks(const Convolution& c, int64_t in, int64_t out, bool plain) {
  int64_t window = pixels(c.weight);
  if (c.groups > 1 && in == 1 && out == 1) return bytes_of({blocks(c.groups), window});
  return bytes_of({c.groups, window, plain ? in : blocks(in), blocks(out)});
}

// Windows of one sample and group; in three dimensions of one slice. What steps over places of a window of
// one is gathered in blocks.
Bytes columns_of(const Convolution& c, int64_t in) {
  size_t first = std::max<size_t>(2, c.result.size() - 2);
  int64_t slice = numel({c.result.begin() + static_cast<std::ptrdiff_t>(first), c.result.end()});
  return bytes_of({in, pixels(c.weight), slice});
}

}  // namespace

OneDnnConvolution::OneDnnConvolution(const Convolution& c)
    : c_(c),
      in_(c.image[1] / c.groups),
      out_(c.result[1] / c.groups),
      window_(pixels(c.weight)),
      depthwise_(c.groups > 1 && in_ == 1 && out_ == 1),
      strided_(any_other(c.stride, 1)),
      unusual_(is_unusual(c, depthwise_)),
      image_(kElement * numel(c.image)),
      weight_(kElement * numel(c.weight)),
      result_(kElement * numel(c.result)),
      image_blocks_(blocked(c.image)),
      result_blocks_(blocked(c.result)),
      columns_(columns_of(c, in_) + kAlignment),
      small_(kElement * blocks(c.result[1]) + kAlignment) {
  if (window_ == 1 && strided_) small_ += bytes_of({blocks(c.image[1]), pixels(c.result)});
}

// The first convolution of a network reads few channels as they are.
bool OneDnnConvolution::stays_plain(int64_t least, int64_t most) const {
  return c_.groups == 1 && window_ > 1 && least <= c_.image[1] && c_.image[1] <= most;
}

// Kernels write blocks, which PyTorch then copies: blocks and what it returns are there together. Depthwise
// ones may write the channels of a place together: a copy with the same strides, and a dense one.
Bytes OneDnnConvolution::making_result() const {
  bool plain = stays_plain(1, 7);
  Bytes direct = (plain ? 0 : image_blocks_) + weight_blocks(c_, in_, out_, plain) + result_blocks_ + small_;
  Bytes after = depthwise_ ? std::max(3 * result_, result_blocks_ + result_) : result_blocks_ + result_;
  return std::max({direct, after, unusual_ ? result_ + columns_ : 0});
}

// With a stride, or transposed, by products of matrices with the channels of a place together; a transposed
// one adds its bias to a copy.
Bytes OneDnnConvolution::making_image() const {
  Bytes sum = c_.transposed ? image_blocks_ : 0;
  Bytes direct = result_blocks_ + weight_blocks(c_, in_, out_, false) + image_blocks_ + small_ + sum;
  Bytes most = std::max({direct, image_blocks_ + image_, unusual_ ? image_ + columns_ + sum : 0});
  if (!strided_ && !c_.transposed) return most;
  Bytes wide = bytes_of({c_.groups, window_, wide_blocks(in_), out_});
  Bytes matrices = result_ + wide + image_ + strided_scratch() + sum;
  return std::max({most, matrices, 3 * image_});
}

// jit_brgemm_conv_bwd_utils.cpp of oneDNN, init_scratchpad: a result with margins, a row of the image that
// the stride does not divide, sums of a row, addresses of the factors.
Bytes OneDnnConvolution::strided_scratch() const {
  Bytes grown = bytes_of({c_.groups, wide_blocks(out_)});
  int64_t stride = 1;
  for (size_t d = 2; d < c_.weight.size(); ++d) {
    stride = std::max<int64_t>(1, at(c_.stride, d));
    grown = bytes_of({grown / kElement, c_.result[d] + 2 * ((extent(c_, d) - 1) / stride)});
  }
  int64_t width = up_to(c_.image.back(), stride);
  Bytes row = bytes_of({width, stride, c_.image[1]}), sums = bytes_of({width, 4 * kBlock});
  // 32 bytes for every place of a window and eight channels: two addresses and margins.
  Bytes factors = bytes_of({8, window_, out_ / 8 + 1});
  constexpr Bytes kFloats = kElement * kPage;  // sizes are rounded up in elements
  return up_to(grown, kFloats) + up_to(row, kFloats) + sums + up_to(factors, kPage) + kStridedParts * kPage;
}

// Products of matrices book room for the sums of threads: four bytes for every byte of the weight. A
// transposed gradient is copied once more before it is returned.
Bytes OneDnnConvolution::making_weight(Bytes bias) const {
  bool plain = stays_plain(3, 3);
  Bytes blocks = weight_blocks(c_, in_, out_, plain);
  Bytes direct = (plain ? 0 : image_blocks_) + result_blocks_ + blocks + small_ + bias;
  Bytes after = (c_.transposed ? 2 : 1) * blocks + weight_ + 2 * bias;
  constexpr size_t kVolume = 5;
  bool matrices = unusual_ || c_.groups > 1 || c_.weight.size() == kVolume;
  return std::max({direct, after, matrices ? 5 * weight_ + columns_ + bias : 0});
}

// ConvParams::use_mkldnn of PyTorch. A convolution of one dimension is one of two with a height of 1.
bool takes_onednn(const Convolution& c) {
  const Shape& x = c.transposed ? c.result : c.image;
  size_t last = c.weight.size() - 1;
  int64_t height = last > 2 ? c.weight[last - 1] : 1, width = c.weight[last];
  constexpr int64_t kLargeBatch = 16, kSmallWindow = 3, kSmallImage = 20480;
  bool plain_point = height == 1 && width == 1 && !any_other(c.stride, 1) && !any_other(c.dilation, 1);
  if (plain_point && x[0] < kLargeBatch) return false;
  int64_t places = last > 2 ? x[2] * x[3] : x[2];
  return c.groups > 1 || (width > kSmallWindow && height > kSmallWindow) || x[0] > 1 ||
         x[0] * x[1] * places > kSmallImage;
}

}  // namespace partita::model
