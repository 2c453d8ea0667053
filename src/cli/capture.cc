#include <memory>

#include "base/error.h"
#include "cli/python.h"
#include "cli/verbs.h"

namespace partita::cli {
namespace {

/// As they were written: Python reads them, and says what is wrong with their values.
struct Options {
  std::string source, batch, seq, dtype, output;
  bool real = false, no_inferred_rows = false;
};

[[noreturn]] void run(const Options& options, const Command& command) {
  std::vector<std::string> words = {"capture", options.source};
  struct {
    const char* flag;
    const std::string& value;
  } values[] = {{"--batch", options.batch},
                {"--seq", options.seq},
                {"--dtype", options.dtype},
                {"--output", options.output}};
  for (const auto& [flag, value] : values)
    if (!value.empty()) words.push_back(fmt::format("{}={}", flag, value));
  struct {
    const char* flag;
    bool given;
  } switches[] = {{"--real", options.real},
                  {"--no-inferred-rows", options.no_inferred_rows},
                  {"--json", command.json},
                  {"--quiet", command.quiet},
                  {"--progress", command.progress}};
  for (const auto& [flag, given] : switches)
    if (given) words.push_back(flag);
  hand_over_to_python(words);
}

}  // namespace

void add_capture(CLI::App& app, Command& command) {
  auto options = std::make_shared<Options>();
  app.add_option("SOURCE", options->source,
                 "a Hugging Face config.json, its folder, or FILE.py:FUNCTION, which returns (module, "
                 "batch[, loss])")
      ->required();
  app.add_option("--batch", options->batch, "global batch size")->default_str("8 for a config");
  app.add_option("--seq", options->seq, "sequence length")
      ->default_str("1024 for a config, or what its positions hold");
  app.add_option("--dtype", options->dtype, "bf16, fp16, float32 or float64")
      ->default_str("the config's own, or float32");
  app.add_flag("--real", options->real, "FILE.py:FUNCTION runs with real tensors, not with fake ones");
  app.add_flag("--no-inferred-rows", options->no_inferred_rows,
               "try no op without a row by experiment; it stays whole");
  app.add_option("-o,--output", options->output, "where to write the step, a *.model.json")->required();
  app.footer("Example: partita capture qwen3/config.json --batch 8 --seq 1024 -o qwen3.model.json");
  app.callback([options, &command] { run(*options, command); });
}

}  // namespace partita::cli
