#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "dice.h"
#include "model/model.h"

namespace partita::model {

/// A program file that is about to be broken: its JSON tree, the model whose names it uses, and the dice that
/// choose the place.
struct Broken {
  Json& program;
  const Model& model;
  Dice& dice;
  int only_body = -1;  // the one body that may change; -1: any
};

/// An instruction of a body.
struct Site {
  size_t body, instr;
};

using Accept = std::function<bool(const Json&)>;

/// Is the instruction of this kind?
bool does(const Json& instr, const char* kind);
bool is_collective(const Json& instr);
/// Accepts one kind.
Accept doing(const char* kind);

std::vector<Site> sites(const Broken& broken, const Accept& accept);
Json& instrs_of(Broken& broken, size_t body);
Json& at(Broken& broken, Site site);

/// Draws one of the sites; false where there is none.
bool draw_site(Broken& broken, const Accept& accept, Site& site);
/// The place of the same instruction in all bodies of this name: what ranks of other shapes run beside it.
std::vector<Site> alike(Broken& broken, Site site);

/// Type numbers of the slots that a body can name: its locals, loads, and what any body leaves behind.
std::map<std::string, int> types_of(const Broken& broken, size_t body);
/// Slots that instructions of the body before this one have named.
std::vector<std::string> named_before(const Broken& broken, Site site);
/// A slot of the same type as `slot` and another name; "" where there is none.
std::string another_slot(Broken& broken, size_t body, const std::string& slot);

/// A local that no instruction uses.
std::string new_local(Broken& broken, size_t body);
/// A rank slot that nothing on this rank uses.
std::string new_rank_slot(Json& rank);
/// The number of a type; added where the file does not have it.
int number_of(Json& program, const Json& type);

/// Another value of the same kind: a number beside it, the other boolean.
Json other_value(const Json& value, Dice& dice);
/// The leaves of arguments that are no tensors.
std::vector<Json*> plain_leaves(Json& args);

/// Puts an element in front of place k of a list.
void insert_at(Json& list, size_t k, Json value);
void erase_at(Json& list, size_t k);
/// Takes a key out of an object that has some.
void erase_key(Json& object, Dice& dice);
/// Moves element `from` to place `to`.
void move_in(Json& list, size_t from, size_t to);

/// Index of a draw among elements that are accepted; -1: none.
int draw_in(Json& list, Dice& dice, const Accept& accept);

}  // namespace partita::model
