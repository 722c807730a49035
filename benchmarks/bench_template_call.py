"""What templates cost on a warm call: the same kernel with its values in an object.

Each subject is a call with a loop of one iteration, compiled at the first call; what differs is
where the arrays and scalars come from. The floor passes them one by one.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import timeit
from collections.abc import Callable
from typing import Any

import measure
import numpy as np

import tack

FLOOR = "2 arrays, 3 scalars and the output, one by one"
CALLS = 4_000
SAMPLES = 101


@tack.device_class
class Curve:
    """Two arrays, three scalars, a number of the class and a method."""

    degree = 3

    def __init__(self, a: Any, b: Any, n: int, m: int, s: float) -> None:
        self.a, self.b, self.n, self.m, self.s = a, b, n, m, s

    @tack.func
    def at(self, i: tack.i64) -> float:
        """What the kernel stores."""
        return self.a[i] * self.s + self.b[i] + float(self.m)


@tack.device_class
class Length:
    """One scalar."""

    def __init__(self, n: int) -> None:
        self.n = n


@tack.device_class
class Pair:
    """An object that holds another."""

    def __init__(self, curve: Curve) -> None:
        self.curve = curve


@tack.kernel
def plain(  # noqa: PLR0917 - what is in an object elsewhere
    a: tack.Array, b: tack.Array, n: tack.i64, m: tack.i64, s: tack.f32, out: tack.Array
) -> None:
    """No template."""
    for i in range(n):
        out[i] = a[i] * s + b[i] + float(m)


@tack.kernel
def single(curve: Curve, out: tack.Array) -> None:
    """One template."""
    for i in range(curve.n):
        out[i] = curve.at(i)


@tack.kernel
def double(curve: Curve, length: Length, out: tack.Array) -> None:
    """Two templates."""
    for i in range(length.n):
        out[i] = curve.at(i)


@tack.kernel
def nested(pair: Pair, out: tack.Array) -> None:
    """A template in a template."""
    for i in range(pair.curve.n):
        out[i] = pair.curve.at(i)


def subject(statement: str, scope: dict[str, Any]) -> Callable[[], float]:
    """Seconds for one execution of ``statement``, after a check of what it computes."""
    scope["out"][:] = 0
    exec(statement, scope)
    assert scope["out"][0] == 2 * 1.5 + 3 + 7
    timer = timeit.Timer(statement, globals=scope)
    timer.timeit(CALLS)
    return lambda: timer.timeit(CALLS) / CALLS


def sample() -> dict[str, float]:
    """The median seconds of each subject in this process."""
    a, b, out = np.full(1, 2, np.float32), np.full(1, 3, np.float32), np.zeros(1, np.float32)
    curve = Curve(a, b, 1, 7, 1.5)
    scope = {
        "a": a,
        "b": b,
        "out": out,
        "curve": curve,
        "length": Length(1),
        "pair": Pair(curve),
        "plain": plain,
        "single": single,
        "double": double,
        "nested": nested,
    }
    subjects = {
        FLOOR: subject("plain(a, b, 1, 7, 1.5, out)", scope),
        "in one object": subject("single(curve, out)", scope),
        "in one object, and a second with one scalar": subject("double(curve, length, out)", scope),
        "in an object that another holds": subject("nested(pair, out)", scope),
    }
    times = measure.rounds(subjects, SAMPLES)
    return {name: statistics.median(values) for name, values in times.items()}


def main() -> None:
    """Times all subjects, each round in a process of its own."""
    options = measure.arguments(__doc__.splitlines()[0], rounds=21)
    times: dict[str, list[float]] = {}
    for _ in range(options.rounds):
        command = [sys.executable, __file__, "--sample"]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
        for name, seconds in json.loads(done.stdout).items():
            times.setdefault(name, []).append(seconds)
    table = measure.table("warm call with templates", "ns", FLOOR, times)
    print(table)
    if options.json is not None:
        table.write(options.json)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--sample"]:
        print(json.dumps(sample()))
    else:
        main()
