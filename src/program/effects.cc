#include "program/effects.h"

#include "base/error.h"

namespace partita::program {

MovedBytes bytes_moved(const Program& program, const Instr& instr, const std::vector<TypeId>& in) {
  Effects does = effects(instr);
  CHECK(!does.needs_group);
  if (!does.allocates && !does.in_place) return {};
  MovedBytes moved;
  if (does.allocates)
    for (TypeId type : instr.types) moved.written += type ? bytes_of(program[type]) : 0;
  for (size_t k = 0; k < in.size(); ++k) {
    moved.read += bytes_of(program[in[k]]);
    if (changes(instr, k)) moved.written += bytes_of(program[in[k]]);
  }
  if (row_of(instr.kind).part) moved.read = moved.written;
  return moved;
}

Bytes whole_bytes(const Instr& instr, Bytes made, int64_t members) {
  return row_of(instr.kind).makes_piece ? made * members : made;
}

Bytes wire_bytes(const Instr& instr, Bytes made, int64_t members) {
  return row_of(instr.kind).passes * whole_bytes(instr, made, members) * (members - 1) / members;
}

}  // namespace partita::program
