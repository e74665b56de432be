#!/usr/bin/env bash
# Set-up from a folder, without a network: wheels are installed from it alone, apt sees its packages alone, and a folder
# that is damaged, or for other machines, is refused. In a copy of the scripts, with small wheels and a small package.
set -uo pipefail
source_dir=${TANDEM_SOURCE:?}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
# Where that is permitted, a network namespace of its own; else a proxy that nobody is.
alone=(env http_proxy=http://127.0.0.1:9 https_proxy=http://127.0.0.1:9 PIP_RETRIES=0)
if unshare -rn true 2>/dev/null; then alone+=(unshare -rn); fi

fail() {
  echo "FAILED: $1"
  tail -n 20 "$work/out"
  failures=$((failures + 1))
}

# expect CODE TEXT COMMAND...
expect() {
  local code=$1 text=$2
  shift 2
  "${alone[@]}" env SIM_ONLY=1 PROGRAMS_ONLY=1 "$@" >"$work/out" 2>&1
  local got=$?
  if [ "$got" != "$code" ] || ! grep -qF -- "$text" "$work/out"; then fail "$*: exit code $got, expected $code with '$text':"; fi
}

root=$work/root folder=$work/folder
mkdir -p "$root" "$folder/wheels" "$folder/packages" "$work/package/DEBIAN"
cp -r "$source_dir/scripts" "$source_dir"/requirements*.txt "$root"
echo tandem-offline-test >"$root/apt-packages.txt"
printf 'Package: tandem-offline-test\nVersion: 1.0\nArchitecture: all\nMaintainer: none <none@localhost>\nDescription: a test\n' >"$work/package/DEBIAN/control"
dpkg-deb --root-owner-group -b "$work/package" "$folder/packages/tandem-offline-test_1.0_all.deb" >"$work/out" || fail "dpkg-deb:"

# Wheels of the names and versions that requirements-sim.txt pins, with nothing in them.
python3 - "$root/requirements-sim.txt" "$folder/wheels" <<'PYTHON'
import pathlib
import sys
import zipfile

for line in pathlib.Path(sys.argv[1]).read_text().splitlines():
    name, _, version = line.partition("#")[0].strip().partition("==")
    if version:
        stem = f"{name.replace('-', '_')}-{version}"
        with zipfile.ZipFile(f"{sys.argv[2]}/{stem}-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"{stem}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
            wheel.writestr(f"{stem}.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{stem}.dist-info/RECORD", "")
PYTHON

# The index, the facts and the sums, as scripts/download.sh writes them.
in_scripts() { (cd "$root" && bash -c "source scripts/common.sh; source scripts/offline.sh; $1"); }
# shellcheck disable=SC2016
python=$(in_scripts choose_python)
sums() { (cd "$folder" && find . -type f ! -name SHA256SUMS -print0 | xargs -0 sha256sum >"$work/sums" && mv "$work/sums" SHA256SUMS); }
in_scripts "write_index '$folder/packages'; { machine_facts; python_fact '$python'; } >'$folder/machine'"
sums

# apt would install it, and says from where; then it is not there. (Nothing is installed: apt only says what it would do.)
echo 'APT::Get::Simulate "true";' >"$work/apt.conf"
if [ "$(id -u)" = 0 ]; then
  expect 1 "still missing after the install: tandem-offline-test" env APT_CONFIG="$work/apt.conf" TMPDIR="$work" OFFLINE="$folder" "$root/scripts/setup.sh"
  grep -q 'Inst tandem-offline-test (1.0 ' "$work"/tandem-setup-apt.*.log || fail "apt does not take the folder's package"
  echo tandem-no-such-package >"$root/apt-packages.txt"
  expect 1 "$folder has no package tandem-no-such-package" env TMPDIR="$work" OFFLINE="$folder" "$root/scripts/setup.sh"
else
  echo "setup_offline: not root: apt is not tried"
fi
: >"$root/apt-packages.txt"
expect 0 "pip install -r requirements-sim.txt" env OFFLINE="$folder" "$root/scripts/setup.sh"
"$root/.venv/bin/python" -m pip list >"$work/out" 2>&1
grep -q '^highsbox ' "$work/out" || fail "the folder's wheels are not installed"

rm -rf "$root/.venv"
wheel=$(find "$folder/wheels" -name 'nanobind*')
mv "$wheel" "$work/kept"
expect 1 "wheels/$(basename "$wheel")" env OFFLINE="$folder" "$root/scripts/setup.sh"
sums
expect 1 "make download DIR=FOLDER" env OFFLINE="$folder" "$root/scripts/setup.sh"
cp "$work/kept" "$wheel"
expect 1 "SHA256SUMS does not name: ./wheels/$(basename "$wheel")" env OFFLINE="$folder" "$root/scripts/setup.sh"
sums
printf x >>"$wheel"
expect 1 "./wheels/$(basename "$wheel"): FAILED" env OFFLINE="$folder" "$root/scripts/setup.sh"
cp "$work/kept" "$wheel"
sed -i 's/^processor .*/processor vax/' "$folder/machine"
sums
expect 1 "processor vax" env OFFLINE="$folder" "$root/scripts/setup.sh"
sed -i "s/^processor .*/processor $(uname -m)/; s/^python .*/python 2.7/" "$folder/machine"
sums
expect 1 "has wheels for python 2.7" env OFFLINE="$folder" "$root/scripts/setup.sh"
expect 1 "no SHA256SUMS" env OFFLINE="$work/nothing" "$root/scripts/setup.sh"
# What people keep in a folder is not overwritten.
expect 1 "holds other things" env "$root/scripts/download.sh" "$work"

[ "$failures" = 0 ] || { echo "setup_offline: $failures failures"; exit 1; }
echo "setup_offline: set up from a folder alone; damaged and foreign ones are refused"
