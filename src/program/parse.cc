#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/json.h"
#include "base/names.h"
#include "model/json_rows.h"
#include "program/check.h"
#include "program/fold_file.h"
#include "program/words.h"

namespace partita::program {
namespace {

constexpr int64_t kMaxCount = int64_t{1} << 30;   // of anything that is numbered: ranks, tags, groups
constexpr int64_t kMaxSize = int64_t{1} << 48;    // of one dimension or stride
constexpr int64_t kMaxFrames = int64_t{1} << 27;  // frame slots of all micro-batches of a rank
constexpr int64_t kMaxLeaves = 64;                // dimensions of a tensor, leaves of a dimension

/// Reads one of the words of a table; its number in the table.
template <class Word, size_t kCount>
int read_word(const JsonIn& in, const Word (&words)[kCount], const char* (*text_of)(const Word&)) {
  std::string name = in.text();
  std::vector<std::string> known;
  for (size_t i = 0; i < kCount; ++i) {
    if (name == text_of(words[i])) return static_cast<int>(i);
    known.emplace_back(text_of(words[i]));
  }
  in.fail(fmt::format("unknown word \"{}\"{}", name, did_you_mean(name, known)));
}
const char* plain(const char* const& word) { return word; }
template <class Row>
const char* row_name(const Row& row) {
  return row.name;
}

int32_t count(const JsonIn& in) { return static_cast<int32_t>(in.integer(0, kMaxCount)); }

std::vector<int64_t> sizes(const JsonIn& in) {
  std::vector<int64_t> values;
  for (size_t i = 0; i < in.size(); ++i) values.push_back(in[i].integer(0, kMaxSize));
  return values;
}

class Reader {
 public:
  Reader(const Model& model, size_t bytes) : model_(model), bytes_(static_cast<int64_t>(bytes)) {
    for (size_t i = 0; i < model.ops.size(); ++i) ops_[model.ops[i].name] = static_cast<int32_t>(i);
    for (size_t i = 0; i < model.tensors.size(); ++i)
      tensors_[model.tensors[i].name] = static_cast<int32_t>(i);
  }

  FoldedProgram folded(const JsonIn& in) {
    header(in);
    if (in.has("fold")) fold_ = read_fold(in["fold"]);
    if (!fold_.empty() && in["ranks"].size() != fold_.classes.size())
      in["ranks"].fail(
          fmt::format("has {} parts, `fold` has {} classes", in["ranks"].size(), fold_.classes.size()));
    Program program = this->program(in);
    return {std::move(program), std::move(fold_)};
  }

 private:
  Program program(const JsonIn& in) {
    Program out;
    microbatches_ = out.microbatches = used(in["microbatches"]);
    out.optimizer = read_optimizer(in["optimizer"]);
    if (in.has("precision")) out.optimizer.precision = read_precision(in["precision"]);
    each(in["types"], [&](const JsonIn& one) { out.types.push_back(type(one)); });
    types_ = out.types.size();
    each(in["bodies"], [&](const JsonIn& one) { out.bodies.push_back(body(one)); });
    bodies_ = out.bodies.size();
    each(in["ranks"], [&](const JsonIn& one) { out.ranks.push_back(rank(one)); });
    return out;
  }

  template <class Read>
  static void each(const JsonIn& in, Read read) {
    for (size_t i = 0; i < in.size(); ++i) read(in[i]);
  }

  void header(const JsonIn& in) const {
    in.only({"format", "version", "model", "microbatches", "optimizer", "precision", "fold", "types",
             "bodies", "ranks"});
    if (in["format"].text() != "partita.program")
      in["format"].fail(fmt::format("is \"{}\", needs to be \"partita.program\"", in["format"].text()));
    if (in["version"].integer() != kProgramVersion)
      in["version"].fail(fmt::format("is {}, this partita reads version {}; lower the plan again",
                                     in["version"].integer(), kProgramVersion));
    if (in["model"].text() != fingerprint(model_))
      in["model"].fail(fmt::format("this program belongs to {}, not to {}; lower the plan for this model",
                                   in["model"].text(), fingerprint(model_)));
  }

  /// How many there are of something that is named at least once: no more than the file has bytes, so that a
  /// short file cannot ask for much memory.
  int32_t used(const JsonIn& in) const {
    return static_cast<int32_t>(in.integer(0, std::min(bytes_, kMaxCount)));
  }

  static DType dtype(const JsonIn& in) {
    std::string name = in[size_t{0}].text();
    std::optional<DType> known = find_dtype(name);
    return known ? *known : parse_dtype(name, in.where());
  }

  static TensorType type(const JsonIn& in) {
    if (in.size() != 3) in.fail("needs three parts: dtype, shape, strides");
    return {.shape = shape_from_json(in[1]), .strides = sizes(in[2]), .dtype = dtype(in)};
  }

  static Slot slot(const JsonIn& in) {
    if (in.raw().is_null()) return {};
    std::string text = in.text();
    size_t space = text.empty() ? std::string::npos : std::string_view("rfl").find(text[0]);
    std::string digits = text.empty() ? "" : text.substr(1);
    bool whole =
        !digits.empty() && digits.size() < 10 && digits.find_first_not_of("0123456789") == digits.npos;
    if (space == std::string::npos || !whole)
      in.fail(fmt::format("\"{}\" is not a slot; write r, f or l and its number, as in \"f3\"", text));
    return {static_cast<Space>(space), std::stoi(digits)};
  }

  static std::vector<Slot> slots(const JsonIn& in) {
    std::vector<Slot> out;
    each(in, [&](const JsonIn& one) { out.push_back(slot(one)); });
    return out;
  }

  TypeId type_id(const JsonIn& in) const {
    if (in.raw().is_null()) return {};
    return TypeId{static_cast<int32_t>(in.integer(0, static_cast<int64_t>(types_) - 1))};
  }

  static int32_t named(const JsonIn& in, const std::map<std::string, int32_t>& known, const char* what) {
    auto found = known.find(in.text());
    if (found != known.end()) return found->second;
    std::vector<std::string> names;
    for (const auto& [name, id] : known) names.push_back(name);
    in.fail(fmt::format("the model has no {} \"{}\"{}", what, in.text(), did_you_mean(in.text(), names)));
  }

  void call(const JsonIn& in, Instr& out) const {
    out.op = OpId{named(in["op"], ops_, "op")};
    each(in["args"], [&](const JsonIn& one) { out.args.push_back(arg_from_json(one, out.in.size())); });
    if (in.has("kwargs")) {
      JsonIn kwargs = in["kwargs"];
      for (const std::string& key : kwargs.keys())
        out.kwargs.emplace_back(key, arg_from_json(kwargs[key.c_str()], out.in.size()));
    }
    if (in.has("view")) out.view = in["view"].boolean();
    if (in.has("into")) out.into = count(in["into"]);
  }

  static Cut cut(const JsonIn& in) {
    if (in.size() != 4) in.fail("needs four numbers: dimension, leaf, outer, inner");
    return {static_cast<int32_t>(in[0].integer(0, kMaxLeaves)),
            static_cast<int32_t>(in[1].integer(0, kMaxLeaves)), in[2].integer(0, kMaxSize),
            in[3].integer(0, kMaxSize)};
  }

  Steps steps(const JsonIn& in) const {
    if (fold_.empty()) in.fail("a slice moves with the ranks of a class, and this program has no `fold`");
    return read_steps(in, fold_);
  }

  Instr instr(const JsonIn& in) const {
    in.only({"do",     "op",    "args",   "kwargs", "view",  "into",     "sum",
             "in",     "out",   "types",  "group",  "cut",   "pieces",   "scatter",
             "shares", "begin", "length", "steps",  "later", "settings", "drop"});
    const InstrRow& row = kInstrRows[read_word(in["do"], kInstrRows, row_name<InstrRow>)];
    Instr out{.kind = row.kind, .in = slots(in["in"]), .out = slots(in["out"])};
    if (in.has("types")) each(in["types"], [&](const JsonIn& one) { out.types.push_back(type_id(one)); });
    if (row.kind == InstrKind::kCompute) call(in, out);
    if (row.collective) out.group = count(in["group"]);
    if (row.cut) out.cut = cut(in["cut"]);
    if (row.pieces) out.pieces = sizes(in["pieces"]);
    if (row.shares) {
      out.scatter = cut(in["scatter"]);
      out.shares = sizes(in["shares"]);
    }
    if (row.range) {
      const bool moves = in.has("steps");
      if (moves) out.steps = steps(in["steps"]);
      out.begin = in["begin"].integer(moves ? -kMaxSize : 0, kMaxSize);
      out.length = in["length"].integer(0, kMaxSize);
    }
    if (in.has("later")) out.later = in["later"].boolean();
    if (in.has("settings")) out.settings = count(in["settings"]);
    if (in.has("sum")) out.sum = OpId{named(in["sum"], ops_, "op")};
    if (in.has("drop")) out.drop = slots(in["drop"]);
    return out;
  }

  Body body(const JsonIn& in) const {
    in.only({"name", "part", "stage", "stream", "locals", "instrs"});
    Body out{.name = in["name"].text(), .locals = used(in["locals"])};
    if (in.has("part")) {
      out.part = static_cast<BodyPart>(read_word(in["part"], kPartNames, plain));
      out.stage = count(in["stage"]);
      if (in.has("stream")) out.stream = count(in["stream"]);
    }
    each(in["instrs"], [&](const JsonIn& one) { out.instrs.push_back(instr(one)); });
    return out;
  }

  Action action(const JsonIn& in) const {
    Action out;
    if (in.size() == 0) in.fail("needs to begin with what is done");
    const ActionRow& row = kActionRows[read_word(in[size_t{0}], kActionRows, row_name<ActionRow>)];
    out.kind = row.kind;
    size_t need = 3 + (row.talks ? 2 : 0) + (row.makes ? 1 : 0);
    if (in.size() != need) in.fail(fmt::format("\"{}\" has {} parts, needs {}", row.name, in.size(), need));
    out.microbatch = count(in[2]);
    if (out.kind == ActionKind::kRun) {
      out.body = BodyId{static_cast<int32_t>(in[1].integer(0, static_cast<int64_t>(bodies_) - 1))};
      return out;
    }
    out.slot = slot(in[1]);
    if (row.talks) out.peer = count(in[3]), out.tag = count(in[4]);
    if (row.makes) out.type = type_id(in[5]);
    return out;
  }

  static Box box(const JsonIn& in) {
    Box out;
    each(in, [&](const JsonIn& leaves) {
      out.emplace_back();
      each(leaves, [&](const JsonIn& one) {
        std::vector<int64_t> ends = sizes(one);
        if (ends.size() != 2 || ends[0] > ends[1]) one.fail("needs two numbers, [begin, end)");
        out.back().push_back({ends[0], ends[1]});
      });
    });
    return out;
  }

  /// Reads a box. For a rank class that is its first rank's; `spans` then gets that of all.
  Box box(const JsonIn& in, std::vector<std::vector<SpanBox>>& spans) const {
    if (fold_.empty()) return box(in);
    spans.back().push_back(read_spans(in, fold_));
    return first_box(spans.back().back(), fold_.classes[spans.size() - 1]);
  }

  Load load(const JsonIn& in) {
    in.only({"slot", "tensor", "box", "type", "microbatch", "state"});
    Load out{.slot = slot(in["slot"]),
             .tensor = TensorId{named(in["tensor"], tensors_, "tensor")},
             .box = box(in["box"], fold_.loads),
             .type = type_id(in["type"])};
    if (in.has("microbatch")) out.microbatch = count(in["microbatch"]);
    if (in.has("state")) out.state = count(in["state"]);
    return out;
  }

  Result result(const JsonIn& in) {
    in.only({"kind", "slot", "tensor", "box"});
    return {.kind = static_cast<Result::Kind>(read_word(in["kind"], kResultNames, plain)),
            .slot = slot(in["slot"]),
            .tensor = TensorId{named(in["tensor"], tensors_, "tensor")},
            .box = box(in["box"], fold_.results)};
  }

  RankProgram rank(const JsonIn& in) {
    in.only({"rank_slots", "frame_slots", "groups", "loads", "results", "actions"});
    RankProgram out;
    out.rank_slots = used(in["rank_slots"]);
    out.frame_slots = used(in["frame_slots"]);
    if (int64_t{out.frame_slots} * microbatches_ > kMaxFrames)
      in["frame_slots"].fail(fmt::format("{} slots for each of {} micro-batches are more than {}",
                                         out.frame_slots, microbatches_, kMaxFrames));
    each(in["groups"], [&](const JsonIn& group) {
      out.groups.emplace_back();
      each(group, [&](const JsonIn& member) { out.groups.back().push_back(count(member)); });
    });
    for (auto* boxes : {&fold_.loads, &fold_.results})
      if (!fold_.empty()) boxes->emplace_back();
    each(in["loads"], [&](const JsonIn& one) { out.loads.push_back(load(one)); });
    each(in["results"], [&](const JsonIn& one) { out.results.push_back(result(one)); });
    each(in["actions"], [&](const JsonIn& one) { out.actions.push_back(action(one)); });
    return out;
  }

  const Model& model_;
  int64_t bytes_;
  int64_t microbatches_ = 0;
  std::map<std::string, int32_t> ops_, tensors_;
  size_t types_ = 0, bodies_ = 0;
  Fold fold_;
};

}  // namespace

FoldedProgram parse_folded(std::string_view text, const Model& model, std::string_view where) {
  Json json = parse_json(text, where);
  FoldedProgram read = Reader(model, text.size()).folded(JsonIn(json, std::string(where)));
  std::vector<std::string> wrong = check(read.program, model, read.fold);
  if (wrong.empty()) return read;
  input_error("{}: {}{}; lower the plan again", where, wrong[0],
              wrong.size() > 1 ? fmt::format(" (and {} more)", wrong.size() - 1) : "");
}

Program parse_program(std::string_view text, const Model& model, std::string_view where) {
  FoldedProgram read = parse_folded(text, model, where);
  if (!read.fold.empty())
    input_error("{}: fold: these are classes of ranks, and all ranks are needed here; lower without --folded",
                where);
  return std::move(read.program);
}

}  // namespace partita::program
