#include "cli/output_paths.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "cli/atomic_file.hpp"
#include "core/base/errors.hpp"
#include "core/base/system_calls.hpp"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCorpus = "corpus";  // comes with Tandem

// A device or a pipe is no file that could be lost.
bool counts(const std::string& path) {
  std::error_code ignored;
  if (path.empty() || path == "-") return false;
  const fs::file_status status = fs::status(path, ignored);
  return !fs::exists(status) || fs::is_regular_file(status) || fs::is_directory(status);
}

bool same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  if (fs::equivalent(a, b, error) && !error) return true;
  return through_links(a) == through_links(b);
}

// A broken disk is no bad input.
[[noreturn]] void refuse(const std::string& text, int error) {
  if (is_of_the_system(error)) throw DeviceError(text);
  throw ConfigError(text);
}

// Creates and removes the temporary file: what would fail at the end fails now.
void require_writable(const NamedPath& output) {
  const auto& [flag, path] = output;
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) throw ConfigError(flag + " " + path + ": is a folder; name a file");
  const bool there = fs::exists(path, ignored);
  if (there && ::access(path.c_str(), W_OK) != 0)
    refuse(flag + " " + path + ": cannot be written: " + std::strerror(errno) + "; name a file that you may write to",
           errno);
  // Opening a pipe would wait for its reader.
  if (there && !fs::is_regular_file(path, ignored)) return;
  try {
    const AtomicFile probe(path);
  } catch (const FileError& error) {
    refuse(flag + ": cannot be written: " + error.what(), error.error());
  }
}

// As runs read it: relative paths count from the scenario's folder.
std::string beside(const Scenario& scenario, const std::string& path) {
  return path.empty() ? "" : (fs::path(scenario.path).parent_path() / path).string();
}

void add_files_of(const std::string& folder, const std::string& name, std::vector<NamedPath>& inputs) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    inputs.push_back({name, entry->path().string()});
}

}  // namespace

void check_outputs(const std::vector<NamedPath>& outputs, const std::vector<NamedPath>& inputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!counts(outputs[i].path)) continue;
    for (const NamedPath& input : inputs)
      if (counts(input.path) && same_file(outputs[i].path, input.path))
        throw ConfigError(outputs[i].name + " " + outputs[i].path + ": is " + input.name +
                          ", which is read; name another file");
    for (std::size_t j = 0; j < i; ++j)
      if (counts(outputs[j].path) && same_file(outputs[i].path, outputs[j].path))
        throw ConfigError(outputs[i].name + " " + outputs[i].path + ": is the file of " + outputs[j].name +
                          ", too; name another one");
  }
  for (const NamedPath& output : outputs)
    if (!output.path.empty() && output.path != "-") require_writable(output);
}

namespace {

// A file, an index beside its files, or their folder.
void add_weights(const std::string& path, std::vector<NamedPath>& inputs) {
  std::error_code error;
  const bool is_folder = fs::is_directory(path, error);
  if (!is_folder) inputs.push_back({"a file of weights", path});
  if (is_folder || path.ends_with(".json"))
    add_files_of(is_folder ? path : fs::path(path).parent_path().string(), "a file of weights", inputs);
}

}  // namespace

std::vector<NamedPath> inputs_of(const Scenario& scenario) {
  std::vector<NamedPath> inputs{
      {"the scenario", scenario.path},
      {"the machine's profile", scenario.machine.path},
      {"the text of data.text", scenario.data_text == kCorpus ? "" : beside(scenario, scenario.data_text)}};
  for (const auto& [name, path] : {std::pair("the tokens of data.tokens", scenario.data_tokens),
                                   {"the tokenizer of data.tokenizer", scenario.data_tokenizer},
                                   {"the graph of data.graph", scenario.data_graph}})
    if (!path.empty()) inputs.push_back({name, beside(scenario, path)});
  if (!scenario.weights.empty()) add_weights(beside(scenario, scenario.weights), inputs);
  if (!scenario.data_images.empty())
    add_files_of(beside(scenario, scenario.data_images), "a file of data.images", inputs);
  if (!scenario.resume_folder.empty())
    add_files_of(scenario.resume_folder, "a file of the checkpoint to go on from", inputs);
  return inputs;
}

}  // namespace tandem
