"""The warm call: saxpy on 3 float32 arrays and a float, n = 1, from a Python loop.

What is timed is the call, since there is nothing else: checking the arguments, finding the variant,
and launching it. The floor is a C extension that someone wrote by hand for this one signature.

Where a process happens to lay out its memory moves such times by a tenth, so that each round is a
process of its own: it times every subject many times, in turn, and gives the medians.
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
import prepare

FLOOR = "C extension"
CALLS = 4_000  # a fraction of a millisecond, so that a sample is seldom interrupted
SAMPLES = 101  # of each subject in each process


def check(call: Callable[..., Any]) -> None:
    """That a subject computes what NumPy does, on more than it will be timed with."""
    rng = np.random.default_rng(0)
    for n in (0, 1, 1000):
        x, y = rng.random((2, n), dtype=np.float32)
        out = np.zeros(n, np.float32)
        call(2.5, x, y, out)
        np.testing.assert_allclose(out, np.float32(2.5) * x + y, rtol=1e-6)


def subject(statement: str, call: Callable[..., Any]) -> Callable[[], float]:
    """Seconds for one execution of ``statement``, compiled for this subject alone."""
    check(call)
    x, y, out = (np.ones(1, np.float32) for _ in range(3))
    scope = {"f": call, "x": x, "y": y, "out": out, "a": np.float32(2)}
    timer = timeit.Timer(statement, globals=scope)
    timer.timeit(CALLS)
    return lambda: timer.timeit(CALLS) / CALLS


def numba_saxpy() -> Callable[..., Any] | None:
    """The same kernel through numba, if it is installed."""
    try:
        import numba
    except ImportError:
        return None

    @numba.njit
    def saxpy(a: Any, x: Any, y: Any, out: Any) -> None:
        for i in range(x.shape[0]):
            out[i] = a * x[i] + y[i]

    return saxpy  # type: ignore[no-any-return]


def sample(folder: str) -> dict[str, float]:
    """The median seconds of each subject in this process."""
    sys.path.insert(0, folder)
    from hello import saxpy

    positional = "f(2.0, x, y, out)"
    subjects = {
        FLOOR: subject(positional, prepare.floor().saxpy),
        "tack": subject(positional, saxpy),
        "tack, one keyword": subject("f(2.0, x, y, out=out)", saxpy),
        "tack, four keywords": subject("f(a=2.0, x=x, y=y, out=out)", saxpy),
        "tack, a NumPy scalar": subject("f(a, x, y, out)", saxpy),
    }
    if peer := numba_saxpy():
        subjects["numba"] = subject(positional, peer)
    times = measure.rounds(subjects, SAMPLES)
    return {name: statistics.median(values) for name, values in times.items()}


def main() -> None:
    """Times all subjects."""
    options = measure.arguments(__doc__.splitlines()[0], rounds=21)
    command = [sys.executable, __file__, "--sample", str(prepare.hello())]
    times: dict[str, list[float]] = {}
    for _ in range(options.rounds):
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
        for name, seconds in json.loads(done.stdout).items():
            times.setdefault(name, []).append(seconds)
    table = measure.table("warm call", "ns", FLOOR, times)
    print(table)
    if options.json is not None:
        table.write(options.json)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--sample"]:
        print(json.dumps(sample(sys.argv[2])))
    else:
        main()
