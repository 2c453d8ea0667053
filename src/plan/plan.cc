#include "plan/plan.h"

#include <set>

namespace partita {

int64_t Plan::mesh_size() const {
  int64_t size = 1;
  for (const MeshAxis& axis : mesh) size *= axis.size;
  return size;
}

int64_t Plan::ranks() const {
  std::set<int32_t> devices;
  for (const Stage& stage : stages) {
    devices.insert(stage.devices.begin(), stage.devices.end());
    for (const auto& copy : stage.copies) devices.insert(copy.begin(), copy.end());
  }
  return static_cast<int64_t>(devices.size());
}

}  // namespace partita
