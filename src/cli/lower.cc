#include "lower/lower.h"

#include <chrono>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "cli/inputs.h"
#include "cli/plan_input.h"
#include "cli/verbs.h"
#include "program/memory.h"

namespace partita {
namespace {

struct Options {
  ModelInput model;
  std::string plan, dump_dir, output;
};

/// Bytes a rank gives to others in one step: sends, and its share of collectives.
Bytes bytes_sent(const Program& program) {
  Bytes total = 0;
  for (const RankProgram& rank : program.ranks) {
    for (const Action& action : rank.actions) {
      if (action.kind == ActionKind::kPostReceive) total += bytes_of(program[action.type]);
      if (action.kind != ActionKind::kRun) continue;
      for (const Instr& instr : program[action.body].instrs) {
        if (instr.group < 0) continue;
        int64_t n = static_cast<int64_t>(rank.groups[instr.group].size());
        Bytes out = bytes_of(program[instr.types[0]]);
        if (instr.kind == InstrKind::kAllReduce) total += 2 * out * (n - 1) / n;
        if (instr.kind == InstrKind::kAllGather) total += out * (n - 1) / n;
        if (instr.kind == InstrKind::kReduceScatter) total += out * (n - 1);
      }
    }
  }
  return total;
}

size_t action_count(const Program& program) {
  size_t count = 0;
  for (const RankProgram& rank : program.ranks) count += rank.actions.size();
  return count;
}

void dump(const std::string& folder, const PhaseLog& log, const Lowered& lowered) {
  std::filesystem::create_directories(folder);
  // The Model whose ops the Program names: softmax, losses and norms may be taken apart in it.
  write_file(fmt::format("{}/00-model.json", folder), to_json(lowered.model));
  int number = 1;
  for (const auto& [name, text] : log.texts)
    write_file(fmt::format("{}/{:02}-{}.txt", folder, number++, name), text);
  write_file(fmt::format("{}/{:02}-program.json", folder, number), to_json(lowered.program, lowered.model));
}

void run(const Options& options, const Command& command) {
  Plan plan = load_plan(options.plan);
  Model model = load(options.model, plan);
  auto start = std::chrono::steady_clock::now();
  PhaseLog log{.keep = !options.dump_dir.empty()};
  Lowered lowered = lower_certified(model, plan, log, options.plan);
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (log.keep) dump(options.dump_dir, log, lowered);
  if (!options.output.empty()) write_file(options.output, to_json(lowered.program, lowered.model));
  const Program& program = lowered.program;
  std::vector<Bytes> peaks;
  for (const RankMemory& rank : memory_of(lowered.model, program)) peaks.push_back(rank.peak);
  Json json = {{"ranks", program.ranks.size()},     {"bodies", program.bodies.size()},
               {"actions", action_count(program)},  {"certified", true},
               {"bytes_sent", bytes_sent(program)}, {"peak_bytes", peaks},
               {"seconds_to_lower", seconds}};
  std::string text = fmt::format("{} ranks, {} bodies, {} actions; certified in {}\n", program.ranks.size(),
                                 program.bodies.size(), action_count(program), show_seconds(seconds));
  for (size_t r = 0; r < peaks.size(); ++r)
    text += fmt::format("rank {}: peak {}\n", r, show_bytes(peaks[r]));
  text += fmt::format("{} sent in a step\n", show_bytes(bytes_sent(program)));
  command.answer(json, text);
}

}  // namespace

void add_lower(CLI::App& app, Command& command) {
  auto options = std::make_shared<Options>();
  add_model_input(app, options->model);
  app.add_option("PLAN", options->plan, "a plan file")->required();
  app.add_option("--dump-dir", options->dump_dir, "write what every phase made into this folder");
  app.add_option("-o,--output", options->output, "write the Program as JSON");
  app.footer("Example: partita lower gpt2.model.json plan.json --dump-dir phases");
  app.callback([options, &command] { run(*options, command); });
}

}  // namespace partita
