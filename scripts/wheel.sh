#!/usr/bin/env bash
# Builds a wheel of the simulator that needs no package of the distribution, into build-wheel/dist, and checks it: SimGrid is
# built from its source archive, the other libraries are copied in, the licences lie beside them. `make wheel` sets up first.
# Exit code 77 where PyPI, which has the archive, is out of reach.
source "$(dirname "$0")/common.sh"
STEP="building the wheel"
cd "$ROOT"
WORK=$ROOT/build-wheel
VENV=$WORK/venv
SIMGRID=$WORK/simgrid       # source/, build/ and the installed prefix/
LICENCES=$WORK/licences
LOG=$WORK/log
JOBS=${JOBS:-$(nproc)}
# As `make build` has it, whose objects the compiler's cache then has. (Else the name would be the one that Python was made with.)
export CC=${CC:-cc} CXX=${CXX:-c++}
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$ROOT} CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS:-pch_defines,time_macros}

pin() { sed -n "s/$1/\1/p" requirements-simgrid.txt; }
HASH=$(pin '.*--hash=sha256:\([0-9a-f]*\).*')
VERSION=$(pin 'simgrid==\([0-9.]*\) .*')
ARCHIVE=$ROOT/.cache/simgrid-$VERSION.tar.gz  # stays when the build folders go

# What Tandem calls, and no more: no bindings, no MPI, no model checker, nothing of Boost but headers. -g0 comes after
# SimGrid's own -g3.
SIMGRID_FLAGS=(-DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS_RELEASE=-g0 -DCMAKE_CXX_FLAGS_RELEASE=-g0 -Dminimal-bindings=ON
  -Denable_smpi=OFF -Denable_msg=OFF -Denable_java=OFF -Denable_python=OFF -Denable_model-checking=OFF -Denable_ns3=OFF
  -Denable_documentation=OFF -Denable_lto=OFF -DCMAKE_DISABLE_FIND_PACKAGE_Eigen3=ON)

unreachable() {
  say "skipped: $1 cannot be fetched from PyPI (log: $LOG)"
  exit 77
}

tools() {
  local stamp=$VENV/.tandem wanted
  wanted=$(cat requirements-sim.txt requirements-wheel.txt | sha256sum)
  if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then return; fi
  run_logged "$LOG" .venv/bin/python -m venv --clear "$VENV" || die "making $VENV (log: $LOG)" "make setup"
  run_logged "$LOG" "$VENV/bin/pip" install --disable-pip-version-check -r requirements-wheel.txt || unreachable "what builds it"
  echo "$wanted" >"$stamp"
}

is_archive() { echo "$HASH  $ARCHIVE" | sha256sum --check --status 2>/dev/null; }

fetch() {
  is_archive && return
  mkdir -p "$(dirname "$ARCHIVE")"
  run_logged "$LOG" "$VENV/bin/pip" download --disable-pip-version-check --no-deps --no-binary :all: --no-build-isolation \
    --dest "$WORK/incoming" -r requirements-simgrid.txt || {
    if grep -q 'DO NOT MATCH THE HASHES' "$LOG"; then
      die "SimGrid's archive is another than the pinned one (log: $LOG)" "see requirements-simgrid.txt"
    fi
    unreachable "SimGrid's source archive"
  }
  mv "$WORK/incoming/$(basename "$ARCHIVE")" "$ARCHIVE"
}

simgrid() {
  local stamp=$SIMGRID/prefix/.tandem wanted started=$SECONDS launcher=()
  wanted="$HASH ${SIMGRID_FLAGS[*]} $("$CXX" -dumpfullversion)"
  if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then return; fi
  if command -v ccache >/dev/null; then launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
  rm -rf "$SIMGRID"
  mkdir -p "$SIMGRID/source"
  tar xf "$ARCHIVE" --directory "$SIMGRID/source" --strip-components 1 --no-same-owner
  # From its own folder: configuring leaves a file where it runs.
  run_logged "$LOG" env --chdir="$SIMGRID" cmake -S "$SIMGRID/source" -B "$SIMGRID/build" -G Ninja "${SIMGRID_FLAGS[@]}" "${launcher[@]}" \
    -DCMAKE_INSTALL_PREFIX="$SIMGRID/prefix" -DCMAKE_INSTALL_LIBDIR=lib || die "configuring SimGrid (log: $LOG)"
  run_logged "$LOG" cmake --build "$SIMGRID/build" --parallel "$JOBS" --target install || die "building SimGrid (log: $LOG)"
  echo "$wanted" >"$stamp"
  say "SimGrid $VERSION from its source archive: $((SECONDS - started)) s"
}

# licence NAME FILE...: the texts become licenses/NAME.txt of the wheel.
licence() { cat "${@:2}" >"$LICENCES/$1.txt" || die "no licence of $1" "install the package that ${*:2} is of"; }

# What Debian says of the package that a file is of.
debian_licence() {
  local package
  package=$(dpkg-query -S "$(realpath "$2")" | cut -d: -f1) || die "no package has $2" "a wheel is made where Debian's packages are"
  licence "$1" "/usr/share/doc/$package/copyright"
}

licences() {
  local name page=https://pypi.org/project/simgrid/$VERSION/#files
  rm -rf "$LICENCES"
  mkdir -p "$LICENCES"
  licence libsimgrid <(echo "Built from the unchanged source archive: $page (sha256 $HASH)"; echo) \
    "$SIMGRID"/source/{COPYING,LICENSE-LGPL-2.1}
  licence libhighs "$VENV"/lib/python3*/site-packages/highsbox/highs_dist/share/doc/HIGHS/LICENSE.txt
  licence nanobind "$VENV"/lib/python3*/site-packages/nanobind-*.dist-info/licenses/LICENSE
  for name in fmt yaml-cpp sqlite3; do debian_licence "lib$name" "$("$CXX" -print-file-name="lib$name.so")"; done
  licence Boost <(sed -n '/^License: BSL-1.0$/,/^$/p' "$SIMGRID/source/COPYING")  # Debian's is 2 MB, for what is not in it
  debian_licence nlohmann-json /usr/include/nlohmann/json.hpp
  debian_licence CLI11 /usr/include/CLI/CLI.hpp
}

wheel() {
  local started=$SECONDS settings=() setting
  # Its own folder, as deep as build/, so that the compiler's cache has what `make build` compiled.
  for setting in build-dir=build-wheel-tandem cmake.define.TANDEM_WARNINGS_AS_ERRORS="${WERROR:-OFF}" \
    cmake.define.TANDEM_LICENCES="$LICENCES" cmake.define.SIMGRID_INCLUDE="$SIMGRID/prefix/include" \
    cmake.define.SIMGRID_LIBRARY="$SIMGRID/prefix/lib/libsimgrid.so"; do
    settings+=(--config-settings "$setting")
  done
  rm -rf "$WORK/raw" "$WORK/dist"
  PATH=$VENV/bin:$PATH CMAKE_BUILD_PARALLEL_LEVEL=$JOBS run_logged "$LOG" "$VENV/bin/pip" wheel . --disable-pip-version-check \
    --no-deps --no-build-isolation --wheel-dir "$WORK/raw" "${settings[@]}" || die "compiling Tandem (log: $LOG)"
  # Debian's libsimgrid has the same name: ours stands before it.
  PATH=$VENV/bin:$PATH LD_LIBRARY_PATH=$SIMGRID/prefix/lib run_logged "$LOG" "$VENV/bin/auditwheel" repair --wheel-dir "$WORK/dist" \
    "$WORK"/raw/*.whl || die "copying the libraries into the wheel (log: $LOG)"
  say "the wheel: $((SECONDS - started)) s"
}

mkdir -p "$WORK"
: >"$LOG"
tools
fetch
simgrid
licences
wheel
compare=()
if [ -x build/bin/tandem-simulate ]; then compare=(--build build); fi
"$VENV/bin/python" scripts/check_wheel.py "$WORK"/dist/*.whl "${compare[@]}"
