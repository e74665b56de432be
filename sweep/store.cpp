#include "sweep/store.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"

namespace tandem {
namespace {

// Another version's table is none of this one's.
constexpr const char* kFormat = "1";

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::string quoted(const std::string& name) {
  std::string text;
  for (const char c : name) text += c == '"' ? "\"\"" : std::string(1, c);
  return '"' + text + '"';
}

SweepRow::Outcome outcome_from(const std::string& word) {
  for (const auto outcome : {SweepRow::Outcome::DoesNotFit, SweepRow::Outcome::Refused, SweepRow::Outcome::Failed})
    if (word == outcome_word(outcome)) return outcome;
  return SweepRow::Outcome::Done;  // conditions are judged anew
}

std::vector<std::string> columns_of(const SweepTable& table) {
  std::vector<std::string> columns{"settings", "number"};
  for (const SweepTable::Axis& axis : table.axes) columns.push_back(axis.name);
  for (const char* name : {"largest", "outcome", "why_not", "result"}) columns.emplace_back(name);
  for (const PolicyFigure& figure : policy_figures()) columns.emplace_back(figure.name);
  return columns;
}

std::string joined(const std::vector<std::string>& columns, bool as_parameters) {
  std::string text;
  for (const std::string& column : columns)
    text += (text.empty() ? "" : ", ") + (as_parameters ? std::string("?") : quoted(column));
  return text;
}

}  // namespace

class SweepStore::Statement {
 public:
  Statement(const SweepStore& store, const std::string& sql) : store_(store) {
    if (sqlite3_prepare_v2(store.database_, sql.c_str(), -1, &statement_, nullptr) != SQLITE_OK) store.fail("read");
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& add(const std::string& text) {
    sqlite3_bind_text(statement_, ++bound_, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
    return *this;
  }
  Statement& add(std::int64_t number) {
    sqlite3_bind_int64(statement_, ++bound_, number);
    return *this;
  }
  Statement& add(double number) {
    sqlite3_bind_double(statement_, ++bound_, number);
    return *this;
  }
  Statement& add_nothing() {
    sqlite3_bind_null(statement_, ++bound_);
    return *this;
  }
  // False: there are no more rows.
  bool step() {
    const int code = sqlite3_step(statement_);
    if (code != SQLITE_ROW && code != SQLITE_DONE) store_.fail(bound_ > 0 ? "write" : "read");
    return code == SQLITE_ROW;
  }
  void again() {
    sqlite3_reset(statement_);
    bound_ = 0;
  }
  std::string text(int column) const {
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return bytes == nullptr ? ""
                            : std::string(bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)));
  }
  std::int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
  double number(int column) const { return sqlite3_column_double(statement_, column); }
  bool is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }

 private:
  const SweepStore& store_;
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
};

void SweepStore::fail(const std::string& what) const {
  const std::string why = database_ == nullptr ? "out of memory" : sqlite3_errmsg(database_);
  const int code = database_ == nullptr ? SQLITE_NOMEM : sqlite3_errcode(database_);
  const std::string text = "cannot " + what + " " + path_ + ": " + why;
  if (code == SQLITE_NOTADB || code == SQLITE_CANTOPEN || code == SQLITE_READONLY || code == SQLITE_ERROR)
    throw ConfigError("--output: " + text + "; name another file");
  throw DeviceError(text);
}

void SweepStore::run(const std::string& sql) {
  if (sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) fail("write");
}

bool SweepStore::has(const std::string& table) {
  return Statement(*this, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?").add(table).step();
}

std::string SweepStore::value_of(const std::string& name) {
  Statement statement(*this, "SELECT value FROM sweep WHERE name = ?");
  return statement.add(name).step() ? statement.text(0) : "";
}

void SweepStore::set_value(const std::string& name, const std::string& value) {
  Statement(*this, "INSERT OR REPLACE INTO sweep VALUES (?, ?)").add(name).add(value).step();
}

SweepStore::SweepStore(const std::string& path, const SweepIdentity& identity, bool restarts) : path_(path) {
  constexpr mode_t kForAll = 0666;
  // Not SQLite's own lock: whoever wants to read the table meanwhile may.
  lock_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kForAll);
  if (lock_ < 0)
    throw ConfigError("--output " + path + ": cannot be written: " + std::strerror(errno) + "; name another file");
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    ::close(lock_);
    throw ConfigError("--output " + path + ": another sweep writes it; wait for it, or name another file");
  }
  try {
    if (sqlite3_open_v2(path.c_str(), &database_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr) != SQLITE_OK)
      fail("open");
    constexpr int kWaitMs = 5000;  // for one who reads
    sqlite3_busy_timeout(database_, kWaitMs);
    check_identity(identity, restarts);
  } catch (...) {
    sqlite3_close(database_);
    ::close(lock_);
    throw;
  }
}

SweepStore::~SweepStore() {
  put_.reset();
  sqlite3_close(database_);  // what was not committed is undone
  ::close(lock_);
}

void SweepStore::check_identity(const SweepIdentity& identity, bool restarts) {
  const bool is_new = !Statement(*this, "SELECT 1 FROM sqlite_master").step();
  if (!is_new && !has("sweep")) throw ConfigError("--output " + path_ + ": is no table of a sweep; name another file");
  run("BEGIN IMMEDIATE");
  if (!is_new && !restarts) {
    std::string differs = value_of("format") == kFormat ? "" : "its format";
    for (const auto& [name, value] : identity)
      if (value_of(name) != value) differs += (differs.empty() ? "" : ", ") + name;
    if (!differs.empty()) {
      run("ROLLBACK");
      throw ConfigError("--output " + path_ + ": holds rows of another sweep (" + differs +
                        " differs); name another file, or begin anew with --restart");
    }
  }
  if (is_new || restarts) {
    run("DROP TABLE IF EXISTS rows; DROP TABLE IF EXISTS sweep; CREATE TABLE sweep (name TEXT PRIMARY KEY, value "
        "TEXT)");
    set_value("format", kFormat);
    for (const auto& [name, value] : identity) set_value(name, value);
  }
  run("COMMIT");
}

SweepStore::Rows SweepStore::known() {
  Rows rows;
  if (!has("rows")) return rows;
  std::string figures;
  for (const PolicyFigure& figure : policy_figures()) figures += ", " + quoted(figure.name);
  Statement statement(*this,
                      "SELECT settings, largest, outcome, why_not" + figures + " FROM rows WHERE outcome != 'failed'");
  while (statement.step()) {
    SweepRow row;
    row.outcome = outcome_from(statement.text(2));
    if (!statement.is_null(1)) row.largest = statement.integer(1);
    if (row.outcome != SweepRow::Outcome::Done) row.why_not = statement.text(3);
    constexpr int kFirst = 4;
    if (row.outcome == SweepRow::Outcome::Done)
      for (int i = 0; i < static_cast<int>(policy_figures().size()); ++i)
        row.figures.push_back(statement.number(kFirst + i));
    rows.emplace(statement.text(0), std::move(row));
  }
  return rows;
}

void SweepStore::prepare_put(const std::vector<std::string>& columns) {
  put_ = std::make_unique<Statement>(
      *this, "INSERT OR REPLACE INTO rows (" + joined(columns, false) + ") VALUES (" + joined(columns, true) + ")");
}

// With the columns of `table`; results stay in the file.
void SweepStore::rebuild(const SweepTable& table, const Rows& rows) {
  const std::vector<std::string> columns = columns_of(table);
  std::string types;
  for (const std::string& column : columns)
    types += (types.empty() ? "" : ", ") + quoted(column) + (column == "settings" ? " TEXT PRIMARY KEY" : "");
  const bool had_rows = has("rows");
  if (had_rows) run("ALTER TABLE rows RENAME TO rows_before");
  run("CREATE TABLE rows (" + types + ")");
  prepare_put(columns);
  if (!had_rows) return;
  Statement result(*this, "SELECT result FROM rows_before WHERE settings = ?");
  for (const auto& [settings, row] : rows) {
    CHECK(result.add(settings).step(), settings);
    const std::string text = result.text(0);
    result.again();
    put(table, row, settings, text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json::parse(text));
  }
}

void SweepStore::begin(const SweepTable& table, const Rows& rows, const std::string& shape) {
  run("BEGIN IMMEDIATE");
  is_open_ = true;
  if (value_of("shape") == shape && has("rows")) {
    run("DELETE FROM rows WHERE outcome = 'failed'");
    prepare_put(columns_of(table));
  } else {
    rebuild(table, rows);
    run("DROP TABLE IF EXISTS rows_before");
    set_value("shape", shape);
  }
  commit();
}

void SweepStore::put(const SweepTable& table, const SweepRow& row, const std::string& settings,
                     const nlohmann::ordered_json& result) {
  constexpr std::int64_t kCommitEveryNs = 1'000'000'000;
  if (!is_open_) run("BEGIN IMMEDIATE");
  is_open_ = true;
  put_->again();
  put_->add(settings).add(static_cast<std::int64_t>(row.number));
  for (std::size_t a = 0; a < table.axes.size(); ++a) put_->add(table.axes[a].values[row.at[a]]);
  row.largest ? put_->add(*row.largest) : put_->add_nothing();
  put_->add(outcome_word(row.outcome));
  row.why_not.empty() ? put_->add_nothing() : put_->add(row.why_not);
  result.is_null() ? put_->add_nothing()
                   : put_->add(result.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  for (std::size_t i = 0; i < policy_figures().size(); ++i)
    row.figures.empty() ? put_->add_nothing() : put_->add(row.figures[i]);
  put_->step();
  if (now_ns() - committed_ns_ > kCommitEveryNs) commit();
}

void SweepStore::commit() {
  if (put_) put_->again();
  if (is_open_) run("COMMIT");
  is_open_ = false;
  committed_ns_ = now_ns();
}

}  // namespace tandem
