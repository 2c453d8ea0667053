#pragma once

#include <cstdint>
#include <vector>

#include "certify/kernel/ledger.h"
#include "certify/memo/repeat.h"

namespace partita::certify {

/// What a rank took from a collective, and which of all that happened it was.
struct Meeting {
  int64_t number = 0;
  Known made;
};

/// One run of a body on one rank, found right: what its fixed slots held before and after. In holdings a
/// storage is a number: those named before, in the order of the slots, then those it made; and `seen` is how
/// many changes of the storage the name has missed.
struct BodyRun {
  std::vector<Ledger::Cell> before, after;
  std::vector<Ledger::Storage> given, left;   // storages named before, and all that are named after
  std::vector<std::vector<Holding>> addends;  // by adding instruction: its inputs that are no sums
  std::vector<Meeting> meetings;              // by stop
  std::vector<int32_t> storages;              // of the ledger, while it runs: those named before
  std::vector<int32_t> changes;               // of them, before
};

/// Notes runs of bodies in the ledger of one rank, recognizes them and does them again.
class Replay {
 public:
  explicit Replay(Ledger& ledger) : ledger_(ledger) {}

  /// Notes what a body is given; false where a sum shares its storage with something else.
  bool begin_run(const Repeat& repeat, int32_t microbatch, BodyRun& run);
  /// Notes what it leaves.
  void end_run(const Repeat& repeat, int32_t microbatch, BodyRun& run);
  /// Is the body given what it was given then?
  bool is_given(const Repeat& repeat, int32_t microbatch, const BodyRun& run);
  /// Storages of a run that is done again: those named before, and one for all that it makes for itself.
  struct Again {
    std::vector<int32_t> storages;
    int32_t own = -1;
  };
  Again begin_again(const Repeat& repeat, int32_t microbatch);
  /// Leaves what that run left. REQUIRES: is_given; `at` is the run that ends.
  void end_again(const Repeat& repeat, int32_t microbatch, const BodyRun& run, const At& at, Again again);

 private:
  void number(int32_t storage);
  void number_all(const std::vector<Slot>& slots, int32_t microbatch);
  void forget_numbers();
  bool sums_are_apart(const std::vector<Slot>& sums, int32_t microbatch) const;
  std::vector<Ledger::Cell> numbered_cells(const std::vector<Slot>& slots, int32_t microbatch) const;

  Ledger& ledger_;
  std::vector<int32_t> numbers_;   // by storage; -1: none
  std::vector<int32_t> numbered_;  // storages with a number, in its order
};

}  // namespace partita::certify
