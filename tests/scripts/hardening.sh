#!/usr/bin/env bash
# The programs are position independent, cannot be written to where the loader writes, guard their stacks and check the
# sizes of copies; and docs/reference/linked_libraries.md names all that they are linked with. The first part is tried on
# a program without any of it, too.
set -euo pipefail

# lacks PROGRAM: what of it the program is without, in words.
lacks() {
  local headers symbols
  headers=$(readelf -hldW "$1")
  symbols=$(nm -D --undefined-only "$1")
  grep -qE 'Type: +DYN' <<< "$headers" || echo -n "PIE; "
  grep -q GNU_RELRO <<< "$headers" || echo -n "RELRO; "
  grep -qE 'BIND_NOW|Flags:.* NOW' <<< "$headers" || echo -n "BIND_NOW; "
  grep -q __stack_chk_fail <<< "$symbols" || echo -n "stack protector; "
  grep -qE '__(mem|str|read|snprintf|vsnprintf|fread|realpath)[a-z]*_chk' <<< "$symbols" || echo -n "_FORTIFY_SOURCE; "
}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
echo 'int main() { return 0; }' > "$folder/bare.c"
cc -no-pie -fno-stack-protector -Wl,-z,norelro -o "$folder/bare" "$folder/bare.c"
canary=$(lacks "$folder/bare")
for word in PIE RELRO BIND_NOW "stack protector" _FORTIFY_SOURCE; do
  [[ $canary == *"$word"* ]] || { echo "a program without $word passes: this test cannot fail"; exit 1; }
done

status=0
for program in "$TANDEM_BUILD"/bin/tandem{,-simulate,-plan,-monitor,-train,-train-cuda,-calibrate,-calibrate-cuda} "$TANDEM_BUILD"/python/*.so; do
  [ -x "$program" ] || continue
  name=$(basename "$program")
  missing=$(lacks "$program")
  [ -z "$missing" ] || { echo "$name is built without: $missing"; status=1; }
  for library in $(readelf -dW "$program" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p'); do
    grep -qF "\`$library\`" "$TANDEM_SOURCE/docs/reference/linked_libraries.md" ||
      { echo "docs/reference/linked_libraries.md does not name $library, which $name is linked with"; status=1; }
  done
done
exit $status
