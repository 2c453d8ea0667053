#include "program/cause.h"

namespace partita::program {
namespace {

constexpr std::string_view kCauseNames[] = {"parameters",  "gradients", "optimizer",
                                            "activations", "temporary", "communication"};

}  // namespace

std::string_view name_of(Cause cause) { return kCauseNames[static_cast<int>(cause)]; }

void CausedBytes::add(Cause cause, Bytes bytes) {
  all += bytes;
  by_cause[static_cast<int>(cause)] += bytes;
}

CausedBytes& CausedBytes::operator+=(const CausedBytes& other) {
  all += other.all;
  for (int c = 0; c < kCauses; ++c) by_cause[c] += other.by_cause[c];
  return *this;
}

CausedBytes CausedBytes::operator-(const CausedBytes& other) const {
  CausedBytes out = *this;
  out.all -= other.all;
  for (int c = 0; c < kCauses; ++c) out.by_cause[c] -= other.by_cause[c];
  return out;
}

}  // namespace partita::program
