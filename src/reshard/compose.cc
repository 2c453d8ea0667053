#include "reshard/compose.h"

#include <algorithm>

namespace partita::reshard {
namespace {

bool has(const std::vector<int32_t>& axes, int32_t axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

class Composer {
 public:
  Composer(const Problem& problem, int64_t max_elements, const Mesh& mesh)
      : problem_(problem), max_elements_(max_elements), mesh_(mesh) {}

  std::vector<std::vector<Hop>> run() {
    std::vector<MeshLayout> first = {addends_settled(), cuts_moved()};
    for (size_t d = 0; d < problem_.shape.size(); ++d)
      for (bool replicas : {false, true}) first.push_back(scattered(d, replicas));
    for (const MeshLayout& layout : first) try_path({layout});
    // Three hops: cut replicas for nothing, scatter the sums, gather.
    for (size_t d = 0; d < problem_.shape.size(); ++d) try_path({replicas_cut(d), scattered(d, true)});
    return std::move(found_);
  }

 private:
  static void remove(MeshLayout& layout, int32_t axis) {
    for (auto& axes : layout.dims) std::erase(axes, axis);
    std::erase(layout.addends, axis);
  }

  static int dim_of(const MeshLayout& layout, int32_t axis) {
    for (size_t d = 0; d < layout.dims.size(); ++d)
      if (has(layout.dims[d], axis)) return static_cast<int>(d);
    return -1;
  }

  bool is_replica(const MeshLayout& layout, int32_t axis) const {
    return dim_of(layout, axis) < 0 && !has(layout.addends, axis);
  }

  /// Sums where the target wants them, everything else as it lies.
  MeshLayout addends_settled() const {
    MeshLayout layout = mesh_.from;
    for (int32_t axis : mesh_.from.addends)
      if (!has(mesh_.to.addends, axis)) {
        remove(layout, axis);
        if (int d = dim_of(mesh_.to, axis); d >= 0) layout.dims[d].push_back(axis);
      }
    return layout;
  }

  /// Cuts in the dimensions where the target has them; what it gathers stays cut.
  MeshLayout cuts_moved() const {
    MeshLayout layout = mesh_.to;
    for (size_t d = 0; d < mesh_.from.dims.size(); ++d)
      for (int32_t axis : mesh_.from.dims[d])
        if (is_replica(mesh_.to, axis)) layout.dims[d].push_back(axis);
    return layout;
  }

  /// Addends that the target wants summed cut dimension d instead; with `replicas` those do too.
  MeshLayout scattered(size_t d, bool replicas) const {
    MeshLayout layout = replicas ? replicas_cut(d) : mesh_.from;
    for (int32_t axis : mesh_.from.addends)
      if (!has(mesh_.to.addends, axis)) {
        remove(layout, axis);
        layout.dims[d].push_back(axis);
      }
    return layout;
  }

  MeshLayout replicas_cut(size_t d) const {
    MeshLayout layout = mesh_.from;
    for (size_t axis = 0; axis < mesh_.sizes.size(); ++axis)
      if (is_replica(mesh_.from, int32_t(axis)) && !has(mesh_.to.addends, int32_t(axis)))
        layout.dims[d].push_back(int32_t(axis));
    return layout;
  }

  void try_path(const std::vector<MeshLayout>& through) {
    std::vector<Hop> hops;
    std::vector<Piece> at = problem_.from;
    int64_t elements = 0;
    for (size_t i = 0; i <= through.size(); ++i) {
      bool last = i == through.size();
      if (!last && through[i] == (i ? through[i - 1] : mesh_.from)) return;
      Problem step = problem_;
      step.from = at;
      if (!last) step.to = pieces_of(through[i], mesh_.sizes, problem_.shape, mesh_.devices);
      if (has_empty(step.to)) return;
      std::optional<Hop> hop = one_hop(step);
      if (!hop || (elements += hop->load.total) > max_elements_) return;
      at = step.to;
      hops.push_back(std::move(*hop));
    }
    found_.push_back(std::move(hops));
  }

  static bool has_empty(const std::vector<Piece>& pieces) {
    return std::any_of(pieces.begin(), pieces.end(),
                       [](const Piece& piece) { return volume(piece.region) == 0; });
  }

  /// By collectives, or by nothing but slices and zeros.
  static std::optional<Hop> one_hop(const Problem& step) {
    Hop hop{.to = step.to, .cells = std::make_shared<const Cells>(cut(step))};
    hop.collectives = find_collectives(step, *hop.cells);
    if (!hop.collectives.empty()) {
      hop.load = load_of(*hop.cells, hop.collectives);
      return hop;
    }
    Agenda agenda = make_agenda(*hop.cells);
    if (bound_of(*hop.cells, agenda).elements > 0) return std::nullopt;
    hop.exchange = make_exchange(*hop.cells, agenda, 1);
    hop.load = load_of(*hop.cells, hop.exchange);
    return hop;
  }

  const Problem& problem_;
  int64_t max_elements_;
  const Mesh& mesh_;
  std::vector<std::vector<Hop>> found_;
};

}  // namespace

std::vector<std::vector<Hop>> compose(const Problem& problem, int64_t max_elements) {
  std::optional<Mesh> mesh = find_mesh(problem);
  if (!mesh || mesh->from == mesh->to) return {};
  return Composer(problem, max_elements, *mesh).run();
}

}  // namespace partita::reshard
