#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <memory>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "cli/checks.h"
#include "cli/inputs.h"
#include "cli/plan_input.h"
#include "cli/verbs.h"
#include "cluster/library.h"
#include "cost/calibration_steps.h"
#include "measure/sample_plans.h"
#include "model/rewrite/retype.h"
#include "profile/step.h"
#include "run/host_memory.h"
#include "run/safetensors.h"
#include "run/threads/measure_transfers.h"
#include "simulate/simulate.h"

namespace partita::cli {
namespace {

struct Options {
  std::vector<std::string> models;
  std::string cluster = "8xcpu", dtype, inputs, output;
  int rounds = 5;
};

/// A step to measure, with the values it needs.
struct Probe {
  std::string name;
  Model model;
  HostTensors given;   // constants, and the batch where one was given
  bool trial = false;  // predicted from the others, not learned from
};

Probe probe_of(const std::string& file, const Options& options) {
  ModelInput input{.file = file, .dtype = options.dtype};
  Model model = load(input);
  Probe probe{file, model, load_constants(input, model)};
  if (!options.inputs.empty()) probe.given.merge(load_safetensors(options.inputs));
  return probe;
}

std::vector<Probe> probes_of(const Options& options) {
  std::vector<Probe> probes;
  for (const std::string& file : options.models) probes.push_back(probe_of(file, options));
  if (!probes.empty()) return probes;
  auto add = [&](const Preset& preset, bool trial) {
    Model model = build_model(preset);
    if (!options.dtype.empty()) model = retype(std::move(model), parse_dtype(options.dtype, "--dtype"));
    probes.push_back({std::string(preset.name), std::move(model), {}, trial});
  };
  for (const Preset& preset : calibration_probes()) add(preset, false);
  for (const Preset& preset : calibration_trials()) add(preset, true);
  return probes;
}

/// "AMD EPYC 7B13"; empty where the system does not say.
std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "";
}

/// What else the machine does: runnable threads in the last minute. 0 where the system does not say.
double load_now() {
  std::ifstream info("/proc/loadavg");
  double load = 0;
  info >> load;
  return load;
}

/// Everything measured of one step, a number for each round.
struct Measured {
  std::vector<Seconds> step;
  std::vector<std::vector<Seconds>> ops;   // by op
  std::vector<Bytes> workspace, retained;  // by op
};

/// Bytes of the outputs of an op, as its row and their shapes have them.
Bytes made_by(const Model& model, const Op& op) {
  if (is_view(op)) return 0;
  Bytes bytes = retained_of(view_of(model, op));
  for (TensorId id : op.outputs) bytes += id ? bytes_of(model[id]) : 0;
  return bytes;
}

void measure(const Probe& probe, const RunApi& api, Measured& measured) {
  StepMeasure found = api.measure(probe.model, views_of(probe.given));
  measured.step.push_back(found.seconds);
  measured.ops.resize(found.ops.size());
  measured.workspace.resize(found.ops.size());
  measured.retained.resize(found.ops.size());
  for (size_t i = 0; i < found.ops.size(); ++i) {
    measured.ops[i].push_back(found.ops[i].seconds);
    measured.workspace[i] = found.ops[i].workspace;
    Bytes known = made_by(probe.model, probe.model.ops[i]);
    measured.retained[i] = std::max<Bytes>(found.ops[i].outputs - known, 0);
  }
}

// All steps once, then all again: what the machine does beside changes within seconds, and should meet every
// step alike.
std::vector<Measured> measure_all(const std::vector<Probe>& probes, int rounds, const Command& command) {
  const RunApi& api = load_runtime();
  std::vector<Measured> measured(probes.size());
  size_t done = 0, all = rounds * probes.size();
  for (int round = 0; round < rounds; ++round)
    for (size_t i = 0; i < probes.size(); ++i) {
      command.say("measuring steps", fmt::format("{} of {}, {}", ++done, all, probes[i].name));
      measure(probes[i], api, measured[i]);
    }
  return measured;
}

// From what fits a core's own cache to what fits no cache.
const std::vector<Bytes> kSizes = {1 << 10, 1 << 14, 1 << 17, 1 << 20, 1 << 23, 1 << 25};

/// Instructions that are no ops of a model.
std::vector<OpSample> moves_of(int rounds, const Command& command) {
  command.say("measuring copies, sums and updates between ops");
  std::vector<int64_t> elements;
  for (Bytes bytes : kSizes) elements.push_back(bytes / 4);
  std::vector<OpSample> samples;
  for (const MoveMeasure& found : load_runtime().measure_moves(elements, rounds)) {
    std::string target = "partita." + found.kind;
    samples.push_back({.signature = fmt::format("{} {}", target, found.moved),
                       .target = target,
                       .moved = found.moved,
                       .seconds = middle(found.seconds)});
  }
  return samples;
}

constexpr int kLargestGroup = 16;  // larger ones take what this one does, as rings grow

/// Between ranks that are threads, of groups up to the size of the cluster.
std::vector<TransferSample> transfers_of(const Cluster& cluster, int rounds, const Command& command) {
  command.say("measuring transfers between ranks");
  std::vector<int32_t> groups;
  for (int32_t size = 2; size <= std::min(num_ranks(cluster), kLargestGroup); size *= 2)
    groups.push_back(size);
  std::vector<TransferSample> samples;
  for (const TransferMeasure& found : measure_transfers(groups, kSizes, rounds))
    samples.push_back({found.kind, found.ranks, found.bytes, middle(found.seconds)});
  return samples;
}

/// Samples of the steps that are no trials, each op once: the mean of its calls in all of them, of one call
/// the middle of its rounds.
std::vector<OpSample> samples_of(const std::vector<Probe>& probes, const std::vector<Measured>& measured) {
  std::map<std::string, OpSample> samples;
  std::map<std::string, std::vector<Seconds>> calls;
  for (size_t p = 0; p < probes.size(); ++p) {
    const Model& model = probes[p].model;
    for (size_t i = 0; i < model.ops.size() && !probes[p].trial; ++i) {
      OpSample sample = sample_of(model, model.ops[i]);
      calls[sample.signature].push_back(middle(measured[p].ops[i]));
      sample.workspace = std::max(measured[p].workspace[i], samples[sample.signature].workspace);
      sample.retained = measured[p].retained[i];
      samples[sample.signature] = std::move(sample);
    }
  }
  std::vector<OpSample> found;
  for (auto& [signature, sample] : samples) {
    sample.seconds = mean(calls.at(signature));
    found.push_back(std::move(sample));
  }
  return found;
}

/// Plans of the steps on as many ranks at once as have a core each: with other shapes than one device has,
/// and beside each other, as they will run. What was measured so counts before what one device took alone.
std::vector<PlanRun> learn_plans(const std::vector<Probe>& probes, int ranks, int rounds,
                                 const Command& command, std::vector<OpSample>& samples) {
  std::vector<PlanTrial> trials;
  for (const Probe& probe : probes)
    for (const RecipeSpec& spec : usual_plans(ranks)) {
      try {
        Plan plan = recipe(probe.model, spec);
        trials.push_back({fmt::format("{}, {}", probe.name, summary(spec)), probe.model,
                          views_of(probe.given), std::move(plan)});
      } catch (const InputError&) {
        continue;  // not every recipe applies to every model
      }
    }
  std::vector<PlanRun> runs =
      sample_plans(trials, rounds, [&](const std::string& name) { command.say("running", name); });
  std::map<std::string, OpSample> by_signature;
  std::map<std::string, std::vector<Seconds>> in_plans;
  for (OpSample& sample : samples) by_signature[sample.signature] = std::move(sample);
  for (const PlanRun& run : runs)
    for (const OpSample& sample : run.samples) {
      by_signature.try_emplace(sample.signature, sample);
      in_plans[sample.signature].push_back(sample.seconds);
    }
  for (auto& [signature, seconds] : in_plans) by_signature[signature].seconds = middle(std::move(seconds));
  samples.clear();
  for (auto& [signature, sample] : by_signature) samples.push_back(std::move(sample));
  return runs;
}

struct Error {
  std::string name;
  Seconds measured = 0, before = 0, after = 0;
};

/// Before: the library's `cpu`. After: from the samples. Of trials; of all steps where there are none.
std::vector<Error> errors_of(const std::vector<Probe>& probes, const std::vector<Measured>& measured,
                             const Calibration& calibration) {
  Cluster cpu = library_cluster("cpu", 1, 1, "calibrate");
  Prices sampled(cpu, calibration);
  bool trials = std::any_of(probes.begin(), probes.end(), [](const Probe& probe) { return probe.trial; });
  std::vector<Error> errors;
  for (size_t p = 0; p < probes.size(); ++p) {
    if (trials && !probes[p].trial) continue;
    const Model& model = probes[p].model;
    errors.push_back({probes[p].name, middle(measured[p].step),
                      profile_step(model, cpu, 0).total.total_seconds(),
                      profile_step(model, sampled, 0).total.total_seconds()});
  }
  return errors;
}

Error error_of(const PlanRun& run, const Cluster& cluster, const Calibration& calibration) {
  auto predicted = [&](const Prices& prices) {
    return simulate::simulate(run.lowered.model, run.lowered.program, prices).step_seconds;
  };
  return {run.name, run.seconds, predicted(cluster), predicted(Prices(cluster, calibration))};
}

double off(Seconds predicted, Seconds measured) { return 100 * (predicted / measured - 1); }

double median_error(const std::vector<Error>& errors, Seconds Error::*predicted) {
  std::vector<double> all;
  for (const Error& e : errors) all.push_back(std::abs(off(e.*predicted, e.measured)));
  return middle(all);
}

/// "median 5.2 %, worst 9.8 %" of what `predicted` says.
std::string spread(const std::vector<Error>& errors, Seconds Error::*predicted) {
  double worst = 0;
  for (const Error& e : errors) worst = std::max(worst, std::abs(off(e.*predicted, e.measured)));
  return fmt::format("median {:.1f} %, worst {:.1f} %", median_error(errors, predicted), worst);
}

std::string show(const std::vector<Error>& errors, bool trials) {
  size_t width = 24;
  for (const Error& e : errors) width = std::max(width, e.name.size());
  std::string text =
      fmt::format("{:<{}} {:>10} {:>10} {:>10}\n", "step", width, "measured", "before", "after");
  for (const Error& e : errors)
    text += fmt::format("{:<{}} {:>10} {:>+8.1f} % {:>+8.1f} %\n", e.name, width, show_seconds(e.measured),
                        off(e.before, e.measured), off(e.after, e.measured));
  return text + fmt::format("Before, the library's cpu: {}. After, from samples{}: {}.\n",
                            spread(errors, &Error::before), trials ? " of other steps" : "",
                            spread(errors, &Error::after));
}

Cluster cluster_of(const Options& options) {
  Cluster cluster = read_cluster(options.cluster);
  if (!on_cpu(cluster))
    input_error("--cluster {}: only ranks on this CPU can be measured; write for example 8xcpu",
                options.cluster);
  return cluster;
}

void run(const Options& options, const Command& command) {
  need_one_process("calibrate");
  Cluster cluster = cluster_of(options);
  std::vector<Probe> probes = probes_of(options);
  std::vector<Measured> measured = measure_all(probes, options.rounds, command);
  Calibration calibration{.machine = processor_name(),
                          .cores = static_cast<int>(std::thread::hardware_concurrency()),
                          .samples = samples_of(probes, measured)};
  for (OpSample& sample : moves_of(options.rounds, command)) calibration.samples.push_back(std::move(sample));
  calibration.transfers = transfers_of(cluster, options.rounds, command);
  bool trials = options.models.empty();
  int ranks = std::min(num_ranks(cluster), calibration.cores);
  std::vector<PlanRun> runs;
  if (!trials && ranks > 1) runs = learn_plans(probes, ranks, options.rounds, command, calibration.samples);
  std::vector<Error> errors = errors_of(probes, measured, calibration);
  for (const PlanRun& run : runs) errors.push_back(error_of(run, cluster, calibration));
  // Steps that were learned from say nothing about others.
  if (trials) calibration.expected_error = median_error(errors, &Error::after) / 100;
  write_file(options.output, to_json(calibration));
  double load = load_now();
  Json rows = Json::array();
  for (const Error& e : errors)
    rows.push_back({{"name", e.name}, {"measured", e.measured}, {"before", e.before}, {"after", e.after}});
  std::string text = show(errors, trials) +
                     fmt::format(
                         "CPU seconds of one thread, the middle of {} rounds, at a load of {:.1f}. {} "
                         "ops and {} transfers of {} written to {}\n",
                         options.rounds, load, calibration.samples.size(), calibration.transfers.size(),
                         calibration.machine, options.output);
  command.answer({{"machine", calibration.machine},
                  {"samples", calibration.samples.size()},
                  {"transfers", calibration.transfers.size()},
                  {"expected_error", calibration.expected_error},
                  {"load", load},
                  {"steps", rows}},
                 text);
}

}  // namespace

void add_calibrate(CLI::App& app, Command& command) {
  auto options = std::make_shared<Options>();
  app.add_option("MODEL", options->models,
                 "measure the ops of these steps, alone and in usual plans for as many ranks as there are "
                 "cores; by default ops of a set of small steps of several families, and then predict eight "
                 "others");
  app.add_option("--cluster", options->cluster, "whose ranks, as threads, to measure transfers between")
      ->capture_default_str();
  app.add_option("--dtype", options->dtype, "retype every floating tensor");
  app.add_option("--inputs", options->inputs,
                 "values of the batch by name, F.safetensors, for a step that keeps what a batch does");
  app.add_option("--rounds", options->rounds, "runs of every step; the median counts")
      ->capture_default_str()
      ->check(whole_number(1, 1000));
  app.add_option("-o,--output", options->output, "the file to write, for --calibration of other verbs")
      ->required();
  app.footer("Example: partita calibrate -o this-machine.json");
  app.callback([options, &command] { run(*options, command); });
}

}  // namespace partita::cli
