#include "schedule/placement.h"

#include "base/error.h"
#include "base/names.h"

namespace partita {

std::vector<int> place(Placement placement, int devices, int chunks) {
  CHECK(placement != Placement::kLinear || chunks == 1);
  std::vector<int> device(size_t(devices) * chunks);
  for (int stage = 0; stage < devices * chunks; ++stage) {
    int chunk = stage / devices, along = stage % devices;
    bool back = placement == Placement::kZigzag && chunk % 2 == 1;
    device[stage] = back ? devices - 1 - along : along;
  }
  return device;
}

Placement parse_placement(std::string_view name, std::string_view where) {
  if (name == "linear") return Placement::kLinear;
  if (name == "loop") return Placement::kLoop;
  if (name == "v" || name == "zigzag") return Placement::kZigzag;
  input_error("{}: unknown placement '{}'; use linear, loop, v or zigzag{}", where, name,
              did_you_mean(name, {"linear", "loop", "v", "zigzag"}));
}

Schedule blank(std::string_view name, Placement placement, const ScheduleParams& params, int chunks) {
  Schedule schedule{.name = std::string(name),
                    .devices = params.devices,
                    .stages = params.devices * chunks,
                    .microbatches = params.microbatches};
  for (int device : place(placement, params.devices, chunks)) schedule.placement.push_back({device});
  schedule.order.resize(params.devices);
  return schedule;
}

}  // namespace partita
