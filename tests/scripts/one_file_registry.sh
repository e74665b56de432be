#!/usr/bin/env bash
# A new policy, model family, transform or optimizer is one file, and one that forgets its last line does not link. Builds core's
# own CMake code over core's headers and files that are written here; no scheduler is compiled.
set -euo pipefail
SOURCE=${TANDEM_SOURCE:-$(cd "$(dirname "$0")/../.." && pwd)}
TREE=$(mktemp -d)
trap 'rm -rf "$TREE"' EXIT

die() {
  echo "one_file_registry: $1" >&2
  [ ! -f "$TREE/log" ] || tail -n 20 "$TREE/log" >&2
  exit 1
}

copy_headers_and_cmake() {
  # Whatever core's CMake code reads, but no source.
  (cd "$SOURCE" && find core -type f ! -name '*.cpp' && ls -d cmake docs/*.json) | tar -C "$SOURCE" -cf - -T - | tar -C "$TREE" -xf -
  mkdir -p "$TREE/core/policies" "$TREE/core/transforms" "$TREE/core/workloads" "$TREE/core/model/families"
}

write_project() {
  cat >"$TREE/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(registry_test LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
find_package(Boost 1.74 REQUIRED)
find_package(yaml-cpp REQUIRED)
add_library(tandem_flags INTERFACE)
target_include_directories(tandem_flags INTERFACE ${CMAKE_SOURCE_DIR})
include(cmake/registry.cmake)
add_subdirectory(core)
add_executable(list_policies list_policies.cpp)
target_link_libraries(list_policies PRIVATE tandem_core)
CMAKE
  cat >"$TREE/list_policies.cpp" <<'CPP'
#include <cstdio>

#include "core/optimizers/optimizer.hpp"
#include "core/run/policies.hpp"
#include "core/transforms/common/entry.hpp"
#include "core/workloads/workload.hpp"

int main() {
  for (const tandem::PolicyEntry* entry : tandem::policies())
    std::printf("%.*s\n", static_cast<int>(entry->name.size()), entry->name.data());
  for (const tandem::WorkloadEntry* entry : tandem::workloads())
    std::printf("%.*s\n", static_cast<int>(entry->name.size()), entry->name.data());
  for (const tandem::TransformEntry* entry : tandem::transforms())
    std::printf("%.*s\n", static_cast<int>(entry->name.size()), entry->name.data());
  for (const tandem::OptimizerEntry* entry : tandem::optimizers())
    std::printf("%.*s\n", static_cast<int>(entry->name.size()), entry->name.data());
}
CPP
}

# write_family NAME LAST_LINE
write_family() {
  cat >"$TREE/core/model/families/$1.cpp" <<CPP
#include "core/model/families/common/family.hpp"

namespace tandem {
namespace {
const FamilyKeys kKeys = {{}, {"batch"}};
Network $1(const WorkloadOptions&) { return {}; }
}  // namespace
}  // namespace tandem
$2
CPP
}

# write_transform NAME LAST_LINE
write_transform() {
  cat >"$TREE/core/transforms/$1.cpp" <<CPP
#include "core/transforms/common/entry.hpp"
$2
CPP
}

# write_optimizer NAME LAST_LINE
write_optimizer() {
  cat >"$TREE/core/optimizers/$1.cpp" <<CPP
#include "core/optimizers/optimizer.hpp"
$2
CPP
}

# write_policy NAME CLASS LAST_LINE
write_policy() {
  cat >"$TREE/core/policies/$1.cpp" <<CPP
#include "core/scheduler/policy.hpp"

namespace tandem {
namespace {
class $2 : public Policy {
 public:
  explicit $2(const Scenario&) {}
  void decide(const View&, Decisions&) override {}
};
}  // namespace
}  // namespace tandem
$3
CPP
}

build() { cmake --build "$TREE/build" >"$TREE/log" 2>&1; }

expect_list() {
  local listed
  listed=$("$TREE/build/list_policies" | tr '\n' ' ')
  [ "$listed" = "$1" ] || die "the program lists '$listed', not '$1'"
}

copy_headers_and_cmake
write_project
write_policy first FirstPolicy 'TANDEM_POLICY(first, FirstPolicy, "Does nothing")'
cmake -G Ninja -S "$TREE" -B "$TREE/build" >"$TREE/log" 2>&1 || die "the project does not configure"
build || die "a policy of one file does not build"
expect_list 'first '

# No file but the policy's own is written: the build finds it by itself.
write_policy second SecondPolicy 'TANDEM_POLICY(second, SecondPolicy, "Does nothing either", "option")'
build || die "a second policy of one file does not build"
expect_list 'first second '

write_policy forgetful ForgetfulPolicy '// no registration line'
if build; then die "a policy without its registration line links"; fi
grep -q 'forgetful_policy_entry' "$TREE/log" || die "the link error does not name the missing entry"

rm "$TREE/core/policies/forgetful.cpp"
build || die "the build does not recover when the file is gone"
expect_list 'first second '

# expect_one_file KIND NOUN REGISTRY LISTED: with the file written last the program lists what is given; a file without the
# last line does not link.
expect_one_file() {
  build || die "$2 of one file does not build"
  expect_list "$4"
  "write_$1" unnamed '// no registration line'
  if build; then die "$2 without its registration line links"; fi
  grep -q "unnamed_$3_entry" "$TREE/log" || die "the link error does not name the missing entry of $2"
  find "$TREE/core" -name unnamed.cpp -delete
}

write_family third 'TANDEM_FAMILY(third, third, kKeys, "A network of nothing")'
expect_one_file family 'a family' workload 'first second third '
write_transform fourth 'TANDEM_TRANSFORM(fourth, nullptr, "Changes nothing", "nobody")'
expect_one_file transform 'a transform' transform 'first second third fourth '
write_optimizer fifth 'TANDEM_OPTIMIZER(fifth, .summary = "Keeps nothing", .states = nullptr)'
expect_one_file optimizer 'an optimizer' optimizer 'first second third fourth fifth '
echo "one_file_registry: one file is a policy, a family, a transform or an optimizer; without its last line it does not link"
