#!/usr/bin/env bash
# Live runs under faults, as many as a night has time for: 10,000 seeds, and every allocation of three training steps
# refused. An hour on two cores. TANDEM_FAULT_SEEDS and TANDEM_FAULT_SEED draw others.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export TANDEM_FAULT_SEEDS="${TANDEM_FAULT_SEEDS:-10000}" TANDEM_EVERY_ALLOCATION=1
readonly MOST_S=7200
jobs=()
run_alone() { # program, tests
  "build/bin/$1" --each_alone=$MOST_S --gtest_filter="$2" &
  jobs+=($!)
}
# Two at a time, each with about half of it.
run_alone test_faults '*LiveFaultsTest*:*AllocationTest*/scheduling_thread*:*/streams_scheduling*:*/any_thread'
run_alone test_faults '*AllocationTest*/any_thread_all_after:*AllocationTest*/streams_any*'
status=0
for job in "${jobs[@]}"; do wait "$job" || status=1; done
if [ -x build/bin/test_runtime ]; then
  build/bin/test_runtime --each_alone=$MOST_S --gtest_filter='*MemoryFaultsTest*' || status=1
fi
exit $status
