#include "plan/plan.h"

#include <algorithm>
#include <set>

namespace partita::plan {

int64_t Plan::mesh_size() const {
  int64_t size = 1;
  for (const MeshAxis& axis : mesh) size *= axis.across ? 1 : axis.size;
  return size;
}

bool Plan::splits() const {
  return std::any_of(mesh.begin(), mesh.end(), [](const MeshAxis& axis) { return axis.size > 1; });
}

int64_t Plan::ranks() const {
  std::set<int32_t> devices;
  for (const Stage& stage : stages) {
    devices.insert(stage.devices.begin(), stage.devices.end());
    for (const auto& copy : stage.copies) devices.insert(copy.begin(), copy.end());
  }
  return static_cast<int64_t>(devices.size());
}

}  // namespace partita::plan
