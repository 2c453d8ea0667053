#include "rows_mutants.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdlib>

#include "base/error.h"

namespace partita::run {
namespace {

std::string name_of(const DimRef& ref) {
  return fmt::format("{}{}.{}",
                     ref.kind == DimRef::kInput    ? "i"
                     : ref.kind == DimRef::kOutput ? "o"
                                                   : "f",
                     ref.operand, ref.dim);
}

/// The whole numbers among the arguments, lists included, in order.
void collect_integers(std::vector<Arg>& args, std::vector<int64_t*>& integers) {
  for (Arg& arg : args) {
    if (arg.kind == Arg::kInt) integers.push_back(&arg.integer);
    collect_integers(arg.items, integers);
  }
}

std::vector<int64_t*> integers_of(Op& op) {
  std::vector<int64_t*> integers;
  collect_integers(op.args, integers);
  for (auto& [name, arg] : op.kwargs) {
    if (arg.kind == Arg::kInt) integers.push_back(&arg.integer);
    collect_integers(arg.items, integers);
  }
  return integers;
}

bool gives_another(const Instance& instance, const Op& op, const std::vector<at::Tensor>& in) {
  std::vector<at::Tensor> out = call(instance.model, op, in, instance.out.size());
  for (size_t o = 0; o < out.size(); ++o)
    if (out[o].defined() &&
        (out[o].strides() != instance.out[o].strides() || !at::equal(out[o], instance.out[o])))
      return true;
  return false;
}

class Mutator {
 public:
  Mutator(const Instance& instance, const Claim& claim, const LinearSets& excused)
      : instance_(instance),
        claim_(claim),
        excused_(excused),
        view_(view_of(instance.model, instance.op())),
        allowed_(allowed(instance, claim)) {}

  Mutants run() {
    equalities();
    dimensions();
    sets();
    reads();
    attributes();
    Claim flipped = claim_;
    flipped.view = !flipped.view;
    mutants_.wrong.emplace("flip view", std::move(flipped));
    return std::move(mutants_);
  }

 private:
  template <class Change>
  void add(std::string what, Change change) {
    Claim mutant = claim_;
    change(mutant.relation);
    if (allowed(instance_, mutant) == allowed_)
      ++mutants_.equivalent["allows the same"];
    else
      mutants_.wrong.emplace(std::move(what), std::move(mutant));
  }

  int64_t size(const DimProduct& product) const {
    int64_t total = 1;
    for (const DimRef& ref : product)
      total *= ref.kind == DimRef::kFactor
                   ? ref.dim
                   : (ref.kind == DimRef::kInput ? view_.in : view_.out)[ref.operand][ref.dim];
    return total;
  }

  // A factor must keep its place in some equality, or its number would be missing.
  static bool has_factor(const std::pair<DimProduct, DimProduct>& one) {
    auto is_factor = [](const DimRef& ref) { return ref.kind == DimRef::kFactor; };
    return std::any_of(one.first.begin(), one.first.end(), is_factor) ||
           std::any_of(one.second.begin(), one.second.end(), is_factor);
  }

  // Of the many pairs of a long relation a share is tried; PARTITA_CAMPAIGN=1 tries all.
  bool tries_swap(size_t i, size_t j) const {
    return claim_.relation.equal.size() <= 4 || (i * 7 + j * 3) % claim_.relation.equal.size() < 2 ||
           std::getenv("PARTITA_CAMPAIGN");
  }

  void equalities() {
    const auto& equal = claim_.relation.equal;
    for (size_t i = 0; i < equal.size(); ++i) {
      if (!has_factor(equal[i]))
        add(fmt::format("drop equality {}", i),
            [&](Relation& r) { r.equal.erase(r.equal.begin() + static_cast<ptrdiff_t>(i)); });
      for (size_t j = 0; j < i; ++j)
        if (tries_swap(i, j) && size(equal[i].second) == size(equal[j].second))
          add(fmt::format("swap {} and {}", i, j),
              [&](Relation& r) { std::swap(r.equal[i].second, r.equal[j].second); });
    }
    for (size_t i = 0; i < claim_.relation.places.size(); ++i)
      add(fmt::format("drop place {}", i),
          [&](Relation& r) { r.places.erase(r.places.begin() + static_cast<ptrdiff_t>(i)); });
  }

  void dimensions() {
    for (const auto& [ref, why] : claim_.relation.frozen)
      add("free " + name_of(ref), [&, ref = ref](Relation& r) { r.frozen.erase(ref); });
    for (size_t i = 0; i < claim_.relation.reduced.size(); ++i)
      add("keep " + name_of(claim_.relation.reduced[i]),
          [&](Relation& r) { r.reduced.erase(r.reduced.begin() + static_cast<ptrdiff_t>(i)); });
    for (size_t k = 0; k < view_.in.size(); ++k)
      for (size_t d = 0; d < view_.in[k].size(); ++d) {
        DimRef ref = input_dim(static_cast<int>(k), static_cast<int64_t>(d));
        add("freeze " + name_of(ref), [&](Relation& r) { r.freeze(ref, "mutant"); });
        add("reduce " + name_of(ref), [&](Relation& r) { r.reduced.push_back(ref); });
      }
    for (size_t o = 0; o < view_.out.size(); ++o)
      for (size_t d = 0; d < view_.out[o].size(); ++d) {
        DimRef ref = output_dim(static_cast<int>(o), static_cast<int64_t>(d));
        add("freeze " + name_of(ref), [&](Relation& r) { r.freeze(ref, "mutant"); });
      }
  }

  void sets() {
    const Relation& relation = claim_.relation;
    bool contents = instance_.op().target.find("empty") == std::string::npos;
    for (size_t i = 0; contents && i < relation.linear.size(); ++i) {
      if (can_be_missed(relation.linear[i]))
        add(fmt::format("drop linear {}", i),
            [&](Relation& r) { r.linear.erase(r.linear.begin() + static_cast<ptrdiff_t>(i)); });
      else
        ++mutants_.equivalent["a linear set of whole numbers, or of which this sample has a smaller one"];
    }
    for (int k = 0; k < static_cast<int>(view_.in.size()); ++k) {
      bool new_set = contents && instance_.in[k].is_floating_point() && !excused_.contains({k});
      if (excused_.contains({k})) ++mutants_.equivalent["this sample is linear there, not every one"];
      if (new_set) add(fmt::format("linear in {}", k), [&](Relation& r) { r.linear.push_back({k}); });
      bool new_addend =
          std::find(relation.addends.begin(), relation.addends.end(), k) == relation.addends.end();
      if (new_addend && !is_read(k)) ++mutants_.equivalent["an operand whose numbers are not read"];
      if (new_addend && is_read(k))
        add(fmt::format("addend {}", k), [&](Relation& r) { r.addends.push_back(k); });
    }
    add("no addends", [](Relation& r) { r.addends.clear(); });
  }

  // Sets of whole numbers are not searched for, and one with an excused part would be found as that part.
  bool can_be_missed(const std::vector<int>& set) const {
    bool floating =
        std::all_of(set.begin(), set.end(), [&](int k) { return instance_.in[k].is_floating_point(); });
    return floating && std::none_of(excused_.begin(), excused_.end(), [&](const std::vector<int>& small) {
             return std::includes(set.begin(), set.end(), small.begin(), small.end());
           });
  }

  // Zeros in the place of an operand that gives only its shape change nothing.
  bool is_read(int k) const {
    std::vector<at::Tensor> in = instance_.in;
    in[k] = at::zeros_like(in[k]);
    return gives_another(instance_, instance_.op(), in);
  }

  void reads() {
    int inputs = static_cast<int>(view_.in.size());
    for (int o = 0; o < static_cast<int>(view_.out.size()); ++o) {
      add(fmt::format("output {} reads all", o), [&](Relation& r) { r.reads.erase(o); });
      for (int k = 0; k < inputs; ++k)
        add(fmt::format("output {} reads no {}", o, k), [&](Relation& r) {
          std::vector<int> all;
          for (int i = 0; i < inputs; ++i) all.push_back(i);
          std::vector<int>& set = r.reads.emplace(o, all).first->second;
          std::erase(set, k);
        });
    }
  }

  void attributes() {
    Op op = instance_.op();
    if (!find_row(op.target)->localize) return;
    Claim stays = claim_;
    stays.localize = [](const OpView& whole, const OpView&) { return *whole.op; };
    mutants_.wrong.emplace("attributes stay whole", std::move(stays));
    for (size_t i = 0; i < integers_of(op).size(); ++i) {
      Claim one = claim_;
      one.localize = [i](const OpView& whole, const OpView& local) {
        Op piece = localize(whole, local), original = *whole.op;
        std::vector<int64_t*> made = integers_of(piece), given = integers_of(original);
        if (i < made.size() && i < given.size()) *made[i] = *given[i];
        return piece;
      };
      mutants_.wrong.emplace(fmt::format("attribute {} stays whole", i), std::move(one));
    }
  }

  const Instance& instance_;
  const Claim& claim_;
  const LinearSets& excused_;
  OpView view_;
  std::string allowed_;
  Mutants mutants_;
};

}  // namespace

Mutants mutants_of(const Instance& instance, const Claim& claim, const LinearSets& excused) {
  return Mutator(instance, claim, excused).run();
}

bool is_attribute_read(const Instance& instance, size_t i) {
  Op op = instance.op();
  ++*integers_of(op).at(i);
  return gives_another(instance, op, instance.in);
}

Claim changes_attribute(const Claim& claim, size_t i) {
  Claim probe = claim;
  probe.localize = [i](const OpView& whole, const OpView& local) {
    Op piece = localize(whole, local), original = *whole.op;
    std::vector<int64_t*> made = integers_of(piece), given = integers_of(original);
    if (made.size() != given.size() || *made.at(i) != *given.at(i)) throw std::runtime_error("it changes");
    return piece;
  };
  return probe;
}

}  // namespace partita::run
