"""Rows as pandas tables. pandas is loaded when a table is asked for; Parquet and all else are its."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas


def to_dataframe(rows: Iterable[Mapping[str, Any]], columns: list[str] | None = None) -> pandas.DataFrame:
    """A table of the rows. Raises ImportError where pandas is not installed."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError("to_dataframe() needs pandas: pip install pandas (pyarrow, too, for to_parquet)") from error
    return pandas.DataFrame(list(rows), columns=columns)


def figures_of(result: Mapping[str, Any]) -> dict[str, float]:
    """The figures that `tandem sweep` has a column for, by the same names, of the result of a run."""
    rates, idle = result["throughput"], result["idle_share"]
    return {
        "parameters": result["parameters"],
        "step_s": result["step_time_s"]["median"],
        "tokens_per_s": rates["tokens_per_s"],
        "samples_per_s": rates["samples_per_s"],
        "device_bytes": max((n for tier, n in result["peak_bytes"].items() if tier.startswith("device")), default=0),
        **{f"{tier}_bytes": result["peak_bytes"].get(tier, 0) for tier in ("host_pinned", "host", "disk")},
        "h2d_bytes_a_step": _moved(result, "/h2d", "/h2d_small"),
        "d2h_bytes_a_step": _moved(result, "/d2h", "/d2h_small"),
        "disk_read_bytes_a_step": _moved(result, "/disk_read"),
        "disk_write_bytes_a_step": _moved(result, "/disk_write"),
        **{f"{resource}_idle_share": idle[resource] for resource in ("gpu", "cpu", "h2d", "d2h", "disk")},
        "above_lower_bound": _above(result, result["lower_bound_s"]["overall"]),
        "above_policy_bound": _above(result, result["policy_bound_s"]),
    }


def _moved(result: Mapping[str, Any], *lanes: str) -> float:
    return sum(count for lane, count in result["bytes_a_step"].items() if lane.endswith(lanes))


def _above(result: Mapping[str, Any], bound_s: float) -> float:
    """By which share steps are above a bound; 0 within rounding, and where there is no bound."""
    share = result["steady_step_s"] / bound_s - 1 if bound_s > 0 else 0
    return 0 if abs(share) < 1e-6 else share
