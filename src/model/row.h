#pragma once

#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "model/model.h"
#include "model/relation.h"

namespace partita::model {

/// An op whose operands or attributes cannot be what they are said to be; `what()` says which.
struct Mismatch : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The sizes of one operand. Rows read shapes that a file may have made up: past the end is a Mismatch.
struct Sizes : Shape {
  Sizes() = default;
  Sizes(Shape shape) : Shape(std::move(shape)) {}
  int64_t operator[](int64_t dim) const;
  int64_t back() const { return (*this)[static_cast<int64_t>(size()) - 1]; }
};
struct Operands : std::vector<Sizes> {
  const Sizes& operator[](int64_t operand) const;
  Sizes& operator[](int64_t operand) { return const_cast<Sizes&>(std::as_const(*this)[operand]); }
};
/// What was not said is false.
struct Flags : std::vector<bool> {
  bool operator[](size_t index) const { return index < size() && std::vector<bool>::operator[](index); }
};

/// An op with the shapes of its operands at hand. An output PyTorch leaves out has `has_out` false.
struct OpView {
  const Op* op = nullptr;
  Operands in;
  Operands out;
  Flags has_out;
  std::vector<DType> in_dtypes;   // of the whole op; a local view may leave them out
  std::vector<bool> in_dense;     // row by row without gaps; a view that does not say counts as dense
  std::vector<bool> in_by_place;  // images with the channels of one place beside each other; default: none
  std::vector<bool> in_turned;    // images PyTorch takes for such, also where gaps are between places
  std::vector<bool> out_dense;    // as in_dense
  DType dtype = DType::kFloat32;  // of the first output, for sizes of hidden workspace
  Bytes spare = 0;  // of the first input: what its storage has beyond it, where no two elements are one

  bool dense(int k) const { return k >= static_cast<int>(in_dense.size()) || in_dense[k]; }
  bool by_place(int k) const { return k < static_cast<int>(in_by_place.size()) && in_by_place[k]; }
  bool turned(int k) const { return k < static_cast<int>(in_turned.size()) && in_turned[k]; }
  bool makes_dense(int o) const { return o >= static_cast<int>(out_dense.size()) || out_dense[o]; }
  int in_rank(int k) const { return static_cast<int>(in[k].size()); }
  int out_rank(int k) const { return static_cast<int>(out[k].size()); }
};
OpView view_of(const Model& model, const Op& op);

/// Are elements in memory in the order of their indices, without gaps?
bool is_dense(const Shape& shape, const Shape& strides);

/// Are there elements that are one in memory, as those along an expanded dimension?
bool is_expanded(const Shape& shape, const Shape& strides);

/// Is this a batch of images, n c h w, that lies in memory as n h w c, without gaps?
bool is_by_place(const Shape& shape, const Shape& strides);

/// Does PyTorch suggest n h w c as the memory format of these images? Gaps between places are allowed.
bool is_turned(const Shape& shape, const Shape& strides);

/// What adds the result of an op to a tensor that is there.
enum class AccumulationKind : uint8_t { kNone, kProduct, kRows };

/// What the time of an op depends on, beside flops and bytes read in order: the blocks of a product, the
/// kernel of an attention, a way through memory that is out of order or taken more than once.
enum class CostKind : uint8_t {
  kPlain,
  kProduct,
  kBatchedProduct,
  kAttention,
  kAttentionBackward,
  kReorder,
  kCrossEntropy
};

/// Does OSDP run it in slices of a weight? kPieces: only where slices of the result are joined; kSums: where
/// partial results are added, too.
enum class Sliced : uint8_t { kNo, kPieces, kSums };

/// The rule of one op, as data. Adding an op means adding a row to a table in ops/<family>.cc.
struct Row {
  static constexpr int kAnyNumber = -1;
  std::string_view target;     // "aten.mm.default"
  std::string_view arguments;  // as PyTorch's schema names them, in its order: "self mat2"
  int outputs = 1;             // kAnyNumber: one list
  /// For a product: "m k, k n -> m n", a letter for each dimension. The result is linear in each factor, and
  /// a sum over the letters that it lacks.
  std::string_view letters;
  bool bias = false;  // with letters: operand 0 is added to the product of the others
  /// For all others: which dimensions are the same, which are summed over, which stay whole.
  void (*relate)(const OpView& op, Relation& relation) = nullptr;
  Flops (*flops)(const OpView& op) = nullptr;  // products only, as FlopCounterMode counts; default 0
  /// Makes the attributes of `local` fit its local shapes; `whole` and `local` are the same op. Default:
  /// nothing to do.
  void (*localize)(const OpView& whole, const OpView& local, Op& op) = nullptr;
  Bytes (*workspace)(const OpView& local) = nullptr;  // hidden temporary bytes of one call; default 0
  /// Bytes that the storage of output `keeper` has beyond the tensor, as long as it lives; default 0. Below 0
  /// where the kernel leaves out what the shape says.
  Bytes (*retained)(const OpView& local) = nullptr;
  size_t keeper = 0;
  /// The kernel copies the whole storage of input 0, and the result lies in the copy as that does in its own;
  /// as any copy does where elements overlap, as those of an expanded tensor.
  bool copies_storage = false;
  bool view = false;         // outputs share the storage of input 0
  bool shape_alone = false;  // of its inputs it reads shape and dtype, no value
  /// How the result is added to a tensor that is there, without a tensor of its own.
  AccumulationKind accumulation = AccumulationKind::kNone;
  /// What its time depends on (cost/op_seconds.h).
  CostKind cost = CostKind::kPlain;
  Sliced sliced = Sliced::kNo;
  /// What is known of the dtype of output 0, beside that a view keeps the dtype of its input.
  enum Result : uint8_t { kAnyDType, kSameDType, kTruth } result = kAnyDType;
};

/// Null for an op without a row: it is opaque, and runs replicated.
const Row* find_row(std::string_view target);

/// An op that has no row because any row would lie. It runs replicated like every op without one.
struct OpaqueOnPurpose {
  std::string_view target;
  std::string_view reason;
  bool view = false;  // outputs share the storage of input 0
};
std::span<const OpaqueOnPurpose> opaque_on_purpose();

/// Every table, in the order of the declarations below.
std::vector<std::span<const Row>> row_tables();

/// The relation of a concrete op; every dimension of an opaque op is frozen.
Relation relate(const OpView& op);
/// Throws Mismatch where the shapes and dtypes of an op cannot be those that its row needs. An op without a
/// row may be anything.
void check_operands(const Model& model, const Op& op);
Flops flops_of(const OpView& op);
Bytes workspace_of(const OpView& local);
Bytes retained_of(const OpView& local);
/// The number of the output that holds those.
size_t keeper_of(const Op& op);
/// Do outputs share the storage of input 0? Of an op without a row the file says so.
bool is_view(const Op& op);
/// Does its kernel copy the whole storage of input 0?
bool copies_storage(const Op& op);
/// Which kernel adds the result to a tensor that is there.
AccumulationKind accumulation_of(const Op& op);
/// What the time of an op depends on; kPlain for an op without a row.
CostKind cost_of(const Op& op);
/// Is it a product of matrices, with a sum or without: mm, addmm, bmm, baddbmm?
bool is_product(const Op& op);
/// Is it one of many pairs of matrices: bmm, baddbmm?
bool is_batched_product(const Op& op);
/// The first of its operands that is no bias. REQUIRES: is_product(op).
int left_factor(const Op& op);
/// Where an argument stands in the schema of an op. REQUIRES: its row names it.
size_t argument_position(const Row& row, std::string_view name);
/// Is it a + b of two tensors of one shape and dtype, and nothing else?
bool is_plain_sum(const Model& model, const Op& op);

/// The op with attributes for local shapes. Example: view [4,16] -> [64] on half the batch: sizes become
/// [32].
Op localize(const OpView& whole, const OpView& local);

// The tables, one per family.
std::span<const Row> elementwise_rows();
std::span<const Row> activation_rows();
std::span<const Row> unary_rows();
std::span<const Row> binary_rows();
std::span<const Row> matmul_rows();
std::span<const Row> shape_rows();
std::span<const Row> place_rows();
std::span<const Row> diagonal_rows();
std::span<const Row> scatter_rows();
std::span<const Row> index_rows();
std::span<const Row> select_rows();
std::span<const Row> reduce_rows();
std::span<const Row> whole_rows();
std::span<const Row> softmax_rows();
std::span<const Row> norm_rows();
std::span<const Row> batch_norm_rows();
std::span<const Row> attention_rows();
std::span<const Row> embedding_rows();
std::span<const Row> convolution_rows();
std::span<const Row> pool_rows();
std::span<const Row> resize_rows();
std::span<const Row> pad_rows();
std::span<const Row> window_rows();
std::span<const Row> shuffle_rows();
std::span<const Row> grid_rows();
std::span<const Row> loss_rows();
std::span<const Row> constant_rows();

}  // namespace partita::model
