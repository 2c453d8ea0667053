#include "layout/unpack.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"
#include "layout/layout.h"
#include "layout/packed.h"
#include "model/row.h"

namespace partita::layout {
namespace {

/// The pieces of a packed tensor; an id that is not set is a piece of zeros.
using Pieces = std::vector<TensorId>;

class Unpacker {
 public:
  Unpacker(const Model& model, const std::vector<Packed>& packed) : in_(model), out_(model) {
    out_.ops.clear();
    out_.gradients.clear();
    for (const Packed& one : packed)
      for (const auto& [id, where] : one.members) {
        home_[id] = &one;
        if (model[id].role == Role::kParameter) pieces_[id] = parameters(id);
      }
  }

  Model run() {
    for (const Op& op : in_.ops) add(op);
    for (auto [parameter, gradient] : in_.gradients) {
      if (!home_.contains(parameter)) {
        out_.gradients.push_back({parameter, now(gradient)});
        continue;
      }
      for (size_t p = 0; p < home_.at(parameter)->pieces(); ++p)
        out_.gradients.push_back({pieces_.at(parameter)[p], piece(gradient, p)});
    }
    return std::move(out_);
  }

 private:
  void add(const Op& op) {
    std::vector<TensorId> ins = inputs_of(op);
    auto packed = [&](TensorId id) { return id && home_.contains(id); };
    auto at = std::find_if(ins.begin(), ins.end(), packed);
    auto made = std::find_if(op.outputs.begin(), op.outputs.end(), packed);
    if (at == ins.end() && made == op.outputs.end())
      return emit(rewired(op, [&](TensorId id) { return now(id); }));
    const Packed& home = *home_.at(at != ins.end() ? *at : *made);
    OpView view = view_of(in_, op);
    if (std::vector<Place> places = relate(view).places; touches(places, home, op, ins))
      return cut_or_join(op, ins, home, places);
    if (made == op.outputs.end()) return add_up(op, home.pieces());
    for (size_t p = 0; p < home.pieces(); ++p) add_piece(op, p);
  }

  bool touches(const std::vector<Place>& places, const Packed& home, const Op& op,
               const std::vector<TensorId>& ins) const {
    return std::any_of(places.begin(), places.end(), [&](const Place& place) {
      TensorId big =
          place.big.kind == DimRef::kInput ? ins[place.big.operand] : op.outputs[place.big.operand];
      auto member = home.members.find(big);
      return member != home.members.end() && member->second.dim == place.big.dim;
    });
  }

  void cut_or_join(const Op& op, const std::vector<TensorId>& ins, const Packed& home,
                   const std::vector<Place>& places) {
    for (const Place& place : places) {
      bool cuts = place.big.kind == DimRef::kInput;
      TensorId big = cuts ? ins[place.big.operand] : op.outputs[place.big.operand];
      TensorId small = cuts ? op.outputs[place.small.operand] : ins[place.small.operand];
      int64_t start = place.start / home.members.at(big).unit;
      auto cut = std::find(home.cuts.begin(), home.cuts.end(), start);
      CHECK(cut != home.cuts.end());
      Pieces& pieces = pieces_.try_emplace(big, home.pieces()).first->second;
      TensorId& piece = pieces[static_cast<size_t>(cut - home.cuts.begin())];
      if (!cuts) {
        piece = now(small);
      } else if (small) {
        alias_[small] = this->piece(big, static_cast<size_t>(cut - home.cuts.begin()));
      }
    }
  }

  // A sum over the packed dimension is the sum of the pieces' sums.
  void add_up(const Op& op, size_t count) {
    const Tensor& like = in_[op.outputs[0]];
    TensorId total;
    for (size_t p = 0; p < count; ++p) {
      Op one = local(op, p);
      one.outputs = {fresh(one.name + ":0", like, like.shape)};
      TensorId part = one.outputs[0];
      emit(std::move(one));
      if (!total) {
        total = part;
        continue;
      }
      bool last = p + 1 == count;
      std::string name = fmt::format("{}.sum.{}", op.name, p);
      TensorId sum = last ? op.outputs[0] : fresh(name + ":0", like, like.shape);
      emit({.name = name,
            .target = "aten.add.Tensor",
            .args = {Arg::of(total), Arg::of(part)},
            .outputs = {sum},
            .backward = op.backward});
      total = sum;
    }
  }

  void add_piece(const Op& op, size_t p) {
    if (auto same = without_zeros(op, p)) return keep(op.outputs[0], p, *same);
    Op one = local(op, p);
    for (size_t o = 0; o < op.outputs.size(); ++o) {
      if (!op.outputs[o]) continue;
      one.outputs[o] = fresh(fmt::format("{}:{}", one.name, o), in_[op.outputs[o]], shape(op.outputs[o], p));
      keep(op.outputs[o], p, one.outputs[o]);
    }
    emit(std::move(one));
  }

  // Gradients of slices are zero but for their piece; adding them up needs no addition then.
  std::optional<TensorId> without_zeros(const Op& op, size_t p) const {
    auto piece = [&](const Arg& arg) { return pieces_.at(arg.tensor)[p]; };
    auto is_packed = [&](const Arg& arg) { return arg.kind == Arg::kTensor && pieces_.contains(arg.tensor); };
    bool adds = op.target == "aten.add.Tensor" && op.kwargs.empty() && op.args.size() == 2 &&
                is_packed(op.args[0]) && is_packed(op.args[1]);
    if (adds && !piece(op.args[0])) return piece(op.args[1]);
    if (adds && !piece(op.args[1])) return piece(op.args[0]);
    if (is_view(op) && is_packed(op.args[0]) && !piece(op.args[0])) return TensorId{};
    return {};
  }

  void keep(TensorId whole, size_t p, TensorId piece) {
    pieces_.try_emplace(whole, home_.at(whole)->pieces()).first->second[p] = piece;
  }

  Op local(const Op& op, size_t p) {
    OpView whole = view_of(in_, op), local = whole;
    std::vector<TensorId> ins = inputs_of(op);
    for (size_t k = 0; k < ins.size(); ++k) local.in[k] = shape(ins[k], p);
    for (size_t o = 0; o < op.outputs.size(); ++o)
      if (op.outputs[o]) local.out[o] = shape(op.outputs[o], p);
    Op one = localize(whole, local);
    one = rewired(one, [&](TensorId id) { return home_.contains(id) ? piece(id, p) : now(id); });
    one.name = fmt::format("{}.part.{}", op.name, p);
    return one;
  }

  Shape shape(TensorId id, size_t p) const {
    Shape out = in_[id].shape;
    auto found = home_.find(id);
    if (found == home_.end()) return out;
    const Packed::Where& where = found->second->members.at(id);
    out[where.dim] = found->second->length(p) * where.unit;
    return out;
  }

  /// The id of a piece, made here where it is zeros.
  TensorId piece(TensorId id, size_t p) {
    TensorId& piece = pieces_.at(id)[p];
    if (piece) return piece;
    std::string name = fmt::format("{}.zeros.{}", in_[id].name, p);
    piece = fresh(name + ":0", in_[id], shape(id, p));
    Arg zero, dtype, device;
    zero.kind = Arg::kFloat;
    dtype.kind = Arg::kDType;
    dtype.text = dtype_name(in_[id].dtype);
    device.kind = Arg::kDevice;
    device.text = "cpu";
    out_.ops.push_back({.name = name,
                        .target = "aten.full.default",
                        .args = {Arg::list(shape(id, p)), zero},
                        .kwargs = {{"dtype", dtype}, {"device", device}},
                        .outputs = {piece},
                        .backward = true});
    return piece;
  }

  Pieces parameters(TensorId id) {
    const Packed& home = *home_.at(id);
    const Packed::Where& where = home.members.at(id);
    Pieces pieces;
    for (size_t p = 0; p < home.pieces(); ++p) {
      TensorId part = fresh(fmt::format("{}.part.{}", in_[id].name, p), in_[id], shape(id, p));
      Tensor& tensor = out_.tensors[part.value];
      tensor.role = Role::kParameter;
      tensor.trainable = in_[id].trainable;
      tensor.part = {.whole = id, .dim = where.dim, .begin = home.cuts[p] * where.unit};
      pieces.push_back(part);
    }
    return pieces;
  }

  TensorId fresh(const std::string& name, const Tensor& like, const Shape& shape) {
    Tensor tensor{
        .name = name, .shape = shape, .strides = compact_strides(shape, like.strides), .dtype = like.dtype};
    out_.tensors.push_back(std::move(tensor));
    return TensorId{static_cast<int32_t>(out_.tensors.size() - 1)};
  }

  TensorId now(TensorId id) const {
    auto found = alias_.find(id);
    return found == alias_.end() ? id : found->second;
  }

  template <class Change>
  static void rewire(Arg& arg, const Change& change) {
    if (arg.kind == Arg::kTensor) arg.tensor = change(arg.tensor);
    for (Arg& item : arg.items) rewire(item, change);
  }

  template <class Change>
  static Op rewired(Op op, const Change& change) {
    for (Arg& arg : op.args) rewire(arg, change);
    for (auto& [name, arg] : op.kwargs) rewire(arg, change);
    return op;
  }

  void emit(Op op) { out_.ops.push_back(std::move(op)); }

  const Model& in_;
  Model out_;
  std::map<TensorId, const Packed*> home_;
  std::map<TensorId, Pieces> pieces_;
  std::map<TensorId, TensorId> alias_;  // a tensor that was cut out -> the piece that it is
};

}  // namespace

Model unpack(const Model& model) {
  std::vector<Packed> packed = find_packed(model);
  return packed.empty() ? model : Unpacker(model, packed).run();
}

}  // namespace partita::layout
