// How long it takes to build a whole training step, backward included.
#include <benchmark/benchmark.h>

#include "model/build/build.h"

namespace partita::model {
namespace {

void build(benchmark::State& state, const char* name) {
  const Preset& preset = *find_preset(name);
  size_t ops = 0;
  for (auto _ : state) {
    Model model = build_model(preset);
    ops = model.ops.size();
    benchmark::DoNotOptimize(model);
  }
  state.counters["ops"] = static_cast<double>(ops);
}

BENCHMARK_CAPTURE(build, gpt2_small, "gpt2-small")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(build, llama_3_8b, "llama-3-8b")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(build, gpt3_175b, "gpt3-175b")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(build, llama_3_1_405b, "llama-3.1-405b")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(build, megatron_1t, "megatron-1t")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace partita::model

BENCHMARK_MAIN();
