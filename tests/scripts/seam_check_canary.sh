#!/usr/bin/env bash
# Tests seam_check.sh: each violation, planted alone, must make it fail; the same place without it must pass.
set -uo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
SOURCE=${TANDEM_SOURCE:-$(cd "$HERE/../.." && pwd)}
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
failures=0

# report NAME EXPECTED ACTUAL, each of them pass or fail
report() {
  if [ "$2" = "$3" ]; then
    echo "ok: $1"
  else
    echo "WRONG: $1: expected to $2, but it did $3" >&2
    failures=$((failures + 1))
  fi
}

verdict() { if "$@" >"$WORK/output" 2>&1; then echo pass; else echo fail; fi; }
check_sources() { TANDEM_SOURCE=$1 TANDEM_SEAM_SOURCES_ONLY=1 "$HERE/seam_check.sh"; }
check_library() { TANDEM_SOURCE=$SOURCE TANDEM_SEAM_LIBRARY=$1 "$HERE/seam_check.sh"; }

# plant_line FOLDER LINE: a copy of the sources with one more file in FOLDER that holds LINE.
plant_line() {
  local tree
  tree=$(mktemp -d -p "$WORK")
  mkdir -p "$tree"
  cp -r "$SOURCE/core" "$SOURCE/sim" "$SOURCE/runtime" "$SOURCE/calibration" "$SOURCE/analysis" "$SOURCE/report" \
    "$SOURCE/cli" "$SOURCE/apps" "$tree"
  echo "$2" >"$tree/$1/planted.hpp"
  report "$1: $2" "$3" "$(verdict check_sources "$tree")"
}

# plant_symbol NAME CODE EXPECTED: a library of one object compiled from CODE.
plant_symbol() {
  local object=$WORK/$1
  echo "$2" >"$object.cpp"
  "${CXX:-c++}" -std=c++20 -pthread -c "$object.cpp" -o "$object.o" && ar rcs "$object.a" "$object.o" || failures=$((failures + 1))
  report "library: $1" "$3" "$(verdict check_library "$object.a")"
}

plant_line core '// a comment' pass
plant_line core 'bool is_simulated();' fail
plant_line core '#ifdef SIMGRID' fail
plant_line core 'std::chrono::steady_clock clock;' fail
plant_line core '#include <torch/torch.h>' fail
plant_line core '#include <thread>' fail
plant_line core '#include "runtime/executors/body.hpp"' fail
plant_line sim '#include "runtime/executors/body.hpp"' fail
plant_line runtime '#include <simgrid/s4u.hpp>' fail

plant_symbol harmless 'void format(); void caller() { format(); }' pass
plant_symbol clock '#include <chrono>
long now() { return std::chrono::system_clock::now().time_since_epoch().count(); }' fail
plant_symbol thread '#include <pthread.h>
int start(pthread_t* t, void* (*f)(void*)) { return pthread_create(t, nullptr, f, nullptr); }' fail
plant_symbol random '#include <random>
unsigned draw() { return std::random_device{}(); }' fail
plant_symbol aten 'namespace at { void empty(); } void caller() { at::empty(); }' fail
plant_symbol torch 'namespace torch { void load(); } void caller() { torch::load(); }' fail
plant_symbol simgrid 'namespace simgrid { void run(); } void caller() { simgrid::run(); }' fail
plant_symbol cuda 'extern "C" int cudaMalloc(void**, unsigned long); int caller(void** p) { return cudaMalloc(p, 1); }' fail

[ "$failures" = 0 ] || { echo "seam_check_canary: $failures wrong verdicts" >&2; exit 1; }
echo "seam_check_canary: every planted violation was found"
