"""Runs CUDA text on a device, called as a prebuilt CPU kernel is called.

The launcher calls an entry point that is a Python function: it copies the buffers to the device,
launches the kernel there with the slots that it was given, and copies them back. So the host
program and the checks of arguments are the ones that users have.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from gpu_twins import compile_nvrtc

from tack.compile import assemble
from tack.model.limits import grid_of
from tack.render.renderer import renderer_for
from tack.render.source import Source

__all__ = ["OnDevice", "architecture"]

_ENTRY: Final = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64), ctypes.c_int64, ctypes.c_int64
)
_GRID, _BLOCK = (3, 2, 2), (64, 2, 1)
"""Workgroups of a small grid, over which threads step, and threads of one that may have any."""


def _driver() -> Any:
    try:
        from cuda.bindings import driver
    except ImportError:
        pytest.skip("cuda-bindings is not installed")
    return driver


def _checked(answer: tuple[Any, ...]) -> Any:
    status, *values = answer
    assert int(status) == 0, f"the driver answers {status}"
    return values[0] if len(values) == 1 else values


def architecture() -> str:
    """The architecture of the first device, such as ``sm_90``; skips the test without one."""
    driver = _driver()
    try:
        status = int(driver.cuInit(0)[0])
    except RuntimeError as error:  # there is no library of the driver
        pytest.skip(str(error))
    if status:
        pytest.skip("there is no CUDA device")
    device = _checked(driver.cuDeviceGet(0))
    _checked(driver.cuCtxSetCurrent(_checked(driver.cuDevicePrimaryCtxRetain(device))))
    names = driver.CUdevice_attribute
    major, minor = (
        _checked(
            driver.cuDeviceGetAttribute(getattr(names, f"CU_DEVICE_ATTRIBUTE_{which}"), device)
        )
        for which in ("COMPUTE_CAPABILITY_MAJOR", "COMPUTE_CAPABILITY_MINOR")
    )
    return f"sm_{major}{minor}"


class OnDevice:
    """A unit of CUDA, loaded; ``memory`` are the buffers that the next call's arrays lie in."""

    def __init__(self, sources: Sequence[Source], folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        target = sources[0].variant.target
        unit = folder / "unit.cu"
        unit.write_text(assemble("test", sources, renderer_for(target)), encoding="utf-8")
        self._driver = _driver()
        image = compile_nvrtc(unit, target.arch)
        self._module = _checked(self._driver.cuModuleLoadData(image))
        self._sources = {name: s for s in sources for _, name in s.launch.entries}
        self._entries: dict[str, Any] = {}
        self.memory: list[np.ndarray[Any, Any]] = []

    def symbol(self, name: str) -> int:
        """The address of an entry point of the CPU's ABI that launches on the device."""
        if name not in self._entries:
            function = _checked(self._driver.cuModuleGetFunction(self._module, name.encode()))
            source, small = self._sources[name], name.endswith("_general")
            self._entries[name] = _ENTRY(self._launching(function, source, small=small))
        return int(ctypes.cast(self._entries[name], ctypes.c_void_p).value or 0)

    def _launching(self, function: Any, source: Source, *, small: bool) -> Callable[..., None]:
        """What launches a kernel: over a ``small`` grid, or over as large a one as it needs."""
        renderer = renderer_for(source.variant.target)
        limits = (_GRID if small else renderer.global_max, renderer.global_prod_max)
        most = self._driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES

        def launch(_ctx: int, slots: Any, _begin: int, _end: int) -> None:
            driver, copies = self._driver, []
            for each in self.memory:
                copy = _checked(driver.cuMemAlloc(max(each.nbytes, 1)))
                _checked(driver.cuMemcpyHtoD(copy, each.ctypes.data, each.nbytes))
                copies.append((each, copy))
            values = [
                self._translated(slots[k], copies) if slot[0] == "pointer" else slots[k]
                for k, slot in enumerate(source.launch.slots)
            ]
            words = (ctypes.c_uint64 * (len(values) + 1))()
            pointers = [k for k, slot in enumerate(source.launch.slots) if slot[0] == "pointer"]
            others = [k for k, slot in enumerate(source.launch.slots) if slot[0] != "pointer"]
            for at, k in enumerate([*pointers, *others]):
                words[at] = values[k]
            size, base = ctypes.sizeof(ctypes.c_uint64), ctypes.addressof(words)
            parameters = (ctypes.c_void_p * (len(pointers) + 1))(
                *(base + size * at for at in range(len(pointers) + 1))
            )
            loops = [k for k, slot in enumerate(source.launch.slots) if slot[0] == "loop"]
            counts = [ctypes.c_int64(slots[k]).value for k in loops]
            local = source.launch.group or _BLOCK[: source.launch.loops][::-1]
            grid = grid_of(counts, local, *limits)
            if grid is not None:
                block, shared = [*local[::-1], 1, 1][:3], source.launch.shared
                _checked(driver.cuFuncSetAttribute(function, most, shared))
                _checked(
                    driver.cuLaunchKernel(
                        function, *grid, *block, shared, 0, ctypes.addressof(parameters), 0
                    )
                )
                _checked(driver.cuCtxSynchronize())
            for each, copy in copies:
                _checked(driver.cuMemcpyDtoH(each.ctypes.data, copy, each.nbytes))
                _checked(driver.cuMemFree(copy))

        return launch

    def _translated(self, address: int, copies: list[tuple[np.ndarray[Any, Any], Any]]) -> int:
        for each, copy in copies:
            offset = address - each.ctypes.data
            if 0 <= offset <= each.nbytes:
                return int(copy) + offset
        return address  # of an empty array
