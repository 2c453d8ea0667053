#include "schedule/search/pricing.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/names.h"

namespace partita::schedule {
namespace {

bool shared(const Schedule& shape, int stage) { return shape.devices_of(stage, 0).size() > 1; }

// Stages that together are one model on all devices: shared ends do not count, passes count once.
int body_stages(const Schedule& shape) {
  int body = 0;
  for (int stage = 0; stage < shape.stages; ++stage) body += !shared(shape, stage);
  return body / shape.passes;
}

StageCost scaled(const StageCost& cost, const Rational& by) {
  return {cost.forward * by, cost.input_grad * by, cost.weight_grad * by, cost.backward * by};
}

StageCost sum(const StageCost& a, const StageCost& b) {
  return {a.forward + b.forward, a.input_grad + b.input_grad, a.weight_grad + b.weight_grad,
          a.backward + b.backward};
}

// `forward` time of work shaped like `like`.
StageCost shaped(const StageCost& like, const Rational& forward) {
  return like.forward == Rational(0) ? StageCost{forward, forward, forward, forward * 2}
                                     : scaled(like, forward / like.forward);
}

Costs uniform(const Pricing& pricing, const Schedule& shape) {
  Rational share = pricing.per_chunk ? Rational(1) : Rational(shape.devices, body_stages(shape));
  Costs costs = uniform_costs(scaled(pricing.cost, share), pricing.hop, shape.stages);
  StageCost first = shaped(pricing.cost, pricing.embedding), last = shaped(pricing.cost, pricing.head);
  const int end = shape.stages - 1;
  if (shared(shape, 0)) {
    costs.stages[0] = scaled(first, Rational(1, shape.devices));
    costs.stages[end] = scaled(last, Rational(1, shape.devices));
  } else {
    costs.stages[0] = sum(costs.stages[0], first);
    costs.stages[end] = sum(costs.stages[end], last);
  }
  return costs;
}

std::vector<std::string_view> split(std::string_view text, char by) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; at <= text.size();) {
    size_t end = std::min(text.find(by, at), text.size());
    std::string_view part = text.substr(at, end - at);
    while (!part.empty() && (part.front() == ' ' || part.front() == '\t')) part.remove_prefix(1);
    while (!part.empty() && (part.back() == ' ' || part.back() == '\r' || part.back() == '\t'))
      part.remove_suffix(1);
    parts.push_back(part);
    at = end + 1;
  }
  return parts;
}

const std::vector<std::string> kColumns = {"stage",       "forward", "backward",  "input_grad",
                                           "weight_grad", "held",    "held_after"};

// The meaning of each column: the header's words, or by count where the first line is numbers already.
std::vector<std::string> columns_of(const std::vector<std::string_view>& cells, std::string_view where,
                                    bool& header) {
  header = !cells.front().empty() && (cells.front()[0] < '0' || cells.front()[0] > '9');
  if (!header && cells.size() == 2) return {"forward", "backward"};
  if (!header && cells.size() == 3) return {"forward", "input_grad", "weight_grad"};
  if (!header)
    input_error(
        "{}: line 1: {} columns; needs forward,backward or forward,input_grad,weight_grad, or a header",
        where, cells.size());
  std::vector<std::string> names(cells.begin(), cells.end());
  for (const std::string& name : names)
    if (std::find(kColumns.begin(), kColumns.end(), name) == kColumns.end())
      input_error("{}: line 1: unknown column '{}'{}", where, name, did_you_mean(name, kColumns));
  return names;
}

struct StageRow {
  std::optional<Rational> forward, backward, input_grad, weight_grad, held, held_after, stage;

  std::optional<Rational>& cell(const std::string& column) {
    std::optional<Rational>* cells[] = {&stage,       &forward, &backward,  &input_grad,
                                        &weight_grad, &held,    &held_after};
    return *cells[std::find(kColumns.begin(), kColumns.end(), column) - kColumns.begin()];
  }
};

int64_t whole(const Rational& value, const std::string& where) {
  if (value.den() != 1) input_error("{}: memory {} is not a whole number", where, value.str());
  return value.num();
}

void add_row(StageRow row, const std::string& where, Pricing& pricing) {
  if (!row.forward) input_error("{}: no forward cost; every stage needs one", where);
  if (!row.backward && !(row.input_grad && row.weight_grad))
    input_error("{}: no backward cost; give backward, or input_grad and weight_grad", where);
  StageCost cost{.forward = *row.forward};
  Rational half = row.backward ? *row.backward / 2 : Rational(0);
  cost.input_grad = row.input_grad.value_or(half);
  cost.weight_grad = row.weight_grad.value_or(half);
  cost.backward = row.backward.value_or(cost.input_grad + cost.weight_grad);
  pricing.stages.push_back(cost);
  int64_t held = row.held ? whole(*row.held, where) : pricing.held;
  int64_t after = row.held_after ? whole(*row.held_after, where) : row.held ? held : pricing.held_after;
  if (held < 0 || after < 0 || after > held)
    input_error("{}: holds {} and then {}; needs numbers that do not grow", where, held, after);
  pricing.memory.push_back({held, after});
}

}  // namespace

Costs price(const Pricing& pricing, const Schedule& shape) {
  Costs costs = uniform(pricing, shape);
  if (!pricing.stages.empty()) {
    if (int(pricing.stages.size()) != shape.stages)
      input_error("stage costs: {} rows; schedule {} has {} stages", pricing.stages.size(), shape.name,
                  shape.stages);
    costs.stages = pricing.stages;
  }
  costs.memory = pricing.memory;
  if (costs.memory.empty())
    for (int stage = 0; stage < shape.stages; ++stage)
      costs.memory.push_back(shared(shape, stage) ? StageMemory{0, 0}
                                                  : StageMemory{pricing.held, pricing.held_after});
  costs.links = pricing.links;
  return costs;
}

void parse_stage_costs(std::string_view text, std::string_view where, Pricing& pricing) {
  std::vector<std::string> columns;
  int line = 0;
  for (std::string_view row_text : split(text, '\n')) {
    ++line;
    if (row_text.empty()) continue;
    std::vector<std::string_view> cells = split(row_text, ',');
    bool header = false;
    if (columns.empty()) columns = columns_of(cells, where, header);
    if (header) continue;
    std::string place = fmt::format("{}: line {}", where, line);
    if (cells.size() != columns.size())
      input_error("{}: {} cells; needs {}", place, cells.size(), columns.size());
    StageRow row;
    for (size_t i = 0; i < cells.size(); ++i)
      if (!cells[i].empty()) row.cell(columns[i]) = parse_rational(cells[i], place);
    add_row(row, place, pricing);
  }
  if (pricing.stages.empty()) input_error("{}: no stages", where);
}

std::vector<Rational> parse_links(std::string_view text, std::string_view where) {
  std::vector<Rational> links;
  size_t devices = 0, rows = 0;
  for (std::string_view row : split(text, '\n')) {
    if (row.empty()) continue;
    std::vector<std::string_view> cells = split(row, ',');
    if (devices == 0) devices = cells.size();
    ++rows;
    if (cells.size() != devices)
      input_error("{}: row {}: {} hops; needs {}", where, rows, cells.size(), devices);
    for (std::string_view cell : cells) links.push_back(parse_rational(cell, where));
  }
  if (rows != devices) input_error("{}: {} rows of {} hops; needs a square table", where, rows, devices);
  return links;
}

}  // namespace partita::schedule
