#include "program/trace.h"

#include <fmt/format.h>

#include <map>

#include "base/json.h"

namespace partita::program {
namespace {

std::string quote(const std::string& text) { return Json(text).dump(); }
std::string number(double value) { return Json(value).dump(); }

template <class Show>
std::string lines_of(const std::vector<TraceEvent>& events, Show show) {
  std::string text;
  for (size_t i = 0; i < events.size(); ++i)
    text += fmt::format("  {}{}\n", show(events[i]), i + 1 < events.size() ? "," : "");
  return text;
}

}  // namespace

std::vector<std::string> check(const Trace& trace) {
  std::vector<std::string> wrong;
  std::map<std::pair<int32_t, std::string>, const TraceEvent*> last;
  for (const TraceEvent& event : trace.events) {
    std::string where = fmt::format("rank {}, {}, {}", event.rank, event.stream, event.name);
    if (event.end < event.start) wrong.push_back(where + ": ends before it starts");
    if (event.start < 0 || event.end > trace.step_seconds) wrong.push_back(where + ": lies outside the step");
    const TraceEvent*& before = last[{event.rank, event.stream}];
    if (before && event.start < before->end)
      wrong.push_back(fmt::format("{}: starts before {} has ended", where, before->name));
    before = &event;
  }
  return wrong;
}

std::string to_json(const Trace& trace) {
  std::string hidden = trace.hidden_comm_seconds == 0
                           ? ""
                           : fmt::format("\"hidden_comm_seconds\": {}, ", number(trace.hidden_comm_seconds));
  std::string text = fmt::format(
      "{{\"format\": \"partita.trace\", \"version\": 1, \"clock\": {}, \"step_seconds\": {}, \"bubble\": "
      "{},\n"
      " \"exposed_comm_seconds\": {}, {}\"peak_bytes\": [{}],\n \"events\": [\n",
      quote(trace.clock), number(trace.step_seconds), number(trace.bubble),
      number(trace.exposed_comm_seconds), hidden, fmt::join(trace.peak_bytes, ", "));
  auto show = [](const TraceEvent& event) {
    return fmt::format("{{\"rank\": {}, \"stream\": {}, \"name\": {}, \"start\": {}, \"end\": {}}}",
                       event.rank, quote(event.stream), quote(event.name), number(event.start),
                       number(event.end));
  };
  return text + lines_of(trace.events, show) + " ]}\n";
}

std::string to_chrome(const Trace& trace) {
  std::map<std::pair<int32_t, std::string>, int> threads;  // the format wants numbers, people want names
  std::map<int32_t, int> counts;
  std::string names;
  for (const TraceEvent& event : trace.events) {
    if (!threads.contains({event.rank, event.stream}) && counts[event.rank] == 0)
      names += fmt::format(
          "  {{\"ph\": \"M\", \"pid\": {0}, \"name\": \"process_name\", \"args\": {{\"name\": \"rank "
          "{0}\"}}}},\n",
          event.rank);
    auto [found, fresh] = threads.try_emplace({event.rank, event.stream}, counts[event.rank]);
    if (!fresh) continue;
    ++counts[event.rank];
    names += fmt::format(
        "  {{\"ph\": \"M\", \"pid\": {}, \"tid\": {}, \"name\": \"thread_name\", \"args\": {{\"name\": "
        "{}}}}},\n",
        event.rank, found->second, quote(event.stream));
  }
  auto show = [&](const TraceEvent& event) {
    return fmt::format("{{\"ph\": \"X\", \"pid\": {}, \"tid\": {}, \"name\": {}, \"ts\": {}, \"dur\": {}}}",
                       event.rank, threads.at({event.rank, event.stream}), quote(event.name),
                       number(event.start * 1e6), number((event.end - event.start) * 1e6));
  };
  return "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n" + names + lines_of(trace.events, show) +
         " ]}\n";
}

}  // namespace partita::program
