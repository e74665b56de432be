#!/usr/bin/env python3
"""`tandem plan` as a user meets it: the verdict, what is wrong with a question, and that what it writes is taken."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

BIN = pathlib.Path(os.environ["TANDEM_BUILD"]) / "bin"
TANDEM = BIN / "tandem"
SMALL = ["--machine", "round_numbers", "--device-memory", "4MiB", "--host-memory", "64MiB", "--disk", "0B",
         "--batch", "2", "--exact", "--set",
         "workload={family: gpt, layers: 3, hidden: 128, heads: 4, vocabulary: 256, sequence: 32, precision: fp32, "
         "loss_tiles: 1, linear_tiles: 1}"]
SCENARIO = """\
machine: round_numbers
limits: {device_bytes: 4MiB, disk_bytes: 0B}
workload: {family: gpt, layers: 2, hidden: 64, heads: 2, vocabulary: 256, sequence: 32, batch: 2, precision: fp32}
policy: {name: zero_offload}
steps: 3
"""
failures = []


def check(name, condition, detail=""):
    if not condition:
        failures.append(f"{name}: {detail}")


def run(*arguments, before=()):
    return subprocess.run([str(a) for a in (*before, TANDEM, *arguments)], capture_output=True, text=True, timeout=300,
                          check=False)


def refuses(name, stderr, *arguments):
    result = run("plan", *arguments)
    check(name, result.returncode == 2, f"exit code {result.returncode}: {result.stderr}")
    check(name, stderr in result.stderr, f"no {stderr!r} in {result.stderr!r}")


def answers(folder):
    planned = folder / "planned.yaml"
    result = run("plan", *SMALL, "--output", planned, "--json", folder / "answer.json")
    check("plan", result.returncode == 0, result.stderr)
    check("the verdict comes first", result.stdout.startswith("Yes: the workload trains on round_numbers with 64MiB of "
                                                              "host memory"), result.stdout)
    wide = [line for line in result.stdout.splitlines() if len(line) > 80 and str(planned) not in line]
    check("80 columns", not wide, wide)
    check("says how to train it", f"tandem train {planned}" in result.stdout, result.stdout)
    answer = json.loads((folder / "answer.json").read_text())
    best = answer["best"][0]
    check("exact", all(plan["exact"] for plan in answer["best"]), answer["best"])
    counts = answer["candidates"]
    check("counts add up", counts["all"] == sum(n for name, n in counts.items() if name != "all"), counts)
    # What is written is a scenario, and takes as long as was said.
    checked = run("check", planned)
    check("check takes it", checked.returncode == 0, checked.stderr)
    simulated = run("simulate", planned, "--json", "-")
    check("simulate takes it", simulated.returncode == 0, simulated.stderr)
    if simulated.returncode == 0:
        step = json.loads(simulated.stdout)["step_time_s"]["median"]
        check("the same step", step == best["step_time_s"], f"{step}, said {best['step_time_s']}")
    if (BIN / "tandem-train").exists():
        trained = run("train", planned, "--device", "cpu", "--quiet")
        check("train takes it", trained.returncode == 0, trained.stderr)


def texts(folder):
    """A question about generating: what is written is taken, and comes to what was said."""
    planned = folder / "texts.yaml"
    result = run("plan", "--machine", "round_numbers", "--device-memory", "2MiB", "--disk", "0B", "--exact", "--batch", "6", "--output", planned,
                 "--json", folder / "texts.json", "--set",
                 "workload={family: gpt, layers: 3, hidden: 128, heads: 4, vocabulary: 251, sequence: 32, precision: fp32}",
                 "--set", "generate={prompt: 5, new_tokens: 12}")
    check("texts", result.returncode == 0, result.stderr)
    check("the verdict of texts", result.stdout.startswith("Yes: the workload generates on round_numbers"), result.stdout)
    check("what holds it up", "What holds the first one up" in result.stdout, result.stdout)
    check("says how to generate", f"tandem generate {planned}" in result.stdout, result.stdout)
    if result.returncode != 0:
        return
    answer = json.loads((folder / "texts.json").read_text())
    best, counts = answer["best"][0], answer["candidates"]
    check("six texts", "workload.batch" in planned.read_text() or "batch:" in planned.read_text(), planned.read_text())
    check("counts of texts add up", counts["all"] == sum(n for name, n in counts.items() if name != "all"), counts)
    simulated = json.loads(run("simulate", planned, "--json", "-").stdout)["generation"]
    check("the same rate", simulated["tokens_per_s"] == best["tokens_per_s"], f"{simulated}, said {best}")
    check("the same first token", simulated["first_token_s"] == best["first_token_s"], f"{simulated}, said {best}")
    if (BIN / "tandem-train").exists():
        prompts = folder / "prompts.txt"
        prompts.write_text("".join(f"{i} 2 3 4 5\n" for i in range(6)), encoding="utf-8")
        generated = run("generate", planned, "--prompts", prompts, "--tokens", "--device", "cpu", "--quiet")
        check("generate takes it", generated.returncode == 0 and generated.stdout.count("== text ") == 6, generated.stdout + generated.stderr)
    nothing = run("plan", planned, "--free", "policy,workload.batch,workload.micro_batches", "--host-memory", "400KiB", "--device-memory", "400KiB")
    check("texts that do not fit", nothing.returncode == 3 and "does not generate" in nothing.stdout, nothing.stdout + nothing.stderr)


def same_whatever_the_cores():
    one, all_cores = (run("plan", *SMALL, "--json", "-", before=before) for before in (("taskset", "-c", "0"), ()))
    check("one core", one.returncode == 0 and one.stdout == all_cores.stdout, one.stdout + one.stderr)


def devices_and_prices():
    """Each number of devices has an answer of its own, which is the one that --devices gets."""
    several = run("plan", *SMALL, "--most-devices", "2", "--price", "2", "--json", "-", "--set", "machine.collective.bandwidth=10GB/s")
    check("devices", several.returncode == 0, several.stderr)
    two = run("plan", *SMALL, "--devices", "2", "--price", "2", "--json", "-", "--set", "machine.collective.bandwidth=10GB/s")
    rows = json.loads(several.stdout)["by_devices"]
    check("1 and 2", [row["devices"] for row in rows] == [1, 2], rows)
    check("the same answer", rows[1]["best"] == json.loads(two.stdout)["best"][0], rows)
    best = rows[1]["best"]
    price = 2 * 2 / 3600 / best["tokens_per_s"] * 1e6
    check("what it costs", abs(best["price_per_million_tokens"] - price) < 1e-9 * price, best)
    refuses("a machine of one", "--most-devices: ", "--model", "gpt2", "--machine", "rtx_4090", "--most-devices", "2")
    refuses("a price", "--price: machine.price_per_hour: ", *SMALL, "--price", "cheap")


def strategies(folder):
    """How devices share a training is an answer, too: in words, and as keys that give the same step."""
    planned = folder / "shared.yaml"
    larger = {"4MiB": "64MiB", "2": "4"}  # of memory and batch
    shared = [*(larger.get(word, word) for word in SMALL), "--devices", "4", "--set", "policy={name: resident}"]
    result = run("plan", *shared, "--output", planned, "--json", folder / "shared.json")
    check("strategies", result.returncode == 0, result.stderr)
    check("a command that simulates it", f"tandem simulate {planned}" in result.stdout, result.stdout)
    if result.returncode != 0:
        return
    best = json.loads((folder / "shared.json").read_text())["best"]
    words = [plan["words"] for plan in best]
    check("words", all(any(word in plan for word in ("copies", "stages", "layers divided by")) for plan in words), words)
    check("others beside the first", len(set(words)) == len(words) > 1, words)
    degrees = {name: next((int(setting.partition("=")[2]) for setting in best[0]["settings"] if setting.startswith(name)), 1)
               for name in ("workload.devices", "parallel.tensor", "parallel.pipeline")}
    check("four devices", degrees["workload.devices"] * degrees["parallel.tensor"] * degrees["parallel.pipeline"] == 4, degrees)
    simulated = run("simulate", planned, "--json", "-")
    check("simulate takes a strategy", simulated.returncode == 0, simulated.stderr)
    if simulated.returncode == 0:
        step = json.loads(simulated.stdout)["step_time_s"]["median"]
        check("unfolded it takes as long", abs(step - best[0]["step_time_s"]) < 1e-6 * step, f"{step}, said {best[0]['step_time_s']}")
    # What a file says of sharing is kept.
    scenario = folder / "pipeline.yaml"
    scenario.write_text(SCENARIO.replace("batch: 2,", "batch: 1, micro_batches: 2,") + "parallel: {pipeline: 2}\n")
    kept = run("plan", scenario, "--json", "-", "--exact", "--set", "limits.device_bytes=64MiB")
    check("a file's stages", kept.returncode == 0 and "pipeline: 2" in json.loads(kept.stdout)["scenario"], kept.stdout + kept.stderr)


def no_room():
    result = run("plan", *("1MiB" if word == "4MiB" else word for word in SMALL))
    check("no room", result.returncode == 3, f"exit code {result.returncode}: {result.stderr}")
    check("no room", result.stdout.startswith("No: ") and "needs about" in result.stdout.replace("\n", " "),
          result.stdout)


def time_budget():
    result = run("plan", *SMALL, "--time-budget", "1ms", "--json", "-")
    answer = json.loads(result.stdout) if result.returncode == 0 else {}
    cut = answer.get("cut", "")
    check("a budget is said", answer.get("candidates", {}).get("left") == 0 or "--time-budget 1ms" in cut, answer)


def files(folder):
    scenario = folder / "scenario.yaml"
    scenario.write_text(SCENARIO)
    fixed = json.loads(run("plan", scenario, "--json", "-", "--exact").stdout)
    check("a file's policy stays", "policy: {name: zero_offload}" in fixed["scenario"], fixed["scenario"])
    freed = json.loads(run("plan", scenario, "--json", "-", "--exact", "--free", "policy").stdout)
    check("unless it is freed", freed["candidates"]["all"] > fixed["candidates"]["all"], freed["candidates"])
    check("freed is no slower", freed["fastest_samples_per_s"] >= fixed["fastest_samples_per_s"], "")
    refuses("an output that is read", "is the scenario, which is read", scenario, "--output", scenario)
    refuses("a key that is not there", "did you mean policy?", scenario, "--free", "polici")


def bad_input():
    refuses("nothing asked", "neither FILE nor --model")
    refuses("no machine", "--machine: is missing", "--model", "gpt2")
    refuses("a model's name", "did you mean 'llama-2-7b'?", "--model", "lama-2-7b", "--machine", "rtx_4090")
    refuses("a machine's name", "did you mean 'rtx_4090'?", "--model", "gpt2", "--machine", "rtx4090")
    refuses("a unit", "--host-memory: limits.host_bytes: '64' has no unit", "--model", "gpt2", "--machine", "rtx_4090",
            "--host-memory", "64")
    refuses("a time", "'5' has no unit", "--model", "gpt2", "--machine", "rtx_4090", "--time-budget", "5")
    refuses("a flag", "did you mean --host-memory?", "--model", "gpt2", "--machine", "rtx_4090", "--hostmemory", "1GB")
    refuses("a key", "did you mean 'layers'?", "--model", "gpt2", "--machine", "rtx_4090", "--set", "workload.layer=2")
    refuses("a folder that is not there", "--output", *SMALL, "--output", "/nosuch/plan.yaml")


def main():
    if not (BIN / "tandem-plan").exists():
        print("skipped: tandem-plan is not built here")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        answers(folder)
        files(folder)
        strategies(folder)
        texts(folder)
    if not os.environ.get("TANDEM_SANITIZED"):  # where a test of the search itself says as much
        same_whatever_the_cores()
    devices_and_prices()
    no_room()
    time_budget()
    bad_input()
    for failure in failures:
        print(f"plan: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
