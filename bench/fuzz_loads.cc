// Changes of what ranks hold before the step.
#include <algorithm>

#include "fuzz_boxes.h"
#include "fuzz_classes.h"

namespace partita::model {
namespace {

using Key = std::pair<std::string, int>;  // tensor, state
Key key_of(const Json& load) { return {load["tensor"], load.value("state", -1)}; }

Json* find_load(Json& rank, const Key& key, int microbatch) {
  for (Json& load : rank["loads"])
    if (key_of(load) == key && load.value("microbatch", 0) == microbatch) return &load;
  return nullptr;
}

bool draw_load(Broken& broken, size_t& rank, size_t& load) {
  rank = broken.dice.roll(broken.program["ranks"].size());
  const size_t count = broken.program["ranks"][rank]["loads"].size();
  if (count == 0) return false;
  load = broken.dice.roll(count);
  return true;
}

// On the rank where it was drawn, or on all that load both.
bool loads_exchanged(Broken& broken) {
  size_t rank, first;
  if (!draw_load(broken, rank, first)) return false;
  Json& loads = broken.program["ranks"][rank]["loads"];
  const Json& mine = loads[first];
  const int second = draw_in(loads, broken.dice, [&](const Json& other) {
    return other["type"] == mine["type"] && other["slot"] != mine["slot"];
  });
  if (second < 0) return false;
  const Json a = mine, b = loads[static_cast<size_t>(second)];
  const bool everywhere = broken.dice.roll(2);
  for (size_t r = 0; r < broken.program["ranks"].size(); ++r) {
    if (!everywhere && r != rank) continue;
    Json& here = broken.program["ranks"][r];
    Json* one = find_load(here, key_of(a), a.value("microbatch", 0));
    Json* two = find_load(here, key_of(b), b.value("microbatch", 0));
    if (one && two) std::swap((*one)["slot"], (*two)["slot"]);
  }
  return true;
}

bool box_moved(Broken& broken) {
  size_t rank, load;
  return draw_load(broken, rank, load) &&
         move_box(broken.program["ranks"][rank]["loads"][load]["box"], broken.dice);
}

bool box_resized(Broken& broken) {
  size_t rank, load;
  return draw_load(broken, rank, load) &&
         resize_box(broken.program["ranks"][rank]["loads"][load]["box"], broken.dice);
}

// Two ranks change places with all parts of one tensor: loads, states and results.
bool boxes_exchanged(Broken& broken) {
  size_t rank, load;
  if (!draw_load(broken, rank, load)) return false;
  Json& ranks = broken.program["ranks"];
  const size_t other = broken.dice.roll(ranks.size());
  const std::string tensor = ranks[rank]["loads"][load]["tensor"];
  const Json mine = ranks[rank]["loads"][load]["box"];
  const Json* theirs = find_load(ranks[other], key_of(ranks[rank]["loads"][load]), 0);
  if (!theirs || (*theirs)["box"] == mine) return false;
  const Json there = (*theirs)["box"];
  for (auto [r, box] : {std::pair(rank, there), std::pair(other, mine)})
    for (const char* list : {"loads", "results"})
      for (Json& one : ranks[r][list])
        if (one["tensor"] == tensor) one["box"] = box;
  return true;
}

// The parameter or one of its states alone.
bool one_box_exchanged(Broken& broken) {
  size_t rank, load;
  if (!draw_load(broken, rank, load)) return false;
  Json& ranks = broken.program["ranks"];
  Json& mine = ranks[rank]["loads"][load];
  Json* theirs = find_load(broken.dice.pick(ranks), key_of(mine), mine.value("microbatch", 0));
  if (!theirs || (*theirs)["box"] == mine["box"]) return false;
  std::swap((*theirs)["box"], mine["box"]);
  return true;
}

bool another_tensor(Broken& broken) {
  size_t rank, load;
  if (!draw_load(broken, rank, load)) return false;
  const Key mine = key_of(broken.program["ranks"][rank]["loads"][load]);
  auto own = std::find_if(broken.model.tensors.begin(), broken.model.tensors.end(),
                          [&](const Tensor& tensor) { return tensor.name == mine.first; });
  std::vector<std::string> others;
  for (const Tensor& tensor : broken.model.tensors)
    if (tensor.name != mine.first && tensor.shape == own->shape && tensor.dtype == own->dtype &&
        (tensor.role == own->role || broken.dice.roll(4) == 0))
      others.push_back(tensor.name);
  if (others.empty()) return false;
  const std::string other = broken.dice.pick(others);
  const bool everywhere = broken.dice.roll(2);
  for (size_t r = 0; r < broken.program["ranks"].size(); ++r)
    for (Json& one : broken.program["ranks"][r]["loads"])
      if ((everywhere || r == rank) && key_of(one) == mine) one["tensor"] = other;
  return true;
}

bool state_number(Broken& broken) {
  size_t rank, load;
  if (!draw_load(broken, rank, load)) return false;
  const Key mine = key_of(broken.program["ranks"][rank]["loads"][load]);
  const int to = static_cast<int>(broken.dice.roll(4)) - 1;
  const bool everywhere = broken.dice.roll(2);
  for (size_t r = 0; r < broken.program["ranks"].size(); ++r)
    for (Json& one : broken.program["ranks"][r]["loads"])
      if ((everywhere || r == rank) && key_of(one) == mine) {
        one.erase("state");
        if (to >= 0) one["state"] = to;
      }
  return to != mine.second;
}

bool load_twice(Broken& broken) {
  size_t rank, load;
  if (!draw_load(broken, rank, load)) return false;
  Json& here = broken.program["ranks"][rank];
  Json copy = here["loads"][load];
  if (broken.dice.roll(3)) copy["slot"] = new_rank_slot(here);
  insert_at(here["loads"], broken.dice.roll(here["loads"].size() + 1), copy);
  return true;
}

bool load_lost(Broken& broken) {
  size_t rank, load;
  if (!draw_load(broken, rank, load)) return false;
  erase_at(broken.program["ranks"][rank]["loads"], load);
  return true;
}

bool load_microbatch(Broken& broken) {
  const int microbatches = broken.program["microbatches"];
  size_t rank, load;
  if (microbatches < 2 || !draw_load(broken, rank, load)) return false;
  Json& one = broken.program["ranks"][rank]["loads"][load];
  if (one["slot"].get<std::string>()[0] != 'f') return false;
  const int to = static_cast<int>(broken.dice.roll(static_cast<size_t>(microbatches)));
  Json* other = find_load(broken.program["ranks"][rank], key_of(one), to);
  const int from = one.value("microbatch", 0);
  one["microbatch"] = to;
  if (other && broken.dice.roll(2)) (*other)["microbatch"] = from;
  return to != from;
}

// Samples of two micro-batches change places, on every rank and for every input.
bool microbatches_exchanged(Broken& broken) {
  const int microbatches = broken.program["microbatches"];
  if (microbatches < 2) return false;
  const bool everywhere = broken.dice.roll(2);
  const size_t only = broken.dice.roll(broken.program["ranks"].size());
  for (size_t r = 0; r < broken.program["ranks"].size(); ++r)
    for (Json& load : broken.program["ranks"][r]["loads"]) {
      if (load["slot"].get<std::string>()[0] != 'f' || (!everywhere && r != only)) continue;
      load["microbatch"] = microbatches - 1 - load.value("microbatch", 0);
    }
  return true;
}

bool load_type(Broken& broken) {
  size_t rank, load;
  if (!draw_load(broken, rank, load)) return false;
  broken.program["ranks"][rank]["loads"][load]["type"] = broken.dice.roll(broken.program["types"].size());
  return true;
}

constexpr FuzzClass kChanges[] = {
    {"two loads exchanged", loads_exchanged, "inputs that nothing tells apart"},
    {"box of a load moved", box_moved, ""},
    {"box of a load resized", box_resized, ""},
    {"boxes of two ranks exchanged", boxes_exchanged, "pieces that no collective joins by their order"},
    {"one box of two ranks exchanged", one_box_exchanged, "samples on the other rank"},
    {"another tensor of the same shape loaded", another_tensor, "a load that nothing reads"},
    {"number of an optimizer state", state_number, ""},
    {"a load twice", load_twice, "a batch input once more, for nobody"},
    {"a load lost", load_lost, "a load that nothing reads"},
    {"micro-batch of a load", load_microbatch, "micro-batches in another order"},
    {"two micro-batches exchanged", microbatches_exchanged, "micro-batches in another order"},
    {"type of a load", load_type, "types that differ in nothing"},
};

}  // namespace

std::span<const FuzzClass> load_changes() { return kChanges; }

}  // namespace partita::model
