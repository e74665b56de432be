#!/usr/bin/env bash
# Puts the free data that scenarios train on into .cache/: a text (Debian's bible-kjv) and scikit-learn's digits.
source "$(dirname "$0")/common.sh"
STEP="preparing the corpus"
CACHE=$ROOT/.cache
readonly CORPUS_BYTES=4404412  # of bible-kjv 4.38
readonly DIGITS_LINES=1797

# put FILE COMMAND...: the command's output under its final name only when it is whole.
put() {
  local file=$1
  shift
  "$@" >"$file.tmp" </dev/null || die "$* > $file" "run that command by hand to see why"
  mv "$file.tmp" "$file"
}

make_corpus() {
  command -v bible >/dev/null || die "no command 'bible'" "apt-get install bible-kjv"
  put "$CACHE/corpus.txt" bible -f gen1:1-rev22:21
  local bytes
  bytes=$(stat -c %s "$CACHE/corpus.txt")
  [ "$bytes" -ge "$CORPUS_BYTES" ] && return
  rm "$CACHE/corpus.txt"
  die "the text has $bytes bytes, at least $CORPUS_BYTES expected" "apt-get install --reinstall bible-kjv bible-kjv-text"
}

make_digits() {
  local archive
  archive=$(find "$ROOT/.venv/lib" -path '*sklearn/datasets/data/digits.csv.gz' -print -quit)
  [ -n "$archive" ] || die "no digits.csv.gz in .venv" "remove .venv and run 'make setup' again"
  put "$CACHE/digits.csv" gunzip -c "$archive"
  local lines
  lines=$(wc -l <"$CACHE/digits.csv")
  [ "$lines" = "$DIGITS_LINES" ] && return
  rm "$CACHE/digits.csv"
  die "the digits have $lines lines, $DIGITS_LINES expected" "remove .venv and run 'make setup' again"
}

mkdir -p "$CACHE"
if [ ! -s "$CACHE/corpus.txt" ]; then make_corpus; fi
if [ ! -s "$CACHE/digits.csv" ]; then make_digits; fi
