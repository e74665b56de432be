#!/usr/bin/env bash
# Makes a Debian or Ubuntu machine ready to build Tandem: installs what is missing of apt-packages.txt and
# requirements.txt, and prepares the corpus. Run it any number of times: what is there already is only checked.
#   PROGRAMS_ONLY=1  leaves out what only tests, benchmarks and checks need.
#   OFFLINE=DIR  installs from that folder alone, which scripts/download.sh has filled: no network is asked.
#   SIM_ONLY=1  leaves out LibTorch (several GB) and the data to train on: core, simulator and reports only.
source "$(dirname "$0")/common.sh"
source "$ROOT/scripts/offline.sh"
STEP="set-up"
cd "$ROOT"

if [ -n "$OFFLINE" ]; then check_offline; fi
scripts/setup_apt.sh
scripts/setup_python.sh
if [ "${SIM_ONLY:-0}" != 1 ]; then scripts/setup_corpus.sh; fi
