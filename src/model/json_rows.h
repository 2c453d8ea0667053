#pragma once

#include "base/json.h"
#include "model/model.h"

namespace partita::model {

/// The words of docs/formats/model.md, shared by its writer and its reader.
inline constexpr int64_t kModelVersion = 1;

struct RoleRow {
  Role role;
  const char* name;
};
inline constexpr RoleRow kRoles[] = {{Role::kParameter, "parameter"},
                                     {Role::kBuffer, "buffer"},
                                     {Role::kBatchInput, "batch"},
                                     {Role::kConstant, "constant"}};

/// Arguments written as text with their kind in front.
struct KindRow {
  Arg::Kind kind;
  const char* name;
};
inline constexpr KindRow kKinds[] = {{Arg::kText, "str"},
                                     {Arg::kDType, "dtype"},
                                     {Arg::kDevice, "device"},
                                     {Arg::kLayout, "layout"},
                                     {Arg::kMemoryFormat, "memory_format"},
                                     {Arg::kFloat, "float"}};

/// One argument as it stands in a file. `tensors`: how many tensors a "%k" may name.
std::string arg_to_json(const Arg& arg);
Arg arg_from_json(const JsonIn& in, size_t tensors);

/// A shape whose bytes can be counted: at most 64 dimensions and 2^56 elements.
Shape shape_from_json(const JsonIn& in);

}  // namespace partita::model
