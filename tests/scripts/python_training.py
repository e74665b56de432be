#!/usr/bin/env python3
"""tandem.train as a user meets it: the bits of the command and of PyTorch eager on the same batches; ends where batches
end, callbacks say so or raise; wrong batches are refused in words; torch works afterwards as it did before.
"""
import gc
import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

SOURCE = pathlib.Path(os.environ["TANDEM_SOURCE"])
BIN = pathlib.Path(os.environ["TANDEM_BUILD"]) / "bin"
if not list((BIN.parent / "python").glob("_tandem.*")):
    sys.exit(77)
sys.path[:0] = [str(SOURCE / "python"), str(SOURCE / "tests" / "imports"), str(SOURCE / "python" / "examples")]

import torch  # noqa: E402

import tandem  # noqa: E402
import eager  # noqa: E402
import hand_written  # noqa: E402
import hf_dataset  # noqa: E402
from batches import batch  # noqa: E402
from imported_runs import batch_of  # noqa: E402
from tandem.importer.capture import loss_of  # noqa: E402
from tandem.importer.importing import import_module  # noqa: E402

LIMITS = {"device_bytes": "64MiB", "host_bytes": "256MiB", "cores": 2}
GPT = {"family": "gpt", "layers": 3, "hidden": 64, "heads": 4, "vocabulary": 256, "sequence": 16, "batch": 4}
OPTIMIZER = {"learning_rate": 1e-3, "weight_decay": 0.1, "clip_norm": 0.5}
failures = []


def check(name, condition, detail=""):
    if not condition:
        failures.append(f"{name}: {detail}")


def scenario_of(policy="resident", steps=6, limits=LIMITS, **workload):
    return {"machine": "round_numbers", "limits": limits, "workload": {**GPT, **workload}, "optimizer": OPTIMIZER,
            "policy": {"name": policy}, "steps": steps}


def command(scenario, folder):
    """The losses and the parameters of `tandem train`."""
    import safetensors.torch

    from tandem.scenario import text_of
    path, checkpoints = folder / "scenario.yaml", folder / "checkpoints"
    path.write_text(text_of({**scenario, "checkpoint": {"directory": str(checkpoints)}}))
    result = subprocess.run([str(BIN / "tandem"), "train", str(path), "--device", "cpu", "--json", "-"], capture_output=True,
                            text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    parameters = {}
    for file in sorted(max(checkpoints.glob("step-*")).glob("*.safetensors")):
        parameters |= safetensors.torch.load_file(file)
    return json.loads(result.stdout)["loss"], parameters


def differing(state, other):
    return [name for name, value in state.items() if name not in other or not torch.equal(value, other[name])]


def as_the_command(folder):
    """A family on the scenario's own data, with everything resident and with what does not fit streamed."""
    little = {"device_bytes": "1MiB", "host_bytes": "64MiB", "cores": 2}
    for name, scenario in {"resident": scenario_of(micro_batches=2),
                           "streamed": scenario_of("zero_infinity", limits=little)}.items():
        (folder / name).mkdir()
        losses, parameters = command(scenario, folder / name)
        result = tandem.train(scenario)
        check(name, result.losses == losses and result.summary["loss"] == losses, f"{result.losses} {losses}")
        check(name, not differing(result.state_dict(), parameters), differing(result.state_dict(), parameters)[:5])
        moved = result.summary["bytes_moved"].get("device0/d2h", 0)
        check(name, (moved > 0) == (name == "streamed"), f"{moved} bytes moved")


def given_tokens():
    """The scenario's own batches, given by Python: what a run trains on is what it is given."""
    tokens = [torch.randint(256, (8, 17), generator=torch.Generator().manual_seed(i)) for i in range(6)]
    items = [{"inputs": t[:, :-1], "targets": t[:, 1:]} for t in tokens]  # not contiguous
    twice = scenario_of(micro_batches=2)
    by_name = tandem.train(twice, items)
    by_order = tandem.train(twice, (tuple(item.values()) for item in items))
    check("given tokens", by_name.losses == by_order.losses and len(by_name.losses) == 6, by_name.losses)
    check("given tokens", by_name.losses != tandem.train(twice).losses, "are not what was trained on")
    offloaded = tandem.train(scenario_of("zero_offload", micro_batches=2), items)
    check("given tokens", offloaded.losses == by_name.losses, f"zero_offload: {offloaded.losses} {by_name.losses}")
    check("given tokens", not differing(offloaded.state_dict(), by_name.state_dict()), "zero_offload: parameters differ")


def as_imported(folder):
    """A folder's made-up batches, by command, from Python, and given by Python: with constants, dropout and two
    micro-batches.
    """
    path = folder / "imported"
    module, inputs = hand_written.small()
    import_module(module, inputs, str(path), "small", any_batch=True)
    scenario = {**scenario_of("zero_offload"), "workload": {"family": "imported", "path": str(path), "batch": 3, "micro_batches": 2}}
    (folder / "by_command").mkdir()
    losses, parameters = command(scenario, folder / "by_command")
    tensors = [{**t, "shape": [3, 5]} if "constant" not in t else t for t in batch_of(path)]
    parts = [[batch(tensors, 3, step, m) for m in range(2)] for step in range(6)]
    items = [{key: torch.cat([part[key] for part in of_step]) for key in of_step[0]} for of_step in parts]
    for name, given in (("imported", None), ("imported, given", items)):
        result = tandem.train(scenario, given)
        check(name, result.losses == losses, f"{result.losses} {losses}")
        check(name, not differing(result.state_dict(), parameters), "parameters differ")


def as_eager(folder, make, policy, micro_batches=1, steps=6, device_bytes="64MiB"):
    """A module on batches that PyTorch eager trains on, too."""
    name = f"{make.__name__} as eager"
    module, inputs = make()
    import_module(module, inputs, str(folder / make.__name__))
    tensors = batch_of(folder / make.__name__)
    samples = next(t for t in tensors if "constant" not in t)["shape"][0]

    def items():
        for step in range(steps):
            parts = [batch(tensors, samples, step, m) for m in range(micro_batches)]
            yield tuple(torch.cat([part[key] for part in parts]) for key in parts[0])

    result = tandem.train(module, items(), machine="round_numbers", limits={**LIMITS, "device_bytes": device_bytes},
                          policy={"name": policy}, optimizer=OPTIMIZER, workload={"micro_batches": micro_batches})
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as the device's lane has
    plain, inputs = make()
    expected = eager.train(plain, inputs, tensors, steps, micro_batches, OPTIMIZER["clip_norm"],
                           OPTIMIZER["weight_decay"], loss_of)
    torch.set_num_threads(threads)
    check(name, result.losses == expected, f"{result.losses} {expected}")
    check(name, not differing(plain.state_dict(), result.state_dict()), "state_dict() differs")
    check(name, not differing(plain.state_dict(), module.state_dict()), "the module was not updated in place")
    make()[0].load_state_dict(result.state_dict(), strict=True)


def state_of_a_module():
    """update=False leaves the module alone; what is frozen stays, what is shared has both names."""
    module, inputs = hand_written.gpt()
    module.places.weight.requires_grad_(False)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    result = tandem.train(module, [inputs] * 3, machine="round_numbers", limits=LIMITS, policy="resident", update=False)
    state = result.state_dict()
    check("state", not differing(module.state_dict(), before), "update=False changed the module")
    check("state", list(state) == list(before), list(state))
    changed = set(differing(state, before))
    check("state", changed == set(before) - {"places.weight", "fade"}, changed)
    check("state", torch.equal(state["head.weight"], state["tokens.weight"]), "a shared weight has two values")
    module.load_state_dict(state, strict=True)
    with torch.no_grad():
        check("state", module(*inputs).item() < result.losses[0], "what came back is not trained")


def endless(batch_size=4):
    for i in itertools.count():
        tokens = torch.randint(256, (batch_size, 17), generator=torch.Generator().manual_seed(i))
        yield {"inputs": tokens[:, :-1].contiguous(), "targets": tokens[:, 1:].contiguous()}


def ends():
    """Where batches end, whether a length is known or not, and whether steps come first."""
    whole = tandem.train(scenario_of(steps=12), endless())
    for count in (1, 2, 5, 7):
        seven = tandem.train(scenario_of(steps=1000), itertools.islice(endless(), count))
        check("ends", seven.losses == whole.losses[:count], f"{count} batches: {seven.losses}")
        same = tandem.train(scenario_of(steps=count), endless())
        check("ends", not differing(seven.state_dict(), same.state_dict()), f"{count} batches: parameters differ")
        check("ends", seven.summary["steps"] == count, seven.summary["steps"])
    listed = dict(scenario_of())
    del listed["steps"]
    check("ends", len(tandem.train(listed, list(itertools.islice(endless(), 5))).losses) == 5, "not after a list of 5")
    offloaded = tandem.train(scenario_of("zero_offload", steps=1000), itertools.islice(endless(), 7))
    check("ends", offloaded.losses == whole.losses[:7], f"zero_offload: {offloaded.losses}")


def stops():
    """A callback that returns False: after the steps under way, with their outcome."""
    seen = []

    def stop(metrics):
        seen.append(metrics)
        time.sleep(0.03)  # a run that did not wait would be far ahead
        return metrics.step < 4

    result = tandem.train(scenario_of(steps=1000), endless(), stop)
    count = len(result.losses)
    check("stops", 4 <= count <= 13 and [m.step for m in seen] == list(range(1, count + 1)), [m.step for m in seen])
    same = tandem.train(scenario_of(steps=count), endless())
    check("stops", not differing(result.state_dict(), same.state_dict()), "parameters are not those of as many steps")
    check("stops", all(m.step_time_s > 0 and m.tokens_per_s > 0 and m.loss == l for m, l in zip(seen, result.losses)), seen)
    own = tandem.train(scenario_of(steps=1000), on_step=lambda m: m.step < 4)  # of the scenario's own data
    check("stops", 4 <= len(own.losses) <= 13, len(own.losses))


def raises():
    def broken():
        yield from itertools.islice(endless(), 4)
        raise LookupError("no more rows")

    def callback(metrics):
        if metrics.step == 3:
            raise ArithmeticError("stop here")

    for given, on_step, kind in ((broken(), None, LookupError), (endless(), callback, ArithmeticError),
                                 (iter([]), None, ValueError)):
        try:
            tandem.train(scenario_of(steps=1000), given, on_step)
        except kind:
            continue
        check("raises", False, f"{kind.__name__} was lost")


def interrupted(folder):
    """Ctrl-C: KeyboardInterrupt; a run that saves has its state saved, and another goes on from it. A run is some steps ahead of
    its callback: it has many more.
    """
    steps = 40

    def press(metrics):
        if metrics.step == 3:
            signal.raise_signal(signal.SIGINT)

    saved = {**scenario_of(steps=steps), "checkpoint": {"directory": str(folder / "interrupted")}}
    for scenario in (scenario_of(steps=100000), saved):
        try:
            tandem.train(scenario, endless(), press)
            check("interrupted", False, "went on")
        except KeyboardInterrupt:
            pass
    done = max(int(p.name[5:]) for p in (folder / "interrupted").glob("step-*"))
    check("interrupted", 3 <= done < steps, done)
    rest = tandem.train(saved, itertools.islice(endless(), done, None), resume=folder / "interrupted")
    whole = tandem.train(scenario_of(steps=steps), endless())
    check("interrupted", rest.losses == whole.losses[done:], f"{rest.losses} {whole.losses}")
    check("interrupted", not differing(rest.state_dict(), whole.state_dict()), "parameters differ")


def slow_batches():
    """The run waits for batches, other threads go on, and a signal comes through."""
    def slowly():
        for item in itertools.islice(endless(), 8):
            time.sleep(0.05)
            yield item

    ticks = []
    stop = threading.Event()
    thread = threading.Thread(target=lambda: [ticks.append(0) or time.sleep(0.01) for _ in iter(stop.is_set, True)])
    thread.start()
    losses = tandem.train(scenario_of(steps=8), slowly()).losses
    stop.set()
    thread.join()
    check("slow batches", losses == tandem.train(scenario_of(steps=8), endless()).losses, losses)
    check("slow batches", len(ticks) > 10, f"another thread had {len(ticks)} turns")


def refusals():
    good = next(endless())
    wrong = {
        "no targets": ({"inputs": good["inputs"]}, ["batch 1", "targets"]),
        "strange": ({**good, "mask": good["inputs"]}, ["mask", "does not read"]),
        "shape": ({**good, "inputs": good["inputs"][:2]}, ["inputs is int64 of [2, 16]", "int64 of [4, 16]"]),
        "type": ({**good, "targets": good["targets"].float()}, ["targets is float32", "int64"]),
        "range": ({**good, "inputs": good["inputs"] + 200}, ["inputs has", "[0, 256)"]),
        "count": ((good["inputs"],), ["has 1 tensors", "inputs, targets"]),
        "no tensors": (3, ["is int"]),
    }
    for name, (item, words) in wrong.items():
        try:
            tandem.train(scenario_of(), [item])
        except ValueError as error:
            for word in words:
                check(name, word in str(error), f"no {word!r} in {error}")
        else:
            check(name, False, "was trained on")
    for name, (arguments, kind, word) in {
            "scenario": (({**scenario_of(), "stepz": 3},), tandem.ConfigError, "stepz"),
            "held out": (({**scenario_of(), "validation": {"every": 2}}, endless()), tandem.ConfigError, "validation.every"),
            "fits": (({**scenario_of("resident"), "limits": {**LIMITS, "device_bytes": "64KiB"}},), tandem.DoesNotFit, "fit"),
            "machine": ((hand_written.small()[0], [hand_written.small()[1]]), TypeError, "machine"),
            "kind": ((3,), TypeError, "scenario"),
            "within": ((scenario_of(), None, lambda _: tandem.train(scenario_of())), RuntimeError, "one at a time"),
    }.items():
        try:
            tandem.train(*arguments)
        except kind as error:
            check(name, word in str(error), f"no {word!r} in {error}")
        else:
            check(name, False, "was trained")


def leaves_torch_as_it_was():
    torch.set_num_threads(2)
    before = (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled(),
              torch.utils.deterministic.fill_uninitialized_memory)
    kept = []

    def keep(metrics):
        kept.append(torch.full((1000,), float(metrics.step)))  # allocated while the run has its own allocator

    tandem.train(scenario_of(), endless(), keep)
    after = (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled(),
             torch.utils.deterministic.fill_uninitialized_memory)
    check("torch", before == after, f"{before} {after}")
    threads = []
    thread = threading.Thread(target=lambda: threads.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    check("torch", threads == [2], f"a new thread has {threads}")
    check("torch", [int(t.sum()) for t in kept] == [1000 * s for s in range(1, 7)], "what a callback made is spoiled")
    product = torch.randn(64, 64, requires_grad=True)
    (product @ product).sum().backward()


def resident_bytes():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def gives_memory_back():
    """Tens of megabytes, and a dozen threads, a run."""
    sizes, threads = [], []
    for _ in range(8):
        tandem.train(scenario_of(steps=3, hidden=256, vocabulary=8192, limits={**LIMITS, "device_bytes": "128MiB"}))
        gc.collect()
        sizes.append(resident_bytes())
        threads.append(len(os.listdir("/proc/self/task")))
    check("memory", sizes[-1] - sizes[2] < 20e6, [s // 1_000_000 for s in sizes])
    check("threads", threads[-1] <= threads[2], threads)


def example():
    losses = hf_dataset.main(steps=12)
    check("example", len(losses) == 12 and losses[-1] < losses[0], losses)


def documented(folder):
    """The first program of docs/python.md that trains."""
    page = (SOURCE / "docs" / "python.md").read_text()
    program = page.partition("\n## Training\n")[2].partition("```python\n")[2].partition("```")[0]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE / "python"), "HF_HUB_OFFLINE": "1"}
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=folder, env=environment, timeout=300)
    losses = [float(line.split()[3].rstrip(",")) for line in result.stdout.splitlines() if line.startswith("step ")]
    check("docs/python.md", len(losses) == 4 and losses[3] < losses[0] - 0.5, result.stdout + result.stderr)
    check("docs/python.md", (folder / "trained.pt").exists(), "no weights came back")


def main():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background has its children ignore it
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        as_the_command(folder)
        given_tokens()
        as_imported(folder)
        as_eager(folder, hand_written.gpt, "zero_infinity", micro_batches=2)
        as_eager(folder, hand_written.running_sums, "on_demand")
        state_of_a_module()
        ends()
        stops()
        raises()
        interrupted(folder)
        slow_batches()
        refusals()
        leaves_torch_as_it_was()
        gives_memory_back()
        example()
        documented(folder)
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


sys.exit(main())
