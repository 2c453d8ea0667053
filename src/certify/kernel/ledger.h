#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "certify/algebra/meaning.h"
#include "program/slot_table.h"
#include "program/walk.h"

namespace partita::certify {

/// What a slot of a rank holds: a name of a storage, and what it means. Several names may share a storage
/// (views, moves).
struct Holding {
  Known meaning;  // null: not known, something before it was refused
  TypeId type;
  int32_t storage = -1;
  int32_t seen = 0;          // changes the storage had when this name was given
  int32_t sends = 0;         // transfers out of it and collectives that read it, not waited for yet
  bool receiving = false;    // what arrives may not be read yet
  Slot from = {};            // where a collective that is under way makes it: what that reads
  bool overlapping = false;  // several of its elements are one place in memory: an expanded view
  At made;                   // the instruction that gave the name; no action where it was loaded or arrived
};

/// Who lives in which slot of one rank. Every function is Refused where the Program breaks the rules of
/// lifetimes: reading what was never written, already dropped, still arriving, or changed in place under
/// another name; writing over something alive; dropping or changing what is being sent; waiting for what was
/// not started.
class Ledger {
 public:
  struct Cell {
    std::optional<Holding> value;
    At died;
  };
  struct Storage {
    int32_t changes = 0, sends = 0;
    At changed;
  };

  Ledger(const RankProgram& rank, int32_t microbatches);

  const Holding& read(Slot slot, int32_t microbatch) const;
  /// A new name. The same name again only where `slot` is `same_as`: an instruction in place.
  void write(Slot slot, int32_t microbatch, Holding value, Slot same_as = {});
  void drop(Slot slot, int32_t microbatch, const At& at);

  int32_t allocate();
  /// Notes that an instruction changes the storage of `value`; its other names must not be read again.
  void change(const Holding& value, Slot slot, const At& at);
  int32_t changes(int32_t storage) const { return storages_[storage].changes; }

  void send(Slot slot, int32_t microbatch);
  void sent(Slot slot, int32_t microbatch);
  void arrive(Slot slot, int32_t microbatch, Known meaning);
  /// A collective that makes `out` of `in` is under way from here on, and is over.
  void start(Slot in, Slot out, int32_t microbatch);
  void finish(Slot out, int32_t microbatch);

  /// Opens the local slots of a body; `leave` returns those still alive.
  void enter(const Body& body);
  std::vector<Slot> leave();

  /// What is alive outside bodies: slot, micro-batch, value.
  struct Alive {
    Slot slot;
    int32_t microbatch;
    const Holding* value;
  };
  std::vector<Alive> alive() const;
  /// Does a rank slot hold anything?
  bool is_alive(Slot slot) const { return cells_.at(slot, 0).value.has_value(); }

  /// What is there, without any rule.
  Cell& cell(Slot slot, int32_t microbatch) { return cells_.at(slot, microbatch); }
  const Cell& cell(Slot slot, int32_t microbatch) const { return cells_.at(slot, microbatch); }
  std::vector<Storage>& storages() { return storages_; }

 private:
  Holding& live(Slot slot, int32_t microbatch, const char* doing);

  SlotTable<Cell> cells_;
  std::vector<Storage> storages_;
  bool inside_ = false;
};

/// "action 3", "action 3, instruction 7".
std::string to_text(const At& at);

}  // namespace partita::certify
