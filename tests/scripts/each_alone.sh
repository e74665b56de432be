#!/usr/bin/env bash
# Tests what runs the tests: one that fails, crashes, ends too early or hangs is named, with how to run it alone, and the
# others run on, apart from each other (tests/core/test_main_test.cpp). The report misses no test.
set -uo pipefail
program=${TANDEM_BUILD:?}/bin/test_core
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

fail() {
  echo "FAILED: $1"
  failures=$((failures + 1))
}
has() { grep -qF -- "$1" "$work/out" || fail "no '$1' in the output"; }

# Two seconds: a sanitizer's abort takes its time.
"$program" --each_alone=2 --gtest_filter='TestMain.*' --gtest_also_run_disabled_tests >"$work/out" 2>&1 && fail "it passed"
for name in Fails Crashes Exits ExitsAsIfItHadPassed Hangs; do
  has "failed: TestMain.DISABLED_$name"
  has " alone: $program --gtest_filter='TestMain.DISABLED_$name'"
done
has '[  FAILED  ] TestMain.DISABLED_Hangs: ended by signal 14'
has '[  FAILED  ] TestMain.DISABLED_Exits: ended with exit code 3'
has '[  SKIPPED ] TestMain.DISABLED_IsSkipped'
has '[       OK ] TestMain.SeesNoOtherTestsVariables ('
has '[       OK ] TestMain.SeesNoOtherTestsVariablesEither ('
has '3 of 8 tests passed'

"$program" --each_alone=60 --gtest_filter='TestMain.*' >"$work/out" 2>&1 || fail "without the disabled tests it fails"
has '2 of 2 tests passed'
"$program" --each_alone=60 --gtest_filter='NoSuchSuite.*' >"$work/out" 2>&1 && fail "no test at all passes"

# A log as ctest writes it: each test is reported, and one that the log lacks is missed.
mkdir -p "$work/build/bin" "$work/build/Testing/Temporary"
cat >"$work/build/bin/test_area" <<'PROGRAM'
#!/bin/sh
printf 'Suite.\n  One\n  DISABLED_Two\nAll/Other.  # TypeParam = int\n  Three/0  # GetParam() = 3\n'
PROGRAM
chmod +x "$work/build/bin/test_area"
cat >"$work/build/Testing/Temporary/LastTest.log" <<'LOG'
1/3 Test: area.Suite
Output:
----------------------------------------------------------
[       OK ] Suite.One (1500 ms)
Test time =   1.60 sec
----------------------------------------------------------
Test Passed.
2/3 Test: area.Other
[  FAILED  ] All/Other.Three/0, where GetParam() = 3 (7 ms)
Test time =   0.01 sec
Test Failed.
3/3 Test: scripts.some.sh
Test time =   2.00 sec
Test Skipped.
LOG
python=${TANDEM_SOURCE:?}/.venv/bin/python
report=$TANDEM_SOURCE/scripts/test_report.py
"$python" "$report" "$work/build" --all >"$work/out" 2>&1 || fail "the report fails where all tests ran"
for line in 'passed 1.500 s  area.Suite.One' 'FAILED 0.007 s  area.All/Other.Three/0' 'skipped 2.000 s  scripts.some.sh' \
  '1 skipped: scripts.some.sh' '1 FAILED: area.All/Other.Three/0'; do has "$line"; done
sed -i '/Suite.One/d' "$work/build/Testing/Temporary/LastTest.log"
"$python" "$report" "$work/build" --all >"$work/out" 2>&1 && fail "a test that did not run is not missed"
has '1 tests did not run: area.Suite.One'

[ "$failures" = 0 ] || { cat "$work/out"; exit 1; }
echo "each_alone: every test is run apart, named and reported"
