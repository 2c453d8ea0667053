#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "certify/body_run.h"
#include "certify/gradient_rules.h"
#include "certify/ledger.h"
#include "certify/made.h"

namespace partita::certify {

inline Known known(Meaning meaning) { return std::make_shared<const Meaning>(std::move(meaning)); }

/// A call of an op that was found right.
struct Applied {
  std::vector<Known> in;
  std::vector<TypeId> types;
  std::vector<Known> out;
};

/// The walk behind certify (certificate.h): events of all ranks, one by one (certificate.cc), what an
/// instruction of one rank makes (certify_instr.cc), and what ranks make together (certify_collective.cc).
class Certifier {
 public:
  Certifier(const Model& model, const Atoms& atoms, const Program& program, const Fold& fold);
  /// `made`: where not null, what instructions make is noted there.
  std::vector<std::string> run(std::vector<Made>* made = nullptr);

 private:
  // --- Places and sentences ---

  const Action& action_at(const At& at) const { return program_.ranks[at.rank].actions[at.action]; }
  const Instr& instr_at(const At& at) const { return program_[action_at(at).body].instrs[at.instr]; }
  int32_t microbatch(const At& at) const { return action_at(at).microbatch; }
  std::string show(const Meaning& meaning) const { return to_text(meaning, model_, rules_.atoms); }
  std::string place(const At& at) const;
  void say(const At& at, std::string_view sentence);
  /// Runs `check`; what it refuses becomes a sentence about this place.
  template <class Check>
  bool allowed(const At& at, Check check) {
    try {
      check();
      return true;
    } catch (const Refused& refused) {
      say(at, refused.what());
      return false;
    }
  }
  const std::vector<Interval>& coordinates(int32_t rank) const;

  // --- Before the step ---

  void load(int32_t rank);
  /// Where a part of a tensor that lasts lies on a rank; `seen`: parts of it that the rank has loaded.
  int32_t lasting_storage(Ledger& ledger, std::vector<std::pair<Known, int32_t>>& seen,
                          const Known& value) const;
  /// `shared` where it means the same in this micro-batch as `value` does; made from this load and the next
  /// one of its slot where there is none.
  Known shared_in_time(int32_t rank, size_t k, const Known& value, Known& shared) const;

  // --- One event ---

  struct Parcel {
    Known meaning;
    TypeId type;
    int32_t microbatch = 0;
  };
  void happen(const Event& event);
  void happen_transfer(const Event& event, const At& at);
  void arrive(const Event& event, const Action& action, Ledger& ledger);

  // --- A body that is given the same again ---

  /// Runs of a body that were done again, of micro-batches that follow each other, whose sums were not added
  /// up yet.
  struct Owed {
    int32_t microbatch = 0;        // the first
    std::vector<int32_t> actions;  // one for each
  };
  /// A run of each body on a rank that the next ones are compared with.
  struct LastRun {
    std::unique_ptr<BodyRun> run;
    Owed owed;
    int32_t times = 0;   // that the rank runs it
    int32_t missed = 0;  // that it was given something else
  };
  LastRun& last_run(const At& at) { return last_runs_[at.rank][action_at(at).body.value]; }
  void begin_body(const At& at);
  /// From here on what was taken as done again is looked at.
  void look_back(const At& at);
  void end_body(const At& at);
  void do_again(const At& at, const BodyRun& run);
  void add_again(const At& at, const std::vector<Holding>& addends, const Ledger::Again& storages);

  // --- Sums of many micro-batches at once (certify_owed.cc) ---

  void owe(const At& at);
  /// Adds up what is owed: of a body, of all that owe to one of these slots, of all.
  void settle(int32_t rank, int32_t body);
  void settle(int32_t rank, const std::vector<Slot>& slots);
  void settle_all(int32_t rank);
  /// Adds what an instruction adds in all owed runs; false where that cannot be said at once.
  bool add_at_once(const At& last, const Owed& owed, const std::vector<Holding>& addends);
  std::vector<Holding> with_sum(const At& at, const std::vector<Holding>& addends) const;

  /// Is the meeting one that all members have had before, all as they are now?
  bool meet_again(const std::vector<At>& members);
  void note_adding(const At& at, const Instr& instr, const std::vector<Holding>& in);

  // --- Instructions ---

  void happen_instr(const At& at);
  void note(const At& at, const Instr& instr);
  static Box somewhere(const SpanBox& part);
  void forget_outputs(const At& at, const Instr& instr);
  void drop_all(const At& at, const Instr& instr);
  void do_instr(const At& at, const Instr& instr, Ledger& ledger);
  void do_instr(const At& at, const Instr& instr, std::vector<Holding> in, Ledger& ledger);
  static Known settled_at(const Known& meaning, int32_t microbatch);
  Known lasting(const At& at, Slot slot, const Known& meaning) const;
  /// Runs `check` on the inputs; where they are not all known for all micro-batches, on those of this one.
  template <class Check>
  auto at_once_or_now(const At& at, const std::vector<Holding>& in, Check check) {
    auto moves = [](const Holding& value) { return moves_in_time(*value.meaning); };
    try {
      return check(in);
    } catch (const Refused&) {
      if (std::none_of(in.begin(), in.end(), moves)) throw;
    }
    of_one_microbatch_ = true;
    std::vector<Holding> now = in;
    for (Holding& value : now) value.meaning = settled_at(value.meaning, microbatch(at));
    return check(now);
  }
  void settle_lasting(const At& at, const Instr& instr, std::vector<Holding>& in) const;
  void concat(const At& at, const Instr& instr, const std::vector<Holding>& in, Ledger& ledger);
  /// The same storage under a new name, which nobody is sending.
  static Holding moved(const At& at, Holding value);
  void make(const At& at, const Instr& instr, Ledger& ledger, Meaning meaning);
  void make(const At& at, const Instr& instr, Ledger& ledger, const Known& meaning);
  /// A new name of a storage has the type of the old one.
  void check_named(const Instr& instr, const Holding& old) const;
  /// Gives the changed storage of `old` its new meaning and name.
  void rename(const At& at, const Instr& instr, Ledger& ledger, const Holding& old, Known meaning);
  void add(const At& at, const Instr& instr, const std::vector<Holding>& in, Ledger& ledger);
  /// What `there` means when `more` is added to it.
  Meaning total(const Instr& instr, const Meaning& there, const Meaning& more, const TensorType& type) const;
  /// The value as an addend of `instr.sum`, of which it may be an operand.
  Meaning addend(const Instr& instr, const Meaning& value, const TensorType& type) const;
  void accumulate(const At& at, const Instr& instr, const std::vector<Holding>& in, const Known& made,
                  Ledger& ledger);

  // --- Compute ---

  void compute(const At& at, const Instr& instr, const std::vector<Holding>& in, Ledger& ledger);
  Applied& last_at(const At& at);
  /// The same object where an instruction makes the same again, so that what follows can see that.
  Known remembered(const At& at, Known meaning);
  /// In most micro-batches an op is called on the same.
  const Applied& applied(const At& at, const Instr& instr, const std::vector<Holding>& in);
  /// Zeros among the operands lie in memory as the tensors that they stand for.
  void check_zeros(const std::vector<TensorId>& needed, const std::vector<Operand>& in) const;
  std::vector<const TensorType*> output_types(const Instr& instr) const;
  void optimize(const At& at, const Instr& instr, const std::vector<Holding>& in, Ledger& ledger);

  // --- Collectives ---

  void happen_collective(const std::vector<At>& members);
  void do_collective(const std::vector<At>& members);
  void take(const At& at, const Holding& in, const Meeting& meeting);
  void end_collective(const At& at);
  /// The mesh axes that a collective runs along inside of a class.
  const std::vector<int>& axes_at(const At& at) const;
  Holding read_member(const At& at, int32_t first) const;
  /// Classes of a group run along the same axes and have the same coordinates on the others.
  bool shares_group(const At& a, const At& b) const;
  /// A group lists its classes in the order of the mesh.
  void check_mesh_order(const std::vector<At>& members) const;
  /// Members bring tensors of one dtype, and agree on where pieces lie.
  void check_alike(const std::vector<At>& members, const std::vector<Holding>& in) const;

  const Model& model_;
  const Program& program_;
  const Fold& fold_;
  Rules rules_;
  GradientRules gradients_;
  std::vector<std::vector<std::vector<TypeId>>>
      verified_;  // body, instruction: operand types last found right
  std::vector<std::vector<std::vector<Applied>>> applied_;  // rank, body, instruction: what it last did
  std::vector<Ledger> ranks_;
  std::vector<Repeat> repeats_;                  // by body
  std::vector<std::vector<LastRun>> last_runs_;  // rank, body
  std::vector<std::vector<int32_t>> owing_;      // rank, rank slot: the body that owes to it; -1: none
  std::vector<Course> courses_;                  // by rank
  int64_t meetings_ = 0;
  bool of_one_microbatch_ = false;  // what was done last is not so in all micro-batches
  Walker walker_;
  std::vector<Parcel> parcels_;  // by transfer
  std::vector<std::string> wrong_;
  std::vector<Made>* made_ = nullptr;
};

}  // namespace partita::certify
