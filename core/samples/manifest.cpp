#include "core/samples/manifest.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "core/base/errors.hpp"
#include "core/base/input_file.hpp"

namespace tandem {

ModalitySet ManifestRow::modalities() const {
  ModalitySet set;
  for (const Modality modality : kModalities)
    if (!file(modality).empty()) set.add(modality);
  return set;
}

namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 32;
constexpr const char* kColumns = "sample, image, audio, video, text";

struct Cell {
  std::string text;
  std::size_t line = 1, column = 1;
};

// Cells of a CSV text, line by line; quotes may hold commas, line ends and doubled quotes.
class CsvReader {
 public:
  CsvReader(std::string path, std::string text) : path_(std::move(path)), text_(std::move(text)) {}

  std::optional<std::vector<Cell>> next() {
    while (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r')) step();
    if (at_ >= text_.size()) return std::nullopt;
    std::vector<Cell> cells;
    for (;;) {
      cells.push_back(cell());
      if (at_ < text_.size() && text_[at_] == ',') {
        step();
        continue;
      }
      return cells;
    }
  }
  [[noreturn]] void fail(const Cell& at, const std::string& problem) const {
    throw ConfigError(path_ + ":" + std::to_string(at.line) + ":" + std::to_string(at.column) + ": " + problem);
  }

 private:
  void step() {
    if (text_[at_++] == '\n')
      ++line_, column_ = 1;
    else
      ++column_;
  }
  bool ends() const { return at_ >= text_.size() || text_[at_] == ',' || text_[at_] == '\n' || text_[at_] == '\r'; }
  Cell cell() {
    Cell cell{"", line_, column_};
    if (at_ >= text_.size() || text_[at_] != '"') {
      for (; !ends(); step()) cell.text += text_[at_];
      return cell;
    }
    for (step();; step()) {
      if (at_ >= text_.size()) fail(cell, "a quoted cell has no end; allowed: a closing \"");
      if (text_[at_] == '"') {
        if (at_ + 1 >= text_.size() || text_[at_ + 1] != '"') break;
        step();
      }
      cell.text += text_[at_];
    }
    step();
    if (!ends()) fail({"", line_, column_}, "text behind a quoted cell; allowed: a comma or the end of the line");
    return cell;
  }

  std::string path_, text_;
  std::size_t at_ = 0, line_ = 1, column_ = 1;
};

std::string text_of(const std::string& path, const std::string& key) {
  try {
    return read_input_file(path, kMostBytes);
  } catch (const UnreadableFile& error) {
    throw ConfigError(key + ": " + path + " " + error.what() + "; allowed: a CSV file");
  }
}

class ManifestReader {
 public:
  ManifestReader(const std::string& path, const std::string& key)
      : folder_(std::filesystem::path(path).parent_path()), csv_(path, text_of(path, key)) {
    manifest_.path = path;
  }
  SampleManifest read() {
    read_columns();
    while (const auto cells = csv_.next()) add_row(*cells);
    if (manifest_.rows.empty()) csv_.fail({}, "no sample; allowed: a line for each");
    return std::move(manifest_);
  }

 private:
  void read_columns() {
    const auto cells = csv_.next();
    if (!cells) csv_.fail({}, std::string("no line names the columns; allowed: ") + kColumns);
    for (const Cell& cell : *cells) {
      const bool known = cell.text == "sample" || cell.text == "text" || find_modality(cell.text);
      if (!known) csv_.fail(cell, "\"" + cell.text + "\" is no column; allowed: " + kColumns);
      if (std::count(columns_.begin(), columns_.end(), cell.text) > 0)
        csv_.fail(cell, "\"" + cell.text + "\" stands twice; allowed: each column once");
      columns_.push_back(cell.text);
    }
    if (std::count(columns_.begin(), columns_.end(), "sample") == 0)
      csv_.fail(cells->front(), std::string("no column is called sample; allowed: ") + kColumns);
  }
  void add_row(const std::vector<Cell>& cells) {
    if (cells.size() != columns_.size())
      csv_.fail(cells.front(), std::to_string(cells.size()) + " cells; allowed: " + std::to_string(columns_.size()) +
                                   ", one a column");
    ManifestRow row;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string& text = cells[i].text;
      if (columns_[i] == "sample")
        row.sample = text;
      else if (columns_[i] == "text")
        row.text = text;
      else if (!text.empty())
        row.files[static_cast<std::size_t>(*find_modality(columns_[i]))] = (folder_ / text).string();
    }
    if (row.sample.empty()) csv_.fail(cells.front(), "a sample without a name; allowed: a name of its own");
    if (!names_.insert(row.sample).second)
      csv_.fail(cells.front(), "sample \"" + row.sample + "\" stands twice; allowed: each once");
    if (row.text.empty() && row.modalities() == ModalitySet())
      csv_.fail(cells.front(), "sample \"" + row.sample + "\" has nothing; allowed: a text or a file");
    manifest_.rows.push_back(std::move(row));
  }

  std::filesystem::path folder_;
  CsvReader csv_;
  std::vector<std::string> columns_;
  std::set<std::string> names_;
  SampleManifest manifest_;
};

}  // namespace

SampleManifest read_sample_manifest(const std::string& path, const std::string& key) {
  return ManifestReader(path, key).read();
}

std::shared_ptr<const SampleManifest> sample_manifest(const std::string& path) {
  using Version = std::pair<std::uintmax_t, std::filesystem::file_time_type>;
  static std::mutex mutex;
  static std::map<std::string, std::pair<Version, std::shared_ptr<const SampleManifest>>> read;
  std::error_code error;
  const Version version{std::filesystem::file_size(path, error), std::filesystem::last_write_time(path, error)};
  const std::lock_guard lock(mutex);
  auto& [of, manifest] = read[path];
  if (manifest == nullptr || error || of != version)
    manifest = std::make_shared<const SampleManifest>(read_sample_manifest(path)), of = version;
  return manifest;
}

}  // namespace tandem
