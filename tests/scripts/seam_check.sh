#!/usr/bin/env bash
# The build's proof that the scheduler knows neither world. Reads what was built and what is written:
#   - core's library refers to no symbol of a world, a clock, a thread or an unseeded generator;
#   - core's sources say no word of a world and include nothing outside core/;
#   - core, sim and report configure without LibTorch, and the programs of one world link nothing of the other.
# TANDEM_SOURCE, TANDEM_BUILD: the checkout and its build folder. TANDEM_SEAM_SOURCES_ONLY=1 checks the sources alone and
# TANDEM_SEAM_LIBRARY another library (for the canary, which plants each violation and expects this to fail).
set -uo pipefail
SOURCE=${TANDEM_SOURCE:-$(cd "$(dirname "$0")/../.." && pwd)}
BUILD=${TANDEM_BUILD:-$SOURCE/build}
LIBRARY=${TANDEM_SEAM_LIBRARY:-$BUILD/lib/libtandem_core.a}
failures=0

fail() {
  echo "seam_check: $1" >&2
  shift
  if [ $# -gt 0 ]; then head -n 10 <<<"$*" | sed 's/^/    /' >&2; fi
  failures=$((failures + 1))
}

# expect_nothing WHAT FOUND: FOUND is a text that must be empty.
expect_nothing() { if [ -n "$2" ]; then fail "$1" "$2"; fi; }

check_library() {
  [ -s "$LIBRARY" ] || { fail "no library $LIBRARY"; return; }
  local symbols
  symbols=$(nm -uC "$LIBRARY") || { fail "nm cannot read $LIBRARY"; return; }
  [ -n "$symbols" ] || fail "nm lists no undefined symbol in $LIBRARY: not a library of objects"
  local word
  # `at::` is ATen's namespace, not the end of another name.
  for word in 'simgrid::' '\bat::' 'torch' 'cuda' 'clock::now' 'pthread_create' 'random_device'; do
    expect_nothing "core's library refers to '$word':" "$(grep -E "$word" <<<"$symbols")"
  done
}

check_words() {
  [ -d "$SOURCE/core" ] || { fail "no folder $SOURCE/core"; return; }
  expect_nothing "forbidden words in core/:" \
    "$(cd "$SOURCE" && grep -rnE 'is_simulated|SIMGRID|steady_clock|system_clock|high_resolution_clock|random_device' core)"
  expect_nothing "core/ includes what it must not know:" \
    "$(cd "$SOURCE" && grep -rnE '^ *# *include +[<"](simgrid|torch|ATen|c10|cuda|nccl|thread|pthread|chrono|future|unistd)' core |
       grep -v '^core/base/input_file.cpp:[0-9]*:#include <unistd.h>$')"  # it reads files, and takes no time
  expect_nothing "core/ includes a file of another folder:" \
    "$(cd "$SOURCE" && grep -rnE '^ *# *include +"' core | grep -vE '"core/')"
  expect_nothing "one world includes the other:" \
    "$(cd "$SOURCE" && grep -rnE '^ *# *include +[<"](sim/|simgrid)' runtime calibration adapt
       cd "$SOURCE" && grep -rnE '^ *# *include +[<"](runtime/|torch|ATen|c10)' sim analysis report cli sweep adapt apps)"
}

check_configures_without_torch() {
  local folder log
  folder=$(mktemp -d)
  log=$folder/log
  if cmake -G Ninja -S "$SOURCE" -B "$folder/build" -DTANDEM_WITH_RUNTIME=OFF -DTANDEM_WITH_SIM=ON \
    -DTANDEM_WITH_BENCHMARKS=OFF -DCMAKE_DISABLE_FIND_PACKAGE_Torch=ON >"$log" 2>&1; then
    expect_nothing "a build without the runtime still compiles or links LibTorch:" \
      "$(grep -oE '[^ ]*(libtorch|libc10|torch/include)[^ ]*' "$folder/build/build.ninja" | sort -u)"
  else
    fail "core and sim do not configure without LibTorch:" "$(tail -n 10 "$log")"
  fi
  rm -rf "$folder"
}

cached() { grep -qE "^$1:[A-Z]+=(ON|1|TRUE)$" "$BUILD/CMakeCache.txt"; }

# links_nothing_of PROGRAM PATTERN
links_nothing_of() {
  local program=$BUILD/bin/$1 libraries
  [ -x "$program" ] || { fail "$program was not built"; return; }
  # Names and paths without load addresses, whose digits may spell a library's name.
  libraries=$(ldd "$program" | awk '{print $1, $3}') || { fail "ldd cannot read $program"; return; }
  expect_nothing "$1 links the other world:" "$(grep -E "$2" <<<"$libraries")"
}

check_programs() {
  links_nothing_of tandem 'simgrid|torch|c10|cuda'
  if cached TANDEM_WITH_SIM; then
    links_nothing_of tandem-simulate 'torch|c10|cuda'
    links_nothing_of tandem-plan 'torch|c10|cuda'
  fi
  if cached TANDEM_WITH_RUNTIME; then
    links_nothing_of tandem-train 'simgrid'
    links_nothing_of tandem-calibrate 'simgrid'
    if cached TANDEM_WITH_CUDA; then
      links_nothing_of tandem-train-cuda 'simgrid'
      links_nothing_of tandem-calibrate-cuda 'simgrid'
    fi
  fi
}

check_words
if [ "${TANDEM_SEAM_SOURCES_ONLY:-0}" != 1 ]; then
  check_library
  if [ -z "${TANDEM_SEAM_LIBRARY:-}" ]; then
    check_programs
    check_configures_without_torch
  fi
fi
if [ "$failures" -gt 0 ]; then
  echo "seam_check: $failures failures" >&2
  exit 1
fi
echo "seam_check: core knows neither world"
