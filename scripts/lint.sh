#!/usr/bin/env bash
# Checks the sources: clang-format (from .venv, so that all have one version), clang-tidy, and shellcheck where it is.
#   lint.sh [changed|all|format-check|format]
# changed: files that differ from the last commit (clang-tidy takes seconds a file); format: rewrites.
source "$(dirname "$0")/common.sh"
STEP="lint"
cd "$ROOT"
MODE=${1:-changed}
BUILD=$ROOT/build-lint
CLANG_FORMAT=$ROOT/.venv/bin/clang-format
SOURCES=(core analysis report cli sweep adapt sim plan runtime calibration bindings apps tests benchmarks)

existing_folders() { for folder in "${SOURCES[@]}"; do if [ -d "$folder" ]; then echo "$folder"; fi; done; }
# Files whose content is not ours to style (another project's declarations) keep their own .clang-format or .h.
all_files() { existing_folders | xargs -I{} find {} -type f \( -name '*.cpp' -o -name '*.hpp' \) | sort; }
changed_files() {
  { git diff --name-only HEAD -- 2>/dev/null || true; git ls-files --others --exclude-standard; } | sort -u |
    while read -r file; do if [ -f "$file" ]; then echo "$file"; fi; done |
    grep -xFf <(all_files) || true
}

check_format() {
  [ $# -gt 0 ] || return 0
  "$CLANG_FORMAT" --dry-run -Werror "$@" 2>&1 | tail -n 40
}

# A build folder of its own: clang's own command lines, no precompiled header of another compiler.
configure() {
  local runtime=OFF cuda=OFF log=$BUILD/configure.log
  if compgen -G '.venv/lib/python3*/site-packages/torch/lib/libtorch_cpu.so' >/dev/null; then runtime=ON; fi
  if [ $runtime = ON ] && compgen -G '.venv/lib/python3*/site-packages/nvidia/cu13/bin/nvcc' >/dev/null; then cuda=ON; fi
  mkdir -p "$BUILD/clean"
  CXX=${CXX:-g++} cmake -G Ninja -S . -B "$BUILD" -DTANDEM_WITH_RUNTIME=$runtime -DTANDEM_WITH_CUDA=$cuda \
    -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON >"$log" 2>&1 || { tail -n 15 "$log" >&2; die "cmake (log: $log)"; }
}

# All that clang-tidy's answer depends on: itself, the rules, and the file after the preprocessor, NOLINT comments kept.
fingerprint() {
  local command
  command=$(grep -B 1 -F "\"file\": \"$1\"" "$BUILD/compile_commands.json" |
    sed -n 's/^ *"command": "\(.*\) -o [^ ]* -c .*/\1/p' | sed 's/\\\(.\)/\1/g')
  { clang-tidy --version && cat "$ROOT/.clang-tidy" && eval "$command -E -C '$1'"; } | sha256sum | cut -d ' ' -f 1
}

# A file that was clean is not checked again until one of these changes.
tidy_one() {
  local stamp
  stamp=$BUILD/clean/$(fingerprint "$1")
  [ -e "$stamp" ] || { clang-tidy --quiet -p "$BUILD" "$1" && touch "$stamp"; }
}

# Only files that a target compiles: the command line comes from there. Headers are checked with what includes them.
tidy() {
  local compiled
  compiled=$(sed -n 's/^ *"file": "\(.*\)"$/\1/p' "$BUILD/compile_commands.json")
  export ROOT BUILD
  export -f fingerprint tidy_one
  # shellcheck disable=SC2016 # $1 is the inner shell's
  printf '%s\n' "$@" | sed "s|^|$ROOT/|" | grep -xFf <(echo "$compiled") |
    xargs --no-run-if-empty -P "${JOBS:-$(nproc)}" -n 1 bash -c 'tidy_one "$1"' tidy \
      2> >(grep -vE 'warnings? generated|^Suppressed|^Use -' >&2)
}

[ -x "$CLANG_FORMAT" ] || die "no $CLANG_FORMAT" "make setup"
case $MODE in
  changed) mapfile -t files < <(changed_files) ;;
  all | format | format-check) mapfile -t files < <(all_files) ;;
  *) die "unknown mode $MODE" "changed, all, format-check or format" ;;
esac
if [ "$MODE" = format ]; then
  "$CLANG_FORMAT" -i "${files[@]}"
  exit
fi
failed=0
check_format "${files[@]}" || failed=1
if command -v shellcheck >/dev/null; then shellcheck scripts/*.sh tests/scripts/*.sh .ci/run || failed=1; fi
if [ "$MODE" != format-check ]; then
  configure
  tidy "${files[@]}" || failed=1
fi
[ "$failed" = 0 ] || die "${#files[@]} files checked, see above" "make format, for what clang-format found"
say "lint: ${#files[@]} files are clean"
