"""GPU targets: what code can be made for, and on which devices it runs.

A CUDA target is an image (``sm_90``) or text that the driver compiles (PTX, ``compute_90``), for
ordinary, family specific (``f``) or architecture specific (``a``) instructions. A HIP target is a
processor of AMD or a generic one, whose code runs on several. A Metal target is a version of the
language, since a device's system compiles the text. Devices are named as their drivers do: by
compute capability (``sm_90``), processor (``gfx942``), and the latest version that a system knows.

Sources. CUDA: the values of ``--gpu-architecture`` in ``nvcc --help`` 13.0; "CUDA C++ Programming
Guide" 13.0, "Binary Compatibility", "PTX Compatibility" and "Compute Capabilities" (families);
NVIDIA's list "CUDA GPU Compute Capability". HIP: LLVM's "User Guide for AMDGPU Backend", tables
"AMDGPU Processors" and "AMDGPU Generic Processors", and ``clang --print-supported-cpus`` 22. Metal:
Apple's documentation of ``MTLLanguageVersion`` and ``MTLGPUFamily``, "Metal Feature Set Tables" and
"Metal Shading Language Specification". Conversions: "PTX ISA", ``cvt``; LLVM's
``AMDGPUUsage`` and ``AMDGPU.td`` (``FeatureBF16ConversionInsts``); "Metal Shading Language
Specification", "Conversion Rules for Floating-Point and Integer Types". Limits have theirs in
`tack.model.limits`.
"""

from __future__ import annotations

from typing import Final

from tack.model.limits import Limits, cuda_limits, hip_limits, least_of, metal_limits
from tack.model.record import Record

__all__ = ["GPUS", "Gpu", "runs_on"]


class Gpu(Record):
    """One target: the ``hardware`` that it is named after, if its makers name any.

    ``limits`` hold for a workgroup and a grid of the device that it is named after. ``lacks`` are
    scalar types that it has not, ``converts`` narrow floats that it converts f32 to, and back, by
    instructions that round as the language does. ``least_os`` is the first system that takes its
    code, where that depends on the system.
    """

    hardware: str
    limits: Limits
    lacks: frozenset[str] = frozenset()
    converts: frozenset[str] = frozenset({"f16"})
    least_os: str = ""


_CAPABILITIES: Final = {
    75: "T4, RTX 20",
    80: "A100, A30",
    86: "A10, A40, RTX 30",
    87: "Jetson Orin",
    88: "",
    89: "L4, L40, RTX 40",
    90: "H100, H200, GH200",
    100: "B200, GB200",
    103: "B300, GB300",
    110: "Jetson Thor",
    120: "RTX 50, RTX PRO Blackwell",
    121: "GB10 (DGX Spark)",
}
"""Compute capability, without the point -> devices."""

_ALONE: Final = frozenset({87, 88, 110})
"""Those whose images run on them only and that run no image of others: systems on a chip, for which
NVIDIA promises no binary compatibility, and 8.8, of which it lists no device."""

_CONVERTING: Final = {"f16": 75, "bf16": 80, "f8e4m3": 89, "f8e5m2": 89}
"""Narrow float -> the first compute capability with instructions that convert f32 to it."""

_FAMILIES: Final = {100: (100, 103), 103: (103,), 110: (110,), 120: (120, 121), 121: (121,)}
"""Compute capability of family specific code -> the devices that run it."""

_SPECIFIC: Final = frozenset({90, *_FAMILIES})
"""The compute capabilities that have architecture specific code."""


def _cuda() -> dict[str, Gpu]:
    found: dict[str, Gpu] = {}
    for form in ("sm", "compute"):
        for number, hardware in _CAPABILITIES.items():
            has = frozenset(name for name, first in _CONVERTING.items() if number >= first)
            suffixes = ["", *"a" * (number in _SPECIFIC), *"f" * (number in _FAMILIES)]
            names = (f"{form}_{number}{suffix}" for suffix in suffixes)
            found |= dict.fromkeys(names, Gpu(hardware, cuda_limits(number), converts=has))
    return found


_PROCESSORS: Final = {
    "gfx906": "Instinct MI50 and MI60, Radeon VII",
    "gfx908": "Instinct MI100",
    "gfx909": "",
    "gfx90a": "Instinct MI210, MI250 and MI250X",
    "gfx90c": "Ryzen 4000G",
    "gfx942": "Instinct MI300A, MI300X and MI325X",
    "gfx950": "Instinct MI350X and MI355X",
    "gfx1010": "Radeon RX 5700",
    "gfx1011": "Radeon Pro V520",
    "gfx1012": "Radeon RX 5500",
    "gfx1013": "",
    "gfx1030": "Radeon RX 6800 and 6900",
    "gfx1031": "Radeon RX 6700",
    "gfx1032": "",
    "gfx1033": "",
    "gfx1034": "",
    "gfx1035": "",
    "gfx1036": "",
    "gfx1100": "Radeon RX 7900",
    "gfx1101": "Radeon RX 7700 and 7800",
    "gfx1102": "Radeon RX 7600",
    "gfx1103": "",
    "gfx1150": "Radeon 890M",
    "gfx1151": "Radeon 8060S",
    "gfx1152": "Radeon 860M",
    "gfx1153": "",
    "gfx1200": "Radeon RX 9060",
    "gfx1201": "Radeon RX 9070",
}
"""Processor of AMD -> devices."""

_GENERIC: Final = {
    "gfx9-generic": "gfx900 gfx902 gfx904 gfx906 gfx909 gfx90c",
    "gfx9-4-generic": "gfx942 gfx950",
    "gfx10-1-generic": "gfx1010 gfx1011 gfx1012 gfx1013",
    "gfx10-3-generic": "gfx1030 gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036",
    "gfx11-generic": "gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153",
    "gfx12-generic": "gfx1200 gfx1201",
}
"""Generic processor -> those that run its code."""

_METAL_GPUS: Final = "Apple7 (A14, M1) and later, others of the family Metal3"
"""The family whose argument buffers (tier 2) hold addresses as the host writes them."""

_METAL_SYSTEMS: Final = {
    "metal3.0": "macOS 13",
    "metal3.1": "macOS 14",
    "metal3.2": "macOS 15",
    "metal4.0": "macOS 26",
    "metal4.1": "macOS 27",
}
"""Version of the language -> the first system that compiles it."""

GPUS: Final[dict[str, dict[str, Gpu]]] = {
    "cuda": _cuda(),
    "hip": {
        **{name: Gpu(hardware, hip_limits(name)) for name, hardware in _PROCESSORS.items()},
        "gfx950": Gpu(
            _PROCESSORS["gfx950"], hip_limits("gfx950"), converts=frozenset({"f16", "bf16"})
        ),
        **{
            name: Gpu("", least_of([hip_limits(each) for each in members.split()]))
            for name, members in _GENERIC.items()
        },
    },
    "metal": {
        version: Gpu(_METAL_GPUS, metal_limits(), frozenset({"f64"}), least_os=system)
        for version, system in _METAL_SYSTEMS.items()
    },
}
"""Backend -> architecture, as targets spell it -> what it is."""


def runs_on(backend: str, arch: str, device: str) -> bool:
    """Whether code for ``arch`` runs on a device of architecture ``device`` of the same backend.

    Devices later than this table run what is compiled where it is called, which are PTX and Metal;
    images run on devices that the table has.

    >>> runs_on("cuda", "sm_80", "sm_86"), runs_on("cuda", "sm_86", "sm_80")
    (True, False)
    >>> runs_on("cuda", "sm_100f", "sm_103"), runs_on("cuda", "sm_100a", "sm_103")
    (True, False)
    >>> runs_on("cuda", "compute_90", "sm_130"), runs_on("hip", "gfx11-generic", "gfx1151")
    (True, True)
    """
    return {"cuda": _cuda_runs_on, "hip": _hip_runs_on, "metal": _metal_runs_on}[backend](
        arch, device
    )


def _cuda_runs_on(arch: str, device: str) -> bool:
    form, _, version = arch.partition("_")
    prefix, _, digits = device.partition("_")
    if prefix != "sm" or not digits.isdecimal():
        return False
    made_for, there = int(version.rstrip("af")), int(digits)
    if version.endswith("a") or (form == "sm" and made_for in _ALONE):
        return there == made_for
    if version.endswith("f"):
        return there in _FAMILIES[made_for]
    if form == "compute":
        return there >= made_for
    known = there in _CAPABILITIES and there not in _ALONE
    return known and there // 10 == made_for // 10 and there >= made_for


def _hip_runs_on(arch: str, device: str) -> bool:
    return device in _GENERIC[arch].split() if arch in _GENERIC else arch == device


def _metal_runs_on(arch: str, device: str) -> bool:
    there = _metal_version(device)
    return bool(there) and there >= _metal_version(arch)


def _metal_version(text: str) -> tuple[int, ...]:
    """The numbers of a version such as ``metal3.1``; none for other texts."""
    parts = text.removeprefix("metal").split(".")
    is_version = text.startswith("metal") and all(part.isdecimal() for part in parts)
    return tuple(map(int, parts)) if is_version else ()
