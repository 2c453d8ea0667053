#pragma once

#include <string>

#include "base/json.h"
#include "program/fold.h"

namespace partita::program {

/// What classes of ranks add to a program file (docs/formats/program.md).

/// The value of the key `fold`: mesh, devices and classes. The boxes stand with their loads and results.
std::string fold_to_json(const Fold& fold);
/// "[2, 0, 4]": by mesh axis, up to the last one that is not 0.
std::string steps_to_json(const Steps& steps);
/// A box whose intervals have their steps as a third part, where they move.
std::string spans_to_json(const SpanBox& box);

/// Mesh, devices and classes; every class has a range on every axis. InputError with the place.
Fold read_fold(const JsonIn& in);
/// No larger than what moves a place of the mesh by the largest size. InputError with the place.
Steps read_steps(const JsonIn& in, const Fold& fold);
SpanBox read_spans(const JsonIn& in, const Fold& fold);

/// The box of the first rank of a class.
Box first_box(const SpanBox& box, const RankClass& ranks);

}  // namespace partita::program
