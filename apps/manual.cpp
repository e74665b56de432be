#include "apps/manual.hpp"

#include <string_view>

#include "cli/cli.hpp"

namespace tandem {
namespace {

constexpr std::string_view kHead = R"(.SH NAME
tandem \- will a model larger than the device's memory train, how fast, and how; then trains it
.SH SYNOPSIS
.B tandem
.I COMMAND
.RI [ ARGUMENTS ]
.SH DESCRIPTION
Tandem predicts the training of models that are larger than a device's memory, and trains them.
One scheduler decides what runs and moves where, in a simulation and in a real run.
.PP
.B tandem plan \-\-model
.I MODEL
.B \-\-machine
.I MACHINE
is the question to begin with.
A scenario is one question in a file: a machine, a workload and a policy.
.B tandem schema
has its keys.
)";

constexpr std::string_view kExamples = R"(.SH EXAMPLES
.TP
.B tandem list models
The names that
.B \-\-model
takes.
.TP
.B tandem plan \-\-model gpt2\-xl \-\-machine rtx_4090
Will it train on that machine, how fast, and with which policy?
.TP
.B tandem simulate scenarios/demo.yaml \-\-set steps=8
Predicts a scenario's run, with another value of one key.
.TP
.B source <(tandem completion bash)
Completes commands, flags and names in this shell.
.SH SEE ALSO
The documentation, in the folder docs of the source.
)";

struct Ending {
  int code;
  const char* what;
};
constexpr Ending kEndings[] = {{kDone, "Done."},
                               {kBadInput, "Bad input: a flag or a file; the message says where, and what is allowed."},
                               {kDoesNotFit, "It does not fit into the memory; the message says what would help."},
                               {kDeviceFailure, "The device or the system failed."},
                               {kInterrupted, "Interrupted."}};

// Text that roff takes as it is.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool begins_line = out.empty() || out.back() == '\n';
    if (begins_line && (c == '.' || c == '\'')) out += "\\&";
    switch (c) {
      case '\\':
        out += "\\e";
        break;
      case '-':
        out += "\\-";
        break;
      case '`':
        out += "\\(ga";
        break;
      case '\'':
        out += "\\(aq";
        break;
      case '^':
        out += "\\(ha";
        break;
      case '~':
        out += "\\(ti";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string bold(std::string_view text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + roff(text) + "\\fR"; }

std::string flag_text(const DeclaredFlag& flag) {
  std::string text = ".TP\n" + bold(flag.names) + (flag.value.empty() ? "" : " " + italic(flag.value)) + "\n";
  text += roff(flag.what);
  if (flag.required) text += "; needed";
  if (!flag.standard.empty()) text += "; by default " + bold(flag.standard);
  return text + "\n";
}

std::string synopsis(const DeclaredCommand& command) {
  std::string text = bold("tandem " + command.name);
  for (const DeclaredFlag& flag : command.flags)
    if (flag.required) text += " " + bold(flag.names) + " " + italic(flag.value);
  for (const DeclaredFlag& argument : command.arguments) {
    const std::string word = italic(argument.names) + (argument.repeats ? "..." : "");
    text += " " + (argument.required ? word : "[" + word + "]");
  }
  return text + " [" + italic("FLAGS") + "]";
}

std::string command_text(const DeclaredCommand& command) {
  std::string text =
      ".SS tandem " + roff(command.name) + "\n" + synopsis(command) + "\n.PP\n" + roff(command.what) + "\n";
  for (const DeclaredFlag& argument : command.arguments) text += flag_text(argument);
  for (const DeclaredFlag& flag : command.flags) text += flag_text(flag);
  return text;
}

}  // namespace

std::string manual_page(const Declarations& declarations) {
  std::string text =
      ".\\\" Written by `tandem man` from what the commands declare.\n.TH TANDEM 1 \"\" \"tandem " TANDEM_VERSION
      "\" \"Tandem\"\n.nh\n.ad l\n";
  text += std::string(kHead) + ".SH COMMANDS\n";
  for (const DeclaredCommand& command : declarations.commands) text += command_text(command);
  for (const std::string& name : declarations.not_built)
    text += ".SS tandem " + roff(name) + "\nThis build has no tandem\\-" + roff(name) + ".\n";
  text += ".SH EXIT STATUS\n";
  for (const Ending& ending : kEndings)
    text += ".TP\n" + bold(std::to_string(ending.code)) + "\n" + roff(ending.what) + "\n";
  return text + std::string(kExamples);
}

}  // namespace tandem
