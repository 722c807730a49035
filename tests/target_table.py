"""The GPU targets and the devices that run each, made from tack's data: `docs/targets.md`.

python tests/target_table.py > docs/targets.md
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from tack.model.gpus import GPUS, Gpu, runs_on

__all__ = ["PAGE", "page"]

PAGE = Path(__file__).parent.parent / "docs" / "targets.md"

_KIB = 1024

_INTRODUCTION = """# GPU targets

Made from the code by `tests/target_table.py`; a test holds them together, and others compile a
kernel for each target. A target is written `<backend>:<architecture>`, such as `cuda:sm_90a`;
`tack-aot render` takes them ([renderers](renderers.md)).
"""

_CHAPTERS = {
    "cuda": """## CUDA

`sm_90` is an image, `compute_90` is PTX, which the driver of a device compiles. An image runs on
devices of the same major version and no lower minor one; PTX runs on any later device, those that
are not in this table included. Code for family specific (`f`) and architecture specific (`a`)
targets may use instructions that others lack; it runs on the devices of that family, and on that
architecture alone. Jetsons run no images but their own. nvcc and NVRTC 13.0 know these targets.
""",
    "hip": """## HIP

Code for a processor runs on that processor; code for a generic one on each that is listed, perhaps
slower, and that of `gfx9-generic` on gfx900, gfx902 and gfx904 too. The clang 22 in `ziglang`
knows these targets.
""",
    "metal": """## Metal

An architecture is a version of the Metal Shading Language. What is shipped is text, which runs on
every system that knows that version or a later one, on GPUs of the family Metal3. None has f64.
""",
}


def page() -> str:
    """The text of `PAGE`."""
    parts = [_INTRODUCTION]
    for backend, heading in _CHAPTERS.items():
        parts += [heading, _limits(backend), "\n".join(_rows(backend)) + "\n"]
    return "\n".join(parts)


def _rows(backend: str) -> Iterator[str]:
    gpus = GPUS[backend]
    systems = any(gpu.least_os for gpu in gpus.values())
    last = "from" if systems else "runs on"
    yield f"| target | hardware | shared memory | registers | {last} |"
    yield "|---|---|---|---|---|"
    rows: dict[tuple[str, str], list[str]] = {}
    for arch, gpu in gpus.items():
        place = gpu.least_os if systems else _runs_on(backend, arch, gpus)
        limits = gpu.limits
        room = f"{limits.shared_max // _KIB} KiB | {limits.registers or ''}"
        form = arch.partition("_")[0] if backend == "cuda" else arch
        rows.setdefault((f"{gpu.hardware} | {room} | {place}", form), []).append(
            f"`{backend}:{arch}`"
        )
    for (rest, _), names in rows.items():
        yield f"| {', '.join(names)} | {rest} |"


def _limits(backend: str) -> str:
    """What every target of a backend has, in a paragraph."""
    limits = next(iter(GPUS[backend].values())).limits
    axes = " x ".join(map(str, limits.local_max))
    words = [f"A workgroup has up to {limits.local_prod_max} threads, {axes} along x, y and z,"]
    if limits.global_max is not None:
        words.append(f"a grid {' x '.join(map(str, limits.global_max))} workgroups")
    if limits.global_prod_max is not None:
        words += ["and"] * (limits.global_max is not None)
        words.append(f"{limits.global_prod_max[0]} threads along each axis")
    text = f"{' '.join(words)}. {_MEMORY[backend]}\n"
    return textwrap.fill(text, 100) + "\n"


_MEMORY = {
    "cuda": (
        "Shared memory is that of a workgroup: up to 48 KiB are declared by the code, more the "
        "launcher gives, where the device has it. Registers are those of a thread; a workgroup has "
        "65536."
    ),
    "hip": "Shared memory is that of a workgroup, registers are those of a thread.",
    "metal": "Shared memory is that of a workgroup; Apple publishes no number of registers.",
}


def _runs_on(backend: str, arch: str, gpus: dict[str, Gpu]) -> str:
    devices = [device for device in gpus if runs_on(backend, arch, device)]
    if runs_on(backend, arch, "sm_999"):
        return f"{devices[0]} and later"
    return ", ".join(devices)


if __name__ == "__main__":
    sys.stdout.write(page())
