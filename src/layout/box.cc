#include "layout/box.h"

#include <fmt/format.h>

#include <algorithm>

namespace partita::layout {

Interval piece(Interval whole, int64_t parts, int64_t index) {
  int64_t base = whole.length() / parts, rest = whole.length() % parts;
  int64_t begin = whole.begin + index * base + std::min(index, rest);
  return {begin, begin + base + (index < rest ? 1 : 0)};
}

std::vector<int64_t> shape_of(const Box& box) {
  std::vector<int64_t> shape;
  for (const auto& leaves : box) {
    int64_t size = 1;
    for (const Interval& leaf : leaves) size *= leaf.length();
    shape.push_back(size);
  }
  return shape;
}

int64_t numel(const Box& box) {
  int64_t count = 1;
  for (int64_t size : shape_of(box)) count *= size;
  return count;
}

std::string to_text(const Box& box) {
  std::string text = "[";
  for (size_t d = 0; d < box.size(); ++d) {
    if (d) text += ", ";
    if (box[d].empty()) text += "1";
    for (size_t l = 0; l < box[d].size(); ++l)
      text += fmt::format("{}{}:{}", l ? "*" : "", box[d][l].begin, box[d][l].end);
  }
  return text + "]";
}

}  // namespace partita::layout
