#pragma once

#include <vector>

#include "run/host_tensor.h"

namespace partita::run {

/// Puts a whole value together from the boxes ranks hold, and compares them where several ranks hold the same
/// part.
class Assembly {
 public:
  Assembly(const Shape& shape, DType dtype, Leaves leaves);

  /// `part`: a rank's value, read from its memory.
  void add(const Box& box, const HostView& part);
  /// Largest difference between two ranks' copies of an element, relative to the element or 1e-30.
  double disagreement() const { return disagreement_; }
  /// Elements nobody has given.
  int64_t missing() const;
  const HostTensor& whole() const { return whole_; }

 private:
  HostTensor whole_, given_;  // `given_`: which elements somebody has added
  Leaves leaves_;
  double disagreement_ = 0;
};

}  // namespace partita::run
