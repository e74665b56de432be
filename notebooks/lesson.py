"""What the notebooks share: where the package is, pictures of lanes, tables as text. Must not know any lesson's numbers."""
from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

REPOSITORY = pathlib.Path(__file__).resolve().parents[1]
try:
    import tandem
except ImportError:  # in a checkout it is not installed
    sys.path.insert(0, str(REPOSITORY / "python"))
    import tandem

LANES = ("compute", "h2d", "d2h", "cpu_optimizer", "cpu_compute", "loader")  # from top to bottom
COLOURS = {"forward": "#4c78a8", "backward": "#f58518", "optimizer": "#54a24b", "copy": "#b0b0b0", "other": "#e0cfa9"}


@dataclass(frozen=True)
class Span:
    """A command of a run: a bar in the picture of its lane. Times in seconds from the start of the run."""

    lane: str
    name: str  # "step1/mb0/layer0.forward", "copy layer0.gradient@1"
    begin_s: float
    end_s: float

    @property
    def kind(self) -> str:
        """A key of COLOURS."""
        if self.name.startswith("copy "):
            return "copy"
        words = self.name.rpartition(".")[2]
        return next((kind for kind in ("forward", "backward", "optimizer") if words.startswith(kind)), "other")


def traced(scenario: Any, **question: Any) -> tuple[Any, list[Span]]:
    """tandem.simulate(scenario, **question), and each command of the run in order of begin. Of a single device."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        result = tandem.simulate(scenario, trace=path, **question)
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
    lanes = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    spans = [Span(lanes[event["tid"]], event["name"], event["ts"] / 1e6, (event["ts"] + event["dur"]) / 1e6)
             for event in events if event["ph"] == "X"]
    return result, sorted(spans, key=lambda span: (span.begin_s, span.end_s))


def plan(scenario: dict[str, Any], *flags: str) -> dict[str, Any]:
    """`tandem plan` on the scenario: its answer, as its JSON has it."""
    program = pathlib.Path(os.environ.get("TANDEM_BUILD", REPOSITORY / "build")) / "bin" / "tandem"
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "question.yaml"
        path.write_text(json.dumps(scenario), encoding="utf-8")  # JSON is YAML
        return json.loads(subprocess.run([program, "plan", path, "--json", "-", *flags], check=True, capture_output=True, text=True).stdout)


def steady_window(spans: Iterable[Span], step: int = 1) -> tuple[float, float]:
    """From the end of the compute lane's work of step - 1 to that of `step`: the window that is one step time long."""
    def end(number: int) -> float:
        return max(span.end_s for span in spans if span.lane == "compute" and span.name.startswith(f"step{number}/"))
    spans = list(spans)
    return end(step - 1), end(step)


def draw_lanes(spans: Iterable[Span], axes: Any = None, window_s: tuple[float, float] | None = None, title: str = "",
               label: bool = False) -> Any:
    """Bars, one row a lane, time in ms from the window's begin. `label`: layer numbers in the bars. Returns the axes."""
    import matplotlib.pyplot as plt
    from matplotlib.patches import Patch
    spans = [span for span in spans if span.lane in LANES]
    begin, end = window_s or (0.0, max(span.end_s for span in spans))
    shown = [span for span in spans if span.end_s > begin and span.begin_s < end]
    rows = [lane for lane in LANES if any(span.lane == lane for span in shown)]
    if axes is None:
        _, axes = plt.subplots(figsize=(10, 0.5 + 0.45 * len(rows)))
    for span in shown:
        left, right = max(span.begin_s, begin), min(span.end_s, end)
        edge = 0.5 if right - left > 0.01 * (end - begin) else 0  # it would hide a narrow bar
        axes.barh(rows.index(span.lane), (right - left) * 1e3, left=(left - begin) * 1e3, color=COLOURS[span.kind],
                  edgecolor="white", linewidth=edge)
        digits = "".join(c for c in span.name.rpartition("layer")[2].partition(".")[0] if c.isdigit())
        if label and digits:
            axes.text(((left + right) / 2 - begin) * 1e3, rows.index(span.lane), digits, ha="center", va="center", fontsize=7)
    axes.set_yticks(range(len(rows)), rows)
    axes.invert_yaxis()
    axes.set_xlim(0, (end - begin) * 1e3)
    axes.set_xlabel("ms")
    axes.set_title(title, loc="left", fontsize=10)
    kinds = [kind for kind in COLOURS if any(span.kind == kind for span in shown)]
    axes.legend(handles=[Patch(color=COLOURS[kind], label=kind) for kind in kinds], fontsize=7, ncols=len(kinds),
                loc="lower right", bbox_to_anchor=(1, 1), frameon=False)
    return axes


def passes(scenario: Any, step: int = 2, **question: Any) -> list[tuple[int, str, int, float, float]]:
    """Of a pipeline's simulated step: (device, forward or backward, micro-batch, begin, end), in seconds from the step's first. What a
    device computes of a micro-batch without anything else between is one."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        tandem.simulate(scenario, trace=path, **question)
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
    lanes = {(event["pid"], event["tid"]): event["args"]["name"] for event in events if event["name"] == "thread_name"}
    found: list[tuple[int, str, int, float, float]] = []
    for event in sorted((e for e in events if e["ph"] == "X"), key=lambda e: (e["pid"], e["ts"])):
        if lanes[event["pid"], event["tid"]].rpartition("/")[2] != "compute" or not event["name"].startswith(f"step{step}/mb"):
            continue
        if event.get("cat") not in ("forward", "backward"):
            continue
        key = (event["pid"], event["cat"], int(event["name"].split("/")[1].removeprefix("mb")))
        begin, end = event["ts"] / 1e6, (event["ts"] + event["dur"]) / 1e6
        if found and found[-1][:3] == key:
            begin = found.pop()[3]
        found.append((*key, begin, end))
    device, first = min(one[0] for one in found), min(one[3] for one in found)
    return [(pid - device, kind, number, begin - first, end - first) for pid, kind, number, begin, end in found]


def draw_pipeline(blocks: Sequence[tuple[int, str, int, float, float]], axes: Any = None, title: str = "") -> Any:
    """Stages as rows, passes as blocks with their micro-batches' numbers, time in ms. Returns the axes."""
    import matplotlib.pyplot as plt
    rows = max(block[0] for block in blocks) + 1
    if axes is None:
        _, axes = plt.subplots(figsize=(10, 0.5 + 0.45 * rows))
    for stage, kind, number, begin, end in blocks:
        axes.barh(stage, (end - begin) * 1e3, left=begin * 1e3, color=COLOURS[kind], edgecolor="white", linewidth=0.5)
        axes.text((begin + end) / 2 * 1e3, stage, str(number), ha="center", va="center", fontsize=7)
    axes.set_yticks(range(rows), [f"stage {stage}" for stage in range(rows)])
    axes.invert_yaxis()
    axes.set_xlabel("ms")
    axes.set_title(title, loc="left", fontsize=10)
    return axes


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Prints columns: text to the left, numbers (three digits after the point) to the right."""
    def text(cell: Any) -> str:
        return f"{cell:,.3f}" if isinstance(cell, float) else f"{cell:,}" if isinstance(cell, int) else str(cell)
    rows = [list(row) for row in rows]
    lines = [list(head), *([text(cell) for cell in row] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    numeric = [bool(rows) and all(not isinstance(row[i], str) for row in rows) for i in range(len(head))]
    for line in lines:
        print("  ".join(cell.rjust(w) if right else cell.ljust(w)
                        for cell, w, right in zip(line, widths, numeric, strict=True)).rstrip())


def close(predicted: float, found: float, share: float = 1e-6) -> bool:
    """Whether two numbers differ by no more than `share` of the larger one."""
    return abs(predicted - found) <= share * max(abs(predicted), abs(found))


def command(name: str, scenario: Any, *flags: str) -> dict[str, Any]:
    """The JSON of a command that has no function in Python yet, such as `analyze`; `scenario` as of tandem.simulate().
    Raises as that does."""
    from tandem.simulation import programs
    from tandem.simulation.scenarios import file_of
    with file_of(scenario) as file:
        code, output, errors = programs.run([name, file.path, *flags, "--json=-"])
    if code != 0:
        programs.raise_failure(code, errors)
    return json.loads(output)
