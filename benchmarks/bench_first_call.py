"""The first call of a kernel that nobody prebuilt: compiled now, and found in the disk cache.

Each sample is a process of its own that has imported NumPy and llvmlite (and numba, but not tack).
What is timed is importing a module with one kernel and calling it: of the cached calls, the time is
what they take beyond importing llvmlite.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import measure
from prepare import FOLDER

SAXPY = """
def saxpy(a, x, y, out):
    for i in range(out.shape[0]):
        out[i] = a * x[i] + y[i]
"""
JACOBI = """
def jacobi(src, out):
    for i, j in NDRANGE(out.shape[0] - 2, out.shape[1] - 2):
        near = src[i, j + 1] + src[i + 2, j + 1] + src[i + 1, j] + src[i + 1, j + 2]
        out[i + 1, j + 1] = QUARTER * near
"""
MANDELBROT = """
def mandelbrot(out, x0, y0, step, limit):
    for i, j in NDRANGE(out.shape[0], out.shape[1]):
        cr = x0 + step * FLOAT(j)
        ci = y0 + step * FLOAT(i)
        zr = ZERO
        zi = ZERO
        n = 0
        while n < limit and zr * zr + zi * zi <= FOUR:
            t = zr * zr - zi * zi + cr
            zi = TWO * zr * zi + ci
            zr = t
            n += 1
        out[i, j] = n
"""
KERNELS = {"saxpy": SAXPY, "jacobi": JACOBI, "mandelbrot": MANDELBROT}

# How each compiler spells what the kernels leave open: the same types, the same bits.
WORDS = {
    "tack": {"NDRANGE": "tack.ndrange", "FLOAT": "float", "QUARTER": "0.25", "ZERO": "0.0",
             "FOUR": "4.0", "TWO": "2.0"},
    "numba": {"NDRANGE": "np.ndindex", "FLOAT": "np.float32", "QUARTER": "np.float32(0.25)",
              "ZERO": "np.float32(0.0)", "FOUR": "np.float32(4.0)", "TWO": "np.float32(2.0)"},
}  # fmt: skip
DECORATORS = {"tack": "tack.kernel", "numba": "numba.njit(cache=CACHE)"}

ARGUMENTS = {
    "saxpy": "(f4(2), np.arange(16, dtype=f4), np.ones(16, f4), np.zeros(16, f4))",
    "jacobi": "(np.arange(256, dtype=f4).reshape(16, 16), np.zeros((16, 16), f4))",
    "mandelbrot": "(np.zeros((16, 16), np.int32), f4(-2), f4(-1.5), f4(.1), 50)",
}

PROGRAM = """
import time
import numpy as np
import llvmlite.binding
if COMPILER == "numba":
    import numba
f4 = np.float32
arguments = ARGUMENTS
start = time.perf_counter(), time.process_time()
from kernels import KERNEL
KERNEL(*arguments)
end = time.perf_counter(), time.process_time()
print(end[0] - start[0], end[1] - start[1])
import plain
expected = [np.copy(each) for each in arguments]
plain.KERNEL(*expected)
for one, other in zip(arguments, expected):
    assert np.array_equal(one, other), KERNEL
"""


class Subject:
    """The first call of one kernel by one compiler, each in a process of its own."""

    def __init__(self, compiler: str, kernel: str, *, cached: bool) -> None:
        self.folder = FOLDER / "first_call" / f"{compiler}-{kernel}-{cached}"
        self.cached = cached
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        decorator = DECORATORS[compiler].replace("CACHE", str(cached))
        text = KERNELS[kernel].replace("\ndef ", f"\n@{decorator}\ndef ")
        plain = KERNELS[kernel]
        for word, meaning in WORDS[compiler].items():
            text = text.replace(word, meaning)
        for word, meaning in WORDS["numba"].items():
            plain = plain.replace(word, meaning)
        head = f"import numpy as np\nimport {compiler}\n"
        (self.folder / "kernels.py").write_text(head + text, encoding="utf-8")
        (self.folder / "plain.py").write_text("import numpy as np\n" + plain, encoding="utf-8")
        program = PROGRAM.replace("ARGUMENTS", ARGUMENTS[kernel]).replace("KERNEL", kernel)
        self.program = program.replace("COMPILER", repr(compiler))
        self.cpu: list[float] = []
        self.run()  # compiles what Python compiles once, and fills the caches

    def run(self) -> tuple[float, float]:
        """One process: the seconds that passed in the call, and those that the CPU worked."""
        caches = self.folder / "cache"
        if not self.cached:
            shutil.rmtree(caches, ignore_errors=True)
        environment = os.environ | {
            "PYTHONPATH": str(self.folder),
            "TACK_CACHE_DIR": str(caches),
            "NUMBA_CACHE_DIR": str(caches / "numba"),
            "TACK_JIT": "allow",
            "OPENBLAS_NUM_THREADS": "1",  # NumPy's threads spin for a while after its import
        }
        command = [sys.executable, "-P", "-c", self.program]
        done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
        wall, cpu = map(float, done.stdout.split())
        return wall, cpu

    def sample(self) -> float:
        """The seconds that passed in one first call."""
        wall, cpu = self.run()
        self.cpu.append(cpu)
        return wall


def main() -> None:
    """Times all subjects."""
    options = measure.arguments(__doc__.splitlines()[0], rounds=21)
    for kernel in KERNELS:
        for title, cached in ((kernel, False), (f"{kernel}, cached", True)):
            subjects = {name: Subject(name, kernel, cached=cached) for name in DECORATORS}
            times = measure.rounds({n: s.sample for n, s in subjects.items()}, options.rounds)
            cpu = {name: subject.cpu for name, subject in subjects.items()}
            for what, values in (("", times), (", CPU time", cpu)):
                table = measure.table(f"first call, {title}{what}", "ms", "numba", values)
                print(table)
                if options.json is not None:
                    table.write(options.json)


if __name__ == "__main__":
    main()
