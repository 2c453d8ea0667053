// Changes of calls: attributes, operands, ops and the types of what they make.
#include <algorithm>

#include "fuzz_classes.h"

namespace partita::model {
namespace {

bool draw_call(Broken& broken, Site& site) { return draw_site(broken, doing("compute"), site); }

bool change_leaf(Json& holder, Dice& dice) {
  std::vector<Json*> leaves = plain_leaves(holder);
  if (leaves.empty()) return false;
  Json& leaf = *dice.pick(leaves);
  leaf = other_value(leaf, dice);
  return true;
}

bool attribute(Broken& broken) {
  Site site;
  if (!draw_site(
          broken,
          [](const Json& instr) {
            Json args = does(instr, "compute") ? instr["args"] : Json::array();
            return !plain_leaves(args).empty();
          },
          site))
    return false;
  return change_leaf(at(broken, site)["args"], broken.dice);
}

// One attribute too few, or one that stood for itself until now.
bool attribute_count(Broken& broken) {
  Site site;
  if (!draw_call(broken, site)) return false;
  Json& args = at(broken, site)["args"];
  if (!args.empty() && broken.dice.roll(2))
    erase_at(args, broken.dice.roll(args.size()));
  else
    args.push_back(broken.dice.roll(2) ? Json(1) : Json(0.5));
  return true;
}

bool keyword(Broken& broken) {
  Site site;
  if (broken.dice.roll(4) == 0 && draw_call(broken, site)) {
    at(broken, site)["kwargs"][broken.dice.roll(2) ? "alpha" : "dim"] = static_cast<int>(broken.dice.roll(3));
    return true;
  }
  if (!draw_site(
          broken, [](const Json& instr) { return instr.contains("kwargs"); }, site))
    return false;
  Json& kwargs = at(broken, site)["kwargs"];
  if (broken.dice.roll(2)) return change_leaf(kwargs, broken.dice);
  erase_key(kwargs, broken.dice);
  return true;
}

bool operands_exchanged(Broken& broken) {
  Site site;
  if (!draw_site(
          broken, [](const Json& instr) { return instr["in"].size() > 1; }, site))
    return false;
  Json& in = at(broken, site)["in"];
  const size_t a = broken.dice.roll(in.size()), b = broken.dice.roll(in.size());
  std::swap(in[a], in[b]);
  return a != b;
}

// The call names another of its inputs.
bool operand_number(Broken& broken) {
  Site site;
  if (!draw_site(
          broken, [](const Json& instr) { return does(instr, "compute") && instr["in"].size() > 1; }, site))
    return false;
  Json& instr = at(broken, site);
  std::vector<Json*> operands;
  for (Json& arg : instr["args"])
    if (arg.is_string() && arg.get<std::string>()[0] == '%') operands.push_back(&arg);
  if (operands.empty()) return false;
  *broken.dice.pick(operands) = "%" + std::to_string(broken.dice.roll(instr["in"].size()));
  return true;
}

bool another_read(Broken& broken) {
  Site site;
  if (!draw_site(
          broken, [](const Json& instr) { return !instr["in"].empty(); }, site))
    return false;
  Json& in = at(broken, site)["in"];
  Json& slot = broken.dice.pick(in);
  if (!slot.is_string()) return false;
  std::string other = another_slot(broken, site.body, slot);
  if (other.empty()) return false;
  slot = other;
  return true;
}

// The op of every shape of the body becomes `accept`ed other one.
bool rename_op(Broken& broken, bool same_target) {
  Site site;
  if (!draw_call(broken, site)) return false;
  const std::string name = at(broken, site)["op"];
  auto mine = std::find_if(broken.model.ops.begin(), broken.model.ops.end(),
                           [&](const Op& op) { return op.name == name; });
  if (mine == broken.model.ops.end()) return false;
  std::vector<std::string> others;
  for (const Op& op : broken.model.ops)
    if (op.name != name && (op.target == mine->target) == same_target &&
        op.outputs.size() == mine->outputs.size() && op.args.size() == mine->args.size())
      others.push_back(op.name);
  if (others.empty()) return false;
  const std::string other = broken.dice.pick(others);
  for (Site place : alike(broken, site)) at(broken, place)["op"] = other;
  return true;
}
bool op_of_same_target(Broken& broken) { return rename_op(broken, true); }
bool op_of_other_target(Broken& broken) { return rename_op(broken, false); }

// The type of one output, or of everything that has this type.
template <class Change>
bool change_type(Broken& broken, Change change) {
  if (broken.dice.roll(4) == 0) {
    if (broken.program["types"].empty()) return false;
    return change(broken.dice.pick(broken.program["types"]));
  }
  Site site;
  if (!draw_site(
          broken, [](const Json& instr) { return instr.contains("types"); }, site))
    return false;
  const size_t output = broken.dice.roll(at(broken, site)["types"].size());
  const Json number = at(broken, site)["types"][output];
  if (!number.is_number_integer()) return false;
  Json type = broken.program["types"][number.get<size_t>()];
  if (!change(type)) return false;
  at(broken, site)["types"][output] = number_of(broken.program, type);
  return true;
}

bool type_strides(Broken& broken) {
  return change_type(broken, [&](Json& type) {
    Json& strides = type[2];
    if (strides.empty()) return false;
    const size_t a = broken.dice.roll(strides.size()), b = broken.dice.roll(strides.size());
    if (a != b && broken.dice.roll(3))
      std::swap(strides[a], strides[b]);
    else
      strides[a] = std::max<int64_t>(0, other_value(strides[a], broken.dice));
    return true;
  });
}

// A dense tensor whose dimensions lie in another order.
bool type_order(Broken& broken) {
  return change_type(broken, [&](Json& type) {
    const Json& shape = type[1];
    if (shape.size() < 2) return false;
    std::vector<size_t> order(shape.size());
    for (size_t d = 0; d < order.size(); ++d) order[d] = d;
    std::swap(broken.dice.pick(order), broken.dice.pick(order));
    int64_t stride = 1;
    for (size_t k = order.size(); k-- > 0;) {
      type[2][order[k]] = stride;
      stride *= shape[order[k]].get<int64_t>();
    }
    return true;
  });
}

bool type_dtype(Broken& broken) {
  return change_type(broken, [&](Json& type) {
    constexpr const char* kNames[] = {"float64", "float32", "bfloat16", "float16", "int64", "bool"};
    type[0] = kNames[broken.dice.roll(std::size(kNames))];
    return true;
  });
}

bool type_shape(Broken& broken) {
  return change_type(broken, [&](Json& type) {
    Json& shape = type[1];
    if (shape.empty()) return false;
    const size_t a = broken.dice.roll(shape.size()), b = broken.dice.roll(shape.size());
    if (a != b && broken.dice.roll(2))
      std::swap(shape[a], shape[b]);
    else
      shape[a] = std::max<int64_t>(0, other_value(shape[a], broken.dice));
    return true;
  });
}

bool type_number(Broken& broken) {
  Site site;
  if (!draw_site(
          broken, [](const Json& instr) { return instr.contains("types"); }, site))
    return false;
  broken.dice.pick(at(broken, site)["types"]) = broken.dice.roll(broken.program["types"].size());
  return true;
}

bool output(Broken& broken) {
  Site site;
  if (!draw_site(
          broken, [](const Json& instr) { return !instr["out"].empty(); }, site))
    return false;
  Json& out = at(broken, site)["out"];
  Json& slot = broken.dice.pick(out);
  if (broken.dice.roll(4) == 0) {
    std::swap(slot, broken.dice.pick(out));
    return true;
  }
  if (!slot.is_string()) {
    slot = new_local(broken, site.body);
    return true;
  }
  std::string other = another_slot(broken, site.body, slot);
  slot = other.empty() || broken.dice.roll(3) == 0 ? Json(nullptr) : Json(other);
  return true;
}

// Everything in the body that has this name gets another: nothing happens.
bool slot_renamed(Broken& broken) {
  Site site;
  if (!draw_site(
          broken,
          [](const Json& instr) {
            return !instr["out"].empty() && instr["out"][0].is_string() &&
                   instr["out"][0].get<std::string>()[0] == 'l';
          },
          site))
    return false;
  const std::string old = at(broken, site)["out"][0];
  const std::string name = new_local(broken, site.body);
  for (Json& instr : instrs_of(broken, site.body))
    for (const char* key : {"in", "out", "drop"})
      if (instr.contains(key))
        for (Json& slot : instr[key])
          if (slot == old) slot = name;
  return true;
}

constexpr FuzzClass kChanges[] = {
    {"an attribute of a call", attribute, "attributes an op ignores, written as it would read them"},
    {"an attribute more or less", attribute_count, "the default of the op, left out or written"},
    {"a keyword of a call", keyword, "the default of the op, left out or written"},
    {"two inputs exchanged", operands_exchanged, "addends of one sum, in the other order"},
    {"another input named", operand_number, "both inputs are one slot"},
    {"another slot of the same type read", another_read, "two slots with the same meaning"},
    {"another op of the same target", op_of_same_target, "two ops of the same operands"},
    {"an op of another target", op_of_other_target, ""},
    {"strides of a type", type_strides, "strides of a dimension of one element"},
    {"order of dimensions of a type", type_order, "a dimension of one element lies anywhere"},
    {"dtype of a type", type_dtype, ""},
    {"shape of a type", type_shape, "a type that nothing has"},
    {"another type for an output", type_number, "types that differ in nothing"},
    {"another slot written, or none", output, "an output that nothing reads"},
    {"a local renamed throughout its body", slot_renamed, "names mean nothing"},
};

}  // namespace

std::span<const FuzzClass> call_changes() { return kChanges; }

}  // namespace partita::model
