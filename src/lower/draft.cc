#include "lower/draft.h"

namespace partita::lower {

Draft::Draft(const Facts& facts, const Jobs& jobs) : facts(facts), jobs(jobs) {
  code.sites.resize(facts.sites.count());
  for (SiteCode& site : code.sites) site.time = facts.time();
  summed_last.resize(facts.sites.count());
  have_.resize(facts.sites.count(), std::vector<std::vector<Available>>(facts.model.tensors.size()));
}

int Draft::add(const Place& place, Value value) {
  std::vector<Value>& values = code.sites[place.site].values;
  int id = static_cast<int>(values.size());
  bool cut =
      place.loop >= 0 && value.layout[facts.split.loop_axis[place.loop]].kind != AxisLayout::kReplicated;
  if (cut) {
    value.loop = place.loop;
    value.piece = place.piece;
  }
  if (value.storage < 0) value.storage = id;
  values.push_back(std::move(value));
  return id;
}

void Draft::push(const Place& place, CodeStep step) {
  code.sites[place.site].segments[place.segment].push_back(std::move(step));
}

void Draft::offer(int site, int id, bool segment_only) {
  have_[site][value(site, id).tensor.value].push_back({id, segment_only});
}

}  // namespace partita::lower
