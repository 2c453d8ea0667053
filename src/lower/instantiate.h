#pragma once

#include <map>
#include <vector>

#include "lower/code.h"
#include "lower/frees.h"
#include "lower/placement.h"
#include "model/row.h"
#include "program/fold.h"

namespace partita::lower {

/// Collects types and bodies, each once.
class Library {
 public:
  explicit Library(Program& program) : program_(program) {}
  TypeId type(const TensorType& type);
  BodyId body(const Body& body);

 private:
  Program& program_;
  std::map<std::tuple<Shape, Shape, DType>, TypeId> types_;
  std::multimap<size_t, BodyId> bodies_;
};

/// Fills coordinates into the code of one site: layouts become boxes, boxes become shapes and local
/// attributes.
class Instantiator {
 public:
  static constexpr int kEveryone = -1;

  Instantiator(const Model& model, const Atoms& atoms, const Transformed& split, const SiteCode& code,
               const Placement& placement, const Frees& frees, Library& library);

  /// Where a rank stands: one coordinate per mesh axis, then the micro-batch.
  void stand_at(const std::vector<int64_t>& coordinates) {
    if (coordinates == coordinates_) return;
    coordinates_ = coordinates;
    ++place_;
  }
  /// The first coordinates of a class of ranks are where it stands; what moves does so over these.
  void stand_for(std::vector<Interval> ranges) { ranges_ = std::move(ranges); }

  Body body(const Segment& segment, const std::string& name);
  Box box(int value) const { return box(value, coordinates_); }
  const Shape& shape(int value);
  /// With the steps by which it moves over the class.
  SpanBox span_box(int value) const;
  TypeId type(int value);

  /// Mesh-axis sets that collectives use, in order of first use; an instruction's `group` is an index into
  /// it. `kEveryone` alone: all ranks.
  const std::vector<std::vector<int>>& groups() const { return groups_; }

 private:
  Instr instr(const CodeStep& step);
  void compute(const CodeStep& step, Instr& out);
  void collective(const CodeStep& step, Instr& out);
  void slice(const CodeStep& step, Instr& out) const;
  Box box(int value, const std::vector<int64_t>& coordinates) const;
  /// Calls visit(axis, coordinates one further on it) for every axis the class has several coordinates on.
  template <class Visit>
  void for_each_step(Visit visit) const;
  int32_t group(const std::vector<int>& axes);
  bool counts_here(const CodeStep& step) const;
  /// Does the partial of a replicated value lie here: on the first rank of the axis, or its first piece?
  bool is_first(const CodeStep& step) const;

  const Model& model_;
  const Atoms& atoms_;
  const Transformed& split_;
  const SiteCode& code_;
  const Placement& placement_;
  const Frees& frees_;
  Library& library_;
  /// What is known of a value at the place where it was last asked for.
  struct Local {
    int64_t place = -1;
    Shape shape;
    TypeId type;
  };
  std::vector<int64_t> coordinates_;
  int64_t place_ = 0;             // counts coordinates
  std::vector<Local> locals_;     // by value
  std::vector<Interval> ranges_;  // of a class, by mesh axis; empty for a rank
  std::vector<std::vector<int>> groups_;
  std::vector<OpView> whole_;  // by op, made on first use
};

}  // namespace partita::lower
