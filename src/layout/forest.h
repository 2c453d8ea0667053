#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace partita::layout {

/// Union-find over factors of dimensions. A class is a leaf or the product (outer, inner) of two others.
/// Example: unify({12}, {3, 4}) makes the class of 12 the product (3, 4).
class Forest {
 public:
  using Node = int32_t;
  using Product = std::vector<Node>;  // outermost first

  Node add(int64_t size);
  Node find(Node node) const;
  int64_t size(Node node) const { return size_[find(node)]; }
  bool is_leaf(Node node) const { return kids_[find(node)][0] < 0; }
  int64_t size(const Product& product) const;

  /// Replaces products by their factors, down to leaves.
  Product leaves(const Product& product) const;

  /// Makes the leaf (outer, inner) with inner of size `inner_size`. REQUIRES: is_leaf, inner_size divides its
  /// size.
  void cut(Node leaf, int64_t inner_size);

  /// States that both products number the same elements in the same order. Where sizes do not nest, or
  /// there are no elements, nothing is tied. REQUIRES: equal sizes.
  void unify(const Product& a, const Product& b);

 private:
  /// Ties two innermost leaves as far as their sizes nest; what is left over goes back on its stack.
  bool tie(Product& a, Product& b);

  std::vector<int64_t> size_;
  mutable std::vector<Node> parent_;
  std::vector<std::array<Node, 2>> kids_;
};

}  // namespace partita::layout
