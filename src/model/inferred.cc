#include "model/inferred.h"

#include <set>

#include "model/row.h"

namespace partita::model {

bool is_inferred(const Op& op) { return op.inferred && !find_row(op.target); }

Model without_inferred_rows(Model model) {
  for (Op& op : model.ops) {
    if (!op.inferred) continue;
    op.axes.clear();
    op.inferred = false;
  }
  return model;
}

std::vector<std::string> inferred_targets(const Model& model) {
  std::set<std::string> targets;
  for (const Op& op : model.ops)
    if (is_inferred(op)) targets.insert(op.target);
  return {targets.begin(), targets.end()};
}

}  // namespace partita::model
