#pragma once

#include <memory>
#include <vector>

#include "certify/kernel/walk.h"
#include "certify/memo/calls.h"
#include "certify/memo/replay.h"
#include "certify/memo/sums.h"

namespace partita::certify {

/// The walk of the kernel, which skips what is known to be the same: a body that is given what it was given
/// before does what it did, and values of all micro-batches are looked at once. It only says whether the
/// Program is accepted; sentences are the kernel's.
///   bool accepted = Driver(given).accepts();
class Driver {
 public:
  explicit Driver(const Given& given);
  /// True only where walk(given) is empty. False: something is refused, or it is not sure.
  bool accepts();

 private:
  /// A run of a body on a rank that the next ones are compared with.
  struct LastRun {
    std::unique_ptr<BodyRun> run;
    int32_t times = 0;   // that the rank runs it
    int32_t missed = 0;  // that it was given something else
  };
  /// Where a rank stands in the body that it runs.
  struct Course {
    const BodyRun* again = nullptr;  // nothing was looked at yet: so far all is as it was then
    std::unique_ptr<BodyRun> notes;  // all was looked at and is noted
    size_t stops = 0;                // passed
  };
  struct Rank {
    Replay replay;
    std::vector<LastRun> runs;  // by body
    Course course;
  };

  bool goes_well();
  void happen(const Event& event);
  void act(const Event& event, const At& at);

  void begin_body(const At& at);
  void end_body(const Event& event, const At& at);
  /// From here on what was taken as done again is looked at.
  void look_back(const At& at);
  void do_again(const At& at, const BodyRun& run);

  void look_at(const At& at);
  void note_adding(const At& at, const std::vector<Holding>& in);
  /// Is the meeting one that all members have had before, all as they are now?
  bool meet_again(const std::vector<At>& members);
  void meet(const std::vector<At>& members);
  Holding read(const At& member, int32_t first) const;
  void take_home(const At& at, const Holding& in, const Meeting& meeting);

  const Repeat& repeat(const At& at) const { return repeats_[given_.action(at).body.value]; }
  LastRun& last_run(const At& at) { return ranks_[at.rank].runs[given_.action(at).body.value]; }
  Course& course(const At& at) { return ranks_[at.rank].course; }

  const Given& given_;
  Walker walker_;
  State state_;
  Calls calls_;
  std::vector<Repeat> repeats_;  // by body
  Sums sums_;
  std::vector<Rank> ranks_;
  std::vector<int32_t> sent_in_;  // by transfer: the micro-batch in which it was sent
  int64_t meetings_ = 0;
};

}  // namespace partita::certify
