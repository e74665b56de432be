#!/usr/bin/env bash
# Installs the packages of apt-packages.txt that are missing. Asks nothing where all are there (about 50 ms).
#   PROGRAMS_ONLY=1  leaves out what tests, benchmarks and checks need: the part after the line of dashes
source "$(dirname "$0")/common.sh"
source "$ROOT/scripts/offline.sh"
STEP="installing Debian packages"
LOG=${TMPDIR:-/tmp}/tandem-setup-apt.$UID.log

# missing_of NAME...: those that are not installed, one a line.
missing_of() {
  [ $# -gt 0 ] || return 0
  local installed
  installed=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "$@" 2>/dev/null | sed -n 's/ installed$//p') || true
  comm -23 <(printf '%s\n' "$@" | sort -u) <(printf '%s\n' "$installed" | sort -u)
}

# Without a network, apt sees the folder's packages alone. They were compared with SHA256SUMS, as their index was.
FROM=()
if [ -n "$OFFLINE" ]; then
  WORK=$(mktemp -d)
  trap 'rm -rf "$WORK"' EXIT
  mkdir -p "$WORK/lists/partial" "$WORK/archives/partial"
  ln -s "$OFFLINE/packages" "$WORK/packages"
  echo "deb [trusted=yes] file:$WORK/packages ./" >"$WORK/sources.list"
  FROM=(-o "Dir::Etc::SourceList=$WORK/sources.list" -o Dir::Etc::SourceParts=/dev/null -o "Dir::State::Lists=$WORK/lists"
    -o "Dir::Cache=$WORK" -o APT::Sandbox::User=root)
fi

# available NAME: true where the package lists have a version to install.
available() { [[ $(apt-cache "${FROM[@]}" policy "$1" 2>/dev/null) =~ Candidate:\ [^\(] ]]; }

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  else
    sudo "$@"
  fi
}

apt() { run_logged "$LOG" as_root env DEBIAN_FRONTEND=noninteractive apt-get -y -q -o DPkg::Lock::Timeout=300 "${FROM[@]}" "$@"; }

update_lists() {
  say "apt-get update"
  apt update || die "apt-get update (log: $LOG)" "check the network and /etc/apt/sources.list, then run it again"
}

install_required() {
  local name
  for name in "$@"; do
    available "$name" && continue
    update_lists
    break
  done
  for name in "$@"; do
    available "$name" && continue
    [ -z "$OFFLINE" ] || die "$OFFLINE has no package $name" "$OFFLINE_CURE"
    # Without a network, apt-get update warns and succeeds.
    if grep -q 'Failed to fetch' "$LOG"; then
      grep 'Failed to fetch' "$LOG" | tail -n 3 >&2
      die "the package lists could not be fetched (log: $LOG)" "check the network and /etc/apt/sources.list, then run it again"
    fi
    die "no package named $name in this distribution's lists" \
      "Tandem is tried on Debian 12 and Ubuntu 24.04 (there, enable the universe component); elsewhere, install what $PACKAGES names by hand"
  done
  say "apt-get install $*"
  apt install --no-install-recommends "$@" && return
  # Lists that are older than the archive name files that are gone (404): fetch them anew and try once more.
  update_lists
  apt install --no-install-recommends "$@" || die "apt-get install $* (log: $LOG)" \
    "read the log's last lines above; 'sudo apt-get install $*' shows the whole error"
}

install_optional() {
  local name
  for name in "$@"; do
    available "$name" || continue
    say "apt-get install $name (optional)"
    apt install --no-install-recommends "$name" || say "left out: $name (log: $LOG)"
  done
}

command -v apt-get >/dev/null ||
  die "this is no Debian or Ubuntu machine (no apt-get)" "install what $PACKAGES names with your own package manager, then 'make build SETUP=0'"

mapfile -t wanted < <(required)
mapfile -t missing < <(missing_of "${wanted[@]}")
mapfile -t extras < <(optional)
mapfile -t missing_extras < <(missing_of "${extras[@]}")
[ ${#missing[@]} -gt 0 ] || [ ${#missing_extras[@]} -gt 0 ] || exit 0

if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
  [ ${#missing[@]} -gt 0 ] || exit 0
  die "not root, and there is no sudo" "as root: apt-get update && apt-get install -y ${missing[*]}"
fi
: >"$LOG"
if [ ${#missing[@]} -gt 0 ]; then install_required "${missing[@]}"; fi
mapfile -t still_missing < <(missing_of "${wanted[@]}")
[ ${#still_missing[@]} -eq 0 ] || die "still missing after the install: ${still_missing[*]}" "read $LOG"
install_optional "${missing_extras[@]}"
