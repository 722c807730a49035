"""Timing programs side by side: interleaved rounds, and the median over paired comparisons.

Machines are noisy and drift, so that a time alone says little. Each round times every subject once,
in rotating order; subjects are compared within a round, and what is reported is the median over the
rounds with the interval that holds the true median in 95 of 100 cases.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

__all__ = ["Interval", "Row", "Table", "arguments", "median_interval", "rounds", "table"]

LEAST_ROUNDS = 15


@dataclass(frozen=True, slots=True)
class Interval:
    """A median and the interval around it."""

    median: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Row:
    """One subject beside the floor: its median time, its ratio, and what it takes longer."""

    name: str
    time: float
    ratio: Interval
    extra: Interval


@dataclass(frozen=True, slots=True)
class Table:
    """A benchmark's rows, all of them compared with the one called ``floor``."""

    title: str
    unit: str
    floor: str
    rounds: int
    rows: tuple[Row, ...]

    def __str__(self) -> str:
        width = max(len(row.name) for row in self.rows)
        lines = [f"{self.title}: {self.rounds} rounds, compared with {self.floor}"]
        for row in self.rows:
            ratio, extra = row.ratio, row.extra
            lines.append(
                f"  {row.name:<{width}}  {row.time:9.2f} {self.unit}"
                f"   {ratio.median:7.3f} x [{ratio.low:.3f}, {ratio.high:.3f}]"
                f"   {extra.median:+9.2f} {self.unit} [{extra.low:+.2f}, {extra.high:+.2f}]"
            )
        return "\n".join(lines)

    def write(self, file: Path) -> None:
        """Puts the table into the JSON of ``file``, beside those of other benchmarks."""
        tables = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        machine = {
            "python": platform.python_version(),
            "architecture": platform.machine(),
            "cpus": os.cpu_count(),
        }
        tables[self.title] = {"machine": machine, **asdict(self)}
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(tables, indent=2) + "\n", encoding="utf-8")


def arguments(description: str, rounds: int, least: int = LEAST_ROUNDS) -> argparse.Namespace:
    """The options that every benchmark takes: ``--rounds``, ``least`` of them, and ``--json``."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rounds", type=int, default=rounds, help="default: %(default)s")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the table there")
    options = parser.parse_args()
    if options.rounds < least:
        parser.error(f"fewer than {least} rounds say nothing")
    return options


def rounds(subjects: Mapping[str, Callable[[], float]], count: int) -> dict[str, list[float]]:
    """The seconds that each subject reported, one entry for each of ``count`` rounds."""
    times: dict[str, list[float]] = {name: [] for name in subjects}
    names = list(subjects)
    for number in range(count):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            times[name].append(subjects[name]())
    return times


def median_interval(values: list[float]) -> Interval:
    """The median, between the order statistics that enclose it with 95 % confidence.

    How many of n samples lie below the median is binomial with probability one half.
    """
    ordered = sorted(values)
    count = len(ordered)
    rank, below = 0, 0.5**count
    while below + math.comb(count, rank + 1) * 0.5**count <= 0.025:
        rank += 1
        below += math.comb(count, rank) * 0.5**count
    return Interval(statistics.median(ordered), ordered[rank], ordered[count - 1 - rank])


def table(title: str, unit: str, floor: str, times: Mapping[str, list[float]]) -> Table:
    """The table of ``times`` in seconds, in ``unit`` (``"ns"`` or ``"ms"``)."""
    scale = {"ns": 1e9, "ms": 1e3}[unit]
    rows = []
    for name, values in times.items():
        pairs = list(zip(values, times[floor], strict=True))
        rows.append(
            Row(
                name,
                statistics.median(values) * scale,
                median_interval([value / least for value, least in pairs]),
                median_interval([(value - least) * scale for value, least in pairs]),
            )
        )
    return Table(title, unit, floor, len(times[floor]), tuple(rows))
