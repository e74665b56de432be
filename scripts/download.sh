#!/usr/bin/env bash
# Fills a folder with all that `make setup OFFLINE=FOLDER` installs on a machine of this release and processor: Debian's
# packages with all that they need, also what this machine has, and Python's wheels. Nothing is installed here.
#   scripts/download.sh FOLDER
#   PROGRAMS_ONLY=1, SIM_ONLY=1  as for scripts/setup.sh, and to be given there, too
source "$(dirname "$0")/common.sh"
source "$ROOT/scripts/offline.sh"
STEP="downloading"
FOLDER=$(realpath -m "${1:?"usage: scripts/download.sh FOLDER"}")
command -v apt-get >/dev/null || die "this is no Debian or Ubuntu machine (no apt-get)" "run it on one"
if [ -e "$FOLDER" ] && [ ! -f "$FOLDER/machine" ]; then
  if [ ! -d "$FOLDER" ] || [ -n "$(ls -A "$FOLDER")" ]; then die "$FOLDER is there, and holds other things" "name a new folder"; fi
fi
mkdir -p "$FOLDER"
rm -rf "$FOLDER/packages" "$FOLDER/wheels" "$FOLDER/SHA256SUMS"
mkdir -p "$FOLDER/packages/partial" "$FOLDER/wheels"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
LOG=$work/log

# For a machine that has no package yet: apt finds the versions and checks them by the archive's signature.
say "Debian packages"
mapfile -t wanted < <(required)
while IFS= read -r name; do
  if [[ $(apt-cache policy "$name") =~ Candidate:\ [^\(] ]]; then wanted+=("$name"); fi
done < <(optional)
run_logged "$LOG" apt-get -y -q -o Dir::State::status=/dev/null -o "Dir::Cache::archives=$FOLDER/packages" \
  -o Debug::NoLocking=1 -o APT::Sandbox::User="$(id -un)" install --download-only --no-install-recommends "${wanted[@]}" ||
  die "apt-get install --download-only" "apt-get update, as root, fetches the lists that it goes by"
rmdir "$FOLDER/packages/partial"
rm -f "$FOLDER/packages/lock"
write_index "$FOLDER/packages"

python=$(choose_python)
LISTED=requirements.txt
if [ "${SIM_ONLY:-0}" = 1 ]; then LISTED=requirements-sim.txt; fi
say "wheels of $LISTED, for $(python_fact "$python")"
run_logged "$LOG" "$python" -m venv "$work/venv" || die "$python -m venv" "apt-get install python3-venv"
run_logged "$LOG" "$work/venv/bin/python" -m pip download --disable-pip-version-check --only-binary :all: -d "$FOLDER/wheels" -r "$ROOT/$LISTED" ||
  die "pip download -r $LISTED" "check the network (PyPI must be reachable, proxies by HTTPS_PROXY) and run it again"

{
  machine_facts
  python_fact "$python"
} >"$FOLDER/machine"
(cd "$FOLDER" && find . -type f ! -name SHA256SUMS -print0 | sort -z | xargs -0 sha256sum >"$work/sums")
mv "$work/sums" "$FOLDER/SHA256SUMS"
say "$FOLDER has $(find "$FOLDER/packages" -name '*.deb' | wc -l) packages and $(find "$FOLDER/wheels" -type f | wc -l) wheels, $(du -sh "$FOLDER" | cut -f1)"
say "on the machine without a network: make setup OFFLINE=FOLDER$([ "${PROGRAMS_ONLY:-0}" != 1 ] || printf ' PROGRAMS_ONLY=1')$([ "${SIM_ONLY:-0}" != 1 ] || printf ' SIM_ONLY=1')"
