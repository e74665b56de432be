#!/usr/bin/env bash
# An installed tandem runs from any folder, with what lies beside it alone: its programs, libraries, profiles, scenarios and
# data are those of the prefix, and none is the checkout's. Uninstalled, it leaves what others have put there.
set -uo pipefail
build=${TANDEM_BUILD:?}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix
home=$prefix/share/tandem
failures=0

fail() {
  echo "FAILED: $1"
  failures=$((failures + 1))
}

# Runs it as a person would elsewhere: on the PATH, in another folder, without the build's environment.
installed() { (cd "$work/elsewhere" && env -i "PATH=$prefix/bin:/usr/bin:/bin" "HOME=$work" "$@"); }

# expect TEXT COMMAND...: it succeeds, and its output holds the text.
expect() {
  local text=$1
  shift
  installed "$@" >"$work/out" 2>&1 && grep -qF -- "$text" "$work/out" && return
  fail "$*: no '$text', or no success:"
  head -n 20 "$work/out"
}

# GPU programs bring gigabytes of CUDA's libraries: by the same rules, and not here.
for component in simulator cpu manual; do
  cmake --install "$build" --prefix "$prefix" --component "$component" >"$work/log" 2>&1 ||
    { fail "cmake --install, component $component:"; tail -n 20 "$work/log"; }
done
mkdir "$work/elsewhere"

for program in "$prefix"/bin/*; do
  libraries=$(env -i ldd "$program" | awk '{ print $3, $1 }')
  if grep -E "^(${TANDEM_SOURCE:?}|$build)/|site-packages|^not " <<<"$libraries"; then fail "$program loads these"; fi
done

expect 'step time' tandem simulate "$home/scenarios/w1_streamed.yaml" --set machine=h200 --report report.html --json result.json
for file in report.html result.json; do [ -s "$work/elsewhere/$file" ] || fail "no $file"; done
expect 'zero_offload' tandem compare-policies "$home/scenarios/w1_streamed.yaml"
expect 'a valid scenario' tandem check "$home/scenarios/w1_streamed.yaml"
expect 'titan_rtx' tandem list machines
if [ -x "$prefix/bin/tandem-train" ]; then expect 'loss' tandem train "$home/scenarios/demo.yaml" --set steps=2; fi
# The Python module is that of the prefix; torch is of whoever uses it.
if compgen -G "$home/python/tandem/_tandem.*" >/dev/null; then
  expect "2 losses by $home/python" env "PYTHONPATH=$home/python" "$TANDEM_SOURCE/.venv/bin/python" -c "
import tandem
losses = tandem.train('demo', steps=2).losses
print(len(losses), 'losses by', tandem.__file__)"
fi
# The manual page and the shells' completions are where man and shells look for them.
for file in man/man1/tandem.1 bash-completion/completions/tandem zsh/site-functions/_tandem fish/vendor_completions.d/tandem.fish; do
  grep -qE 'compare\\?-policies' "$prefix/share/$file" || fail "share/$file does not tell the commands"
done
# What the prefix lacks is not looked for in the checkout, which has it.
rm "$home/hardware_profiles/titan_rtx.yaml"
installed tandem list machines | grep titan_rtx >"$work/out" && fail "a profile of the checkout is listed"

# What the install put there goes; what others put beside it stays.
echo mine >"$home/hardware_profiles/mine.yaml"
echo mine >"$prefix/bin/mine"
mkdir -p "$prefix/lib/empty"
"$TANDEM_SOURCE/scripts/uninstall.sh" "$prefix" >"$work/out" 2>&1 || { fail "uninstall:"; cat "$work/out"; }
grep -q '^  bin/tandem$' "$work/out" || { fail "uninstall does not say that it removed bin/tandem:"; cat "$work/out"; }
grep -q 'left.*hardware_profiles/mine.yaml' "$work/out" || fail "uninstall does not tell what it left"
left=$(cd "$prefix" && find . ! -type d | sort | paste -sd' ')
[ "$left" = "./bin/mine ./share/tandem/hardware_profiles/mine.yaml" ] || fail "after uninstall there are: $left"
[ -d "$prefix/lib/empty" ] || fail "uninstall removed a folder that is not Tandem's"
"$TANDEM_SOURCE/scripts/uninstall.sh" "$prefix" >"$work/out" 2>&1 && fail "a second uninstall succeeds"
# A list that names what lies elsewhere is refused whole.
for elsewhere in ../outside /etc/outside share/../../outside ""; do
  mkdir -p "$home"
  printf 'bin/mine\n%s\n' "$elsewhere" >"$home/installed_files.txt"
  "$TANDEM_SOURCE/scripts/uninstall.sh" "$prefix" >"$work/out" 2>&1 && fail "uninstall takes '$elsewhere'"
  [ -e "$prefix/bin/mine" ] || fail "uninstall removed files though it refused '$elsewhere'"
done

[ "$failures" = 0 ] || { echo "install: $failures failures"; exit 1; }
echo "install: what is installed runs without the checkout, and goes without a trace"
