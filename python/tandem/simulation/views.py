"""What a policy is given, for editors and for reading: the native half has the classes (bindings/sim_views.cpp).

Tiers are "device", "host" (pinned memory, also "host_pinned"), "host_pageable" and "disk". Engines are "compute", "h2d",
"d2h", "cpu_compute", "cpu_optimizer", "disk_read", "disk_write", "p2p", "collective", "loader". Times are seconds, sizes
bytes. Another name is a ValueError that says which are allowed.
"""
from __future__ import annotations

from typing import Protocol


class Tensor(Protocol):
    """What values are versions of: "block3.parameter"."""

    id: int
    name: str
    role: str  # "parameter", "gradient", "optimizer_state", "activation", "batch", "kv_cache", "scalar"
    bytes: int
    layer: int  # in forward order; -1: of none
    persistent: bool  # its latest version outlives the step


class Value(Protocol):
    """One version of a tensor. Equal and hashed by `id`."""

    id: int
    name: str  # "block3.parameter@2"
    bytes: int
    version: int
    tensor: Tensor


class Op(Protocol):
    """A layer-sized piece of work, as it was when it was asked for. Equal and hashed by `id`."""

    id: int
    name: str  # "step2/mb0/block3.forward"
    phase: str  # "forward", "recompute", "backward", "reduce", "optimizer_step", "gather", ...
    step: int
    micro_batch: int
    layer: int  # -1: of none
    engine: str  # where it runs unless the policy says otherwise
    engines: list[str]  # that can run it
    flops: int
    workspace_bytes: int
    divisible: bool  # may run in parts
    cut_bytes: int  # parts begin at multiples of this in the first write
    reads: list[Value]
    writes: list[Value]


class View(Protocol):
    """The scheduler's state as of the last event and of the decisions since."""

    rank: int

    def observed(self) -> float:
        """The time of the last event."""

    def tensors(self) -> list[Tensor]:
        """All that the graph has so far."""

    def latest(self, tensor: Tensor) -> Value | None:
        """Its newest version that the graph has so far."""

    def compute_program(self, most: int = 64) -> list[Op]:
        """The first ops, in graph order, that the compute lanes have yet to run."""

    def ready_optimizer_ops(self) -> list[Op]:
        """Optimizer steps whose inputs all have an issued producer, and which are not wholly issued."""

    def issued(self, op: Op) -> bool:
        """Wholly."""

    def issuable(self, op: Op) -> bool:
        """All producers of what it reads are issued."""

    def finished(self, op: Op) -> bool:
        """The event of its last command has been seen."""

    def over(self, value: Value) -> bool:
        """All that read it are issued, and no op to come will."""

    def valid(self, value: Value, tier: str) -> bool:
        """A whole copy is there, or will be once issued commands are done."""

    def arrived(self, value: Value, tier: str) -> bool:
        """The same, and the commands that bring it have finished."""

    def queued(self, engine: str) -> int:
        """Commands issued to the engine's lanes and not finished."""

    def computing(self) -> int:
        """Of the compute program's, wherever they run."""

    def free_bytes(self, tier: str) -> int: ...

    def capacity_bytes(self, tier: str) -> int: ...

    def missing_bytes(self, op: Op) -> int:
        """What it would have to find on the device: reads that are not there, writes, workspace."""

    def run_s(self, op: Op, engine: str = "") -> float:
        """How long the whole op takes alone, by the profile; by default where it runs unless told otherwise."""

    def copy_s(self, bytes: int, engine: str) -> float:
        """How long a copy takes alone: on "h2d", "d2h", "disk_read", "disk_write"."""


class Decisions(Protocol):
    """Each call is checked and carried out at once. Replies: "issued" (or nothing to do), "not_ready" (a producer is not
    issued, or the value is nowhere), "no_room" (a prefetch that would have to evict)."""

    def run(self, op: Op, engine: str = "") -> str:
        """Runs it, or what is left of it. What it lacks is fetched, and room is made; DoesNotFit where that is not enough."""

    def run_part(self, op: Op, first_byte: int, bytes: int, engine: str) -> str:
        """Runs a range of a divisible op's first write, in multiples of its `cut_bytes` or to the end."""

    def copy(self, value: Value, to: str) -> str:
        """Prefetches or writes back. Never evicts."""

    def release(self, value: Value, tier: str) -> str:
        """Drops a copy; "not_ready" where it is the only one of a value that is still needed."""

    def keep(self, value: Value, tier: str) -> None:
        """Evict this copy last."""

    def wake_at(self, seconds: float) -> None:
        """Be called again then, events or not."""
