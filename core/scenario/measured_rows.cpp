// A profile's `ops`: rows of measured ops, and what is wrong with one that each of its keys allows.
#include <cstdlib>
#include <set>
#include <utility>

#include "core/machine/measured_ops.hpp"
#include "core/scenario/build.hpp"

namespace tandem {
namespace {

OpKey key_of(const Values& values, const std::string& row) {
  OpKey key;
  key.body = values.text(row + ".body");
  key.type = type_named(values.text(row + ".precision"));
  for (std::size_t i = 0; i < values.count(row + ".sizes"); ++i)
    key.sizes.push_back(values.integer(row + ".sizes." + std::to_string(i)));
  key.kernels = std::strtoull(values.text(row + ".kernels").c_str(), nullptr, 16);
  key.on_cpu = values.text(row + ".processor") == "cpu";
  return key;
}

MeasuredTime time_of(const Values& values, const std::string& path) {
  if (!values.has(path + ".median")) return {};
  return {values.integer(path + ".median"), values.integer(path + ".p10"), values.integer(path + ".p90"),
          static_cast<std::int32_t>(values.integer(path + ".samples"))};
}

MeasuredOp row_of(const Values& values, const std::string& row) {
  return {time_of(values, row + ".afresh"), time_of(values, row + ".repeated"), values.integer(row + ".dispatch"),
          values.integer(row + ".repeat"),  values.integer(row + ".record"),    values.text(row + ".source")};
}

void check_spread(const Values& values, const std::string& path, Findings& findings) {
  for (const char* key : {".median", ".p10", ".p90"})
    if (!values.has(path + key)) return;
  const std::int64_t median = values.integer(path + ".median");
  if (values.integer(path + ".p10") > median)
    findings.add(Finding(*values.position(path + ".p10"), path + ".p10", "is above the median", "at most the median"));
  if (values.integer(path + ".p90") < median)
    findings.add(Finding(*values.position(path + ".p90"), path + ".p90", "is below the median", "at least the median"));
}

std::string row_path(const std::string& prefix, std::size_t i) { return prefix + "ops." + std::to_string(i); }

bool is_whole(const Values& values, const std::string& row) {
  for (const char* key : {".body", ".precision", ".kernels", ".processor"})
    if (!values.has(row + key)) return false;
  return true;
}

}  // namespace

void check_measured_ops(const Values& values, const std::string& prefix, Findings& findings) {
  std::set<OpKey> known;
  for (std::size_t i = 0; i < values.count(prefix + "ops"); ++i) {
    const std::string row = row_path(prefix, i);
    if (!is_whole(values, row) || findings.is_spoiled(row)) continue;
    const Position& at = *values.position(row + ".body");
    if (!values.has(row + ".afresh.median") && !values.has(row + ".repeated.median"))
      findings.add(Finding(at, row, "has no time", "afresh, repeated, or both"));
    if (!known.insert(key_of(values, row)).second)
      findings.add(Finding(at, row, "is an op that another row has", "an op on a processor once"));
    check_spread(values, row + ".afresh", findings);
    check_spread(values, row + ".repeated", findings);
  }
}

std::shared_ptr<const MeasuredOps> build_measured_ops(const Values& values, const std::string& prefix) {
  const std::size_t count = values.count(prefix + "ops");
  if (count == 0) return nullptr;
  auto ops = std::make_shared<MeasuredOps>();
  for (std::size_t i = 0; i < count; ++i) {
    const std::string row = row_path(prefix, i);
    ops->rows.emplace(key_of(values, row), row_of(values, row));
  }
  return ops;
}

}  // namespace tandem
