"""Runs every program of the gallery, checks it against NumPy and SciPy, and times both.

The inputs come from a seed. Programs that have a picture leave it as a PNG. The process fails if a
result lies farther from NumPy's than its tolerance, or if no prebuilt variant answers a call.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from cases import LARGE, Case, cases
from pictures import pictures
from PIL import Image

import tack

__all__ = ["main"]

HEADING = ("program", "kernel and signature", "variant", "ms", "NumPy ms", "difference", "allowed")


def milliseconds(call: Callable[[], object], times: int) -> float:
    """The median time of some calls."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        taken.append(1e3 * (time.perf_counter() - start))
    return statistics.median(taken)


def run(case: Case, real: type, times: int) -> tuple[tuple[str, ...], str]:
    """A row of the table, and what was wrong or an empty text."""
    arguments = case.fresh()
    name = case.kernel.__name__
    chosen = tack.explain(case.kernel, *arguments).chosen
    if chosen is None:
        return (case.program, name, "none"), f"{name}: no prebuilt variant answered"
    case.kernel(*arguments)
    error = case.error(case.results(arguments))
    ours = milliseconds(lambda: case.kernel(*arguments), times)
    peer = milliseconds(lambda: case.peer(real), times)
    row = (
        *(case.program, f"{name}({chosen.signature})", str(chosen.target)),
        *(f"{ours:.3f}", f"{peer:.3f}", f"{error:.2g}", f"{case.tolerance:.2g}"),
    )
    wrong = f"{row[1]}: off by {row[5]}, {row[6]} is allowed: {case.reason}"
    return row, "" if error <= case.tolerance else wrong


def table(rows: Sequence[tuple[str, ...]]) -> str:
    """Rows of text in aligned columns, the first row as their heading."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs everything; 0 when every result is right."""
    parser = argparse.ArgumentParser(description="the gallery, checked and timed")
    parser.add_argument("--output", type=Path, default=Path("gallery"), help="where pictures go")
    parser.add_argument("--seed", type=int, default=1, help="for the inputs")
    parser.add_argument("--times", type=int, default=5, help="timed calls of a kernel")
    options = parser.parse_args(arguments)
    options.output.mkdir(parents=True, exist_ok=True)

    rows: list[tuple[str, ...]] = [HEADING]
    faults: list[str] = []
    for real in (np.float32, np.float64):
        for case in cases(LARGE, real, options.seed):
            row, wrong = run(case, real, options.times)
            rows.append((*row, *[""] * (len(HEADING) - len(row))))
            faults += [wrong] if wrong else []
    print(table(rows))

    count = 0
    for name, pixels in pictures():
        Image.fromarray(pixels).save(options.output / f"{name}.png")
        count += 1
    print(f"\n{count} pictures in {options.output}")
    for fault in faults:
        print(f"WRONG: {fault}")
    print(f"{len(faults)} wrong" if faults else "every program agrees with NumPy and SciPy")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
