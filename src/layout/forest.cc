#include "layout/forest.h"

#include "base/error.h"

namespace partita::layout {

Forest::Node Forest::add(int64_t size) {
  Node node = static_cast<Node>(size_.size());
  size_.push_back(size);
  parent_.push_back(node);
  kids_.push_back({-1, -1});
  return node;
}

Forest::Node Forest::find(Node node) const {
  while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
  return node;
}

int64_t Forest::size(const Product& product) const {
  int64_t total = 1;
  for (Node node : product) total *= size(node);
  return total;
}

Forest::Product Forest::leaves(const Product& product) const {
  Product out;
  for (Node node : product) {
    Node root = find(node);
    if (is_leaf(root)) {
      out.push_back(root);
    } else {
      Product inner = leaves({kids_[root][0], kids_[root][1]});
      out.insert(out.end(), inner.begin(), inner.end());
    }
  }
  return out;
}

void Forest::cut(Node leaf, int64_t inner_size) {
  Node root = find(leaf);
  CHECK(is_leaf(root));
  CHECK_EQ(size_[root] % inner_size, 0);
  Node outer = add(size_[root] / inner_size);
  Node inner = add(inner_size);
  kids_[root] = {outer, inner};
}

bool Forest::tie(Product& a, Product& b) {
  Node x = find(a.back()), y = find(b.back());
  a.pop_back();
  b.pop_back();
  if (x == y) return true;
  if (size_[x] == size_[y]) {
    parent_[x] = y;
    return true;
  }
  bool swap = size_[x] < size_[y];
  Node big = swap ? y : x, small = swap ? x : y;
  if (size_[big] % size_[small] != 0) {
    a.push_back(x);
    b.push_back(y);
    return false;
  }
  cut(big, size_[small]);
  parent_[kids_[big][1]] = small;
  (swap ? b : a).push_back(kids_[big][0]);
  return true;
}

void Forest::unify(const Product& left, const Product& right) {
  CHECK_EQ(size(left), size(right));
  if (size(left) == 0) return;  // no elements, no order of them
  Product a = leaves(left), b = leaves(right);
  while (!a.empty() && !b.empty()) {
    // A cut may have refined a leaf that still waits on a stack.
    a = leaves(a);
    b = leaves(b);
    if (a.empty() || b.empty() || tie(a, b)) continue;
    // Sizes do not nest here: skip on both sides until the products meet again, an opaque block.
    int64_t pa = size(a.back()), pb = size(b.back());
    a.pop_back();
    b.pop_back();
    while (pa != pb) {
      Product& behind = pa < pb ? a : b;
      (pa < pb ? pa : pb) *= size(behind.back());
      behind.pop_back();
    }
  }
}

}  // namespace partita::layout
