#pragma once

#include <string>
#include <vector>

#include "layout/atoms.h"
#include "plan/plan.h"

namespace partita::plan {

/// Stages of an interlaced pipeline (SuperScaler): the first looks up the tokens of the batch, the last is
/// the product that makes the logits and the loss, both on all devices; the rest is cut into `count` stages
/// of `devices_each` devices. InputError where the model looks nothing up, or has no product before its loss.
std::vector<Stage> interlaced_stages(const Model& model, int64_t count, int64_t devices_each);

/// The atoms that its first and last stage split over all devices: rows of the tables, columns of the logits.
/// REQUIRES: `model` is the decomposed form of one that interlaced_stages takes.
std::vector<std::string> vocabulary_atoms(const Model& model, const Atoms& atoms);

}  // namespace partita::plan
