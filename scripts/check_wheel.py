#!/usr/bin/env python3
"""Checks a wheel that is to run where the distribution has none of Tandem's libraries: what is in it, under which licence,
what it takes from the system, and that an empty environment with it answers as the build does.

  check_wheel.py WHEEL [--build DIR]
Prints the libraries with their licences; exit code 1 where something is wrong. Licences are those of
docs/reference/linked_libraries.md.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

TABLES = pathlib.Path(__file__).resolve().parents[1] / "docs" / "reference" / "linked_libraries.md"
# What may be passed on in a wheel. LGPL: as a shared library, which whoever has the wheel can put another build in place of.
COMPILED_IN = {"MIT", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "public domain"}
SHARED = COMPILED_IN | {"LGPL-2.1"}
# On every Linux with glibc, and so on the lists of manylinux (PEP 599, PEP 600).
SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2", "libstdc++.so.6",
          "libgcc_s.so.1", "libz.so.1"}
OWN = ("_tandem_sim.",)
# Simulated by both, with the command's --set.
SCENARIOS = (("w1_streamed", {"steps": 3}), ("demo", {"steps": 3, "policy": {"name": "zero_offload"}}),
             ("demo", {"steps": 2, "workload.devices": 2, "policy": {"name": "balanced"}}))
ASK = """
import json, sys, tandem

class OnDemand(tandem.Policy):
    def home(self, view, tensor):
        return "host"
    def decide(self, view, decisions):
        while self.feed_compute(view, decisions):
            ready = view.ready_optimizer_ops()
            if not ready:
                return
            for op in ready:
                decisions.run(op, "compute")

answers = [tandem.simulate(name, set=settings).data for name, settings in json.load(sys.stdin)]
settings = {"steps": 3, "limits.disk_bytes": "0B"}
own = [tandem.simulate("demo", set=settings, policy=policy).step_time_s for policy in ("on_demand", OnDemand())]
json.dump({"answers": answers, "own": own}, sys.stdout)
"""


def listed():
    """Two tables: licence by a shared library's stem, licence by the name of what the simulator has compiled in."""
    shared, inside = {}, {}
    for line in TABLES.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 5 or cells[0] in ("library", "---"):
            continue
        names = re.findall(r"`([^`]+)`", cells[0])
        for name in names:
            shared[stem(name)] = cells[3]
        if not names and cells[4] != "programs that train or calibrate":
            inside[cells[0].split(" (")[0]] = cells[3]
    return shared, inside


def stem(file):
    """libfmt of libfmt.so.9, and of libfmt-1a2b3c4d.so.9.1.0, as auditwheel names its copies."""
    return re.sub(r"-[0-9a-f]{8}$", "", re.split(r"\.so(?=\.|$)", file)[0])


def needed(path):
    text = subprocess.run(["readelf", "-dW", str(path)], capture_output=True, text=True, check=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.*)\]", text)


def binaries(root):
    return [path for path in sorted(root.rglob("*")) if path.is_file() and path.open("rb").read(4) == b"\x7fELF"]


def check_contents(root, problems):
    """Of an unpacked wheel: prints its libraries, and says what must not be."""
    files = binaries(root)
    libraries = [path for path in files if ".so" in path.name and not path.name.startswith(OWN)]
    there = {path.name for path in libraries}
    for path in files:
        problems += [f"{path.name} needs {name}, which is neither in the wheel nor on every system"
                     for name in needed(path) if name not in there | SYSTEM]
    shared, inside = listed()
    rows = [(stem(path.name), shared, SHARED, path.stat().st_size) for path in libraries]
    rows += [(name, inside, COMPILED_IN, None) for name in inside]
    for name, table, allowed, size in rows:
        licence = table.get(name)
        print(f"  {name:16} {f'{size / 1e6:.1f} MB' if size is not None else 'compiled in':12} {licence}")
        if licence not in allowed:
            problems.append(f"{name} is under {licence or 'a licence that ' + TABLES.name + ' does not name'}; "
                            f"allowed: {', '.join(sorted(allowed))}")
        texts = list(root.glob(f"*.dist-info/licenses/{name}.txt"))
        if not texts or texts[0].stat().st_size < 200:
            problems.append(f"{name} has no text of its licence in the wheel")
        elif licence and "GPL" in licence and "source archive: https://" not in texts[0].read_text():
            problems.append(f"{name}'s licence does not say where its source is")


def check_loading(venv, problems):
    """What the loader takes for each file of the installed wheel."""
    for path in binaries(venv / "lib"):
        if "tandem" not in str(path.relative_to(venv)):
            continue
        loaded = subprocess.run(["ldd", str(path)], capture_output=True, text=True, env={}, check=False).stdout
        for name, place in re.findall(r"^\s*(\S+) => (.*?)(?: \(0x.*)?$", loaded, re.MULTILINE):
            if name not in SYSTEM and not place.startswith(str(venv)):
                problems.append(f"{path.name} loads {name} from {place}")


def same(answer):
    """All of a result but the clock's share, and how it was asked for."""
    return {key: value for key, value in answer.items() if key not in ("simulator", "scenario", "origin")}


def check_answers(python, build, folder, problems):
    clean = {"PATH": "/usr/bin:/bin", "HOME": str(folder)}
    asked = subprocess.run([python, "-c", ASK], input=json.dumps(SCENARIOS), capture_output=True, text=True, cwd=folder, env=clean,
                           timeout=600, check=False)
    if asked.returncode:
        problems.append("tandem.simulate() of the installed wheel: " + asked.stderr.strip()[-2000:])
        return
    told = json.loads(asked.stdout)
    if told["own"][0] != told["own"][1]:
        problems.append(f"a policy in Python takes {told['own'][1]} s a step, the same built in {told['own'][0]} s")
    if not build:
        print("  not compared with build/bin/tandem-simulate, which is not built")
        return
    for (name, settings), answer in zip(SCENARIOS, told["answers"], strict=True):
        words = [word for key, value in settings.items() for word in ("--set", f"{key}={json.dumps(value)}")]
        printed = subprocess.run([build / "bin" / "tandem-simulate", name, *words, "--json", "-"], capture_output=True, text=True,
                                 timeout=600, check=True)
        ours = json.loads(printed.stdout)
        if same(ours) != same(answer):
            problems.append(f"{name} {settings}: steps of {answer['step_time_s']} by the wheel, of {ours['step_time_s']} by the build")
    if not problems:
        print(f"  {len(SCENARIOS)} simulations: the same as build/bin/tandem-simulate's, to the digit")


def check_installed(wheel, build, problems):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name).resolve()
        venv = folder / "venv"
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        done = subprocess.run([venv / "bin" / "pip", "install", "-q", "--disable-pip-version-check", "--no-index", wheel],
                              capture_output=True, text=True, check=False)
        if done.returncode:
            problems.append(f"pip install: {done.stderr.strip()}")
            return
        check_loading(venv, problems)
        check_answers(venv / "bin" / "python", build, folder, problems)
        listing = subprocess.run([venv / "bin" / "tandem", "list", "machines"], capture_output=True, text=True, env={}, cwd=folder,
                                 check=False)
        if "titan_rtx" not in listing.stdout:
            problems.append(f"tandem list machines: {listing.stderr or listing.stdout}")


def check(wheel, build=None):
    """What is wrong with it, a line each."""
    problems = []
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB")
    if "manylinux_" not in wheel.name:
        problems.append(f"{wheel.name} is tagged for one machine alone")
    with tempfile.TemporaryDirectory() as name:
        zipfile.ZipFile(wheel).extractall(name)
        check_contents(pathlib.Path(name), problems)
    if not problems:
        check_installed(wheel, build, problems)
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=pathlib.Path)
    parser.add_argument("--build", type=lambda text: pathlib.Path(text).resolve())
    arguments = parser.parse_args()
    problems = check(arguments.wheel.resolve(), arguments.build)
    for problem in problems:
        print(f"FAILED: {problem}", file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
