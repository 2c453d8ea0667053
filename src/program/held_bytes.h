#pragma once

#include <array>
#include <vector>

#include "program/cause.h"
#include "program/slot_table.h"

namespace partita::program {

/// Bytes held at a moment.
struct CausedBytes {
  Bytes all = 0;
  std::array<Bytes, kCauses> by_cause{};

  void add(Cause cause, Bytes bytes);
  CausedBytes& operator+=(const CausedBytes& other);
  CausedBytes operator-(const CausedBytes& other) const;
};

/// What one run of a body does to the bytes of its rank, for what it was given. Storages are numbered: first
/// those that its slots name when it begins, in the order of outside_of(body), then those it makes.
struct BodyBytes {
  struct Name {
    int32_t storage = -1;
    TypeId type;
    Shape gaps;  // strides of a view that has others than its type says
    bool operator==(const Name&) const = default;
  };
  struct Storage {
    Bytes bytes = 0;
    int32_t names = 0;
    bool operator==(const Storage&) const = default;
  };
  std::vector<Name> before, after;                     // by slot
  std::vector<Storage> given, left;                    // storages named before, and what becomes of them
  std::vector<Cause> given_causes, left_causes, made;  // `made`: of all that it makes
  std::vector<std::pair<int32_t, Storage>> outliving;  // of those it makes
  CausedBytes change;                                  // from its beginning to its end
  CausedBytes peak;                                    // the most, above its beginning
  int32_t instr = -1;                                  // of the peak; -1: a body without instructions
};

/// Who holds which bytes on one rank: storages and the names of them. Bodies that are given the same again
/// are not walked again: what they did once is done at once.
class HeldBytes {
 public:
  using Name = BodyBytes::Name;

  HeldBytes(const RankProgram& rank, int32_t microbatches) : names_(rank, microbatches) {}

  Name& name(Slot slot, int32_t microbatch) { return names_.at(slot, microbatch); }
  const CausedBytes& held() const { return held_; }
  /// Calls visit(slot, micro-batch, name) for everything outside bodies.
  template <class Visit>
  void for_each_name(Visit visit) const {
    names_.for_each(visit);
  }
  Cause cause(int32_t storage) const { return causes_[storage]; }
  Bytes bytes(int32_t storage) const { return storages_[storage].bytes; }
  const std::vector<Cause>& causes() const { return causes_; }
  /// The causes of all storages from now on, found by an earlier walk; they do not change any more.
  void know(const std::vector<Cause>& causes) { known_ = &causes; }
  void belongs(int32_t storage, Cause cause);

  int32_t allocate(Bytes bytes, Cause cause);
  void give(Slot slot, int32_t microbatch, int32_t storage, TypeId type);
  void drop(Slot slot, int32_t microbatch);

  /// Begins to note what a body does to these slots.
  void enter(const Body& body, const std::vector<Slot>& outside, int32_t microbatch);
  /// Notes the bytes held now and `extra` beside them, at an instruction.
  void mark(int32_t instr, Bytes extra);
  /// What it did.
  BodyBytes leave(const std::vector<Slot>& outside, int32_t microbatch);
  /// Does all of it again; false, and nothing is done, where the body is given something else.
  bool again(const BodyBytes& known, const std::vector<Slot>& outside, int32_t microbatch);

 private:
  using Storage = BodyBytes::Storage;

  void number(const std::vector<Slot>& outside, int32_t microbatch);
  void forget_numbers();
  Name numbered(const Name& name) const;
  bool causes_follow(const std::vector<Cause>& made) const;
  bool is_given(const BodyBytes& known, const std::vector<Slot>& outside, int32_t microbatch);

  SlotTable<Name> names_;
  std::vector<Storage> storages_;
  std::vector<Cause> causes_;  // by storage
  const std::vector<Cause>* known_ = nullptr;
  CausedBytes held_;
  std::vector<int32_t> numbers_;   // by storage: in the body at hand; -1: none
  std::vector<int32_t> numbered_;  // storages with a number, in its order
  // Of the body at hand.
  size_t first_made_ = 0;
  CausedBytes begun_;
  BodyBytes noted_;
};

}  // namespace partita::program
