// Changes of what ranks report after the step.
#include "fuzz_boxes.h"
#include "fuzz_classes.h"

namespace partita::model {
namespace {

bool draw_result(Broken& broken, size_t& rank, size_t& result) {
  rank = broken.dice.roll(broken.program["ranks"].size());
  const size_t count = broken.program["ranks"][rank]["results"].size();
  if (count == 0) return false;
  result = broken.dice.roll(count);
  return true;
}

Json* drawn_result(Broken& broken) {
  size_t rank, result;
  return draw_result(broken, rank, result) ? &broken.program["ranks"][rank]["results"][result] : nullptr;
}

bool result_lost(Broken& broken) {
  size_t rank, result;
  if (!draw_result(broken, rank, result)) return false;
  erase_at(broken.program["ranks"][rank]["results"], result);
  return true;
}

// No rank reports it: the next step finds what was there before.
bool report_lost(Broken& broken) {
  Json* drawn = drawn_result(broken);
  if (!drawn) return false;
  const Json kind = (*drawn)["kind"], tensor = (*drawn)["tensor"];
  for (Json& rank : broken.program["ranks"]) {
    Json kept = Json::array();
    for (Json& result : rank["results"])
      if (result["kind"] != kind || result["tensor"] != tensor) kept.push_back(result);
    rank["results"] = kept;
  }
  return true;
}

bool result_twice(Broken& broken) {
  size_t rank, result;
  if (!draw_result(broken, rank, result)) return false;
  Json& results = broken.program["ranks"][rank]["results"];
  insert_at(results, broken.dice.roll(results.size() + 1), Json(results[result]));
  return true;
}

bool result_slot(Broken& broken) {
  size_t rank, result;
  if (!draw_result(broken, rank, result)) return false;
  Json& here = broken.program["ranks"][rank];
  const size_t slots = here["rank_slots"].get<size_t>();
  here["results"][result]["slot"] = "r" + std::to_string(broken.dice.roll(slots));
  return true;
}

bool slots_exchanged(Broken& broken) {
  size_t rank, result;
  if (!draw_result(broken, rank, result)) return false;
  Json& results = broken.program["ranks"][rank]["results"];
  std::swap(results[result]["slot"], broken.dice.pick(results)["slot"]);
  return true;
}

bool result_tensor(Broken& broken) {
  size_t rank, result;
  if (!draw_result(broken, rank, result)) return false;
  Json& results = broken.program["ranks"][rank]["results"];
  if (broken.dice.roll(2))
    results[result]["tensor"] = broken.dice.pick(results)["tensor"];
  else
    results[result]["tensor"] = broken.dice.pick(broken.model.tensors).name;
  return true;
}

bool result_kind(Broken& broken) {
  Json* drawn = drawn_result(broken);
  constexpr const char* kKinds[] = {"loss", "gradient", "parameter", "buffer"};
  if (!drawn) return false;
  (*drawn)["kind"] = kKinds[broken.dice.roll(std::size(kKinds))];
  return true;
}

bool result_moved(Broken& broken) {
  Json* drawn = drawn_result(broken);
  return drawn && move_box((*drawn)["box"], broken.dice);
}
bool result_resized(Broken& broken) {
  Json* drawn = drawn_result(broken);
  return drawn && resize_box((*drawn)["box"], broken.dice);
}

constexpr FuzzClass kChanges[] = {
    {"a result lost", result_lost, "a second copy of what another rank reports"},
    {"a result lost on every rank", report_lost, ""},
    {"a result twice", result_twice, "the same said twice"},
    {"slot of a result", result_slot, "two slots with the same meaning"},
    {"slots of two results exchanged", slots_exchanged, "two gradients that are one tensor"},
    {"tensor of a result", result_tensor, ""},
    {"kind of a result", result_kind, ""},
    {"box of a result moved", result_moved, ""},
    {"box of a result resized", result_resized, ""},
};

}  // namespace

std::span<const FuzzClass> result_changes() { return kChanges; }

}  // namespace partita::model
