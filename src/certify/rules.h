#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace partita::certify {

/// What the certificate demands of a Program, one by one; docs/certificate.md says why these suffice.
enum class Rule : uint8_t {
  kWellFormed,
  kPlanNumbers,
  kHeld,
  kArrived,
  kFresh,
  kFreeSlot,
  kInFlight,
  kSpread,
  kApart,
  kWaits,
  kLeft,
  kDeadlock,
  kGiven,
  kOneStorage,
  kTypes,
  kStrides,
  kOneType,
  kOperands,
  kLoops,
  kFrozen,
  kZeros,
  kLinear,
  kArguments,
  kViews,
  kOneTensor,
  kOnePart,
  kOnce,
  kOneSum,
  kAdditions,
  kCuts,
  kLengths,
  kOrder,
  kOneLeaf,
  kMembers,
  kClasses,
  kCasts,
  kScaling,
  kScaled,
  kSquares,
  kNorm,
  kUpdates,
  kOwnGradient,
  kOwnStates,
  kResults,
  kCovered,
  kUpdated,
  kLasting
};

/// A line of the table: its number counts from 1 in the order of the table.
struct RuleRow {
  Rule rule;
  const char* name;
  const char* demands;
};
extern const RuleRow kRules[];
extern const size_t kRuleCount;

/// Why a Program is not accepted, without the place where.
struct Refused : std::runtime_error {
  Refused(Rule rule, const std::string& why) : std::runtime_error(why), rule(rule) {}
  Rule rule;
};

}  // namespace partita::certify
