#pragma once

#include <map>

#include "cost/calibration.h"
#include "cost/cost.h"

namespace partita::cost {

/// Times of ops from samples. An op that was measured takes what it took. Another one of the same kind takes
/// its roofline times the corrections of the nearest samples (distance in log flops and log bytes, inputs
/// that lie alike first), weighted. One of a kind that was never measured takes the middle of all
/// corrections.
class SampledCosts {
 public:
  /// Keeps a reference to `samples`; `device` gives the roofline.
  SampledCosts(const std::vector<OpSample>& samples, Device device);

  Seconds seconds(const OpSample& op) const;
  /// Null where exactly this op was not measured.
  const OpSample* find(const std::string& signature) const;

 private:
  struct Corrected {
    const OpSample* sample = nullptr;
    double correction = 1;  // seconds over roofline
  };
  Seconds roofline(const OpSample& op) const;
  double correction_near(const OpSample& op, const std::vector<Corrected>& known) const;

  Device device_;
  std::map<std::string_view, const OpSample*> by_signature_;
  std::map<std::string_view, std::vector<Corrected>> by_target_;
  double middle_ = 1;
};

/// Times of messages and collectives between thread ranks, from samples: on a straight line between the
/// sizes measured, beyond the largest one at its rate. A group of a size that was not measured takes what the
/// nearest one did, as the formulas of profile.h grow with the size.
class SampledTransfers {
 public:
  explicit SampledTransfers(const std::vector<TransferSample>& samples);

  /// Was this kind measured?
  bool knows(std::string_view kind) const { return by_kind_.contains(kind); }
  /// REQUIRES: knows(kind). `spec(ranks)`: what the formula says for a group of that size.
  template <class Spec>
  Seconds seconds(std::string_view kind, int ranks, Bytes bytes, const Spec& spec) const {
    int nearest = nearest_size(kind, ranks);
    Seconds measured = on_line(by_kind_.find(kind)->second.at(nearest), bytes);
    return nearest == ranks ? measured : measured * spec(ranks) / spec(nearest);
  }

 private:
  using Line = std::map<Bytes, Seconds>;
  int nearest_size(std::string_view kind, int ranks) const;
  static Seconds on_line(const Line& line, Bytes bytes);

  std::map<std::string, std::map<int, Line>, std::less<>> by_kind_;
};

}  // namespace partita::cost
