// The table of a sweep in a SQLite file, written as rows come: a sweep that was killed goes on with it. Must not know
// how rows come about.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "report/sweep_table.hpp"

struct sqlite3;

namespace tandem {

// What rows depend on beside their settings, by name: each is compared with what a table was made with.
using SweepIdentity = std::map<std::string, std::string>;

class SweepStore {
 public:
  // Makes the file if there is none. Throws ConfigError for a file that is no such table, that another sweep writes, or
  // whose rows are of another identity, unless `restarts`; DeviceError where it cannot be written.
  SweepStore(const std::string& path, const SweepIdentity& identity, bool restarts);
  ~SweepStore();
  SweepStore(const SweepStore&) = delete;
  SweepStore& operator=(const SweepStore&) = delete;

  // Rows from before by their settings' text, but for those that failed: what need not be simulated again. Numbers,
  // places and what conditions say of them are the caller's to fill.
  using Rows = std::map<std::string, SweepRow>;
  Rows known();
  // From here on the file has the columns of `table` and, of those from before, `rows` alone. `shape`: a text that is
  // the same where numbers, columns and conditions are.
  void begin(const SweepTable& table, const Rows& rows, const std::string& shape);
  // In the file within a second, whole or not at all.
  void put(const SweepTable& table, const SweepRow& row, const std::string& settings,
           const nlohmann::ordered_json& result);
  void commit();  // all that was put

 private:
  class Statement;
  [[noreturn]] void fail(const std::string& what) const;
  void run(const std::string& sql);
  bool has(const std::string& table);
  std::string value_of(const std::string& name);
  void set_value(const std::string& name, const std::string& value);
  void check_identity(const SweepIdentity& identity, bool restarts);
  void prepare_put(const std::vector<std::string>& columns);
  void rebuild(const SweepTable& table, const Rows& rows);

  std::string path_;
  int lock_ = -1;
  sqlite3* database_ = nullptr;
  std::unique_ptr<Statement> put_;
  bool is_open_ = false;  // a transaction
  std::int64_t committed_ns_ = 0;
};

}  // namespace tandem
