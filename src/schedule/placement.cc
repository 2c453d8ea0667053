#include "schedule/placement.h"

#include "base/error.h"
#include "base/names.h"

namespace partita::schedule {

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

namespace {

struct PlacementName {
  std::string_view name;
  Placement placement;
};

constexpr PlacementName kNames[] = {{"linear", Placement::kLinear},
                                    {"loop", Placement::kLoop},
                                    {"zigzag", Placement::kZigzag},
                                    {"v", Placement::kZigzag},
                                    {"bidirectional", Placement::kBidirectional}};

}  // namespace

Placement parse_placement(std::string_view name, std::string_view where) {
  std::vector<std::string> known;
  for (const PlacementName& row : kNames) {
    if (row.name == name) return row.placement;
    known.emplace_back(row.name);
  }
  input_error("{}: unknown placement '{}'; use linear, loop, v, zigzag or bidirectional{}", where, name,
              did_you_mean(name, known));
}

std::string_view placement_name(Placement placement) {
  for (const PlacementName& row : kNames)
    if (row.placement == placement) return row.name;
  bug(__FILE__, __LINE__, "a placement without a name");
}

Schedule blank(std::string_view name, Placement placement, const ScheduleParams& params, int chunks) {
  Schedule schedule{.name = std::string(name),
                    .devices = params.devices,
                    .stages = params.devices * chunks,
                    .microbatches = params.microbatches};
  std::vector<int> devices = place(placement, params.devices, chunks);
  for (int device : devices) schedule.placement.push_back({device});
  if (placement == Placement::kBidirectional) {
    if (params.microbatches % 2)
      input_error("schedule {}: {} micro-batches; half of them go each way, so use an even number", name,
                  params.microbatches);
    schedule.streams = 2;
    for (int device : devices) schedule.placement.push_back({params.devices - 1 - device});
  }
  schedule.order.resize(params.devices);
  return schedule;
}

}  // namespace partita::schedule
