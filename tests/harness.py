"""Generates, compiles and runs kernels, for tests that compare tack with the oracle."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest

from tack import _core
from tack.compile import assemble, generate
from tack.model.signature import ArraySpec, Signature, Spec
from tack.model.targets import Target
from tack.model.variant import Variant
from tack.render.c_flags import COMPILE_FLAGS, target_flags
from tack.render.renderer import renderer_for
from tack.render.source import Source
from tack.runtime.expansion import expansion_of

__all__ = [
    "FLAGS",
    "Unit",
    "differences",
    "levels",
    "needs_level",
    "run_kernel",
    "run_tack",
    "source_of",
]

FLAGS = (*COMPILE_FLAGS, "-fPIC", "-shared", "-Wall", "-Wextra", "-Wconversion", "-Werror")
"""What tack compiles C with, and every warning that it promises not to raise."""

_WANTED = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64")


@functools.cache
def levels() -> tuple[str, ...]:
    """The CPU levels to compile for: those of the promise that this machine runs."""
    return tuple(each for each in _WANTED if each in _core.cpu_levels())


def needs_level(level: str) -> pytest.MarkDecorator:
    """Skips a test, by name, on a machine that does not run what it builds."""
    reason = f"this machine does not run {level}, which is built here"
    return pytest.mark.skipif(level not in levels(), reason=reason)


def source_of(kernel: Any, arguments: Sequence[Any]) -> Source:
    """What tack generates for a kernel and the types of these arguments.

    Raises `tack.errors.CompileError` for what the language refuses.
    """
    signature = Signature.parse(oracle.signature(kernel, arguments))
    variant = Variant(kernel.definition, signature, Target("cpu", levels()[0]))
    return generate(variant, renderer_for(variant.target))


class Unit:
    """Kernels that were compiled together, once for each level."""

    def __init__(
        self, sources: Sequence[Source], folder: Path, compiled_for: Sequence[str] | None = None
    ) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        text = assemble("test", sources, renderer_for(sources[0].variant.target))
        (folder / "unit.c").write_text(text, encoding="utf-8")
        wanted = levels() if compiled_for is None else compiled_for
        with ThreadPoolExecutor(2) as pool:
            self._libraries = dict(zip(wanted, pool.map(self._compile, wanted), strict=True))

    def _compile(self, level: str) -> _core.Library:
        path = self.folder / f"{level}.so"
        chosen = target_flags(Target("cpu", level))
        with as_file(files("tack.templates") / "c") as headers:
            command = ["gcc", *FLAGS, *chosen, f"-I{headers}", "-o", str(path)]
            done = subprocess.run(
                [*command, str(self.folder / "unit.c")], capture_output=True, text=True, check=False
            )
        if done.returncode:
            raise AssertionError(f"the generated C does not compile cleanly:\n{done.stderr}")
        return _core.Library(path)

    def run(
        self, kernel: Any, source: Source, arguments: Sequence[Any], level: str, *, noalias: bool
    ) -> None:
        """Run one kernel of the unit; without `noalias`, by its general entry whatever is given."""
        run_kernel(kernel, source, self._libraries[level], arguments, noalias=noalias)


def run_kernel(
    kernel: Any,
    source: Source,
    library: Any,
    arguments: Sequence[Any],
    *,
    noalias: bool,
    aligned: bool = False,
) -> None:
    """Call ``kernel`` with what ``library`` holds for ``source``.

    The entry points ``noalias`` and ``aligned`` are there to be chosen where these say so.
    """
    launch = source.launch
    entries = {flavour: library.symbol(name) for flavour, name in launch.entries}
    signature, names = source.variant.signature, kernel.definition.parameters
    annotated = kernel.py_func.__annotations__
    launchable = _core.Launchable(
        params=[
            _parameter(flat.spec, not flat.path and names[flat.argument] in annotated)
            for flat in signature.flat()
        ],
        slots=launch.slots,
        host=launch.host,
        written=launch.written,
        aligned=launch.aligned,
        general=entries["general"],
        noalias=entries.get("noalias", 0) if noalias else 0,
        label=str(source.variant),
        keepalive=library,
        wide=entries.get("aligned", 0) if aligned else 0,
        multiples=launch.multiples if aligned and "aligned" in entries else (),
        prints=launch.prints,
    )
    _core.uninstall(kernel)
    _core.install(
        kernel,
        launchable,
        expansion_of(kernel, signature, arguments) if signature.templates else None,
    )
    try:
        kernel(*arguments)
    finally:
        _core.uninstall(kernel)


def _parameter(spec: Spec, annotated: bool) -> tuple[Any, ...]:
    if isinstance(spec, ArraySpec):
        pins = tuple(-1 if dim is None else dim for dim in spec.all_dims)
        return ("array", spec.dtype.name, len(pins), pins, spec.layout)
    return ("scalar", spec.dtype.name, annotated)


def run_tack(kernel: Any, arguments: Sequence[Any], folder: Path, level: str | None = None) -> None:
    """Generate, compile and run one kernel, as its caller would have it: arrays are changed."""
    source = source_of(kernel, arguments)
    level = levels()[-1] if level is None else level
    Unit([source], folder, [level]).run(kernel, source, arguments, level, noalias=True)


def differences(
    expected: Sequence[np.ndarray[Any, Any]], found: Sequence[np.ndarray[Any, Any]]
) -> str:
    """Where two lists of arrays differ in bits, NaN sign and payload aside; "" if nowhere."""
    lines: list[str] = []
    for number, (one, other) in enumerate(zip(expected, found, strict=True)):
        bits = np.dtype(f"u{one.itemsize}")
        differ = one.view(bits) != other.view(bits)
        if one.dtype.kind in "fV":
            differ &= ~(np.isnan(one) & np.isnan(other))
        for at in np.argwhere(differ)[:4]:
            place = tuple(int(each) for each in at)
            lines.append(f"array {number}{list(place)}: {one[place]!r}, tack has {other[place]!r}")
    return "\n".join(lines)
