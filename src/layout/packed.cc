#include "layout/packed.h"

#include <algorithm>
#include <optional>
#include <set>

#include "model/row.h"

namespace partita::layout {
namespace {

// What may cut the dimension, and what its gradient may be joined from; others that state a Place also fill.
constexpr std::string_view kCuts[] = {"aten.slice.Tensor", "aten.split.Tensor",
                                      "aten.split_with_sizes.default"};
constexpr std::string_view kJoins[] = {"aten.slice_backward.default", "aten.cat.default"};

template <size_t N>
bool is_one_of(const std::string_view (&names)[N], const std::string& name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

struct OpDims {
  OpView view;
  Relation relation;
  std::vector<TensorId> in;
};

class Finder {
 public:
  explicit Finder(const Model& model) : model_(model), near_(model.tensors.size()) {
    for (const Op& op : model.ops) {
      OpView view = view_of(model, op);
      ops_.push_back({view, relate(view), inputs_of(op)});
      for (TensorId id : ops_.back().in) near_[id.value].insert(ops_.size() - 1);
      for (TensorId id : op.outputs)
        if (id) near_[id.value].insert(ops_.size() - 1);
    }
    for (auto [parameter, gradient] : model.gradients) {
      partner_[parameter].push_back(gradient);
      partner_[gradient].push_back(parameter);
    }
  }

  std::vector<Packed> find() {
    std::vector<Packed> found;
    for (const OpDims& op : ops_) {
      if (op.view.op->backward || !is_one_of(kCuts, op.view.op->target) || op.relation.places.empty())
        continue;
      const DimRef& big = op.relation.places[0].big;
      TensorId seed = tensor(op, big);
      if (taken_.contains(seed)) continue;
      if (auto packed = follow(seed, static_cast<int32_t>(big.dim))) {
        for (const auto& [id, where] : packed->members) taken_.insert(id);
        found.push_back(*std::move(packed));
      }
    }
    return found;
  }

 private:
  TensorId tensor(const OpDims& op, const DimRef& ref) const {
    return ref.kind == DimRef::kInput ? op.in[ref.operand] : op.view.op->outputs[ref.operand];
  }

  int64_t size(const OpDims& op, const DimRef& ref) const {
    return ref.kind == DimRef::kFactor ? ref.dim : model_[tensor(op, ref)].shape[ref.dim];
  }

  // The dimension in every tensor that shares it; nothing where one of them does not allow to take it apart.
  std::optional<Packed> follow(TensorId seed, int32_t dim) {
    packed_ = {.members = {{seed, {dim, 1}}}};
    length_ = model_[seed].shape[dim];
    cuts_ = {0, length_};
    pieces_.clear();
    queue_ = {seed};
    while (!queue_.empty()) {
      TensorId id = queue_.back();
      queue_.pop_back();
      if (!may_join(id)) return {};
      for (TensorId other : partner_[id])
        if (!add(other, packed_.members.at(id).dim, packed_.members.at(id).unit)) return {};
      for (size_t op : near_[id.value])
        if (!through(ops_[op], id)) return {};
    }
    packed_.cuts.assign(cuts_.begin(), cuts_.end());
    return worth_it() ? std::optional(packed_) : std::nullopt;
  }

  bool may_join(TensorId id) const {
    Role role = model_[id].role;
    bool changes = std::any_of(model_.buffers.begin(), model_.buffers.end(),
                               [&](const auto& pair) { return pair.second == id; });
    return (role == Role::kValue || role == Role::kParameter) && !taken_.contains(id) && !changes;
  }

  bool add(TensorId id, int64_t dim, int64_t unit) {
    auto [at, fresh] = packed_.members.try_emplace(id, Packed::Where{static_cast<int32_t>(dim), unit});
    if (fresh) queue_.push_back(id);
    return at->second.dim == dim && at->second.unit == unit;
  }

  bool through(const OpDims& op, TensorId id) {
    const Packed::Where where = packed_.members.at(id);
    auto here = [&](const DimRef& ref) {
      return ref.kind != DimRef::kFactor && tensor(op, ref) == id && ref.dim == where.dim;
    };
    if (op.relation.opaque) return false;
    for (const auto& [ref, why] : op.relation.frozen)
      if (here(ref)) return false;
    for (const DimRef& ref : op.relation.reduced)
      if (here(ref) && (!op.relation.addends.empty() || op.view.op->outputs.size() != 1)) return false;
    for (const Place& place : op.relation.places) {
      if (here(place.small)) return false;
      if (here(place.big) && !cut(op, place, where.unit)) return false;
    }
    for (const auto& [a, b] : op.relation.equal)
      if (!across(op, a, b, here, where.unit) || !across(op, b, a, here, where.unit)) return false;
    return true;
  }

  bool cut(const OpDims& op, const Place& place, int64_t unit) {
    const Op& whole = *op.view.op;
    if (!is_one_of(kCuts, whole.target) && !(whole.backward && is_one_of(kJoins, whole.target))) return false;
    int64_t length = size(op, place.small);
    if (place.start % unit || length % unit) return false;
    cuts_.insert(place.start / unit);
    cuts_.insert((place.start + length) / unit);
    pieces_.insert({place.start / unit, (place.start + length) / unit});
    return true;
  }

  // Two products of equal size, outermost first, cut into the shortest stretches that are equal: of
  // (4 12)(64) = (48)(64) the second, where the packed dimension stands alone.
  template <class Here>
  bool across(const OpDims& op, const DimProduct& from, const DimProduct& to, const Here& here,
              int64_t unit) {
    if (std::none_of(from.begin(), from.end(), here)) return true;
    for (size_t i = 0, j = 0; i < from.size();) {
      DimProduct left, right;
      int64_t left_size = 1, right_size = 1;
      do {
        bool take_left = j == to.size() || (i < from.size() && left_size <= right_size);
        const DimRef& ref = take_left ? from[i++] : to[j++];
        (take_left ? left_size : right_size) *= size(op, ref);
        if (size(op, ref) > 1) (take_left ? left : right).push_back(ref);
      } while (left_size != right_size || (i < from.size() && size(op, from[i]) == 1));
      if (std::any_of(left.begin(), left.end(), here)) return carry(op, left, right, here, unit);
    }
    return false;
  }

  // (length, unit, rest of `from`) = `to`, where it must be outermost as well.
  template <class Here>
  bool carry(const OpDims& op, const DimProduct& from, const DimProduct& to, const Here& here, int64_t unit) {
    if (!here(from[0]) || to[0].kind == DimRef::kFactor) return false;
    for (size_t k = 1; k < from.size(); ++k) unit *= size(op, from[k]);
    int64_t inside = 1;
    for (size_t k = 1; k < to.size(); ++k) inside *= size(op, to[k]);
    return unit % inside == 0 && add(tensor(op, to[0]), to[0].dim, unit / inside);
  }

  // Equal pieces are a product of atoms, which needs no help. Every piece must be one that the step cuts out.
  bool worth_it() const {
    std::set<int64_t> lengths;
    for (size_t p = 0; p < packed_.pieces(); ++p) {
      lengths.insert(packed_.length(p));
      if (!pieces_.contains({packed_.cuts[p], packed_.cuts[p + 1]})) return false;
    }
    if (lengths.size() < 2 || pieces_.size() != packed_.pieces()) return false;
    return std::any_of(packed_.members.begin(), packed_.members.end(),
                       [&](const auto& member) { return model_[member.first].role == Role::kParameter; });
  }

  const Model& model_;
  std::vector<OpDims> ops_;
  std::vector<std::set<size_t>> near_;  // by tensor: the ops that make or read it
  std::map<TensorId, std::vector<TensorId>> partner_;
  std::set<TensorId> taken_;
  Packed packed_;
  int64_t length_ = 0;
  std::set<int64_t> cuts_;
  std::set<std::pair<int64_t, int64_t>> pieces_;
  std::vector<TensorId> queue_;
};

}  // namespace

std::vector<Packed> find_packed(const Model& model) { return Finder(model).find(); }

}  // namespace partita::layout
