#include "core/scheduler/event_log.hpp"

#include <array>
#include <charconv>
#include <istream>
#include <ostream>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/base/engine_names.hpp"
#include "core/base/errors.hpp"
#include "core/yaml/position.hpp"

namespace tandem {
namespace {

constexpr std::string_view kMagic = "tandem-log ";
// Lanes in logs: those of the kinds that the format began with, by number and kind; then those of the last kind.
constexpr std::size_t kFirstKinds = 12;
static_assert(kEngineCount == kFirstKinds + 1, "a new kind of lane takes numbers behind those in logs");
std::int64_t number_in_log(LaneIndex lane) {
  const auto kind = static_cast<std::size_t>(lane.kind()), number = static_cast<std::size_t>(lane.number());
  return static_cast<std::int64_t>(kind < kFirstKinds ? number * kFirstKinds + kind
                                                      : kMostLanesOfAKind * kFirstKinds + number);
}
LaneIndex lane_in_log(std::size_t place) {
  if (place >= kMostLanesOfAKind * kFirstKinds)
    return {Engine::RemoteLoader, static_cast<int>(place - kMostLanesOfAKind * kFirstKinds)};
  return {static_cast<Engine>(place % kFirstKinds), static_cast<int>(place / kFirstKinds)};
}

constexpr std::string_view kFormat = "2";  // 1: the only input is an interrupt

void put(std::string& line, std::int64_t number) {
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  line += ' ';
  line.append(digits.data(), end);
}

template <typename Numbers>
void put_list(std::string& line, const Numbers& numbers) {
  put(line, static_cast<std::int64_t>(numbers.size()));
  for (std::int64_t number : numbers) put(line, number);
}

void put(std::string& line, const Place& place) {
  put(line, static_cast<std::int64_t>(place.tier));
  put(line, place.offset);
}

// Reads the numbers of a line, and says where a malformed log goes wrong.
class Cursor {
 public:
  Cursor(std::string_view text, std::string where) : text_(text), where_(std::move(where)) {}

  std::int64_t number(std::int64_t low, std::int64_t high) {
    skip();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (error != std::errc() || value < low || value > high)
      fail("expected a whole number; allowed: " + std::to_string(low) + " to " + std::to_string(high));
    text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
    return value;
  }
  std::int64_t any() {
    return number(std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max());
  }
  std::int64_t natural() { return number(0, std::numeric_limits<std::int64_t>::max()); }
  std::int32_t small(std::int32_t low = kNone) {
    return static_cast<std::int32_t>(number(low, std::numeric_limits<std::int32_t>::max()));
  }
  template <typename Enum>
  Enum choice(int count) {
    return static_cast<Enum>(number(0, count - 1));
  }
  Place place(Rank rank) {
    const Tier tier = choice<Tier>(kTierCount);
    return {rank, tier, natural()};
  }
  template <typename Numbers>
  void list(Numbers& numbers, std::int64_t low, std::int64_t most) {
    const std::int64_t count = number(0, most);
    for (std::int64_t i = 0; i < count; ++i) numbers.push_back(number(low, std::numeric_limits<std::int64_t>::max()));
  }
  // Up to a space, or `until`, which goes with it.
  std::string word(char until = ' ') {
    skip();
    const std::size_t end = text_.find(until);
    if (text_.empty() || (until != ' ' && end == std::string_view::npos))
      fail(std::string("expected a word") + (until == ' ' ? "" : std::string(" that ends with ") + until));
    const std::string word(text_.substr(0, end));
    text_.remove_prefix(std::min(end, text_.size() - 1) + 1);
    return word;
  }
  bool at_end() {
    skip();
    return text_.empty();
  }
  std::string_view rest() {
    skip();
    return std::exchange(text_, {});
  }
  void end() {
    skip();
    if (!text_.empty()) fail("unexpected text at the end of the line; allowed: none");
  }
  [[noreturn]] void fail(const std::string& problem) const { throw ConfigError(where_ + ": log: " + problem); }

 private:
  void skip() {
    while (!text_.empty() && text_.front() == ' ') text_.remove_prefix(1);
  }
  std::string_view text_;
  std::string where_;
};

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\n')
      out += "\\n";
    else if (c == '\\')
      out += "\\\\";
    else
      out += c;
  }
  return out;
}

// And without a space.
std::string escaped_word(std::string_view text) {
  std::string out = escaped(text);
  for (std::size_t at = out.find(' '); at != std::string::npos; at = out.find(' ', at)) out.replace(at, 1, "\\s");
  return out;
}

std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
    } else {
      ++i;
      out += text[i] == 'n' ? '\n' : text[i] == 's' ? ' ' : text[i];
    }
  }
  return out;
}

constexpr std::int64_t kMostOperands = 1 << 20;

// "key=value" for each; no key has spaces.
template <typename Map>
void put_pairs(std::string& line, const Map& pairs) {
  for (const auto& [key, value] : pairs) {
    line += ' ';
    if constexpr (std::is_same_v<std::decay_t<decltype(key)>, Engine>)
      line += name_of(key);
    else
      line += key;
    line += '=';
    if constexpr (std::is_integral_v<std::decay_t<decltype(value)>>)
      line += std::to_string(value);
    else
      line += escaped_word(value);
  }
}

std::string to_line(const Input& input) {
  std::string line = "i ";
  if (std::holds_alternative<Interrupt>(input)) line += "interrupt";
  if (std::holds_alternative<Checkpoint>(input)) line += "checkpoint";
  if (const auto* to = std::get_if<SwitchPolicy>(&input)) {
    line += "switch";
    put(line, to->after_step);
    line += ' ' + to->policy;
    put_pairs(line, to->options);
  }
  if (const auto* rates = std::get_if<Rates>(&input)) line += "rates", put_pairs(line, rates->time_ppm);
  if (const auto* usage = std::get_if<Usage>(&input)) line += "usage", put_pairs(line, usage->figures);
  return line;
}

Engine engine_named(const std::string& name, const Cursor& in) {
  if (const auto engine = find_engine(name)) return *engine;
  in.fail("no lane is called '" + name + "'; allowed: those of core/base/ids.hpp");
}

Input parse_input(Cursor& in) {
  const std::string what = in.word();
  if (what == "interrupt") return Interrupt{};
  if (what == "checkpoint") return Checkpoint{};
  if (what == "switch") {
    SwitchPolicy to;
    to.after_step = in.small();
    to.policy = in.word();
    while (!in.at_end()) {
      const std::string key = in.word('=');
      to.options[key] = unescaped(in.word());
    }
    return to;
  }
  if (what == "rates") {
    Rates rates;
    while (!in.at_end()) {
      const Engine lane = engine_named(in.word('='), in);
      rates.time_ppm[lane] = in.number(1, std::int64_t{1} << 40);
    }
    return rates;
  }
  if (what == "usage") {
    Usage usage;
    while (!in.at_end()) {
      const std::string key = in.word('=');
      usage.figures[key] = in.any();
    }
    return usage;
  }
  in.fail("no input is called '" + what + "'; allowed: interrupt, checkpoint, switch, rates, usage");
}

Command parse_command(char kind, Cursor& in) {
  Command command;
  command.kind = kind == 'r' || kind == 'o' ? CommandKind::Run : kind == 'c' ? CommandKind::Copy : CommandKind::Release;
  command.one_pool = kind == 'o';
  command.lane.rank = in.small(0);
  command.id = in.natural();
  command.lane.index = lane_in_log(static_cast<std::size_t>(in.number(0, kLaneCount - 1)));
  if (command.kind == CommandKind::Run) {
    command.op = in.small(0);
    command.match = {in.small(), in.small()};
  }
  command.part = {in.small(), in.natural(), in.natural()};
  if (command.kind != CommandKind::Run) command.source = in.place(command.lane.rank);
  if (command.kind == CommandKind::Copy) command.target = in.place(command.lane.rank);
  if (command.kind == CommandKind::Run) in.list(command.operands, -1, kMostOperands);
  in.list(command.wait_for, 0, kLaneCount);
  in.end();
  return command;
}

Event parse_event(Cursor& in) {
  Event event;
  event.rank = in.small(0);
  event.command = in.natural();
  event.outcome = in.choice<Outcome>(3);
  event.result = in.any();
  event.started = {in.any()};
  event.finished = {in.any()};
  event.error = unescaped(in.rest());
  return event;
}

// A line, at most so long: a file may hold none that ends.
bool get_line(std::istream& in, std::string& line) {
  constexpr std::size_t kMostLine = std::size_t{16} << 20;
  line.clear();
  std::streambuf& bytes = *in.rdbuf();
  using Traits = std::streambuf::traits_type;
  int next = bytes.sbumpc();
  if (next == Traits::eof()) return false;
  for (; next != Traits::eof() && next != '\n' && line.size() < kMostLine; next = bytes.sbumpc())
    line += Traits::to_char_type(next);
  return true;
}

}  // namespace

std::string to_line(const Command& command) {
  const char run = command.one_pool ? 'o' : 'r';
  std::string line(1, command.kind == CommandKind::Run ? run : command.kind == CommandKind::Copy ? 'c' : 'f');
  put(line, command.lane.rank);
  put(line, command.id);
  put(line, number_in_log(command.lane.index));
  if (command.kind == CommandKind::Run) {
    put(line, command.op);
    put(line, command.match.group);
    put(line, command.match.sequence);
  }
  put(line, command.part.value);
  put(line, command.part.first_byte);
  put(line, command.part.bytes);
  if (command.kind != CommandKind::Run) put(line, command.source);
  if (command.kind == CommandKind::Copy) put(line, command.target);
  if (command.kind == CommandKind::Run) put_list(line, command.operands);
  put_list(line, command.wait_for);
  return line;
}

std::string to_line(const Event& event) {
  std::string line = "e";
  put(line, event.rank);
  put(line, event.command);
  put(line, static_cast<std::int64_t>(event.outcome));
  put(line, event.result);
  put(line, event.started.ns);
  put(line, event.finished.ns);
  if (!event.error.empty()) line += ' ' + escaped(event.error);
  return line;
}

LogWriter::LogWriter(const LogHeader& header, std::function<void(std::string_view)> write) : write_(std::move(write)) {
  std::string text = std::string(kMagic) + std::string(kFormat) + "\nmode " + header.mode + "\nbuild " + header.build +
                     "\nseed " + std::to_string(header.seed) + "\nrank";
  put(text, header.rank);
  put(text, header.ranks);
  if (header.first_step > 0) text += "\nfirst_step " + std::to_string(header.first_step);
  for (const auto& [key, value] : {std::pair{"scenario", &header.scenario}, {"profile", &header.profile}})
    text += "\n" + std::string(key) + " " + std::to_string(value->size()) + "\n" + *value;
  write_(text + "\n");
}

void LogWriter::append(const EventBatch& batch) {
  std::string text = "b " + std::to_string(batch.observed.ns) + "\n";
  for (const Event& event : batch.events) text += to_line(event) + "\n";
  for (const Input& input : batch.inputs) text += to_line(input) + "\n";
  write_(text);
}

void LogWriter::append(std::span<const Command> commands) {
  std::string text;
  for (const Command& command : commands) text += to_line(command) + "\n";
  write_(text);
}

void write_log(std::ostream& out, const LogHeader& header, const MemoryLog& log) {
  LogWriter writer(header, [&](std::string_view text) { out << text; });
  for (const MemoryLog::Entry& entry : log.entries()) {
    writer.append(entry.batch);
    writer.append(entry.commands);
  }
}

ReadLog read_log(std::istream& in, const std::string& name) {
  ReadLog log;
  std::string line;
  std::int64_t number = 0;
  const auto where = [&] { return name + ":" + std::to_string(number) + ":1"; };
  const auto next = [&](std::string_view key) {
    ++number;
    const std::string prefix = key.empty() ? "" : std::string(key) + " ";
    if (!get_line(in, line) || line.rfind(prefix, 0) != 0)
      throw ConfigError(where() + ": log: expected '" + std::string(key) + "'; is this a log that --log wrote?");
    return line.substr(prefix.size());
  };
  const auto text = [&](std::string_view key) {
    constexpr std::int64_t kMostText = 64 << 20;
    const std::string size = next(key);
    Cursor length(size, where());
    std::string bytes(static_cast<std::size_t>(length.number(0, kMostText)), '\0');
    length.end();
    if (!in.read(bytes.data(), static_cast<std::streamsize>(bytes.size())) || in.get() != '\n')
      throw ConfigError(where() + ": log: the " + std::string(key) +
                        " text is cut short; allowed: as many bytes as it says, and a line end");
    for (char c : bytes) number += c == '\n';
    ++number;
    return bytes;
  };
  if (const std::string first = next(""); first.rfind(kMagic, 0) != 0)
    throw ConfigError(where() + ": log: expected '" + std::string(kMagic) + std::string(kFormat) +
                      "'; is this a log that --log wrote?");
  else if (const std::string format = first.substr(kMagic.size()); format != "1" && format != kFormat)
    throw ConfigError(where() + ": log: format '" + printable(format.substr(0, 20)) +
                      "' is not known; allowed: 1, 2; a newer version of Tandem may read it");
  log.header.mode = next("mode");
  log.header.build = next("build");
  const std::string seed = next("seed");
  const char* const seed_end = seed.data() + seed.size();
  if (const auto [end, error] = std::from_chars(seed.data(), seed_end, log.header.seed);
      error != std::errc() || end != seed_end)
    throw ConfigError(where() + ": log: seed: expected a whole number; allowed: 0 to 18446744073709551615");
  const std::string ranks = next("rank");
  Cursor rank_line(ranks, where());
  log.header.rank = rank_line.small(0);
  log.header.ranks = rank_line.small(1);
  rank_line.end();
  if (in.peek() == 'f') {
    const std::string first_step = next("first_step");
    Cursor step_line(first_step, where());
    log.header.first_step = step_line.small(0);
    step_line.end();
  }
  log.header.scenario = text("scenario");
  log.header.profile = text("profile");
  while (++number, get_line(in, line)) {
    if (line.empty()) throw ConfigError(where() + ": log: empty line; allowed: b, e, i, r, c, f");
    Cursor cursor(std::string_view(line).substr(1), where());
    if (line[0] == 'b') {
      log.entries.emplace_back();
      log.first_lines.push_back(number);
      log.entries.back().batch.observed = {cursor.any()};
      cursor.end();
      continue;
    }
    if (log.entries.empty()) cursor.fail("expected a batch first; allowed: b");
    auto& entry = log.entries.back();
    const bool of_batch = line[0] == 'e' || line[0] == 'i';
    if (of_batch && (!entry.commands.empty() || (line[0] == 'e' && !entry.batch.inputs.empty())))
      cursor.fail("out of order; allowed: a batch's events, then its inputs, then the commands that answer");
    if (line[0] == 'e')
      entry.batch.events.push_back(parse_event(cursor));
    else if (line[0] == 'i')
      entry.batch.inputs.push_back(parse_input(cursor));
    else if (line[0] == 'r' || line[0] == 'o' || line[0] == 'c' || line[0] == 'f')
      entry.commands.push_back(parse_command(line[0], cursor));
    else
      cursor.fail("unknown record '" + line.substr(0, 1) + "'; allowed: b, e, i, r, c, f");
  }
  return log;
}

}  // namespace tandem
