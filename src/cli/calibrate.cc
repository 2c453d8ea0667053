#include <algorithm>
#include <fstream>
#include <map>
#include <memory>

#include "base/error.h"
#include "cli/constants.h"
#include "cli/inputs.h"
#include "cli/plan_input.h"
#include "cli/verbs.h"
#include "cluster/library.h"
#include "model/build/build.h"
#include "model/retype.h"
#include "profile/step.h"

namespace partita {
namespace {

struct Options {
  std::vector<std::string> models;
  std::string dtype, output;
  int repeats = 7;
};

/// A step to measure, with the constants it needs.
struct Probe {
  std::string name;
  Model model;
  HostTensors constants;
};

// Widths, lengths and families such that products of every layout, attention, norms, softmax, lookups and
// copies occur from the size of a cache to well beyond it.
constexpr Preset kProbes[] = {
    {"gpt2 64",
     R"({"model_type": "gpt2", "n_layer": 1, "n_embd": 64, "n_head": 2, "vocab_size": 512})",
     {2, 32}},
    {"gpt2 192",
     R"({"model_type": "gpt2", "n_layer": 1, "n_embd": 192, "n_head": 4, "vocab_size": 1000})",
     {2, 96}},
    {"gpt2 512",
     R"({"model_type": "gpt2", "n_layer": 1, "n_embd": 512, "n_head": 8, "vocab_size": 4000})",
     {2, 256}},
    {"gpt2 768",
     R"({"model_type": "gpt2", "n_layer": 1, "n_embd": 768, "n_head": 12, "vocab_size": 16000})",
     {2, 512}},
    {"llama 128",
     R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 128, "num_attention_heads": 4,
         "num_key_value_heads": 2, "intermediate_size": 384, "vocab_size": 1000})",
     {2, 64}},
    {"llama 384",
     R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 384, "num_attention_heads": 6,
         "num_key_value_heads": 2, "intermediate_size": 1024, "vocab_size": 4000})",
     {2, 192}},
    {"llama 768",
     R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 768, "num_attention_heads": 12,
         "num_key_value_heads": 4, "intermediate_size": 2048, "vocab_size": 8000})",
     {4, 256}},
    {"bert 256",
     R"({"model_type": "bert", "num_hidden_layers": 1, "hidden_size": 256, "num_attention_heads": 4,
         "intermediate_size": 1024, "vocab_size": 4000})",
     {2, 128}},
    {"bert 640",
     R"({"model_type": "bert", "num_hidden_layers": 1, "hidden_size": 640, "num_attention_heads": 10,
         "intermediate_size": 2560, "vocab_size": 8000})",
     {2, 256}},
    {"t5 128",
     R"({"model_type": "t5", "num_layers": 1, "d_model": 128, "num_heads": 4, "d_kv": 32, "d_ff": 512,
         "vocab_size": 1000})",
     {2, 64}},
    {"t5 384",
     R"({"model_type": "t5", "num_layers": 1, "d_model": 384, "num_heads": 6, "d_kv": 64, "d_ff": 1536,
         "vocab_size": 4000})",
     {2, 192}},
    {"vit 192",
     R"({"model_type": "vit", "num_hidden_layers": 1, "hidden_size": 192, "num_attention_heads": 3,
         "intermediate_size": 768, "image_size": 96})",
     {4, 0}},
    {"vit 512",
     R"({"model_type": "vit", "num_hidden_layers": 1, "hidden_size": 512, "num_attention_heads": 8,
         "intermediate_size": 2048, "image_size": 160})",
     {4, 0}},
};

std::vector<Probe> probes_of(const Options& options) {
  std::vector<Probe> probes;
  for (const std::string& file : options.models) {
    ModelInput input{.file = file, .dtype = options.dtype};
    Model model = load(input);
    probes.push_back({file, model, load_constants(input, model)});
  }
  if (!probes.empty()) return probes;
  for (const Preset& preset : kProbes) {
    Model model = build_model(preset);
    if (!options.dtype.empty()) model = retype(std::move(model), parse_dtype(options.dtype, "--dtype"));
    probes.push_back({std::string(preset.name), std::move(model), {}});
  }
  return probes;
}

/// "AMD EPYC 7B13"; empty where the system does not say.
std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "";
}

/// A measured step: its samples, one for each op, and what they add up to.
struct Measured {
  std::string name;
  std::vector<OpSample> samples;
  Seconds seconds = 0;
};

Measured measure(const Probe& probe, const RunApi& api, int repeats) {
  Measured out{.name = probe.name};
  for (const OpMeasure& one : api.measure(probe.model, views_of(probe.constants), repeats)) {
    OpSample sample = sample_of(probe.model, probe.model[one.op]);
    sample.seconds = one.seconds;
    sample.workspace = one.workspace;
    out.seconds += one.seconds;
    out.samples.push_back(std::move(sample));
  }
  return out;
}

/// Samples of all steps but one, each op once: of the same op measured twice the shorter.
Calibration join(const std::vector<Measured>& steps, const Measured* without) {
  std::map<std::string, OpSample> best;
  for (const Measured& step : steps) {
    if (&step == without) continue;
    for (const OpSample& sample : step.samples) {
      OpSample& known = best.try_emplace(sample.signature, sample).first->second;
      known.seconds = std::min(known.seconds, sample.seconds);
      known.workspace = std::max(known.workspace, sample.workspace);
    }
  }
  Calibration calibration{.machine = processor_name()};
  for (auto& [signature, sample] : best) calibration.samples.push_back(std::move(sample));
  return calibration;
}

struct Error {
  std::string name;
  Seconds measured = 0, before = 0, after = 0;
};

/// Before: the library's `cpu`. After: samples of the OTHER steps, so that no step predicts itself.
std::vector<Error> errors_of(const std::vector<Measured>& steps, const std::vector<Probe>& probes) {
  Cluster cpu = library_cluster("cpu", 1, 1, "calibrate");
  std::vector<Error> errors;
  for (size_t i = 0; i < steps.size(); ++i) {
    Calibration others = join(steps, steps.size() > 1 ? &steps[i] : nullptr);
    SampledCosts sampled(others, cpu);
    errors.push_back({steps[i].name, steps[i].seconds,
                      profile_step(probes[i].model, cpu, 0).total.total_seconds(),
                      profile_step(probes[i].model, cpu, 0, {}, &sampled).total.total_seconds()});
  }
  return errors;
}

std::string show_off(Seconds predicted, Seconds measured) {
  return fmt::format("{:+.1f} %", 100 * (predicted / measured - 1));
}

std::string show(const std::vector<Error>& errors) {
  std::string text = fmt::format("{:<24} {:>10} {:>10} {:>10}\n", "step", "measured", "before", "after");
  for (const Error& e : errors)
    text += fmt::format("{:<24} {:>10} {:>10} {:>10}\n", e.name, show_seconds(e.measured),
                        show_off(e.before, e.measured), show_off(e.after, e.measured));
  return text + "Before: the library's cpu. After: predicted from the samples of the other steps.\n";
}

void run(const Options& options, const Command& command) {
  const RunApi& api = load_runtime();
  std::vector<Probe> probes = probes_of(options);
  std::vector<Measured> steps;
  for (const Probe& probe : probes) {
    constexpr size_t kWidth = 24;
    size_t done = kWidth * steps.size() / probes.size();
    command.say(fmt::format("[{:<{}}] {}", std::string(done, '#'), kWidth, probe.name));
    steps.push_back(measure(probe, api, options.repeats));
  }
  Calibration calibration = join(steps, nullptr);
  write_file(options.output, to_json(calibration));
  std::vector<Error> errors = errors_of(steps, probes);
  Json rows = Json::array();
  for (const Error& e : errors)
    rows.push_back({{"name", e.name}, {"measured", e.measured}, {"before", e.before}, {"after", e.after}});
  std::string text = show(errors) + fmt::format("{} ops of {} written to {}\n", calibration.samples.size(),
                                                calibration.machine, options.output);
  command.answer({{"machine", calibration.machine}, {"samples", calibration.samples.size()}, {"steps", rows}},
                 text);
}

}  // namespace

void add_calibrate(CLI::App& app, Command& command) {
  auto options = std::make_shared<Options>();
  app.add_option("MODEL", options->models,
                 "measure the ops of these steps; by default of a set of small steps of several families");
  app.add_option("--dtype", options->dtype, "retype every floating tensor");
  app.add_option("--repeats", options->repeats, "runs of every step; the middle one counts")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  app.add_option("-o,--output", options->output, "the file to write, for --calibration of other verbs")
      ->required();
  app.footer("Example: partita calibrate -o this-machine.json");
  app.callback([options, &command] { run(*options, command); });
}

}  // namespace partita
