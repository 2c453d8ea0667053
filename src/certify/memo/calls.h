#pragma once

#include <vector>

#include "certify/memo/in_time.h"

namespace partita::certify {

/// What every instruction of every rank made last. In most micro-batches it is given the same and makes the
/// same: then the same object, so that what follows can see that at a glance.
class Calls {
 public:
  explicit Calls(const Given& given);

  /// What an instruction makes, as made_of and check_norm of the kernel have it. Refused as by them.
  Answer make(const At& at, std::vector<Holding>& in);
  /// The outputs of its op alone, before they are added to anything.
  const std::vector<Known>& call(const At& at, const std::vector<Holding>& in);
  /// What it made last, where this is the same.
  Known remembered(const At& at, Known meaning);

 private:
  /// A call of an op that was found right.
  struct Applied {
    std::vector<Known> in;
    std::vector<TypeId> types;
    std::vector<Known> out;
  };
  Applied& last_at(const At& at);
  Answer make_op(const At& at, const std::vector<Holding>& in);
  void check_norm(const Instr& instr, const std::vector<Holding>& in);

  const Given& given_;
  std::vector<std::vector<std::vector<Applied>>> applied_;  // rank, body, instruction: what it last did
  std::vector<std::vector<std::vector<TypeId>>>
      verified_;  // body, instruction: operand types last found right
  Known norm_;    // last found complete
};

}  // namespace partita::certify
