#pragma once

#include <vector>

#include "model/model.h"

namespace partita::profile {

/// Memory that one or more tensors share: a view has the storage of what it looks at.
struct Storage {
  Bytes bytes = 0;
  int32_t born = -1;      // index of the op that makes it; -1: there before the step
  int32_t last_use = -1;  // index of the op that uses it last
  bool kept = false;      // still there after the step
  TensorId tensor;        // the first that lies in it

  bool operator==(const Storage&) const = default;
};

struct Storages {
  std::vector<Storage> all;  // inputs of the step first, then in order of birth
  std::vector<int32_t> of;   // by tensor: index into `all`

  const Storage& operator[](TensorId id) const { return all[of[id.value]]; }
};

/// Birth and death of every storage, in execution order. An output that nobody reads dies with its op.
/// REQUIRES: check(model) is empty.
Storages find_storages(const Model& model);

/// Index of the op that makes the loss; -1 where no op does.
int32_t loss_op(const Model& model);

/// By storage: was it made before the loss to be used after it? The loss itself is not (only its shape is
/// used, by the first gradient), nor are new values of buffers, which stay anyway.
std::vector<bool> saved_for_backward(const Model& model, const Storages& storages);

}  // namespace partita::profile
