#!/usr/bin/env bash
# Removes what `make install` has put below a prefix, and nothing else: the files of the list that it keeps there, and
# folders of Tandem that are then empty. What others have put into those folders stays, and is told.
#   scripts/uninstall.sh PREFIX
source "$(dirname "$0")/common.sh"
STEP="uninstalling"
PREFIX=${DESTDIR:-}${1:?"usage: scripts/uninstall.sh PREFIX"}
RECORD=$PREFIX/share/tandem/installed_files.txt
[ -f "$RECORD" ] || die "there is no $RECORD: 'make install' has put nothing there" \
  "name the folder that it was installed to: make uninstall PREFIX=FOLDER"

mapfile -t files <"$RECORD"
for file in "${files[@]}"; do
  case /$file/ in
    // | //* | */../*) die "$RECORD names '$file', which is not below $PREFIX; nothing was removed" "remove that line" ;;
  esac
done

# remove FILE: if it is there. What Python has compiled it to goes with it.
remove() {
  local path=$PREFIX/$1 stem
  if [ -e "$path" ] || [ -L "$path" ]; then
    rm -f -- "$path" || die "cannot remove $path" "run it as who installed it"
    removed+=("$1")
  fi
  case $path in
    *.py)
      stem=$(basename "$path" .py)
      rm -f -- "$(dirname "$path")/__pycache__/$stem".*.pyc
      ;;
  esac
}

removed=() folders=()
for file in "${files[@]}"; do
  remove "$file"
  case $file in
    */tandem/*) folders+=("$PREFIX/${file%%/tandem/*}/tandem") ;;
  esac
done
rm -f -- "$RECORD"
# Folders named tandem are its own; others, such as bin/, may be anybody's.
mapfile -t folders < <(printf '%s\n' "${folders[@]}" "$(dirname "$RECORD")" | sort -u)
for folder in "${folders[@]}"; do
  [ -d "$folder" ] || continue
  find "$folder" -depth -type d -empty -delete
  [ -d "$folder" ] || continue
  find "$folder" ! -type d -printf 'tandem: left, as it is not of the install: %p\n'
done
say "removed ${#removed[@]} of ${#files[@]} files from $PREFIX:"
printf '%s\n' "${removed[@]}" | awk -F/ '
  match($0, /(^|\/)tandem\//) { ++count[substr($0, 1, RSTART + RLENGTH - 1)]; next }
  { ++count[$0] }
  END { for (where in count) printf "  %s%s\n", where, where ~ /\/$/ ? " (" count[where] " files)" : "" }' | sort
