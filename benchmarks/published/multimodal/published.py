"""What every comparison with a published system needs: tables, runs of `tandem simulate`, rows with their errors."""
import csv
import dataclasses
import functools
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("TANDEM_BUILD", HERE.parents[2] / "build"))


@dataclasses.dataclass(frozen=True)
class Row:
    """One published figure beside the predicted one. A range that a paper states is (low, high)."""
    system: str
    what: str
    unit: str
    published: float | tuple | str
    predicted: float | str
    calibrated: bool = False

    @property
    def error(self):
        """Relative; None for a range or a choice."""
        return self.predicted / self.published - 1 if isinstance(self.published, float) else None

    def missed(self, tolerance):
        if isinstance(self.published, tuple):
            return not self.published[0] <= self.predicted <= self.published[1]
        return self.published != self.predicted if self.error is None else abs(self.error) > tolerance


@dataclasses.dataclass(frozen=True)
class Page:
    """One page of docs/evidence. `answer` is a function of the rows, so that no predicted figure is typed in."""
    name: str
    title: str
    tolerance: float
    rows: object
    answer: object
    notes: str


def table(name):
    """The rows of tables/NAME.csv, whose first line says where they are from."""
    with open(HERE / "tables" / f"{name}.csv", newline="", encoding="utf-8") as file:
        next(file)
        return list(csv.DictReader(file))


@functools.lru_cache(maxsize=None)
def simulate(scenario, *changes):
    """The result of a scenario of this folder with `key=value` changes, as result.schema.json has it."""
    command = [str(BUILD / "bin" / "tandem"), "simulate", str(HERE / f"{scenario}.yaml"), "--json", "-", "--quiet"]
    for change in changes:
        command += ["--set", change]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr.strip()}")
    return json.loads(done.stdout)


def counted(rows):
    return [row for row in rows if not row.calibrated]


def mean_error(rows):
    """Mean of the errors' sizes over the rows that were not calibrated."""
    errors = [abs(row.error) for row in counted(rows)]
    return sum(errors) / len(errors)


def percent(value):
    return f"{value:.1%}"


def ns(seconds):
    return f"{max(round(seconds * 1e9), 0)}ns"


def rate(bytes_per_s):
    return f"{round(bytes_per_s)}B/s"
