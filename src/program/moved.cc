#include "program/moved.h"

#include "base/error.h"
#include "program/words.h"

namespace partita::program {

Bytes bytes_moved(const Program& program, const Instr& instr, const std::vector<TypeId>& in) {
  CHECK(!row_of(instr.kind).collective);
  if (instr.kind == InstrKind::kMove || instr.kind == InstrKind::kWait || instr.view) return 0;
  Bytes read = 0, made = 0;
  for (TypeId type : in) read += bytes_of(program[type]);
  for (TypeId type : instr.types) made += type ? bytes_of(program[type]) : 0;
  if (instr.kind == InstrKind::kSlice) return 2 * made;
  // All but the gradient are written back.
  if (instr.kind == InstrKind::kOptimize) return 2 * read - bytes_of(program[in[1]]);
  if (row_of(instr.kind).in_place) return read + bytes_of(program[in[0]]);
  return read + made;
}

}  // namespace partita::program
