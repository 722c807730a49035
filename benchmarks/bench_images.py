"""Images: building a package of 100 variants for two CUDA architectures on two cores.

Rows: all of it from an empty folder, again after an edit of one kernel, and again after none. One
table has the time that passed, the other that of all processes on a core, which says more of a
machine that others use.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

import measure
from bench_generate import FORMS, KERNELS, package

from tack.aot.compilers import find_compiler
from tack.aot.manifest import Manifest
from tack.aot.project import build_bundle
from tack.aot.report import inspect

TARGETS = 'cuda = { sass = ["sm_80", "sm_90a"] }'
TYPES = ("f32", "f64", "i32", "u8")
CORES = 2


def build(manifest: Manifest, work: Path, spent: list[float]) -> float:
    """The seconds of one build, whose bundle is checked; ``spent`` gets those of its processes."""
    begin, before = time.perf_counter(), os.times()
    bundle = build_bundle(manifest, work / "bundle", work).bundle
    seconds, after = time.perf_counter() - begin, os.times()
    user, system = after.children_user, after.children_system
    spent.append(user - before.children_user + system - before.children_system)
    (inspection,) = inspect(bundle)
    assert not inspection.problems
    variants = sum(len(kernel.variants) for kernel in inspection.bundle.kernels)
    assert variants == 2 * KERNELS * len(TYPES)
    return seconds


def main() -> None:
    """Times all subjects."""
    options = measure.arguments(__doc__.splitlines()[0], rounds=3, least=1)
    if find_compiler("cuda") is None:
        sys.exit("there is no nvcc here: make devices")
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    manifest = package("imaged", TARGETS, FORMS[:1], TYPES)
    module = manifest.path.parent / "src" / "imaged" / "__init__.py"
    kept, edits = manifest.path.parent / "kept", iter(range(1, 1000))
    build(manifest, kept, [])
    names = ("from nothing", "one kernel edited", "nothing changed")
    spent: dict[str, list[float]] = {name: [] for name in names}

    def everything() -> float:
        shutil.rmtree(manifest.path.parent / "fresh", ignore_errors=True)
        return build(manifest, manifest.path.parent / "fresh", spent[names[0]])

    def one_kernel() -> float:
        text = module.read_text(encoding="utf-8")
        number = next(edits)
        old = "out[i] = 3 * x[i] + y[i] - 0" + f" - {number - 1}" * (number > 1) + "\n"
        assert old in text
        new = f"out[i] = 3 * x[i] + y[i] - 0 - {number}\n"
        module.write_text(text.replace(old, new), encoding="utf-8")
        return build(manifest, kept, spent[names[1]])

    def nothing() -> float:
        return build(manifest, kept, spent[names[2]])

    subjects = dict(zip(names, (everything, one_kernel, nothing), strict=True))
    passed = measure.rounds(subjects, options.rounds)
    title = f"100 variants for two CUDA architectures, {CORES} cores"
    for kind, times in (("", passed), (", CPU time", spent)):
        table = measure.table(title + kind, "ms", names[2], times)
        print(table)
        if options.json is not None:
            table.write(options.json)


if __name__ == "__main__":
    main()
