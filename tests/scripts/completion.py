#!/usr/bin/env python3
"""What shells complete, and the manual page: tried in real shells, and compared with what every --help names."""
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

BIN = pathlib.Path(os.environ["TANDEM_BUILD"]) / "bin"
SOURCE = pathlib.Path(os.environ["TANDEM_SOURCE"])
ENVIRONMENT = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8", "TERM": "dumb"}
# What is typed, what must be offered, and what must not. A word alone, where it is the one that fits.
CASES = (
    ("tandem comp", {"compare", "compare-policies", "completion"}, {"plan"}),
    ("tandem plan --mo", {"--model", "--most-devices"}, {"--machine"}),
    ("tandem plan --model gpt2-x", {"gpt2-xl"}, {"gpt2"}),
    ("tandem plan --model=gpt2-x", {"--model=gpt2-xl"}, set()),
    ("tandem plan --machine titan", {"titan_rtx"}, {"h100"}),
    ("tandem compare-policies FILE --policies resident,zero_", {"resident,zero_offload", "resident,zero_infinity"}, {"zero_offload"}),
    ("tandem compare FILE --device ", {"cpu", "cuda"}, set()),
    ("tandem simulate FILE --set mach", {"machine="}, {"seed="}),
    ("tandem simulate FILE --set machine=titan", {"machine=titan_rtx"}, set()),
    ("tandem simulate FILE --set=policy.name=zero_o", {"--set=policy.name=zero_offload"}, set()),
    ("tandem simulate FILE --set workload.attention=", {"workload.attention=fused", "workload.attention=unfused"}, set()),
    ("tandem simulate FILE --set optimizer.masters=", {"optimizer.masters=true", "optimizer.masters=false"}, set()),
    ("tandem simulate round", {"round file.yaml"}, {"--set"}),
    ("tandem explain FILE --json round", {"round file.yaml"}, set()),
    ("tandem import m:f --output fold", {"folder/"}, {"round file.yaml"}),
    ("tandem list mod", {"models"}, {"machines"}),
    ("tandem analyze FILE --mix image,", {"image,audio", "image,video"}, set()),
)
failures = []


def check(name, condition, detail):
    if not condition:
        failures.append(f"{name}: {detail}")


def output(*words, cwd=None):
    result = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=60, env=ENVIRONMENT, cwd=cwd)
    check(" ".join(str(word) for word in words[:3]), not result.stderr, result.stderr)
    return result.stdout


# COMP_WORDS as bash makes them: words are split at "=" and ":", which are words themselves.
BASH = r"""
source "$1"
line=$2
COMP_LINE=$line COMP_POINT=${#line} COMP_WORDS=()
while IFS= read -r word; do COMP_WORDS+=("$word"); done < <(grep -oE '[^ =:]+|[=:]+' <<< "$line")
[[ $line != *[\ =:] ]] || [[ $line == *[=:] ]] || COMP_WORDS+=('')
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_tandem 2> >(grep -v compopt >&2)
typed=${COMP_WORDS[COMP_CWORD]}
[[ $typed != [=:] ]] || typed=
for word in "${COMPREPLY[@]}"; do printf '%s\n' "${line%"$typed"}$word"; done
"""


class Bash:
    def __init__(self, folder):
        self.folder, self.script = folder, folder / "tandem.bash"

    # Whole words: with what stands before the part that bash would replace.
    def offers(self, line):
        found = output("bash", "--norc", "-c", BASH, "bash", self.script, line, cwd=self.folder).splitlines()
        begin = line.rpartition(" ")[0] + " "
        return {one.removeprefix(begin) + ("/" if (self.folder / one.removeprefix(begin)).is_dir() else "") for one in found}

    # As a person types: line by line, with the Tab key.
    def typed(self):
        start = f"PS1='> '; bind 'set enable-bracketed-paste off'; source {self.script}\n"
        return typed(("bash", "--norc", "--noprofile", "-i"), self.folder, start)


class Fish:
    def __init__(self, folder):
        self.folder, self.script = folder, folder / "tandem.fish"

    def offers(self, line):
        text = output("fish", "--no-config", "-c", f"source {self.script}; complete -C {line!r}", cwd=self.folder)
        return {one.partition("\t")[0] for one in text.splitlines()}


def typed(shell, folder, start):
    """Types lines that one word ends, each with a Tab, and says whether the shell put that word there."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(folder)
        os.execvpe(shell[0], list(shell), ENVIRONMENT)
    done = {}
    try:
        os.write(terminal, (start + "echo 'rea''dy'\n").encode())
        check(shell[0], read_until(terminal, "ready", 60) is True, "it does not begin")
        for line, whole in (("tandem plan --model gpt2-x", "--model gpt2-xl"), ("tandem simulate F --set machine=titan", "machine=titan_rtx"),
                            ("tandem plan --machine=titan", "--machine=titan_rtx"), ("tandem monit", "tandem monitor")):
            os.write(terminal, (line + "\t").encode())
            done[whole] = read_until(terminal, whole, 15)
            os.write(terminal, b"\x15")  # Ctrl-U: the line is gone
            read_until(terminal, "", 0.3)
    finally:
        os.close(terminal)
        os.waitpid(process, 0)
    return done


def read_until(terminal, text, seconds):
    seen, end = "", time.monotonic() + seconds
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.1)[0]:
            seen += os.read(terminal, 4096).decode(errors="replace")
            if text and text in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r|\x08", "", seen):
                return True
    return text == "" or f"it shows {seen!r}"


def commands():
    """Those that --help names and this build has, each with its flags as its own --help has them."""
    named = re.findall(r"^  tandem ([a-z-]+)", output(BIN / "tandem", "--help"), re.MULTILINE)
    check("--help", {"plan", "train", "train-policy", "completion", "man"} <= set(named), f"it names {named}")
    found = {}
    for name in dict.fromkeys(named):
        result = subprocess.run([BIN / "tandem", name, "--help"], capture_output=True, text=True, timeout=60)
        if "is not built" in result.stderr:
            continue
        check(f"{name} --help", result.returncode == 0, result.stderr)
        found[name] = set(re.findall(r"^  (?:-\w,)?(--[a-z-]+)", result.stdout, re.MULTILINE))
    return named, found


def shells(folder, known):
    for name in ("bash", "zsh", "fish"):
        (folder / f"tandem.{name}").write_text(output(BIN / "tandem", "completion", name))
    for name, make in (("bash", Bash), ("fish", Fish)):
        if not shutil.which(name):
            print(f"completion: no {name} here: not tried")
            continue
        shell = make(folder)
        for line, wanted, unwanted in CASES:
            offers = shell.offers(line)
            check(f"{name}: {line}", wanted <= offers and not unwanted & offers, f"it offers {sorted(offers)[:12]}")
        for command, flags in known.items():
            offers = {offer for offer in shell.offers(f"tandem {command} --") if offer.startswith("--")}
            check(f"{name}: flags of {command}", {offer.rstrip("=") for offer in offers} == flags, f"{sorted(offers ^ flags)} differ")
    tried = {"bash": Bash(folder).typed} if shutil.which("bash") else {}
    if shutil.which("zsh"):
        (folder / "functions").mkdir()
        shutil.copy(folder / "tandem.zsh", folder / "functions/_tandem")
        start = f"PS1='> '; fpath=({folder}/functions $fpath); autoload -Uz compinit; compinit -u -d {folder}/dump\n"
        tried["zsh"] = lambda: typed(("zsh", "-f", "-i"), folder, start)
    else:
        print("completion: no zsh here: not tried")
    for name, type_lines in tried.items():
        for whole, verdict in type_lines().items():
            check(f"{name}, typed: {whole}", verdict is True, verdict)


def manual(folder, named, known):
    page = folder / "tandem.1"
    page.write_text(output(BIN / "tandem", "man"))
    checked = False
    for words in (("man", "--warnings", "-l"), ("groff", "-man", "-ww", "-z"), ("mandoc", "-T", "lint", "-W", "error")):
        if shutil.which(words[0]):
            checked = True
            result = subprocess.run([*words, page], capture_output=True, text=True, env={**ENVIRONMENT, "MANWIDTH": "120"}, timeout=60)
            text = result.stderr + (result.stdout if words[0] == "mandoc" else "")
            check(words[0], result.returncode == 0 and not text.strip(), text)
    if not checked:
        print("completion: no man, groff or mandoc here: the manual page is not rendered")
    sections = dict(re.findall(r"^\.SS tandem (\S+)\n((?:(?!\.S[SH]).*\n)*)", page.read_text().replace("\\-", "-"), re.MULTILINE))
    check("the page's commands", set(sections) == set(named), f"{set(sections) ^ set(named)}")
    for command, flags in known.items():
        told = set(re.findall(r"^\\fB(?:-\w, )?(--[a-z-]+)", sections.get(command, ""), re.MULTILINE))
        check(f"the page's flags of {command}", told == flags, f"{told ^ flags} differ")
    table = (SOURCE / "docs/reference/commands.md").read_text()
    for command in named:
        check("docs/reference/commands.md", f"`tandem {command}" in table, f"there is no tandem {command}")


def main():
    result = subprocess.run([BIN / "tandem", "completion", "tcsh"], capture_output=True, text=True)
    check("another shell", result.returncode == 2 and "allowed: bash, zsh, fish" in result.stderr, result.stderr)
    named, known = commands()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "round file.yaml").touch()
        (folder / "folder").mkdir()
        shells(folder, known)
        manual(folder, named, known)
    for failure in failures:
        print("FAILED:", failure)
    print(f"completion: {len(known)} commands; {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
