"""How the C that tack writes is compiled and linked: one table, for wheels and for the JIT.

Every flag is one that gcc and clang share.
"""

from __future__ import annotations

from typing import Final

from tack.model.targets import Target

__all__ = ["COMPILE_FLAGS", "LINK_FLAGS", "target_flags"]

COMPILE_FLAGS: Final = (
    "-std=c11",
    "-O3",
    # What the environment's CFLAGS may say must not change results.
    "-fno-fast-math",
    "-fno-lto",
    # Strict floating point, without the traps and errno that nobody reads here: they would only
    # keep loops from being vectorized.
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    # Integers wrap; arrays may be viewed as another type.
    "-fwrapv",
    "-fno-strict-aliasing",
    "-fvisibility=hidden",
)

LINK_FLAGS: Final = (
    # Kernels need no start files, and one of them, which -ffast-math in CFLAGS adds, makes the
    # whole process that loads the library flush subnormals to zero.
    "-nostartfiles",
    "-s",
    # A build id hashes paths of objects, and so would differ from folder to folder.
    "-Wl,--build-id=none",
    "-Wl,--as-needed",
    "-Wl,-z,defs",
)


def target_flags(target: Target) -> tuple[str, ...]:
    """The flags that choose the instructions of a CPU level."""
    return (f"-march={target.level.march}", "-mtune=generic")
