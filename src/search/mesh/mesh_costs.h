#pragma once

#include <map>

#include "cost/prices.h"
#include "layout/layout.h"

namespace partita::search {

/// What tensors in some layout take on a mesh: elements of a piece, and seconds to turn one layout into
/// another by the steps that lowering takes (lower/convert.h). Layouts and tensors that are alike have
/// numbers, so that each question is worked out once.
class MeshCosts {
 public:
  /// `axis_sizes`: space axes, outermost first, over the first devices of the cluster; then time. `prices`
  /// must outlive it.
  MeshCosts(const Prices& prices, std::vector<int64_t> axis_sizes);

  int layout(const Layout& layout);
  const Layout& operator[](int layout) const { return layouts_[layout]; }
  int replicated() const { return 0; }

  /// Tensors of the same leaves and bytes an element are alike.
  int tensor(const std::vector<std::vector<int64_t>>& leaves, Bytes element);

  /// Elements of the largest piece.
  int64_t elements(int tensor, int layout);
  /// Seconds on the critical path. Slicing, and keeping a value as one of its own addends, is free.
  /// REQUIRES: both layouts are alike over time.
  Seconds convert(int tensor, int from, int to);

 private:
  /// A collective over `axes` (bits), and the layouts of the tensor before and after it.
  struct Step {
    const char* kind;
    uint32_t axes = 0;
    int before = 0, after = 0;
  };
  struct Alike {
    std::vector<std::vector<int64_t>> leaves;
    Bytes element = 1;
    std::vector<int64_t> elements;  // by layout; -1: not known
    std::map<std::pair<int, int>, Seconds> seconds;
  };

  const std::vector<Step>& steps(int from, int to);
  Seconds collective(const Step& step, Bytes bytes);
  const std::vector<int32_t>& ranks(uint32_t axes);

  const Prices& prices_;
  std::vector<int64_t> axis_sizes_;
  std::vector<Layout> layouts_;
  std::map<Layout, int> number_;
  std::vector<Alike> tensors_;
  std::map<std::pair<std::vector<std::vector<int64_t>>, Bytes>, int> tensor_;
  std::map<std::pair<int, int>, std::vector<Step>> steps_;
  std::map<uint32_t, std::vector<int32_t>> ranks_;
  std::map<std::tuple<std::string_view, Bytes, uint32_t>, Seconds> known_;
};

}  // namespace partita::search
