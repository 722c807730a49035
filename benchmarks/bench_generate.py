"""Generation: what it takes to make the source of one variant from a kernel and a signature.

Kernels are lowered and rendered as C, LLVM IR and CUDA. The last row plans 25 kernels at 40
signatures each, as ``tack-aot plan`` does, divided by their number. Times are those of the CPU.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any

import measure
import prepare

import tack
from tack.aot.manifest import Manifest, read_manifest
from tack.aot.plan import make_plan
from tack.compile import generate
from tack.model.signature import Signature
from tack.model.targets import Target
from tack.model.variant import Variant
from tack.render.renderer import renderer_for

FLOOR = "saxpy, C"
PLANNED = "one of 1,000 planned, C"
DIALECTS = {
    "C": (Target("cpu", "x86-64-v3"), "c"),
    "LLVM": (Target("cpu", "x86-64-v3"), "llvm"),
    "CUDA": (Target("cuda", "sm_90"), "cuda"),
}

KERNELS = 25
FORMS = (
    "T[:], T[:], T[:]",
    "T[64], T[64], T[64]",
    "T[:; strided], T[:; strided], T[:; strided]",
    "T[:; strided], T[:], T[:]",
    "T[:], T[:; strided], T[:]",
)
TYPES = ("f32", "f64", "i32", "i64", "u8", "i16", "u16", "u32")
MODULE = """
import tack


@tack.func
def scaled(x, y):
    return x * y + x
"""
BODIES = (
    """
        out[i] = 3 * x[i] + y[i] - {number}
""",
    """
        low = min(x[i], y[i])
        high = max(x[i], y[i])
        if low < 7:
            out[i] = low * 2 + {number}
        else:
            out[i] = scaled(high, low)
""",
    """
        total = x[i]
        for j in range(max(i - 2, 0), min(i + 3, x.shape[0])):
            total += x[j] * y[j] + {number}
        out[i] = total
""",
)
KERNEL = """

@tack.kernel
def kernel_{number}(x, y, out):
    for i in range(x.shape[0]):{body}"""
MANIFEST = """
schema = 1
package = "{name}"

[targets]
{targets}
"""
LISTED = """
[[kernel]]
name = "{name}:kernel_{number}"
signatures = {forms}
where.T = {types}
"""


@tack.kernel
def saxpy(a: tack.f32, x: tack.Array, y: tack.Array, out: tack.Array) -> None:
    """The kernel of the other benchmarks."""
    for i in range(x.shape[0]):
        out[i] = a * x[i] + y[i]


@tack.kernel
def elementary(x: tack.Array, out: tack.Array) -> None:
    """Two functions whose formulas are written into the kernel."""
    for i in range(x.shape[0]):
        out[i] = tack.sin(x[i]) + tack.pow(x[i], 0.5)


def sobel() -> Any:
    """The kernel of examples/imagekit that inlines most."""
    sys.path.insert(0, str(prepare.ROOT / "examples" / "imagekit" / "src" / "imagekit"))
    return import_module("kernels").sobel


def generation(kernel: Any, signature: str) -> Iterator[tuple[str, Callable[[], float]]]:
    """The dialects, each with what generates one variant; gives the seconds."""
    for dialect, (target, name) in DIALECTS.items():
        renderer = renderer_for(target, name)
        variant = Variant(kernel.definition, Signature.parse(signature), target)

        def sample(variant: Variant = variant, renderer: Any = renderer) -> float:
            begin = time.process_time()
            source = generate(variant, renderer)
            seconds = time.process_time() - begin
            assert source.launch.entries[0][1] in source.text
            return seconds

        sample()  # reads the source and traces formulas, once for a process
        yield dialect, sample


def package(name: str, targets: str, forms: Sequence[str], types: Sequence[str]) -> Manifest:
    """A package of 25 kernels, each at every form with every type."""
    folder = prepare.FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    source = folder / "src" / name
    source.mkdir(parents=True)
    bodies = (BODIES[number % len(BODIES)].format(number=number) for number in range(KERNELS))
    kernels = (KERNEL.format(number=number, body=body) for number, body in enumerate(bodies))
    (source / "__init__.py").write_text(MODULE + "".join(kernels), encoding="utf-8")
    listed = (
        LISTED.format(name=name, number=number, forms=list(forms), types=list(types))
        for number in range(KERNELS)
    )
    manifest = folder / "tack-aot.toml"
    text = MANIFEST.format(name=name, targets=targets) + "".join(listed)
    manifest.write_text(text, encoding="utf-8")
    return read_manifest(manifest)


def planning(manifest: Manifest) -> float:
    """The seconds for one variant of a plan."""
    begin = time.process_time()
    plan = make_plan(manifest, machine="x86_64")
    seconds = time.process_time() - begin
    count = len({source.source_key for unit in plan.units for source in unit.sources})
    assert count == KERNELS * len(FORMS) * len(TYPES)
    return seconds / count


def main() -> None:
    """Times all subjects."""
    options = measure.arguments(__doc__.splitlines()[0], rounds=21)
    kernels = {
        "saxpy": (saxpy, "f32, f32[:], f32[:], f32[:]"),
        "imagekit's sobel": (sobel(), "f32[:, :], f32[:, :]"),
        "sin and pow, f32": (elementary, "f32[:], f32[:]"),
        "sin and pow, f64": (elementary, "f64[:], f64[:]"),
    }
    subjects = {
        f"{name}, {dialect}": sample
        for name, (kernel, signature) in kernels.items()
        for dialect, sample in generation(kernel, signature)
    }
    manifest = package("thousand", 'cpu = ["x86-64-v2", "x86-64-v3"]', FORMS, TYPES)
    subjects[PLANNED] = lambda: planning(manifest)
    table = measure.table(
        "generation, CPU time", "ms", FLOOR, measure.rounds(subjects, options.rounds)
    )
    print(table)
    if options.json is not None:
        table.write(options.json)


if __name__ == "__main__":
    main()
