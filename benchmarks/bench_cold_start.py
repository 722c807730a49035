"""The cold start: from the start of Python to the first prebuilt result, beside importing NumPy.

Each sample is a process of its own. The floor is `python -c "import numpy"`; the row that computes
the same in NumPy says how much of the difference is the arrays.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import measure
import prepare

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


def subject(program: str, folder: Path) -> Callable[[], float]:
    """Seconds that a Python process takes to run ``program``, warmed by one run."""
    environment = os.environ | {"PYTHONPATH": str(folder)}

    def run() -> float:
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", program], check=True, env=environment, cwd=folder)
        return time.perf_counter() - begin

    run()
    return run


def main() -> None:
    """Times all subjects."""
    options = measure.arguments(__doc__.splitlines()[0], rounds=31)
    folder = prepare.hello()
    subjects = {
        "import numpy": subject("import numpy", folder),
        "import numpy, compute in NumPy": subject(
            ARRAYS + "np.add(2 * x, y, out=out)" + CHECK, folder
        ),
        "first prebuilt result": subject(TACK, folder),
        "import numpy, tack": subject("import numpy, tack", folder),
    }
    try:
        import numba  # noqa: F401
    except ImportError:
        pass
    else:
        (folder / "peer.py").write_text(PEER, encoding="utf-8")
        subjects["numba, cached"] = subject(NUMBA, folder)
    times = measure.rounds(subjects, options.rounds)
    table = measure.table("cold start", "ms", "import numpy", times)
    print(table)
    if options.json is not None:
        table.write(options.json)


if __name__ == "__main__":
    main()
