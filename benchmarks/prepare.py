"""What the benchmarks time, built below build/bench: the C extension and examples/hello."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

import numpy as np

__all__ = ["FOLDER", "floor", "hello"]

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "bench"


def floor() -> ModuleType:
    """The C extension of floor.c."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    target = FOLDER / ("floor" + importlib.machinery.EXTENSION_SUFFIXES[0])
    includes = [f"-I{sysconfig.get_path('include')}", f"-I{np.get_include()}"]
    source = Path(__file__).with_name("floor.c")
    flags = ["-O3", "-Wall", "-Wextra", "-shared", "-fPIC"]
    subprocess.run(["cc", *flags, *includes, "-o", target, source], check=True)
    spec = importlib.util.spec_from_file_location("floor", target)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def hello() -> Path:
    """A folder to import examples/hello from, with its kernels prebuilt."""
    example = FOLDER / "hello"
    shutil.rmtree(example, ignore_errors=True)
    shutil.copytree(ROOT / "examples" / "hello", example)
    source = example / "src"
    command = [sys.executable, "-m", "tack.aot", "build", "--output", str(source)]
    subprocess.run(command, cwd=example, check=True, stdout=subprocess.DEVNULL)
    return source
