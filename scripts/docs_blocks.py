"""Runs the marked blocks of a page, and compares what they print with what the page says they print.

Marks, each a comment right before the fence:
  <!-- run -->                       lines that begin with `$ ` are commands; what follows is their output
  <!-- run: exit 3 -->               they end with that code
  <!-- run: numbers any -->          numbers are measured: any will do
  <!-- run: tolerance 5% -->         numbers may differ by so much (2% without it), or by one of their last digit
  <!-- run: needs tandem-train -->   skipped where that program is not built
  <!-- run: slow -->                 skipped but with check_docs.py --slow
  <!-- file: NAME -->                the block is written to NAME, for the blocks below it
  <!-- set -->                       variables of the shell, for the commands of all blocks below it
  <!-- not run: why -->
In an expected output `...` stands for any text in its line, and alone on a line for any lines. Blocks of a page run in its
order, in one folder that is empty but for links to the repository's scenarios, profiles, scripts and recorded runs.
"""
import dataclasses
import hashlib
import os
import pathlib
import re
import signal
import subprocess
import tempfile

NUMBER = re.compile(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?(?!\w)")
BAR = re.compile(r"\[[#a-z. ]{16,}\]")
GIVEN = ("scenarios", "hardware_profiles", "models", "products", "benchmarks", "scripts", "tests")
TIMEOUT_S = 3600  # against hangs alone


@dataclasses.dataclass
class Options:
    exit_code: int = 0
    tolerance: float = 0.02  # None: any number
    needs: list = dataclasses.field(default_factory=list)
    slow: bool = False


def options_of(mark):
    """What a `run` mark says. Throws ValueError for what it cannot say."""
    options = Options()
    for word in (part.strip() for part in mark.partition(":")[2].split(",")):
        kind, _, value = word.partition(" ")
        if kind == "exit":
            options.exit_code = int(value)
        elif word == "numbers any":
            options.tolerance = None
        elif kind == "tolerance":
            options.tolerance = float(value.rstrip("%")) / 100
        elif kind == "needs":
            options.needs.append(value)
        elif word == "slow":
            options.slow = True
        elif word:
            raise ValueError(f"'{word}' is no mark; allowed: exit N, numbers any, tolerance N%, needs PROGRAM, slow")
    return options


def commands_of(fence):
    """[(line, command, expected lines)]. A command goes on where its line ends with a backslash."""
    found = []
    for offset, text in enumerate(fence.lines, 1):
        if text.startswith("$ "):
            found.append([fence.line + offset, text[2:], []])
        elif found and found[-1][1].endswith("\\"):
            found[-1][1] = found[-1][1][:-1] + text.strip()
        elif found:
            found[-1][2].append(text)
    return found


def as_number(text):
    return float(text.replace(",", ""))


def near(expected, actual, tolerance):
    if tolerance is None:
        return True
    last_digit = 10.0 ** -len(expected.partition(".")[2])
    a, b = as_number(expected), as_number(actual)
    return abs(a - b) <= max(tolerance * abs(a), last_digit * 1.001)


def line_matches(expected, actual, tolerance):
    expected, actual = BAR.sub("[bar]", expected), BAR.sub("[bar]", actual)
    pattern = ""
    for part in re.split(r"(\.\.\.)", expected):
        if part == "...":
            pattern += ".*"
            continue
        position = 0
        for number in NUMBER.finditer(part):
            pattern += spaced(part[position:number.start()]) + r"(?<![\w.,])(\d[\d,]*(?:\.\d+)?)(?!\w)"
            position = number.end()
        pattern += spaced(part[position:])
    match = re.fullmatch(r"\s*" + pattern.strip() + r"\s*", actual)
    numbers = [number for part in expected.split("...") for number in NUMBER.findall(part)]
    return bool(match) and all(near(e, a, tolerance) for e, a in zip(numbers, match.groups()))


def spaced(literal):
    return r"\s+".join(re.escape(word) for word in re.split(r"\s+", literal))


def first_difference(expected, actual, tolerance):
    """None where all lines match; else the expected line that cannot be placed, and what is there."""
    reached = (0, 0)

    def placed(e, a):
        nonlocal reached
        reached = max(reached, (e, a))
        while e < len(expected) and expected[e].strip() != "...":
            if a >= len(actual) or not line_matches(expected[e], actual[a], tolerance):
                return False
            e, a = e + 1, a + 1
            reached = max(reached, (e, a))
        if e == len(expected):
            return a == len(actual)
        return any(placed(e + 1, later) for later in range(a, len(actual) + 1))

    if placed(0, 0):
        return None
    e, a = reached
    return (expected[e] if e < len(expected) else "(the end)"), (actual[a] if a < len(actual) else "(the end)")


class Runner:
    """Runs commands with the programs of a build. The same command in an empty folder is run once for all pages."""

    def __init__(self, root, build, slow=False):
        self.root, self.bin, self.slow = pathlib.Path(root), pathlib.Path(build).resolve() / "bin", slow
        self.known = {}
        self.ran = self.skipped = 0
        self.variables = ""

    def page(self, page):
        """Problems of a page, as (line, text)."""
        problems, self.variables = [], ""
        with tempfile.TemporaryDirectory() as folder:
            for name in GIVEN:
                if (self.root / name).is_dir():
                    os.symlink((self.root / name).resolve(), os.path.join(folder, name))
            for fence in page.fences:
                if fence.mark.startswith("file:"):
                    path = pathlib.Path(folder) / fence.mark.partition(":")[2].strip()
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text("\n".join(fence.lines) + "\n", encoding="utf-8")
                elif fence.mark == "set":
                    self.variables += "".join(line + "; " for line in fence.lines)
                elif re.match(r"run\b", fence.mark):
                    problems += self.block(fence, folder)
        return problems

    def block(self, fence, folder):
        try:
            options = options_of(fence.mark)
        except ValueError as error:
            return [(fence.line - 1, f"mark: {error}")]
        commands = commands_of(fence)
        if not commands:
            return [(fence.line, "run: no line begins with `$ `")]
        if options.slow and not self.slow or any(not (self.bin / program).exists() for program in ["tandem-simulate", *options.needs]):
            self.skipped += len(commands)
            return []
        problems = []
        for line, command, expected in commands:
            code, output = self.run(self.variables + command, folder)
            if code != options.exit_code:
                problems.append((line, f"run: exit code {code}, not {options.exit_code}: {output.strip()[-300:]}"))
                continue
            difference = first_difference(trimmed(expected), trimmed(output.splitlines()), options.tolerance)
            if difference:
                problems.append((line, f"run: the page has '{difference[0].strip()}' where the command prints "
                                       f"'{difference[1].strip()}': {command}"))
        return problems

    def run(self, command, folder):
        before = files_of(folder)
        key = (command, hashlib.sha256(repr(sorted(before.items())).encode()).hexdigest())
        if key not in self.known:
            environment = {**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}", "TANDEM_BUILD": str(self.bin.parent), "COLUMNS": "80"}
            code, output = run_shell(command, folder, environment)
            self.ran += 1
            made = {name: data for name, data in files_of(folder).items() if before.get(name) != data}
            self.known[key] = (code, output, made)
        code, output, made = self.known[key]
        for name, data in made.items():
            path = pathlib.Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return code, output


def run_shell(command, folder, environment):
    """Exit code and output. A command that hangs is ended with all that it started, and its code is 124."""
    with subprocess.Popen(["bash", "-c", command], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, start_new_session=True) as shell:
        try:
            output, _ = shell.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(shell.pid, signal.SIGKILL)
            output, _ = shell.communicate()
            return 124, output.decode("utf-8", "replace") + f"(ended after {TIMEOUT_S} s)"
    return shell.returncode, output.decode("utf-8", "replace")


def trimmed(lines):
    lines = [line.rstrip() for line in lines]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def files_of(folder):
    """Contents of all files by name, without what is only linked in."""
    found = {}
    for path, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not os.path.islink(os.path.join(path, name))]
        for name in names:
            whole = pathlib.Path(path) / name
            found[whole.relative_to(folder).as_posix()] = whole.read_bytes()
    return found
