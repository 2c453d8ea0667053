#include <memory>
#include <set>

#include "base/error.h"
#include "cli/lab.h"
#include "cluster/library.h"
#include "reshard/boxes.h"
#include "reshard/reshard.h"

namespace partita::cli {
namespace {

using namespace reshard;

struct ReshardFlags {
  std::string shape, from, to, groups, cluster, reducer = "sum";
  int64_t elem_bytes = 4;
};

/// Nodes are the groups unless those are given; the links are the cluster's.
void read_links(const ReshardFlags& flags, Problem& problem) {
  Cluster cluster = read_cluster(flags.cluster);
  problem.links = Links{cluster.in_node, cluster.across, {}};
  for (const auto* side : {&problem.from, &problem.to})
    for (const Piece& piece : *side)
      if (piece.device >= num_ranks(cluster))
        input_error("--cluster: device {} is used, but '{}' has {} devices; take a larger cluster",
                    piece.device, flags.cluster, num_ranks(cluster));
  if (!flags.groups.empty()) return;
  problem.groups.resize(cluster.nodes);
  for (int32_t device = 0; device < num_ranks(cluster); ++device)
    problem.groups[node_of(cluster, device)].push_back(device);
}

Problem read_problem(const ReshardFlags& flags) {
  Problem problem;
  problem.shape = parse_shape(flags.shape, "--shape");
  if (flags.elem_bytes < 1 || flags.elem_bytes > 64)
    input_error("--elem-bytes: {}; needs 1 to 64, 4 for float32", flags.elem_bytes);
  problem.elem_bytes = flags.elem_bytes;
  problem.from = parse_boxes(flags.from, problem.shape, "--from");
  problem.to = parse_boxes(flags.to, problem.shape, "--to");
  std::optional<Reducer> reducer = find_reducer(flags.reducer);
  if (!reducer) input_error("--reducer: '{}' is none; take one of {}", flags.reducer, reducer_names());
  problem.reducer = *reducer;
  if (!flags.groups.empty()) {
    problem.wider = parse_levels(flags.groups, "--groups");
    problem.groups = problem.wider[0];
    problem.wider.erase(problem.wider.begin());
  }
  if (!flags.cluster.empty()) read_links(flags, problem);
  return problem;
}

Json to_json(const std::vector<int32_t>& numbers, const Cells& cells) {
  Json ranks = Json::array();
  for (int32_t number : numbers) ranks.push_back(cells.devices[number]);
  return ranks;
}

Json to_json(const std::vector<Region>& regions) {
  Json list = Json::array();
  for (const Region& region : regions) list.push_back(to_text(region));
  return list;
}

Json step_of(const Hop& hop, const Collective& collective, int64_t elem_bytes) {
  Json step = {{"op", to_text(collective.op)}, {"ranks", to_json(collective.ranks, *hop.cells)}};
  if (collective.dim >= 0) step["dim"] = collective.dim;
  step["bytes"] = load_of(*hop.cells, {collective}).total * elem_bytes;
  step["blocks"] = to_json(collective.blocks);
  if (!collective.targets.empty()) step["targets"] = to_json(collective.targets);
  return step;
}

/// One step a round, its messages in order.
Json exchange_steps(const Hop& hop, int64_t elem_bytes) {
  const Exchange& exchange = hop.exchange;
  std::vector<Json> messages(exchange.rounds(), Json::array());
  std::vector<int64_t> bytes(exchange.rounds());
  std::vector<std::set<int32_t>> ranks(exchange.rounds());
  for (size_t b = 0; b + 1 < exchange.blocks.size(); ++b) {
    const Block& block = exchange.blocks[b];
    int64_t size = elements_of(*hop.cells, block.cls, block.chunk, block.chunks) * elem_bytes;
    Json boxes = Json::array();
    for (int32_t cell : hop.cells->cells_of(block.cls))
      boxes.push_back(to_text(region_of(*hop.cells, cell, block.chunk, block.chunks)));
    for (int32_t m = block.move_begin; m < exchange.blocks[b + 1].move_begin; ++m) {
      const Move& move = exchange.moves[m];
      int32_t from = hop.cells->devices[move.from], to = hop.cells->devices[move.to];
      messages[move.round].push_back(
          {{"from", from}, {"to", to}, {"bytes", size}, {"add", move.add}, {"boxes", boxes}});
      bytes[move.round] += size;
      ranks[move.round].insert({from, to});
    }
  }
  Json steps = Json::array();
  for (size_t r = 0; r < messages.size(); ++r)
    steps.push_back(
        {{"op", "exchange"}, {"ranks", ranks[r]}, {"bytes", bytes[r]}, {"messages", messages[r]}});
  return steps;
}

Json to_json(const Problem& problem, const Answer& answer) {
  Json steps = Json::array();
  for (const Hop& hop : answer.hops) {
    for (const Collective& collective : hop.collectives)
      steps.push_back(step_of(hop, collective, problem.elem_bytes));
    if (hop.collectives.empty())
      for (Json& step : exchange_steps(hop, problem.elem_bytes)) steps.push_back(std::move(step));
  }
  // solve() replays every answer and throws where one is wrong: reaching this line is the proof.
  Json object = {{"total_bytes", answer.total_bytes},
                 {"bound_bytes", answer.bound_bytes},
                 {"bound_proved", answer.proved},
                 {"max_recv_bytes", answer.max_recv_bytes},
                 {"max_send_bytes", answer.max_send_bytes},
                 {"cross_group_bytes", answer.cross_group_bytes},
                 {"bound_cross_group_bytes", answer.bound_cross_group_bytes},
                 {"launches", answer.launches},
                 {"reducer", to_text(problem.reducer)},
                 {"fill", identity_text(problem.reducer)},
                 {"steps", steps},
                 {"verified", true}};
  if (answer.crossing_bytes.size() > 1) {
    object["crossing_bytes"] = answer.crossing_bytes;
    object["bound_crossing_bytes"] = answer.bound_crossing_bytes;
  }
  if (problem.links) {
    object["seconds"] = answer.seconds;
    object["least_bytes_seconds"] = answer.least_bytes_seconds;
  }
  return object;
}

void run(const ReshardFlags& flags, const Command& command) {
  Problem problem = read_problem(flags);
  check_cover(cut(problem), "--from", "--to");
  Answer answer = solve(problem);
  command.answer(to_json(problem, answer), to_text(problem, answer));
}

}  // namespace

void add_lab_reshard(CLI::App& app, Command& command) {
  auto flags = std::make_shared<ReshardFlags>();
  app.add_option("--shape", flags->shape, "of the tensor, 1024x1024")->required();
  app.add_option("--elem-bytes", flags->elem_bytes, "of one element, default 4");
  app.add_option("--from", flags->from, "BOXES as they lie: device[begin:end,...]vI/K | ...")->required();
  app.add_option("--to", flags->to, "BOXES as they are wanted")->required();
  app.add_option("--reducer", flags->reducer,
                 "what makes a value of its partials: sum (default), max, log-sum-exp, or");
  app.add_option(
      "--groups", flags->groups,
      "devices that talk cheaply: \"0 1 2 3|4 5 6 7\"; wider groups around those: \"0 1|2 3;4 5|6 7\"");
  app.add_option("--cluster", flags->cluster,
                 "8xA100-80GB, 4x8xH100-80GB or a file: take the fastest way on its links");
  app.footer(
      "Example: partita lab reshard --shape 8x4 --from \"0[0:4,0:4] | 1[4:8,0:4]\" --to \"0[0:8,0:4] | "
      "1[0:8,0:4]\"");
  app.callback([flags, &command] { run(*flags, command); });
}

}  // namespace partita::cli
