#pragma once

#include <string>

#include "program/program.h"

namespace partita::program {

/// The words of docs/formats/program.md, shared by its writer, its reader and every sentence about a Program.
inline constexpr int64_t kProgramVersion = 1;

/// What an instruction of a kind looks like; -1: as many operands as the op or the optimizer says.
struct InstrRow {
  InstrKind kind;
  const char* name;
  int in, out;
  bool collective, cut, in_place;
};
inline constexpr InstrRow kInstrRows[] = {
    {InstrKind::kCompute, "compute", -1, -1, false, false, false},
    {InstrKind::kAllReduce, "all_reduce", 1, 1, true, false, true},
    {InstrKind::kAllGather, "all_gather", 1, 1, true, true, false},
    {InstrKind::kReduceScatter, "reduce_scatter", 1, 1, true, true, false},
    {InstrKind::kAllToAll, "all_to_all", 1, 1, true, true, false},
    {InstrKind::kSlice, "slice", 1, 1, false, true, false},
    {InstrKind::kConcat, "concat", -1, 1, false, true, false},
    {InstrKind::kZeros, "zeros", 0, 1, false, false, false},
    {InstrKind::kAdd, "add", 2, 1, false, false, true},
    {InstrKind::kMove, "move", 1, 1, false, false, false},
    {InstrKind::kCast, "cast", 1, 1, false, false, false},
    {InstrKind::kScale, "scale", 1, 1, false, false, true},
    {InstrKind::kSquares, "squares", 2, 1, false, false, true},
    {InstrKind::kClip, "clip", 2, 1, false, false, true},
    {InstrKind::kOptimize, "optimize", -1, 1, false, false, true},
    {InstrKind::kWait, "wait", 1, 0, false, false, false},
};
inline constexpr const InstrRow& row_of(InstrKind kind) { return kInstrRows[static_cast<int>(kind)]; }
/// Does a rank look at others here? Between two such instructions of a body it computes alone.
inline constexpr bool is_stop(InstrKind kind) { return row_of(kind).collective || kind == InstrKind::kWait; }

inline constexpr const char* kActionNames[] = {"run",          "send",      "post_receive",
                                               "wait_receive", "wait_send", "free"};
inline constexpr const char* name_of(ActionKind kind) { return kActionNames[static_cast<int>(kind)]; }

inline constexpr const char* kResultNames[] = {"loss", "gradient", "parameter", "buffer"};
inline constexpr const char* name_of(Result::Kind kind) { return kResultNames[kind]; }

/// "r3", "f0", "l12"; "_" for a slot an output does not have.
std::string to_text(Slot slot);
/// "f32[2,16]".
std::string to_text(const TensorType& type);

}  // namespace partita::program
