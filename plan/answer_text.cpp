// An answer for a terminal.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/units.hpp"
#include "core/run/advice.hpp"
#include "plan/answer.hpp"
#include "report/summary.hpp"
#include "report/wrap.hpp"

namespace tandem {
namespace {

constexpr double kDay = 86400;

// "2,083", and with a decimal or two what is small.
std::string number(double value) {
  if (value < 9.995) return fmt::format("{:.2f}", value);
  if (value < 99.95) return fmt::format("{:.1f}", value);
  std::string digits = fmt::format("{:.0f}", value);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

std::string whole(std::size_t value) {
  return value < 100 ? std::to_string(value) : number(static_cast<double>(value));
}

bool counts_tokens(const Plan& plan) { return plan.run.tokens_per_s > 0; }
double rate(const Plan& plan) { return counts_tokens(plan) ? plan.run.tokens_per_s : plan.run.samples_per_s; }
const char* unit(const Plan& plan) { return counts_tokens(plan) ? "tokens" : "samples"; }

std::string doing(const Answer& answer) { return answer.generates ? "generating" : "training"; }

std::string on_machine(const Answer& answer) {
  return fmt::format("on {}{}", answer.machine, answer.with.empty() ? "" : " with " + answer.with);
}

// With the question's own policy where that is fixed.
std::string words(const Answer& answer, const Plan& plan) {
  if (answer.policy.empty()) return plan.words;
  return answer.policy + (plan.words.empty() ? "" : ", ") + plan.words;
}

const CandidateRun::Memory* memory_of(const Plan& plan, const std::string& name) {
  for (const CandidateRun::Memory& memory : plan.run.memory)
    if (memory.name == name) return &memory;
  return nullptr;
}

std::string used(const Plan& plan, const std::string& name) {
  const CandidateRun::Memory* memory = memory_of(plan, name);
  if (memory == nullptr) return "-";
  const std::string peak = format_bytes(memory->peak), capacity = format_bytes(memory->capacity);
  const auto [a, b] = std::pair(peak.rfind(' '), capacity.rfind(' '));
  const bool one_unit = peak.substr(a) == capacity.substr(b);
  return (one_unit ? peak.substr(0, a) : peak) + " of " + capacity;
}

std::string row(const std::string& head, const std::string& step, const std::string& rate, const std::string& day,
                const std::string& device, const std::string& host) {
  return fmt::format("{:<2} {:<10} {:>9} {:>9}   {:<21} {}\n", head, step, rate, day, device, host);
}

std::string price(const Answer& answer, const Plan& plan) {
  return fmt::format("costs {} a million {}, {} a day", number(price_of_million(answer, plan)), unit(plan),
                     number(24 * answer.price_per_hour * static_cast<double>(answer.devices)));
}

std::string plan_lines(const Answer& answer, const Plan& plan, const std::string& head) {
  std::string text = row(head, format_time(plan.run.step_s), number(rate(plan)), format_count(rate(plan) * kDay),
                         used(plan, "device0"), used(plan, "host"));
  text += "   " + wrapped(terminal_text(words(answer, plan)) + (plan.others > 0 ? " *" : ""), 3);
  std::string more;
  if (plan.run.interval_s)
    more = "90% interval of the step " + format_range((*plan.run.interval_s)[0], (*plan.run.interval_s)[1]);
  if (const CandidateRun::Memory* disk = memory_of(plan, "disk"); disk != nullptr && disk->peak > 0)
    more += (more.empty() ? "" : "; ") + std::string("disk ") + used(plan, "disk");
  if (plan.run.first_token_s > 0)
    more += (more.empty() ? "" : "; ") + std::string("first token after ") + format_time(plan.run.first_token_s);
  if (answer.price_per_hour > 0) more += (more.empty() ? "" : "; ") + price(answer, plan);
  if (!more.empty()) text += "   " + wrapped(more, 3);
  return text;
}

std::string table(const Answer& answer) {
  const Plan& first = answer.best.front();
  std::string text =
      row("", answer.generates ? "a token" : "step", std::string(unit(first)) + "/s", "a day", "device", "host");
  int head = 1;
  for (const Plan& plan : answer.best) text += plan_lines(answer, plan, std::to_string(head++));
  const bool starred = std::any_of(answer.best.begin(), answer.best.end(), [](const Plan& p) { return p.others > 0; });
  if (starred) text += wrapped("* computes something else than plain " + doing(answer) + " does; --exact forbids it");
  if (!first.run.interval_s)
    text += wrapped("No error bar: the profile of " + terminal_text(answer.machine) + " does not say how sure it is.");
  return text;
}

std::string costs(const Plan& plan) {
  std::string text;
  for (const Cost& cost : plan.costs)
    text += "  " + wrapped(terminal_text(cost.choice) + (cost.other_mathematics ? " *: " : ": ") + cost.words, 4);
  return text.empty() ? "" : "What the first one's choices cost:\n" + text;
}

std::string without_change(const Answer& answer) {
  if (answer.best.empty() || answer.best.front().others == 0 || !answer.may_change) return "";
  if (!answer.exact) return wrapped(fmt::format("Nothing that computes just what plain {} does fits.", doing(answer)));
  const Plan& exact = *answer.exact;
  return wrapped(fmt::format("Computing just what plain {} does: {} a {}, {} {}/s ({}), or better with --exact.",
                             doing(answer), format_time(exact.run.step_s), answer.generates ? "token" : "step",
                             number(rate(exact)), unit(exact), terminal_text(words(answer, exact))));
}

// What to buy, in the order of what it brings.
std::string held_up(const Answer& answer) {
  std::string text;
  for (const Hold& held : answer.held_by) {
    std::string line = fmt::format("  {}: ", name_of(held.of));
    if (held.share > 0) line += fmt::format("sets {:.0f}% of the time", 100 * held.share);
    if (held.share == 0) line += "is full";
    if (held.gain > 0) line += fmt::format("; one {} more: {:.1f}% faster", unit_of(held.of), 100 * held.gain);
    text += wrapped(line, 4);
  }
  return text.empty() ? "" : "What holds the first one up, by the linear program at its block:\n" + text;
}

// A paragraph of its own, where there is anything to tell.
std::string told(const std::string& text) { return text.empty() ? "" : "\n" + text; }

std::string ruled_out(const Answer& answer) {
  const Counts& counts = answer.counts;
  std::string text = fmt::format("Of {} candidates {} were simulated", whole(counts.all), whole(counts.simulated));
  const auto add = [&](std::size_t count, const char* why) {
    if (count > 0) text += fmt::format("; {} {}", whole(count), why);
  };
  add(counts.too_large, "take more memory than there is");
  add(counts.bounded, "have a lower bound above the best step");
  add(counts.estimated,
      answer.generates ? "are slower by the linear program" : "are slower by what others like them took");
  add(counts.not_allowed, "are not allowed");
  text = wrapped(text + ".", 2);
  for (const std::string& line : answer.ruled_out) text += "  " + wrapped(terminal_text(line), 4);
  return text;
}

std::string enough_words(const Answer& answer) {
  std::string words;
  for (std::size_t tier = 0; tier < kTierCount; ++tier)
    if (const std::int64_t bytes = answer.enough.bytes[tier]; bytes > 0)
      words += (words.empty() ? "" : " and ") + format_bytes(bytes) + " of " + memory_words(static_cast<Tier>(tier));
  return words;
}

std::string no(const Answer& answer) {
  const std::string head =
      fmt::format("No: {} does not {} {}", answer.what, answer.generates ? "generate" : "train", on_machine(answer));
  if (!answer.nearest) {
    if (answer.least_bytes <= answer.room_bytes) return head + ": no candidate is allowed, or could be simulated.";
    return fmt::format("{}: parameters and optimizer states alone take {}, and all memory together has {}.", head,
                       format_bytes(answer.least_bytes), format_bytes(answer.room_bytes));
  }
  return fmt::format("{}: the nearest ({}) needs {} {}, and there is {}.", head, words(answer, *answer.nearest),
                     answer.enough.found ? "about" : "at least", enough_words(answer),
                     format_bytes(answer.nearest->run.refusal.capacity_bytes));
}

}  // namespace

std::string wrapped(const std::string& text, std::size_t indent) {
  return wrapped(text, kTerminalColumns, indent) + "\n";
}

std::string verdict(const Answer& answer) {
  if (answer.best.empty()) return no(answer);
  const Plan& plan = answer.best.front();
  return fmt::format("Yes: {} {} {} at {} {}/s ({}).", answer.what, answer.generates ? "generates" : "trains",
                     on_machine(answer), number(rate(plan)), unit(plan), words(answer, plan));
}

std::string answer_text(const Answer& answer) {
  std::string text = wrapped(terminal_text(verdict(answer)));
  if (!answer.best.empty()) text += "\n" + table(answer);
  if (answer.last_resort && !answer.best.empty())
    text += wrapped("Nothing fits without what is a last resort: smaller products, fewer bits, fewer samples.");
  if (!answer.best.empty()) text += told(costs(answer.best.front()) + without_change(answer)) + told(held_up(answer));
  text += "\n" + ruled_out(answer);
  if (!answer.cut.empty()) text += wrapped(answer.cut);
  return text;
}

std::string devices_text(const std::vector<Answer>& answers) {
  if (answers.size() < 2) return "";
  const bool priced = answers.front().price_per_hour > 0;
  std::string text = "\n" + row("", "devices", "step", "a second", "", priced ? "a million cost" : "");
  for (const Answer& answer : answers) {
    const std::string devices = std::to_string(answer.devices);
    if (answer.best.empty()) {
      text += row("", devices, "-", "-", "does not fit", "");
      continue;
    }
    const Plan& plan = answer.best.front();
    text += row("", devices, format_time(plan.run.step_s), number(rate(plan)), unit(plan),
                priced ? number(price_of_million(answer, plan)) : "");
    text += "   " + wrapped(terminal_text(words(answer, plan)) + (plan.others > 0 ? " *" : ""), 3);
  }
  return text;
}

}  // namespace tandem
