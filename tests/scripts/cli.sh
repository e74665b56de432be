#!/usr/bin/env bash
# The commands as a person uses them: exit codes, messages, output files, and that nothing partial is left behind.
set -uo pipefail
tandem="${TANDEM_BUILD:?}/bin/tandem"
cd "${TANDEM_SOURCE:?}" || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# expect CODE TEXT COMMAND...: the exit code, and a text that stdout and stderr together must hold.
expect() {
  local code=$1 text=$2 got
  shift 2
  "$@" >"$work/out" 2>&1
  got=$?
  if [ "$got" -ne "$code" ] || { [ -n "$text" ] && ! grep -qF -- "$text" "$work/out"; }; then
    printf 'FAILED: %s\n  exit %s, expected %s with "%s"; it printed:\n' "$*" "$got" "$code" "$text"
    sed 's/^/  | /' "$work/out" | head -20
    failures=$((failures + 1))
  fi
}

expect 0 "step time" "$tandem" simulate scenarios/w1_streamed.yaml
expect 0 '"mode": "simulated"' "$tandem" simulate scenarios/w1_streamed.yaml --json -
expect 3 "of device memory, you have 24.9 GB" "$tandem" simulate scenarios/does_not_fit.yaml
# The host is so full that the last layer's gradient goes to the disk for a while: its update goes on from there.
expect 0 "step time" "$tandem" simulate scenarios/cotrain_titan_rtx.yaml --set "policy={name: balanced}" \
  --set machine.tiers.device.capacity=24GiB --set machine.tiers.host_pinned.capacity=128GiB \
  --set limits.disk_bytes=1MiB --set workload.layers=196 --set workload.batch=1
expect 2 "did you mean" "$tandem" simulate scenarios/w1_streamed.yaml --set policy.name=cotrian
expect 2 "no_such_file.yaml" "$tandem" simulate no_such_file.yaml
expect 0 "" "$tandem" check scenarios/*.yaml hardware_profiles/*.yaml
expect 0 "warning: workload.precision: titan_rtx has no units for bf16" "$tandem" check scenarios/cotrain_titan_rtx.yaml --set workload.precision=bf16
expect 0 "warning: workload.precision" "$tandem" simulate scenarios/cotrain_titan_rtx.yaml --set workload.precision=bf16
expect 0 "zero_offload" "$tandem" list policies
expect 0 "gpt" "$tandem" list workloads
expect 0 "titan_rtx" "$tandem" list machines
expect 0 "w1_streamed" "$tandem" list scenarios
expect 2 "" "$tandem" sweep scenarios/w1_streamed.yaml
expect 2 "" "$tandem" no_such_command

# A log replays to the same commands; a damaged one is refused.
expect 0 "" "$tandem" simulate scenarios/cotrain_titan_rtx.yaml --log "$work/run.log" --quiet
expect 0 "" "$tandem" replay "$work/run.log"
head -c 2000 "$work/run.log" >"$work/cut.log"
expect 2 "cut.log" "$tandem" replay "$work/cut.log"

# The same seed gives the same log, byte for byte.
expect 0 "" "$tandem" simulate scenarios/cotrain_titan_rtx.yaml --log "$work/again.log" --quiet --set truth.noise=0.05 --seed 3
expect 0 "" "$tandem" simulate scenarios/cotrain_titan_rtx.yaml --log "$work/more.log" --quiet --set truth.noise=0.05 --seed 3
cmp -s "$work/again.log" "$work/more.log" || { echo "FAILED: two logs of one seed differ"; failures=$((failures + 1)); }

# All outputs at once; then a folder that is not there.
expect 0 "" "$tandem" simulate scenarios/disk_spill.yaml --quiet --json "$work/a.json" --trace "$work/a.trace.json" \
  --report "$work/a.html"
for file in a.json a.trace.json a.html; do
  [ -s "$work/$file" ] || { echo "FAILED: $file was not written"; failures=$((failures + 1)); }
done
expect 2 "" "$tandem" simulate scenarios/w1_streamed.yaml --trace "$work/nowhere/trace.json"
if [ -e "$work/nowhere" ]; then echo "FAILED: a partial file is left"; failures=$((failures + 1)); fi

if [ -x "${TANDEM_BUILD}/bin/tandem-train" ]; then
  expect 0 "loss" "$tandem" train scenarios/demo.yaml --set steps=3 --log "$work/live.log"
  expect 0 "" "$tandem" replay "$work/live.log"
  sed 's/^policy:.*/policy: {name: resident}/' scenarios/demo.yaml >"$work/resident.yaml"
  expect 3 "does not fit" "$tandem" train "$work/resident.yaml"
  # An interrupt ends a run with 130 and leaves nothing half written.
  "$tandem" train scenarios/demo.yaml --set steps=100000 --quiet --trace "$work/cut.trace.json" --log "$work/cut.log" \
    >"$work/out" 2>&1 &
  child=$!
  # Its log is begun under a temporary name, which is what may be left.
  for _ in $(seq 600); do
    if compgen -G "$work/cut.log.partial-*" >/dev/null; then break; fi
    sleep 0.1
  done
  if ! compgen -G "$work/cut.log.partial-*" >/dev/null; then echo "FAILED: no log was begun"; failures=$((failures + 1)); fi
  sleep 1
  pkill -INT -P "$child" 2>/dev/null || true
  kill -INT "$child" 2>/dev/null
  wait "$child"
  code=$?
  if [ "$code" -ne 130 ]; then
    echo "FAILED: an interrupted run ended with $code, expected 130"
    sed 's/^/  | /' "$work/out"
    failures=$((failures + 1))
  fi
  if compgen -G "$work/*.partial-*" >/dev/null; then echo "FAILED: a temporary file is left"; failures=$((failures + 1)); fi
fi

if [ "$failures" -gt 0 ]; then echo "cli: $failures failures"; exit 1; fi
echo "cli: exit codes, messages and files are as documented"
