#pragma once

#include <random>
#include <string>
#include <vector>

#include "model/model.h"
#include "plan/plan.h"
#include "run/host_tensor.h"

namespace partita::run {

/// Numbers of one case; the same seed, the same numbers.
class Draw {
 public:
  explicit Draw(uint64_t seed) : bits_(seed) {}

  int64_t number(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(bits_() % static_cast<uint64_t>(high - low + 1));
  }
  bool one_in(int64_t n) { return number(1, n) == 1; }
  template <class T>
  const T& of(const std::vector<T>& list) {
    return list[number(0, static_cast<int64_t>(list.size()) - 1)];
  }
  int64_t divisor(int64_t n);

 private:
  std::mt19937_64 bits_;
};

/// A step, mostly in float64, and how to make it again.
/// A model from a file, with the values of its constants.
struct Captured {
  Model model;
  HostTensors constants;
};

struct DrawnModel {
  Model model;
  std::string text;
  int64_t batch = 0;
  bool ignores_labels = true;  // may meet a sample without any label
  HostViews constants = {};
};

/// One of the families that Partita builds, in sizes that seldom divide, or one of the `captured`.
DrawnModel draw_model(Draw& draw, const std::vector<Captured>& captured);

/// A recipe of 1 to 8 ranks, or one changed by hand: other atoms split, parameters stored each in its own
/// way, loops, stages and orders of the campaign's own. InputError where it does not apply.
Plan draw_plan(Draw& draw, const DrawnModel& drawn);

}  // namespace partita::run
