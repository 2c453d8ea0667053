#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "program/trace.h"
#include "run/draw.h"
#include "run/host_tensor.h"
#include "run/op_comparison.h"
#include "run/options.h"

namespace partita::run {

/// What a rank did in a step, seen from outside.
struct StepReport {
  double loss = 0;
  Seconds seconds = 0;            // from giving out the batch to the end of the last rank; on a clock that is
                                  // not real, of the actions alone on that clock
  Seconds optimizer_seconds = 0;  // of these in optimizer updates, on the rank with most
  bool skipped = false;           // a gradient overflowed: nothing was updated, the loss scale was halved
  double loss_scale = 1;          // that this step used
};

/// Whole values after a step, put together from the ranks' results; keyed by the parameter's or buffer's
/// name.
struct Values {
  HostTensors gradients, parameters, buffers;
  double disagreement = 0;  // largest relative difference between ranks that hold the same part
  std::string disagreeing;  // of which tensor
};

/// Where weights and batches come from. What is not given is drawn (draw.h); constants must be given.
struct RunRequest {
  int64_t steps = 1;
  HostViews weights;               // parameters, buffers and constants by name
  std::vector<HostViews> batches;  // one per step; none: drawn
  uint64_t seed = 0;               // of drawn weights
  BatchOptions batch;              // of drawn batches
  RunOptions options;
  bool keep_values = false;  // fill RunReport::values after the last step
  std::function<void(const StepReport&)> progress;
};

struct RunReport {
  std::vector<StepReport> steps;
  std::vector<Bytes> peak_bytes;  // by rank: all the rank held at once, loads included
  Values values;
  Trace trace;  // where it was asked for
};

/// Takes one more step.
using NextStep = std::function<StepReport()>;

/// What one step of a run left behind.
struct StepValues {
  double loss = 0;
  bool skipped = false;  // nothing was updated
  Values values;
};

/// What a step should be: these ops on whole tensors, then torch's own clipping and optimizer.
struct Intended {
  const Model& model;
  const OptimizerSpec& optimizer;
};

struct VerifyRequest {
  RunRequest run;           // `steps`: 3 shows what the second step leaves behind
  double tolerance = 1e-9;  // relative
  double floor = 1e-4;      // a tensor counts for at least this share of the largest of its kind
};

struct VerifyReport {
  bool equal = false;
  double tolerance = 0;
  double loss_error = 0, max_grad_error = 0, max_param_error = 0, max_buffer_error = 0;
  double worst_error = 0;
  std::string worst_parameter;  // the parameter or buffer with the largest error
  double disagreement = 0;      // between ranks that hold the same part
  std::vector<Bytes> peak_bytes;
};

/// A step that can run: a Program, the Model its ops and tensors belong to, and the leaves its boxes are
/// counted in.
struct Runnable {
  const Model& model;
  const Program& program;
  LeafSizes leaves;
};

/// A step of which it is known what its instructions make (made_by).
struct KnownStep {
  Runnable step;
  std::vector<Made> made;
};

/// What one op of a step took on this machine.
struct OpMeasure {
  Seconds seconds = 0;
  Bytes workspace = 0;  // most the call held beyond its inputs and outputs
  Bytes outputs = 0;    // that the call left behind
};
/// CPU seconds of its thread: of the step as it runs, and of each op on its own.
struct StepMeasure {
  Seconds seconds = 0;
  std::vector<OpMeasure> ops;  // by op of the model
};

/// What an instruction that is no op of a model took: "concat", "add", "optimize" ...
struct MoveMeasure {
  std::string kind;
  Bytes moved = 0;               // read and written
  std::vector<Seconds> seconds;  // by round: CPU seconds of its thread
};

/// What the command finds in libpartita_run.so. Every function throws InputError or RunError.
struct RunApi {
  RunReport (*run)(const Runnable& step, const RunRequest& request);
  /// Loads the step and takes none yet: each call of what it gives back takes one, on the next of the batches
  /// and after the last on the first again. `step.model` and `request.batches` must outlive it; values stay
  /// in the ranks' memory as long as it lives. REQUIRES: there are batches.
  NextStep (*start)(const Runnable& step, const RunRequest& request);
  /// Runs the ops of the model one after another on one device, and shares with a Program nothing but the
  /// kernels (reference.h). All that every step left behind; weights and batches are drawn for this model.
  std::vector<StepValues> (*reference)(const Intended& intended, const RunRequest& request);
  /// Runs the step beside the reference, on the same weights and batches, both drawn for the intended model,
  /// and compares loss, every gradient, parameter and buffer of every step (run_comparison.h). The two models
  /// may write the same step in different ops.
  VerifyReport (*verify)(const Runnable& step, const Intended& intended, const VerifyRequest& request);
  /// The same beside a reference that has run already. REQUIRES: `expected` is what `reference` gave for this
  /// `intended` and `request.run`.
  VerifyReport (*judge)(const Runnable& step, const Intended& intended,
                        const std::vector<StepValues>& expected, const VerifyRequest& request);
  /// Runs again what `verify` found different, beside `one`: one device that runs the same ops. The first op
  /// that makes something else; none where all make the same. Weights and batches are drawn for `model`.
  std::optional<WrongOp> (*locate)(const KnownStep& tried, const KnownStep& one, const Model& model,
                                   const VerifyRequest& request);
  /// One step on one thread. Weights and batch inputs that are not given are drawn, constants must be given.
  StepMeasure (*measure)(const Model& model, const HostViews& given);
  /// Each such instruction on values of these many elements.
  std::vector<MoveMeasure> (*measure_moves)(const std::vector<int64_t>& elements, int rounds);
};

inline constexpr int kRunApiVersion = 9;
/// The symbol to look up; null if the library was built for another version.
extern "C" const RunApi* partita_run_api(int version);

}  // namespace partita::run
