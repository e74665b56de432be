#!/usr/bin/env python3
"""The simulator from Python: each function says what its command prints, whatever runs a sweep gives the same rows, and a
policy in Python gives the times of the built-in one that decides the same; wrong ones are refused in words.
"""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types

SOURCE = pathlib.Path(os.environ["TANDEM_SOURCE"])
BIN = pathlib.Path(os.environ["TANDEM_BUILD"]) / "bin"
if not list((BIN.parent / "python").glob("_tandem_sim.*")):
    sys.exit(77)
sys.path.insert(0, str(SOURCE / "python"))

import tandem  # noqa: E402

WORKLOAD = {"family": "gpt", "layers": 3, "hidden": 64, "heads": 4, "vocabulary": 256, "sequence": 16, "batch": 4}
SMALL = {"machine": "round_numbers", "limits": {"device_bytes": "64MiB", "host_bytes": "256MiB", "cores": 2},
         "workload": WORKLOAD, "policy": "resident", "steps": 4}
TIGHT = {"limits.device_bytes": "832KiB"}
failures = []


def check(name, condition, detail=""):
    if not condition:
        failures.append(f"{name}: {detail}")


def raised(name, kind, words, question):
    """`question` raises just `kind`, with these words; returns the error."""
    try:
        answer = question()
    except Exception as error:
        check(name, type(error) is kind and words in str(error), f"{type(error).__name__}: {error}")
        return error
    return check(name, False, f"answered {answer}")


def command(*words):
    """What a command prints with --json -, and its exit code."""
    result = subprocess.run([str(BIN / "tandem"), *map(str, words), "--json", "-"], capture_output=True, text=True, timeout=300,
                            check=False)
    return json.loads(result.stdout or "null"), result


def without_clock(data):
    """The same result but for how long the simulation took, what the scenario is called, and how it was asked for."""
    return {key: value for key, value in data.items() if key not in ("simulator", "scenario", "origin")}


class Resident(tandem.Policy):
    """Plain training: what core/policies/resident.cpp decides."""

    may_evict = False

    def __init__(self):
        self.asked = {}
        self.turns = 0

    def home(self, view, tensor):
        self.asked[tensor.name] = (tensor.role, tensor.bytes)
        return "device"

    def decide(self, view, decisions):
        self.turns += 1
        while self.feed_compute(view, decisions):
            ready = view.ready_optimizer_ops()
            if not ready:
                return
            for op in ready:
                decisions.run(op, "compute")


class OnDemand(Resident):
    """As core/policies/on_demand.cpp, where there is no disk."""

    may_evict = True

    def home(self, view, tensor):
        return "host"


def no_torch():
    code = ("import sys, tandem; tandem.simulate; tandem.Policy; tandem.ConfigError; "
            "print('torch' in sys.modules or 'pandas' in sys.modules)")
    result = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(SOURCE / "python")},
                            capture_output=True, text=True, timeout=60, check=False)
    check("import without torch and pandas", result.stdout.strip() == "False", result)


def simulations(folder):
    printed, _ = command("simulate", "w1_streamed", "--set", "steps=3")
    for name, scenario in {"a name": "w1_streamed", "a path": SOURCE / "scenarios" / "w1_streamed.yaml",
                           "a text": (SOURCE / "scenarios" / "w1_streamed.yaml").read_text()}.items():
        result = tandem.simulate(scenario, set={"steps": 3})
        check(f"simulate {name}", without_clock(result.data) == without_clock(printed), result)
    check("fields", result.step_time_s == printed["step_time_s"]["median"] and result.scenario == "scenario", result)
    result = tandem.simulate(SMALL, policy={"name": "on_demand", "optimizer": "cpu"}, trace=folder / "trace.json",
                             log=folder / "run.log")
    check("policy=", result.policy == "on_demand" and (folder / "trace.json").stat().st_size > 0, result)
    replayed = subprocess.run([str(BIN / "tandem"), "replay", str(folder / "run.log")], capture_output=True, check=False)
    check("log=", replayed.returncode == 0, replayed)
    warned = tandem.simulate(SMALL, set={"workload.precision": "fp32", "optimizer.masters": False})
    check("warnings", any("optimizer.masters" in text for text in warned.warnings), warned.warnings)
    printed, _ = command("simulate", "demo", "--set", "steps=3", "--fidelity", "alone", "--seed", "3")
    other = tandem.simulate("demo", set={"steps": 3}, fidelity="alone", seed=3)
    check("fidelity", without_clock(other.data) == without_clock(printed), other)


def relative_paths(folder):
    """Of a dict and of a text they count from the working folder."""
    profile = (SOURCE / "hardware_profiles" / "round_numbers.yaml").read_text()
    (folder / "mine.yaml").write_text(profile.replace("name: round_numbers", "name: mine"))
    before = os.getcwd()
    os.chdir(folder)
    try:
        check("a machine of one's own", tandem.simulate({**SMALL, "machine": "mine"}).machine == "mine", "")
    finally:
        os.chdir(before)


def failing():
    error = raised("ConfigError", tandem.ConfigError, "did you mean", lambda: tandem.simulate(SMALL, set={"workload.bach": 2}))
    check("a scenario by a name of its own", "/tmp" not in str(error), error)
    raised("the place in a dict", tandem.ConfigError, "scenario:3:", lambda: tandem.simulate({**SMALL, "workload": {**WORKLOAD, "batch": -1}}))
    for policy in ("resident", Resident):
        error = raised("DoesNotFit", tandem.DoesNotFit, "device memory", lambda p=policy: tandem.simulate(SMALL, set=TIGHT, policy=p))
    _, printed = command("simulate", "does_not_fit")
    error = raised("DoesNotFit", tandem.DoesNotFit, "", lambda: tandem.simulate("does_not_fit"))
    check("the command's own text", "tandem: " + str(error) == printed.stderr.strip(), (error, printed.stderr))
    raised("no file", tandem.ConfigError, "nowhere.yaml", lambda: tandem.simulate(pathlib.Path("nowhere.yaml")))
    raised("not a scenario", TypeError, "", lambda: tandem.simulate(3))


def plans():
    fixed = {"policy": "resident", "workload.precision": "fp32", "workload.loss_tiles": 1, "optimizer.state_bits": 32}
    answer = tandem.plan({"machine": "round_numbers", "workload": WORKLOAD}, exact=True, device_memory="4MiB", set=fixed)
    check("plan", answer.fits and answer.best and answer.verdict.startswith("Yes: "), answer)
    run = tandem.simulate(answer.scenario)
    check("a plan's scenario runs as it says", run.step_time_s == answer.best[0].step_time_s, (run, answer.best[0]))
    settings = {**fixed, "workload.batch": 1, "workload.recompute": "none", "workload.linear_tiles": 1, "workload.micro_batches": 1}
    words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    words[1] = "policy={name: resident}"
    printed, _ = command("plan", "--model", "gpt2", "--machine", "gtx_1650", "--device-memory", "64MiB", "--disk", "0B", *words)
    no = tandem.plan(model="gpt2", machine="gtx_1650", device_memory="64MiB", disk="0B", set=settings)
    check("a plan that fails is an answer", without_clock(no.data) == without_clock(printed) and not no.fits and no.verdict.startswith("No: "), no)


def explanations(folder):
    (folder / "small.yaml").write_text("\n".join(json.dumps({k: v})[1:-1] for k, v in SMALL.items() if k != "policy")
                                       + "\npolicy: {name: resident}\n")
    printed, _ = command("explain", folder / "small.yaml", "--policies", "on_demand,zero_offload")
    told = tandem.explain(SMALL, policies=["on_demand", "zero_offload"])
    for data in (printed, told.data):
        data["run"] = without_clock(data["run"])
    check("explain", without_clock(told.data) == without_clock(printed), (told.data, printed))
    check("explain's others", [one.name for one in told.policies] == ["on_demand", "zero_offload"] and told.resources, told)
    printed, _ = command("compare-policies", folder / "small.yaml", "--policies", "resident,zero_offload,one_bit_adam")
    table = tandem.compare_policies(SMALL, policies=["resident", "zero_offload", "one_bit_adam", OnDemand])
    times = {row["policy"]: row["result"]["step_time_s"]["median"] for row in printed["policies"] if "result" in row}
    check("compare_policies", {row.policy: row.result.step_time_s for row in table if row.result and row.policy != "OnDemand"}
          == times and table["OnDemand"].result and table.best.policy in times, table)
    over = tandem.compare_policies(SMALL, policies=["resident"], over={"workload.batch": [2, 4]})
    check("over", [(row.value, row.result is not None) for row in over] == [("2", True), ("4", True)], over)
    largest = tandem.compare_policies(SMALL, policies=["resident"], largest={"workload.layers": range(1, 200)},
                                      set={"limits.device_bytes": "4MiB"})
    check("largest", largest.rows[0].largest and 1 <= largest.rows[0].largest < 199, largest)


def origins(folder):
    """What each answer was made of: the effective scenario, the machine and where its figures come from, version, command."""
    version = subprocess.run([str(BIN / "tandem"), "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]

    def whole(name, answer, *words, command=""):
        origin = answer.origin
        check(f"origin of {name}", origin.get("version") == version and command in origin.get("command", ""), origin)
        check(f"machine of {name}", origin.get("machine", {}).get("name") == "round_numbers" and "arithmetic" in
              origin["machine"]["provenance"] and "tiers" in origin["machine"]["profile"], origin.get("machine"))
        check(f"scenario of {name}", all(word in origin.get("scenario", "") for word in ("vocabulary: 256", *words)), origin.get("scenario"))
        check(f"no folder of a moment in {name}", "/tmp" not in json.dumps(origin), origin)

    more = {"workload.batch": 2, "steps": 3}
    result = tandem.simulate(SMALL, set=more)
    whole("simulate", result, "batch: 2", "steps: 3", "name: resident", command="--set=workload.batch=2")
    check("as the JSON has it", result.origin == result.data["origin"])
    (folder / "batch_2.yaml").write_text(result.origin["scenario"])
    again = tandem.simulate(folder / "batch_2.yaml")
    check("made again from it", again.step_times_s == result.step_times_s and again.peak_bytes == result.peak_bytes, again)
    own = tandem.simulate(SMALL, set=more, policy=Resident, report=folder / "own.html")
    whole("a policy of one's own", own, "batch: 2", "steps: 3", "name: Resident", command="tandem.simulate(scenario, policy='Resident', set=")
    check("its policy", "on_demand" not in own.origin["scenario"], own.origin)
    check("its page", "tandem.simulate(scenario, policy=" in (folder / "own.html").read_text(), "")
    whole("plan", tandem.plan({key: SMALL[key] for key in ("machine", "limits", "workload")}, set={"workload.batch": 2}), "batch: 2",
          command="tandem plan scenario")
    whole("explain", tandem.explain(SMALL, policies=["on_demand"], set=more), "batch: 2", command="tandem explain scenario")
    whole("compare_policies", tandem.compare_policies(SMALL, policies=["resident", Resident], set=more), "batch: 2",
          command="tandem compare-policies scenario")
    whole("one's own alone", tandem.compare_policies(SMALL, policies=[Resident], set=more), "batch: 2", command="tandem.simulate(")
    rows = tandem.sweep(SMALL, {"workload.batch": [2, 8]}, set={"steps": 3})
    whole("sweep", rows, "batch: 2", "steps: 3", command="tandem.sweep(scenario, axes={'workload.batch': [2, 8]}, set={'steps': 3})")
    whole("a sweep's second row", rows.rows[1].result, "batch: 8", command="--set=workload.batch=8")
    whole("a sweep's file", tandem.sweep({"base": {**SMALL, "policy": {"name": "resident"}}, "sweep": {"workload.batch": [1, 2]}}, set={"steps": 3}), "steps: 3",
          command="tandem sweep scenario")
    check("none that ran", tandem.sweep(["does_not_fit"]).origin == {})


class Backwards(concurrent.futures.Executor):
    """Runs nothing before all has been submitted, and then the last first."""

    def __init__(self, count):
        self.count, self.waiting = count, []

    def submit(self, function, *arguments):
        future = concurrent.futures.Future()
        self.waiting.append((future, function, arguments))
        if len(self.waiting) == self.count:
            for one, work, given in reversed(self.waiting):
                one.set_result(work(*given))
        return future


def sweeps(folder):
    axes = {"policy": ["resident", "zero_offload"], "workload.batch": range(1, 4), "limits.device_bytes": ["1MiB", "8MiB"]}
    base = {key: value for key, value in SMALL.items() if key != "limits"}
    file = {"base": {**base, "policy": {"name": "resident"}}, "sweep": axes, "constraint": "workload.batch != 2"}
    told = tandem.sweep(file)
    rows = tandem.sweep(base, axes, where=lambda v: v["workload.batch"] != 2)
    check("rows", len(rows) == 8 and {row.outcome for row in rows} == {"done", "does not fit"}, rows.rows)
    for ours, theirs in zip(rows, told, strict=True):
        same = (ours.outcome, ours.figures) == (theirs.outcome, theirs.figures)
        check("as tandem sweep", same and {k: str(v) for k, v in ours.values.items()} == theirs.values, (ours, theirs))
        check("a reason", (ours.outcome == "done") != bool(ours.why_not), ours)
    with concurrent.futures.ProcessPoolExecutor(2) as processes:
        for executor in (processes, Backwards(8)):
            again = tandem.sweep(base, axes, where=lambda v: v["workload.batch"] != 2, executor=executor)
            check(f"by {type(executor).__name__}", again == rows, again.rows)
    check("best", rows.best().figures["step_s"] == min(row.figures["step_s"] for row in rows if row.figures), rows.best())
    listed = tandem.sweep([SMALL, "does_not_fit"])
    check("a list", [(row.values["scenario"], row.outcome) for row in listed] == [(0, "done"), ("does_not_fit", "does not fit")],
          listed.rows)
    raised("a key that is wrong", tandem.ConfigError, "did you mean", lambda: tandem.sweep(SMALL, {"workload.bach": [1, 2]}))
    raised("a sweep's file by an executor", ValueError, "axes", lambda: tandem.sweep(file, executor=Backwards(1)))
    raised("a policy as a value", TypeError, "simulate()", lambda: tandem.sweep(SMALL, {"policy": [Resident()]}))
    (folder / "wrong.yaml").write_text("base: demo\nsweep: {workload.batch: []}\n")
    raised("a sweep's file", tandem.ConfigError, "wrong.yaml:2", lambda: tandem.sweep(folder / "wrong.yaml"))


def tables():
    """pandas is not a must: what is handed to it is looked at."""
    sys.modules["pandas"] = types.SimpleNamespace(DataFrame=lambda rows, columns=None: rows)
    row = tandem.simulate(SMALL).to_dataframe()[0]
    check("a table", row["policy"] == "resident" and row["step_s"] > 0 and row["device_bytes"] > 0, row)
    rows = tandem.sweep(SMALL, {"workload.batch": [1, 2]}).to_dataframe()
    check("a sweep's table", [r["workload.batch"] for r in rows] == [1, 2] and rows[1]["step_s"] > 0, rows)
    sys.modules["pandas"] = None  # as where it is not installed
    raised("no pandas", ImportError, "pip install pandas", lambda: tandem.simulate(SMALL).to_dataframe())
    del sys.modules["pandas"]


def same_as_built_in():
    for name, scenario, mine, settings in (
            ("resident", SMALL, Resident, {}), ("on_demand", SMALL, OnDemand, TIGHT),
            ("resident", SMALL, Resident, {"workload.devices": 2, "workload.micro_batches": 2}),
            ("on_demand", "demo", OnDemand, {"steps": 3, "limits.disk_bytes": "0B"})):
        built_in, own = (tandem.simulate(scenario, set=settings, policy=p) for p in (name, mine()))
        for key in ("step_time_s", "makespan_s", "peak_bytes", "bytes_moved", "commands", "evicted_bytes"):
            check(f"{name} {settings}", own.data.get(key) == built_in.data.get(key), (key, own.data.get(key), built_in.data.get(key)))
        check("its name", own.policy == mine.__name__, own.policy)
    policy = Resident()
    tandem.simulate(SMALL, policy=policy)
    check("what it noted", policy.turns > 4 and policy.asked["block0.parameter"][0] == "parameter", vars(policy))


def made(decide, **attributes):
    """An object of a policy with this decide()."""
    return type("Mine", (Resident,), {"decide": decide, **attributes})()


def wrong_policies():
    def wrong(name, kind, words, decide=Resident.decide, **attributes):
        return raised(name, kind, words, lambda: tandem.simulate(SMALL, policy=made(decide, **attributes)))

    def broken(self, view, decisions):
        raise ZeroDivisionError(f"at {view.observed()}")

    class Picky(Exception):
        def __init__(self, a, b):
            super().__init__(a + b)

    def cannot_return(self, view, decisions):
        raise Picky("not ", "simple")

    error = wrong("an exception", ZeroDivisionError, "at 0.0", broken)
    check("its traceback", "in broken" in str(error.__cause__) and "python_simulation.py" in str(error.__cause__), error.__cause__)
    wrong("one that is not pickled", tandem.PolicyError, "Picky: not simple", cannot_return)
    wrong("nothing decided", tandem.PolicyError, "issued nothing", lambda self, view, decisions: None)
    wrong("a wrong engine", ValueError, "cannot run on h2d; allowed: compute",
          lambda self, view, decisions: decisions.run(view.compute_program(1)[0], "h2d"))
    wrong("no engine", ValueError, "engine: is 'gpu'; allowed: compute,",
          lambda self, view, decisions: decisions.run(view.compute_program(1)[0], "gpu"))
    wrong("a part", ValueError, "is not divisible",
          lambda self, view, decisions: decisions.run_part(view.compute_program(1)[0], 0, 64, "compute"))
    wrong("an id in place of an op", TypeError, "incompatible", lambda self, view, decisions: decisions.run(3))
    wrong("no tier", ValueError, "tier: is 'moon'; allowed: device, host", home=lambda self, view, tensor: "moon")
    wrong("no text", TypeError, "allowed: device", home=lambda self, view, tensor: None)
    raised("no decide()", NotImplementedError, "decide", lambda: tandem.simulate(SMALL, policy=tandem.Policy))
    raised("a log", ValueError, "log", lambda: tandem.simulate(SMALL, policy=Resident, log="x"))


def what_a_view_shows():
    seen = {}

    def decide(self, view, decisions):
        program = view.compute_program(2)
        if program and program[0].name == "step0/mb0/block0.forward" and "op" not in seen:
            op = program[0]
            seen.update(op=op.name, reads=[v.name for v in op.reads], engines=op.engines, flops=op.flops, s=view.run_s(op),
                        copy=view.copy_s(1 << 20, "h2d"), free=view.free_bytes("device"), capacity=view.capacity_bytes("device"),
                        issued=view.issued(op), two=program[0] == program[1], missing=view.missing_bytes(op),
                        valid=[view.valid(v, "device") for v in op.reads])
            self.seen = seen
        self.feed_compute(view, decisions, ahead=1)  # so that each op is seen
        for op in view.ready_optimizer_ops():
            decisions.run(op)

    policy = made(decide)
    tandem.simulate(SMALL, policy=policy)
    seen = policy.seen
    check("an op", seen["op"] == "step0/mb0/block0.forward" and "block0.parameter@0" in seen["reads"]
          and seen["engines"][0] == "compute" and seen["flops"] > 0 and seen["s"] > 0, seen)
    check("memory", 0 < seen["free"] < seen["capacity"] == 64 << 20 and seen["missing"] > 0 and seen["copy"] > 0, seen)
    check("state", not seen["issued"] and not seen["two"] and all(seen["valid"]), seen)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        no_torch()
        simulations(folder)
        relative_paths(folder)
        failing()
        plans()
        explanations(folder)
        origins(folder)
        sweeps(folder)
        tables()
        same_as_built_in()
        wrong_policies()
        what_a_view_shows()
    for failure in failures:
        print(f"FAILED: {failure[:2000]}", file=sys.stderr)
    print(f"python_simulation: {len(failures)} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
