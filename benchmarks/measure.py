"""Timing programs side by side: interleaved rounds, and the median of the paired ratios.

Machines are noisy and drift, so that a time alone says little. Each round times every subject once,
in rotating order; a ratio is taken within a round, and what is reported is the median over rounds
with the interval that holds the true median in 95 of 100 cases.
"""

from __future__ import annotations

import json
import math
import os
import platform
import statistics
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Ratio", "ratio", "report", "rounds"]


@dataclass(frozen=True, slots=True)
class Ratio:
    """A median of paired ratios and the interval around it."""

    median: float
    low: float
    high: float


def rounds(subjects: Mapping[str, Callable[[], float]], count: int) -> dict[str, list[float]]:
    """The seconds that each subject reported, one entry for each of ``count`` rounds."""
    if count < 15:
        raise ValueError("fewer than 15 rounds say nothing")
    times: dict[str, list[float]] = {name: [] for name in subjects}
    names = list(subjects)
    for number in range(count):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            times[name].append(subjects[name]())
    return times


def ratio(times: list[float], floor: list[float]) -> Ratio:
    """How many times as long as ``floor`` a subject took."""
    ratios = sorted(time / least for time, least in zip(times, floor, strict=True))
    low, high = _median_ranks(len(ratios))
    return Ratio(statistics.median(ratios), ratios[low], ratios[high])


def _median_ranks(count: int) -> tuple[int, int]:
    """Indices of the order statistics that enclose the median with 95 % confidence.

    The number of samples below the median is binomial with probability one half.
    """
    tail = 0.0
    low = 0
    while (tail := tail + math.comb(count, low) / 2**count) <= 0.025:
        low += 1
    low = max(low - 1, 0)
    return low, count - 1 - low


def report(title: str, unit: str, scale: float, floor: str, times: dict[str, list[float]]) -> None:
    """Prints a table, and writes it as JSON where ``--json FILE`` says."""
    rows: list[dict[str, Any]] = []
    for name, values in times.items():
        compared = ratio(values, times[floor])
        rows.append(
            {
                "name": name,
                "median": round(statistics.median(values) * scale, 3),
                "ratio": round(compared.median, 3),
                "interval": [round(compared.low, 3), round(compared.high, 3)],
            }
        )
    count = len(times[floor])
    print(f"\n{title} ({count} rounds, against: {floor})")
    for row in rows:
        low, high = row["interval"]
        print(
            f"  {row['name']:<44} {row['median']:>10.2f} {unit}"
            f"   {row['ratio']:>7.3f} x  [{low:.3f}, {high:.3f}]"
        )
    if "--json" in sys.argv:
        path = Path(sys.argv[sys.argv.index("--json") + 1])
        document = {
            "title": title,
            "unit": unit,
            "floor": floor,
            "rounds": count,
            "machine": _machine(),
            "rows": rows,
        }
        existing = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
        others = [entry for entry in existing if entry["title"] != title]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps([*others, document], indent=1) + "\n", encoding="utf-8")


def _machine() -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
    }
