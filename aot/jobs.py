"""How many images are made at once: compilers for GPUs take memory by the gigabyte."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

__all__ = ["JOB_MEMORY", "image_jobs"]

JOB_MEMORY: Final = 512 << 20
"""Bytes that are kept for one compile.

A unit of eight f64 variants with five elementary functions each, 185 kB of text, took nvcc 13.0 at
most 106 MiB and the clang of ziglang 84; what authors write themselves may take more.
"""

_LIMITS: Final = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""What a container may use, as the kernel says it: of control groups 2 and 1."""


def image_jobs() -> int:
    """How many compilers this machine runs at once: one a core, as far as its memory goes."""
    return max(1, min(_cores(), _memory() // JOB_MEMORY))


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _memory() -> int:
    found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for limit in map(Path, _LIMITS):
        try:
            text = limit.read_text(encoding="ascii").strip()
        except OSError:
            continue
        if text.isdecimal():  # else it is "max"
            found.append(int(text))
    return min(found)
