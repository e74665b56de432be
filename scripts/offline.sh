# What set-up needs, and the folder OFFLINE that it comes from where there is no network: packages/ (.deb, with an index
# for apt), wheels/, `machine`, which says for what machines it is, and SHA256SUMS of all. Sourced, not run.
# shellcheck shell=bash
PACKAGES=$ROOT/apt-packages.txt
OFFLINE=${OFFLINE:-}
if [ -n "$OFFLINE" ]; then OFFLINE=$(realpath -m "$OFFLINE"); fi
export OFFLINE
OFFLINE_CURE="fill the folder on a machine with a network, of the same release and processor: make download DIR=FOLDER"

# Debian's packages: those that are needed, and those that only some distributions have.
part() { if [ "${PROGRAMS_ONLY:-0}" = 1 ]; then sed '/^# ---/,$d' "$PACKAGES"; else cat "$PACKAGES"; fi; }
listed() { part | sed -e 's/#.*//' -e 's/[[:space:]]//g' -e '/^$/d'; }
required() { listed | grep -v '?$' || true; }
optional() { listed | sed -n 's/?$//p'; }

# The interpreter that makes .venv: $PYTHON, or the distribution's, which python3-venv belongs to, or the first on PATH.
choose_python() {
  local python
  for python in ${PYTHON:+"$PYTHON"} /usr/bin/python3 python3; do
    command -v "$python" >/dev/null || continue
    "$python" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null || continue
    echo "$python"
    return
  done
  die "no Python 3.11 to 3.14 with the venv module" "install one (Debian 12 and Ubuntu 24.04 have it: apt-get install python3 python3-venv), or name it: PYTHON=/path/to/python3 make setup"
}

# What the packages and wheels of a folder go by: one line a fact.
machine_facts() {
  (source /etc/os-release && echo "release $ID ${VERSION_ID:-$VERSION_CODENAME}")
  echo "processor $(uname -m)"
}
python_fact() { echo "python $("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])')"; }

# That the folder is whole, and for machines like this one. Python may be among what it brings.
check_offline() {
  local fact
  [ -f "$OFFLINE/SHA256SUMS" ] || die "$OFFLINE is no folder for a set-up without a network (no SHA256SUMS)" "$OFFLINE_CURE"
  while IFS= read -r fact; do
    grep -qxF -- "$fact" "$OFFLINE/machine" || die "$OFFLINE is for $(paste -sd, "$OFFLINE/machine"), and this is $fact" "$OFFLINE_CURE"
  done < <(machine_facts)
  (cd "$OFFLINE" && sha256sum --quiet --strict --check SHA256SUMS) >&2 ||
    die "files of $OFFLINE are missing or are not what was downloaded (listed above)" "copy the folder again, or $OFFLINE_CURE"
  # What is not listed is not checked, and so not taken.
  local other
  other=$(cd "$OFFLINE" && comm -23 <(find . -type f ! -name SHA256SUMS | sort) <(sed 's/^[0-9a-f]* [ *]//' SHA256SUMS | sort))
  [ -z "$other" ] || die "$OFFLINE has files that SHA256SUMS does not name: $(paste -sd' ' <<<"$other")" "remove them"
}

# write_index FOLDER: what apt reads of a folder of packages.
write_index() {
  local file
  (
    cd "$1" || exit
    for file in *.deb; do
      dpkg-deb -f "$file"
      printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' "$file" "$(stat -c %s "$file")" "$(sha256sum "$file" | cut -d' ' -f1)"
    done >Packages
  )
}
