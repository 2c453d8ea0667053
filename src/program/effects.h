#pragma once

#include "program/words.h"

namespace partita::program {

/// What an instruction does to the storages that its slots name, and to other ranks. Everything that walks a
/// Program asks here instead of looking at kinds; only who computes or checks values knows them.
struct Effects {
  bool allocates = false;  // each of its outputs has a storage of its own
  int32_t alias = -1;      // the input whose storage its outputs name; -1: none
  bool in_place = false;   // that input is changed; its other names must not be read again
  bool needs_group = false;
  bool stops = false;   // the rank looks at others here
  bool starts = false;  // a collective that is under way when the rank goes on
  bool waits = false;   // the end of one
  bool operator==(const Effects&) const = default;
};

/// Example: `l3 = add(l1, l2)` has alias 0 and in_place; `l3 = concat(l1, l2)` allocates.
inline constexpr Effects effects(const Instr& instr) {
  const InstrRow& row = row_of(instr.kind);
  Effects out{.needs_group = row.collective, .stops = is_stop(instr.kind), .starts = instr.later};
  out.waits = out.stops && !row.collective;
  out.in_place = row.in_place || instr.into >= 0;
  if (instr.into >= 0)
    out.alias = instr.into;
  else if (row.in_place || row.renames || instr.view)
    out.alias = 0;
  out.allocates = row.out != 0 && out.alias < 0;
  return out;
}

/// Is the storage of input `k` changed? That of an optimizer's states is too.
inline constexpr bool changes(const Instr& instr, size_t k) {
  Effects all = effects(instr);
  return all.in_place && (static_cast<int32_t>(k) == all.alias || (row_of(instr.kind).states && k >= 2));
}

/// The type of output `o`; `in`: types of its inputs.
inline TypeId type_of_output(const Instr& instr, size_t o, const std::vector<TypeId>& in) {
  return o < instr.types.size() ? instr.types[o] : in[0];
}

/// Bytes that an instruction reads and writes on its own rank.
struct MovedBytes {
  Bytes read = 0, written = 0;
  Bytes all() const { return read + written; }
  bool operator==(const MovedBytes&) const = default;
};

/// `in`: types of its inputs. None where a name is given to what is there already.
/// REQUIRES: it is no collective.
MovedBytes bytes_moved(const Program& program, const Instr& instr, const std::vector<TypeId>& in);

/// What all members of a collective hold together (or each of them of a sum), where this one makes `made`
/// bytes.
Bytes whole_bytes(const Instr& instr, Bytes made, int64_t members);
/// Bytes that this one of `members` ranks gives to others.
/// Example: an all-reduce of 8 bytes over 4 ranks sends 12 from each.
Bytes wire_bytes(const Instr& instr, Bytes made, int64_t members);

}  // namespace partita::program
