#!/usr/bin/env bash
# Makes a Debian or Ubuntu machine ready to build Tandem: installs what is missing of apt-packages.txt and
# requirements.txt, and prepares the corpus. Run it any number of times: what is there already is only checked.
#   PROGRAMS_ONLY=1  leaves out what only tests, benchmarks and checks need.
#   SIM_ONLY=1  leaves out LibTorch (several GB) and the data to train on: core, simulator and reports only.
source "$(dirname "$0")/common.sh"
cd "$ROOT"

scripts/setup_apt.sh
scripts/setup_python.sh
if [ "${SIM_ONLY:-0}" != 1 ]; then scripts/setup_corpus.sh; fi
