#pragma once

#include <string>

#include "program/program.h"

namespace partita::program {

/// The words of docs/formats/program.md, shared by its writer, its reader and every sentence about a Program.
inline constexpr int64_t kProgramVersion = 1;

/// What an instruction of a kind looks like and what it does (effects.h reads it off here): a new kind is a
/// row, and its arithmetic in the certificate, the runtime and the witness.
struct InstrRow {
  InstrKind kind;
  const char* name;
  int in = 1, out = 1;       // -1: as many operands as the op or the optimizer says
  bool collective = false;   // all members of its group do it together
  bool in_place = false;     // in[0] is changed, and out[0] names its storage
  bool renames = false;      // out[0] names the storage of in[0], which stays as it is
  bool states = false;       // in[2] and the following are changed too
  bool part = false;         // it reads no more of in[0] than it makes
  bool cut = false;          // has `cut`
  bool pieces = false;       // has `pieces`
  bool shares = false;       // has `scatter` and `shares`
  bool range = false;        // has `begin`, `length` and `steps`
  int passes = 0;            // collectives: how often the whole goes round the group
  bool makes_piece = false;  // collectives: out[0] is one piece of the whole; else it is the whole
};
inline constexpr InstrRow kInstrRows[] = {
    {.kind = InstrKind::kCompute, .name = "compute", .in = -1, .out = -1},
    {.kind = InstrKind::kAllReduce, .name = "all_reduce", .collective = true, .in_place = true, .passes = 2},
    {.kind = InstrKind::kAllGather,
     .name = "all_gather",
     .collective = true,
     .cut = true,
     .pieces = true,
     .passes = 1},
    {.kind = InstrKind::kReduceScatter,
     .name = "reduce_scatter",
     .collective = true,
     .cut = true,
     .pieces = true,
     .passes = 1,
     .makes_piece = true},
    {.kind = InstrKind::kAllToAll,
     .name = "all_to_all",
     .collective = true,
     .cut = true,
     .pieces = true,
     .shares = true,
     .passes = 1},
    {.kind = InstrKind::kSlice, .name = "slice", .part = true, .cut = true, .range = true},
    {.kind = InstrKind::kConcat, .name = "concat", .in = -1, .cut = true, .pieces = true},
    {.kind = InstrKind::kZeros, .name = "zeros", .in = 0},
    {.kind = InstrKind::kAdd, .name = "add", .in = 2, .in_place = true},
    {.kind = InstrKind::kMove, .name = "move", .renames = true},
    {.kind = InstrKind::kCast, .name = "cast"},
    {.kind = InstrKind::kScale, .name = "scale", .in_place = true},
    {.kind = InstrKind::kSquares, .name = "squares", .in = 2, .in_place = true},
    {.kind = InstrKind::kClip, .name = "clip", .in = 2, .in_place = true},
    {.kind = InstrKind::kOptimize, .name = "optimize", .in = -1, .in_place = true, .states = true},
    {.kind = InstrKind::kWait, .name = "wait", .out = 0},
};
inline constexpr const InstrRow& row_of(InstrKind kind) { return kInstrRows[static_cast<int>(kind)]; }
/// Does an instruction of the kind say a type for each of its outputs? The others make what they were given.
inline constexpr bool is_typed(const InstrRow& row) {
  return !row.renames && (!row.in_place || row.collective);
}
/// Does a rank look at others here? Between two such instructions of a body it computes alone.
inline constexpr bool is_stop(InstrKind kind) { return row_of(kind).collective || kind == InstrKind::kWait; }

/// What an action of a kind looks like.
struct ActionRow {
  ActionKind kind;
  const char* name;
  bool talks = false;   // has a peer and a tag
  bool sends = false;   // of those: this rank gives
  bool begins = false;  // of those: it opens a transfer, which its wait ends
  bool makes = false;   // it allocates the slot, and says of which type
};
inline constexpr ActionRow kActionRows[] = {
    {.kind = ActionKind::kRun, .name = "run"},
    {.kind = ActionKind::kSend, .name = "send", .talks = true, .sends = true, .begins = true},
    {.kind = ActionKind::kPostReceive, .name = "post_receive", .talks = true, .begins = true, .makes = true},
    {.kind = ActionKind::kWaitReceive, .name = "wait_receive", .talks = true},
    {.kind = ActionKind::kWaitSend, .name = "wait_send", .talks = true, .sends = true},
    {.kind = ActionKind::kFree, .name = "free"},
};
inline constexpr const ActionRow& row_of(ActionKind kind) { return kActionRows[static_cast<int>(kind)]; }
inline constexpr const char* name_of(ActionKind kind) { return row_of(kind).name; }

inline constexpr const char* kPartNames[] = {"prologue", "forward", "backward", "weight", "epilogue"};
inline constexpr const char* name_of(BodyPart part) { return kPartNames[static_cast<int>(part)]; }

inline constexpr const char* kResultNames[] = {"loss", "gradient", "parameter", "buffer"};
inline constexpr const char* name_of(Result::Kind kind) { return kResultNames[kind]; }

/// "r3", "f0", "l12"; "_" for a slot an output does not have.
std::string to_text(Slot slot);
/// "f32[2,16]".
std::string to_text(const TensorType& type);

}  // namespace partita::program
