#pragma once

#include <map>

#include "layout/layout.h"
#include "profile/prices.h"

namespace partita {

/// What it takes to turn a tensor from one layout on a mesh into another: one axis after another, each by the
/// collective it needs, in the cheapest order. Slicing, and keeping a value as one of its own addends, is
/// free.
class MeshCosts {
 public:
  /// `axis_sizes`: space axes, outermost first, over the first devices of the cluster; then time. `prices`
  /// must outlive it.
  MeshCosts(const Prices& prices, std::vector<int64_t> axis_sizes);

  /// REQUIRES: both layouts are alike over time.
  Seconds convert(const Box& whole, Bytes element, const Layout& from, const Layout& to);

 private:
  Seconds step(const Box& whole, Bytes element, const Layout& now, size_t axis, const AxisLayout& to);
  Seconds collective(const char* kind, Bytes bytes, size_t axis);

  const Prices& prices_;
  std::vector<int64_t> axis_sizes_;
  std::vector<std::vector<int32_t>> ranks_;  // by axis: those that meet along it, with the first device
  std::map<std::tuple<std::string_view, Bytes, size_t>, Seconds> known_;
};

}  // namespace partita
