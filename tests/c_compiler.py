"""Compiles C text of the tests, with every warning that generated code promises not to raise."""

from __future__ import annotations

import ctypes
import subprocess
from importlib.resources import as_file, files
from pathlib import Path

import harness

__all__ = ["FLAGS", "compile_c"]

FLAGS = (
    *harness.FLAGS,
    *("-Wsign-conversion", "-Wdouble-promotion", "-Wfloat-conversion"),
)


def compile_c(text: str, folder: Path, level: str = "", flags: tuple[str, ...] = ()) -> ctypes.CDLL:
    """The library of ``text``, compiled for a CPU level or for the machine's least."""
    folder.mkdir(parents=True, exist_ok=True)
    source, library = folder / "unit.c", folder / f"unit{level}.so"
    source.write_text(text, encoding="utf-8")
    march = (f"-march={level}",) if level else ()
    with as_file(files("tack.templates") / "c") as headers:
        command = ["gcc", *FLAGS, *flags, *march, f"-I{headers}", "-o", str(library), str(source)]
        done = subprocess.run([*command, "-lm"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"the C does not compile cleanly:\n{done.stderr[:4000]}"
    return ctypes.CDLL(str(library))
