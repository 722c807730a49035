"""The cold start: from the start of Python to the first prebuilt result, beside importing NumPy.

Each sample is a process of its own. The floor is `python -c "import numpy"`; the row that computes
the same in NumPy says how much of the difference is the arrays. The second table counts the time on
the CPU, which a busy machine hardly moves.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import measure
import prepare

FLOOR = "import numpy"
ARRAYS = """
import numpy as np
x, y = np.arange(2000, dtype=np.float32).reshape(2, 1000)
out = np.zeros(1000, np.float32)
"""
CHECK = """
assert (out == 2 * x + y).all()
"""
TACK = "from hello import saxpy" + ARRAYS + "saxpy(2.0, x, y, out)" + CHECK
NUMBA = "from peer import saxpy" + ARRAYS + "saxpy(np.float32(2), x, y, out)" + CHECK
PEER = """
import numba

@numba.njit("void(f4, f4[::1], f4[::1], f4[::1])", cache=True)
def saxpy(a, x, y, out):
    for i in range(x.shape[0]):
        out[i] = a * x[i] + y[i]
"""


class Program:
    """A Python program to be run in processes of its own."""

    def __init__(self, text: str, folder: Path) -> None:
        self.command = [sys.executable, "-P", "-c", text]  # -P: not the checkout
        self.environment = os.environ | {"PYTHONPATH": str(folder)}
        self.run()  # compiles what Python compiles once
        self.cpu: list[float] = []

    def run(self) -> tuple[float, float]:
        """Runs it; the seconds that passed, and those that the CPU worked."""
        begin = time.perf_counter()
        process = os.posix_spawn(self.command[0], self.command, self.environment)
        _, status, usage = os.wait4(process, 0)
        seconds = time.perf_counter() - begin
        if status != 0:
            raise SystemExit(f"failed: {self.command[-1]}")
        return seconds, usage.ru_utime + usage.ru_stime

    def sample(self) -> float:
        """The seconds of one run; those of the CPU are added to ``cpu``."""
        seconds, cpu = self.run()
        self.cpu.append(cpu)
        return seconds


def main() -> None:
    """Times all subjects."""
    options = measure.arguments(__doc__.splitlines()[0], rounds=31)
    folder = prepare.hello()
    programs = {
        FLOOR: Program("import numpy", folder),
        "compute in NumPy": Program(ARRAYS + "np.add(2 * x, y, out=out)" + CHECK, folder),
        "first prebuilt result": Program(TACK, folder),
        "import tack": Program("import numpy, tack", folder),
    }
    try:
        import numba  # noqa: F401
    except ImportError:
        pass
    else:
        (folder / "peer.py").write_text(PEER, encoding="utf-8")
        programs["numba, cached"] = Program(NUMBA, folder)
    times = measure.rounds({name: p.sample for name, p in programs.items()}, options.rounds)
    cpu = {name: program.cpu for name, program in programs.items()}
    for title, values in (("cold start", times), ("cold start, CPU time", cpu)):
        table = measure.table(title, "ms", FLOOR, values)
        print(table)
        if options.json is not None:
            table.write(options.json)


if __name__ == "__main__":
    main()
