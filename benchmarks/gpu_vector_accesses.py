"""Memory on a CUDA device: each entry point of kernels that do little but load and store.

Every entry is launched with one thread for each iteration of its own, 256 to a block, from events
around many launches. ``make bench`` leaves it out: it needs a device, and cuda-bindings.
"""

from __future__ import annotations

import ctypes
import statistics
import sys
from pathlib import Path
from typing import Any

import tack
from tack.compile import assemble, generate
from tack.model.launch import Launch
from tack.model.signature import Signature
from tack.model.targets import Target
from tack.model.variant import Variant
from tack.render.renderer import renderer_for

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from gpu_device import architecture
from gpu_twins import CUDA_FLAGS

COUNT = 1 << 27
BLOCK = 256
LAUNCHES, ROUNDS = 20, 9


@tack.kernel
def saxpy(a: tack.f32, x: tack.Array, y: tack.Array, out: tack.Array) -> None:
    for i in range(x.shape[0]):
        out[i] = a * x[i] + y[i]


@tack.kernel
def copy(x: tack.Array, out: tack.Array) -> None:
    for i in range(x.shape[0]):
        out[i] = x[i]


# Kernel, signature, and the bytes that an iteration moves.
SUBJECTS = (
    (saxpy, "f32, f32[:], f32[:], f32[:]", 12),
    (copy, "f16[:], f16[:]", 4),
    (copy, "u16[:], u16[:]", 4),
    (copy, "f32[:], f32[:]", 8),
    (copy, "u8[:], u8[:]", 2),
)


def done(answer: tuple[Any, ...]) -> Any:
    """What a call of the driver or of NVRTC gives."""
    status, *values = answer
    assert int(status) == 0, status
    return values[0] if len(values) == 1 else values


def compiled(text: str, arch: str) -> bytes:
    """The image of a unit."""
    from cuda.bindings import nvrtc

    program = done(nvrtc.nvrtcCreateProgram(text.encode(), b"unit.cu", 0, [], []))
    options = [f"-arch={arch}".encode(), *(flag.encode() for flag in CUDA_FLAGS)]
    done(nvrtc.nvrtcCompileProgram(program, len(options), options))
    image = b" " * done(nvrtc.nvrtcGetCUBINSize(program))
    done(nvrtc.nvrtcGetCUBIN(program, image))
    return image


def time_entry(driver: Any, function: Any, launch: Launch, lanes: int) -> float:
    """Milliseconds of one launch."""
    pointers = [k for k, slot in enumerate(launch.slots) if slot[0] == "pointer"]
    words = (ctypes.c_uint64 * (len(launch.slots) + 1))()
    memory = [done(driver.cuMemAlloc(COUNT * 4)) for _ in pointers]
    for at, allocation in enumerate(memory):
        done(driver.cuMemsetD32(allocation, 0, COUNT))
        words[at] = int(allocation)
    for at, slot in enumerate((s for s in launch.slots if s[0] != "pointer"), len(pointers)):
        words[at] = 0x40000000 if slot[0] == "scalar" else COUNT  # 2.0
    base = ctypes.addressof(words)
    parameters = (ctypes.c_void_p * (len(pointers) + 1))(
        *(base + 8 * at for at in range(len(pointers) + 1))
    )
    grid = -(-COUNT // (BLOCK * lanes))

    def run(times: int) -> None:
        for _ in range(times):
            given = ctypes.addressof(parameters)
            done(driver.cuLaunchKernel(function, grid, 1, 1, BLOCK, 1, 1, 0, 0, given, 0))

    first, last = done(driver.cuEventCreate(0)), done(driver.cuEventCreate(0))
    run(LAUNCHES)
    times = []
    for _ in range(ROUNDS):
        done(driver.cuEventRecord(first, 0))
        run(LAUNCHES)
        done(driver.cuEventRecord(last, 0))
        done(driver.cuEventSynchronize(last))
        times.append(done(driver.cuEventElapsedTime(first, last)) / LAUNCHES)
    for allocation in memory:
        done(driver.cuMemFree(allocation))
    return statistics.median(times)


def main() -> None:
    """Prints a line for each entry point."""
    from cuda.bindings import driver

    target = Target("cuda", architecture())
    for kernel, signature, moved in SUBJECTS:
        variant = Variant(kernel.definition, Signature.parse(signature), target)
        source = generate(variant, renderer_for(target))
        text = assemble("unit", [source], renderer_for(target))
        module = done(driver.cuModuleLoadData(compiled(text, target.arch)))
        print(f"{kernel.__name__}({signature}), {COUNT} iterations")
        for flavour, symbol in source.launch.entries:
            function = done(driver.cuModuleGetFunction(module, symbol.encode()))
            lanes = source.launch.lanes if flavour == "aligned" else 1
            time = time_entry(driver, function, source.launch, lanes)
            print(f"  {flavour:8} {time * 1e3:9.1f} us  {COUNT * moved / time / 1e9:6.2f} TB/s")


if __name__ == "__main__":
    main()
