#include <algorithm>

#include "base/error.h"
#include "cli/lab_schedule.h"

namespace partita::cli {
namespace {

// One line of the table: a named schedule in one of its sizes.
struct Entry {
  const ScheduleRow* row;
  std::string label;
  int chunks = 0;
};

std::vector<Entry> entries() {
  std::vector<Entry> out;
  for (const ScheduleRow& row : schedule_rows()) {
    if (row.passes > 1) continue;  // other work
    if (!row.compared.front()) out.push_back({&row, std::string(row.name)});
    for (int chunks : row.compared)
      if (chunks && row.in_waves)
        out.push_back({&row, fmt::format("{} W={}", row.name, chunks / 2), chunks});
      else if (chunks)
        out.push_back({&row, fmt::format("{} v={}", row.name, chunks), chunks});
  }
  return out;
}

struct Outcome {
  std::string label, note;  // note: why there are no numbers
  bool fits = false;
  Evaluation run;
  Rational held;   // peak of a device in micro-batches, a second copy of the weights counted in
  int copies = 1;  // of the weights
  Rational bound = 0;
};

Rational most_held(const Evaluation& run, int64_t per_microbatch) {
  return Rational(*std::max_element(run.peak_memory.begin(), run.peak_memory.end()), per_microbatch);
}

Outcome measure(const Schedule& schedule, const ScheduleRequest& request, const std::string& label) {
  Outcome outcome{.label = label, .copies = schedule.streams};
  outcome.run = evaluate(schedule, price(request.pricing, schedule), request.queue);
  // A device holds this many chunks of one stream, and that is one micro-batch of a device-stage.
  int64_t chunks = std::max(1, schedule.stages / schedule.devices / schedule.passes);
  outcome.held = most_held(outcome.run, chunks * request.per_chunk_memory) +
                 request.weight_memory * Rational(schedule.streams - 1);
  outcome.fits = !outcome.run.deadlock;
  if (!request.cap.empty()) {
    Rational least = *std::min_element(request.cap.begin(), request.cap.end());
    if (!request.cap_in_microbatches) least = least / Rational(chunks);
    outcome.fits &= outcome.held <= least;
  }
  return outcome;
}

Outcome try_entry(const Entry& entry, const ScheduleRequest& request) {
  ScheduleParams params = request.params;
  params.chunks = entry.chunks;
  params.waves = 0;
  if (entry.row->obeys_cap && !request.cap.empty()) {
    std::vector<int64_t> cap = cap_memory(request, params.devices, entry.chunks);
    params.cap = int(std::clamp<int64_t>(cap.front() / request.pricing.held, 1, INT32_MAX));
  }
  try {
    return measure(make_schedule(entry.row->name, params), request, entry.label);
  } catch (const InputError& error) {
    return {.label = entry.label, .note = error.what()};
  }
}

Outcome try_search(Placement placement, int chunks, const std::string& label,
                   const ScheduleRequest& request) {
  try {
    Found found = search_schedule(make_problem(request, placement, chunks));
    Outcome outcome = measure(found.schedule, request, label);
    outcome.bound = found.bound;
    return outcome;
  } catch (const Infeasible& error) {
    return {.label = label, .note = error.what()};
  } catch (const InputError& error) {  // two streams of an odd number of micro-batches
    return {.label = label, .note = error.what()};
  }
}

std::string label_of(const SearchOption& option) {
  if (option.placement == Placement::kLinear) return "search linear";
  const bool both = option.placement == Placement::kBidirectional;
  return fmt::format("search {} v={}", both ? "both ways" : placement_name(option.placement), option.chunks);
}

std::vector<Outcome> measure_all(const ScheduleRequest& request, const Command& command) {
  std::vector<Outcome> outcomes;
  for (const Entry& entry : entries()) outcomes.push_back(try_entry(entry, request));
  for (const SearchOption& option : open_options(request)) {
    const std::string label = label_of(option);
    command.say("evaluating", label);
    outcomes.push_back(try_search(option.placement, option.chunks, label, request));
  }
  // Those that fit first, the shortest first.
  std::stable_sort(outcomes.begin(), outcomes.end(), [](const Outcome& a, const Outcome& b) {
    if (a.fits != b.fits) return a.fits;
    if (a.note.empty() != b.note.empty()) return a.note.empty();
    return a.run.makespan < b.run.makespan;
  });
  return outcomes;
}

Json to_json(const Outcome& outcome) {
  Json json{{"name", outcome.label}, {"fits", outcome.fits}};
  if (!outcome.note.empty()) {
    json["note"] = outcome.note;
    return json;
  }
  json["makespan"] = outcome.run.makespan.str();
  json["span"] = outcome.run.span.str();
  json["bubble_makespan"] = outcome.run.bubble_makespan.str();
  json["bubble_span"] = outcome.run.bubble_span.str();
  json["held_microbatches"] = outcome.held.str();
  json["weight_copies"] = outcome.copies;
  if (outcome.bound > Rational(0)) json["lower_bound"] = outcome.bound.str();
  return json;
}

std::string to_text(const std::vector<Outcome>& outcomes) {
  std::string text = fmt::format("{:<20} {:>10} {:>8} {:>10} {:>8} {:>6} {:>7}  {}\n", "schedule", "makespan",
                                 "bubble", "span", "bubble", "holds", "weights", "cap");
  for (const Outcome& o : outcomes) {
    if (!o.note.empty()) {
      text += fmt::format("{:<20} {}\n", o.label, o.note);
      continue;
    }
    text += fmt::format("{:<20} {:>10.4f} {:>7.2f}% {:>10.4f} {:>7.2f}% {:>6.2f} {:>7}  {}", o.label,
                        o.run.makespan.to_double(), 100 * o.run.bubble_makespan.to_double(),
                        o.run.span.to_double(), 100 * o.run.bubble_span.to_double(), o.held.to_double(),
                        o.copies, o.fits ? "fits" : "over");
    if (o.bound > Rational(0))
      text += fmt::format("  gap {:.2f}%", 100 * (o.run.makespan.to_double() / o.bound.to_double() - 1));
    text += "\n";
  }
  return text +
         "holds: the most micro-batches of activations live on a device, a second copy of the weights "
         "added\n";
}

}  // namespace

void compare_schedules(const ScheduleRequest& request, const Command& command) {
  if (request.params.devices < 1 || request.params.microbatches < 1)
    input_error("lab schedule: --compare needs --devices and --microbatches, 1 or more each");
  if (!request.pricing.stages.empty())
    input_error(
        "lab schedule: --stage-costs has one number of stages, --compare has many; use --embedding and "
        "--head");
  ScheduleRequest both = request;
  // Split and fused schedules in one table need both prices: a backward is the sum of its halves.
  if (!request.split_priced) {
    both.pricing.cost.input_grad = both.pricing.cost.weight_grad = request.pricing.cost.backward / 2;
    both.split_priced = true;
  }
  std::vector<Outcome> outcomes = measure_all(both, command);
  Json rows = Json::array();
  for (const Outcome& outcome : outcomes) rows.push_back(to_json(outcome));
  command.answer(
      {{"devices", request.params.devices}, {"microbatches", request.params.microbatches}, {"rows", rows}},
      to_text(outcomes));
}

}  // namespace partita::cli
