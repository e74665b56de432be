// A workload on a terminal.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/units.hpp"
#include "report/summary.hpp"
#include "report/text_table.hpp"
#include "report/workload_report.hpp"

namespace tandem {
namespace {

// The end of a name says more than its middle.
std::string shortened(const std::string& name, std::size_t most) {
  if (name.size() <= most) return name;
  const std::size_t end = (most - 2) / 2;
  return name.substr(0, most - 2 - end) + ".." + name.substr(name.size() - end);
}

std::size_t width_of(const std::string& text) {
  std::size_t widest = 0, from = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', from)) {
    widest = std::max(widest, columns_of(std::string_view(text).substr(from, end - from)));
    from = end + 1;
  }
  return widest;
}

// Names give way where a table is wider than the terminal.
std::string fitted(const std::vector<TextRow>& rows, std::size_t names, std::size_t columns) {
  constexpr std::size_t kMostName = 32, kLeastName = 8;
  std::string text;
  for (std::size_t most = kMostName; most >= kLeastName; --most) {
    std::vector<TextRow> shorter = rows;
    if (columns != kAnyColumns)
      for (TextRow& row : shorter) row.front() = shortened(row.front(), most);
    text = aligned(std::move(shorter), names);
    if (width_of(text) <= columns) break;
  }
  return text;
}

std::string count(double value) { return value > 0 ? format_count(value) : "0"; }
std::string time(double s) { return s > 0 ? format_time(s) : "0"; }
std::string bytes(std::int64_t value) { return value > 0 ? format_bytes(value) : "0"; }

std::string work_table(const WorkloadReport& r, std::size_t columns) {
  const bool wide = columns == kAnyColumns;
  std::vector<TextRow> rows{{"module", "data", "access", "forward", "backward", "bytes", "flop/B"}};
  if (wide) rows.front().insert(rows.front().end(), {"recompute", "bytes forward", "bytes backward", "modules"});
  for (const GroupReport& g : r.groups) {
    const GroupCosts& c = g.costs;
    rows.push_back({title_of(g), std::string(label_of(g.group.modalities)), g.access.words(), count(c.forward_flops),
                    count(c.backward_flops), count(c.bytes()), count(c.intensity())});
    if (wide)
      rows.back().insert(rows.back().end(),
                         {count(c.recompute_flops), count(c.forward_bytes), count(c.backward_bytes), g.words});
  }
  return fitted(rows, 3, columns);
}

// A letter for where a time comes from.
std::string with_evidence(const ProcessorTime& t) {
  const std::string_view evidence = t.evidence();
  const char* mark = evidence == "measured" ? "" : evidence == "fitted" ? "'" : evidence == "mixed" ? "*" : "~";
  return t.seconds > 0 ? mark + format_time(t.seconds) : "0";
}

std::string place_table(const WorkloadReport& r, std::size_t columns) {
  const bool wide = columns == kAnyColumns;
  const double step = r.step_s.value_or(0);
  std::vector<TextRow> rows{{"module", r.device_word(), "CPU", "copies", "memory", "path", "waits", "place"}};
  if (wide)
    rows.front().insert(rows.front().end(), {"copied in", "copied out", "weights", "gradients", "states", "saved"});
  for (const GroupReport& g : r.groups) {
    const GroupCosts& c = g.costs;
    rows.push_back({title_of(g), with_evidence(c.device), with_evidence(c.cpu), time(c.transfer_s),
                    bytes(c.memory_bytes()), step > 0 ? format_percent(g.share.path_s / step) : "",
                    step > 0 ? time(g.share.exposed_s) : "", place_of(r, g)});
    if (wide)
      rows.back().insert(rows.back().end(), {bytes(c.in_bytes), bytes(c.out_bytes), bytes(c.parameter_bytes),
                                             bytes(c.gradient_bytes), bytes(c.state_bytes), bytes(c.activation_bytes)});
  }
  if (step > 0)
    rows.push_back({"(no module)", "", "", "", "", format_percent(r.others.path_s / step), time(r.others.exposed_s)});
  return fitted(rows, 1, columns);
}

std::string list(const std::vector<std::string>& lines, std::size_t columns) {
  std::string text;
  for (const std::string& line : lines) text += "  " + wrapped(terminal_text(line), columns, 2) + "\n";
  return text;
}

std::string head(const WorkloadReport& r) {
  std::string text = fmt::format("{} in {} on {}, policy {}", r.family, r.precision, r.machine, r.policy);
  if (r.step_s)
    text += fmt::format(": {} of a step of {} is computing", format_time(r.compute_s), format_time(*r.step_s));
  return text +
         fmt::format("; {} {}FLOPS and {}B/s, CPU {}FLOPS and {}B/s", r.device_word(),
                     format_count(r.device.flops_per_s), format_count(r.device.bytes_per_s),
                     format_count(r.cpu.flops_per_s), format_count(r.cpu.bytes_per_s)) +
         (r.gpu ? std::string() : "; " + stand_in_remark());
}

}  // namespace

std::string workload_text(const WorkloadReport& r, std::size_t columns) {
  std::string text =
      wrapped(terminal_text(answer(r)), columns) + "\n\n" + wrapped(terminal_text(head(r)), columns) + "\n";
  text += "\nwhat it computes in a step, in flops, and the bytes that its kernels move\n" + work_table(r, columns);
  text += "\nwhere it stands\n" + place_table(r, columns);
  text += "  " +
          wrapped(
              "~ modelled, ' by its body's fit, * several of them, no mark: measured; copies: what would "
              "cross the bus if it stood on the other side; path: of the critical path "
              "of a simulated step; waits: of that, while the device computes nothing",
              columns, 2) +
          "\n";
  std::vector<std::string> why, meetings;
  for (const GroupReport& g : r.groups)
    why.push_back(fmt::format("{}: {}: {}", title_of(g), place_of(r, g), reason_of(r, g)));
  text += "\nwhy\n" + list(why, columns);
  for (const Meeting& meeting : r.meetings) meetings.push_back(sentence_of(r, meeting));
  if (!meetings.empty()) text += "\nwhere data meet\n" + list(meetings, columns);
  return text + "\ninput\n" + list({input_sentence(r)}, columns);
}

}  // namespace tandem
