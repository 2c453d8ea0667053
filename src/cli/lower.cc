#include "lower/lower.h"

#include <fmt/ranges.h>

#include <chrono>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "cli/inputs.h"
#include "cli/peaks.h"
#include "cli/plan_input.h"
#include "cli/program_file.h"
#include "cli/verbs.h"
#include "lower/unmade.h"
#include "program/assumed.h"
#include "program/effects.h"
#include "program/memory.h"

namespace partita::cli {
namespace {

struct Options {
  ModelInput model;
  std::string plan, dump_dir, output, program;
  int32_t rank = -1;
  bool folded = false, show = false;
};

/// Bytes that all ranks give to others in one step: sends, and their share of collectives.
Bytes bytes_sent(const Program& program, const Fold& fold) {
  Bytes total = 0;
  for (size_t c = 0; c < program.ranks.size(); ++c) {
    int32_t id = static_cast<int32_t>(c);
    Bytes each = 0;
    for (const Action& action : program.ranks[c].actions) {
      if (action.kind == ActionKind::kPostReceive) each += bytes_of(program[action.type]);
      if (action.kind != ActionKind::kRun) continue;
      for (const Instr& instr : program[action.body].instrs) {
        if (instr.group < 0) continue;
        int64_t n = fold.members(program, id, instr.group);
        each += wire_bytes(instr, bytes_of(program[instr.types[0]]), n);
      }
    }
    total += each * fold.ranks(id);
  }
  return total;
}

int64_t action_count(const Program& program, const Fold& fold) {
  int64_t count = 0;
  for (size_t c = 0; c < program.ranks.size(); ++c)
    count += static_cast<int64_t>(program.ranks[c].actions.size()) * fold.ranks(static_cast<int32_t>(c));
  return count;
}

std::vector<Bytes> peaks_by_rank(const Model& model, const Program& program, const Fold& fold) {
  std::vector<RankMemory> memory = memory_of(model, program);
  std::vector<int32_t> classes = classes_by_rank(program, fold);
  std::vector<Bytes> peaks;
  for (int32_t one : classes) peaks.push_back(memory[one].peak);
  return peaks;
}

// Also of a program that the certificate will refuse: then it is what a report needs.
void dump(const std::string& folder, const Model& model, const Plan& plan, const std::string& file) {
  PassLog log{.keep = true};
  Lowered lowered = lower_unproved(model, plan, log, file);
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed)
    input_error("--dump-dir {}: cannot make this folder: {}; try another name", folder, failed.message());
  // The Model whose ops the Program names: softmax, losses and norms may be taken apart in it.
  auto [named, program] = without_unmade(std::move(lowered.model), std::move(lowered.program));
  write_file(fmt::format("{}/00-model.json", folder), to_json(named));
  int number = 1;
  for (const PassLog::Entry& entry : log.entries)
    write_file(fmt::format("{}/{:02}-{}.txt", folder, number++, entry.pass), entry.text);
  write_file(fmt::format("{}/{:02}-program.json", folder, number), to_json(program, named));
}

void write_program(const std::string& path, const Model& model, const Program& program,
                   const Fold& fold = {}) {
  auto [named, made] = without_unmade(model, program);
  write_file(path, fold.empty() ? to_json(made, named) : to_json(FoldedProgram{made, fold}, named));
}

void write_rank(const Options& options, const Model& model, const Program& program, const Fold& fold) {
  size_t ranks = classes_by_rank(program, fold).size();
  if (static_cast<size_t>(options.rank) >= ranks)
    input_error("--rank {}: the plan has ranks 0 to {}", options.rank, ranks - 1);
  if (options.output.empty()) input_error("--rank {}: needs -o FILE to write it to", options.rank);
  write_program(options.output, model, expand(program, fold, options.rank));
}

void run(const Options& options, Command& command) {
  Plan plan = load_plan(options.plan, command);
  Model model = load(options.model, plan);
  if (!options.program.empty()) return certify_file(options.program, model, plan, command);
  command.say("lowering and certifying", plan.summary);
  if (!options.dump_dir.empty()) dump(options.dump_dir, model, plan, options.plan);
  auto start = std::chrono::steady_clock::now();
  auto [prepared, folded] = prove_plan_classes(model, plan, options.plan);
  const auto& [program, fold] = folded;
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (options.folded && options.output.empty())
    input_error("--folded: needs -o FILE to write the rank classes to");
  if (options.rank >= 0) {
    write_rank(options, prepared.model, program, fold);
  } else if (options.folded) {
    write_program(options.output, prepared.model, program, fold);
  } else if (!options.output.empty()) {
    Proved proved = prove_plan(model, plan, options.plan);
    write_program(options.output, proved.lowered().model, proved.lowered().program);
  }
  std::vector<Bytes> peaks = peaks_by_rank(prepared.model, program, fold);
  int64_t actions = action_count(program, fold);
  Bytes sent = bytes_sent(program, fold);
  std::vector<std::string> assumed = assumed_rows(prepared.model, program);
  Json json = {{"ranks", peaks.size()},
               {"classes", program.ranks.size()},
               {"bodies", program.bodies.size()},
               {"actions", actions},
               {"certified", true},
               {"certified_assuming", assumed},
               {"bytes_sent", sent},
               {"peak_bytes", peaks},
               {"seconds_to_lower", seconds}};
  std::string text;
  if (options.show) {
    auto [named, made] = without_unmade(prepared.model, expand(program, fold));
    text = to_text(made, named);
    json["text"] = text;
  } else {
    text = fmt::format("{} ranks in {} classes, {} bodies, {} actions; certified in {}\n", peaks.size(),
                       program.ranks.size(), program.bodies.size(), actions, show_seconds(seconds));
  }
  if (!assumed.empty()) text += fmt::format("certified_assuming: [{}]\n", fmt::join(assumed, ", "));
  text += show_peaks(peaks) + fmt::format("{} sent in a step\n", show_bytes(sent));
  if (!options.output.empty()) text += fmt::format("written to {}\n", options.output);
  command.answer(json, text);
}

}  // namespace

void add_lower(CLI::App& app, Command& command) {
  auto options = std::make_shared<Options>();
  add_model_input(app, options->model, command);
  app.add_option("PLAN", options->plan, "a plan file")->required();
  app.add_option("--dump-dir", options->dump_dir, "write what every pass made into this folder");
  app.add_option("-o,--output", options->output, "write the Program as JSON");
  app.add_option("--rank", options->rank, "write what this rank alone executes, the others left empty")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--show", options->show, "print what every rank executes");
  app.add_flag("--folded", options->folded, "write rank classes instead of every rank");
  app.add_option("--program", options->program,
                 "certify this Program file, of ranks or of rank classes, instead of the one the plan gives");
  app.footer("Example: partita lower gpt2.model.json plan.json --dump-dir phases");
  app.callback([options, &command] { run(*options, command); });
}

}  // namespace partita::cli
