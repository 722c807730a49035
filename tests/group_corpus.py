"""Kernels with workgroups: every construct, at the sizes where it could go wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from corpus import edges
from guarded import guarded

__all__ = ["GROUP_KERNELS", "GroupKernel"]


@dataclass(frozen=True)
class GroupKernel:
    """A module with one kernel, ``k``, at a signature; ``memory`` makes its arguments.

    ``group`` and ``extents`` are those of its parallel loop, said once more for the oracle.
    """

    name: str
    text: str
    signature: str
    group: tuple[int, ...]
    extents: tuple[int, ...]
    memory: Callable[[], list[Any]]


def _numbers(*shapes: tuple[str, tuple[int, ...]]) -> Callable[[], list[Any]]:
    """Arrays of small numbers, whose sums no order of adding can overflow."""

    def fill() -> list[Any]:
        random = np.random.default_rng(11)
        return [guarded(random.integers(0, 9, shape).astype(dtype)) for dtype, shape in shapes]

    return fill


def _kernel(body: str, group: object, parameters: str = "x, out", loop: str = "") -> str:
    loop = loop or "for i in range(x.shape[0])"
    lines = "\n".join(f"        {line}" for line in body.strip("\n").splitlines())
    return (
        f"import tack\n\n@tack.kernel(group={group})\ndef k({parameters}):\n    {loop}:\n{lines}\n"
    )


_REDUCED = """
total = tack.block_{how}(x[i])
if tack.thread_id() == 0:
    out[tack.group_id()] = total
"""


def _reductions() -> Iterator[GroupKernel]:
    for how in ("sum", "min", "max"):
        for dtype in ("i8", "u16", "i32", "u32", "i64", "u64", "f16", "bf16", "f32", "f64"):
            yield GroupKernel(
                f"block_{how} of {dtype}",
                _kernel(_REDUCED.format(how=how), 32),
                f"{dtype}[:], {dtype}[:]",
                (32,),
                (259,),
                edges((dtype, (259,)), (dtype, (9,))),
            )
        for size in (1, 2, 3, 48, 100):
            yield GroupKernel(
                f"block_{how} over groups of {size}",
                _kernel(_REDUCED.format(how=how), size),
                "f32[:], f32[:]",
                (size,),
                (259,),
                edges(("f32", (259,)), ("f32", (259,))),
            )
    yield GroupKernel(
        "block_sum of a bool expression counts",
        _kernel("out[i] = tack.block_sum(x[i] > 3)", 8),
        "i32[:], i64[:]",
        (8,),
        (21,),
        _numbers(("int32", (21,)), ("int64", (21,))),
    )
    yield GroupKernel(
        "two reductions in one expression",
        _kernel("out[i] = x[i] / (tack.block_sum(x[i]) - tack.block_min(x[i]) + 1)", 8),
        "f32[:], f32[:]",
        (8,),
        (21,),
        _numbers(("float32", (21,)), ("float32", (21,))),
    )
    yield GroupKernel(
        "a reduction over two dimensions",
        _kernel(
            "out[i, j] = tack.block_max(x[i, j]) - x[i, j]",
            (2, 8),
            loop="for i, j in tack.ndrange(x.shape[0], x.shape[1])",
        ),
        "i32[:, :], i32[:, :]",
        (2, 8),
        (5, 19),
        _numbers(("int32", (5, 19)), ("int32", (5, 19))),
    )


_REVERSED = """
tile = tack.shared(tack.{dtype}, 16)
t = tack.thread_id()
tile[t] = x[i]
tack.barrier()
last = min(tack.group_size(), x.shape[0] - tack.group_id() * 16) - 1
out[i] = tile[last - t]
"""

_SCAN = """
buffer = tack.shared(tack.i32, (2, 16))
t = tack.thread_id()
buffer[0, t] = x[i]
tack.barrier()
side = 0
step = 1
while step < tack.group_size():
    value = buffer[side, t]
    if t >= step:
        value += buffer[side, t - step]
    side = 1 - side
    buffer[side, t] = value
    step *= 2
    tack.barrier()
out[i] = buffer[side, t]
"""

_TRANSPOSED = """
tile = tack.shared_like(pinned, tack.f32)
if i < x.shape[0] and j < x.shape[1]:
    tile[tack.thread_id(0), tack.thread_id(1)] = x[i, j]
tack.barrier()
row = tack.group_id(1) * 8 + tack.thread_id(0)
column = tack.group_id(0) * 8 + tack.thread_id(1)
if row < out.shape[0] and column < out.shape[1]:
    out[row, column] = tile[tack.thread_id(1), tack.thread_id(0)]
"""

_PRODUCT = """
left = tack.shared(tack.f32, (4, 4))
right = tack.shared(tack.f32, (4, 4))
y = tack.thread_id(0)
z = tack.thread_id(1)
total = tack.f32(0)
for k in range(0, x.shape[1], 4):
    left[y, z] = x[i, k + z] if i < x.shape[0] and k + z < x.shape[1] else tack.f32(0)
    right[y, z] = w[k + y, j] if k + y < w.shape[0] and j < w.shape[1] else tack.f32(0)
    tack.barrier()
    for q in range(4):
        total += left[y, q] * right[q, z]
    tack.barrier()
if i < x.shape[0] and j < w.shape[1]:
    out[i, j] = total
"""

_FLOW = """
spare = tack.shared(tack.i32, 8)
t = tack.thread_id()
if tack.group_id() == 1:
    continue
rounds = counts[tack.group_id()]
total = tack.i32(0)
for r in range(rounds):
    if r == 5:
        break
    if n > 2:
        spare[t] = x[i] + tack.i32(r)
    else:
        spare[t] = tack.i32(r)
    tack.barrier()
    most = tack.block_max(spare[t])
    if most > 11:
        break
    total += spare[0] + most
    tack.barrier()
if x[i] == 3:
    continue
out[i] = total
"""

_UNIFORM_TWICE = """
spare = tack.shared(tack.i32, 8)
t = tack.thread_id()
a = tack.group_id()
if n > 0:
    a += 1
b = a
for r in range(3):
    if r == 1:
        b = b + a
while b > 0:
    spare[t] = x[i] * tack.i32(b)
    tack.barrier()
    out[i] += spare[0]
    tack.barrier()
    b -= 2
"""

_HISTOGRAM = """
bins = tack.shared(tack.{dtype}, 10)
t = tack.thread_id()
if t < 10:
    bins[t] = tack.{dtype}(0)
tack.barrier()
old = tack.atomic_add(bins, int(x[i]), tack.{dtype}(1))
tack.atomic_max(bins, 9, old)
tack.barrier()
if t < 10:
    out[tack.group_id(), t] = bins[t]
"""

_FUNCTIONS = """
import tack

@tack.func
def neighbour(value, t):
    held = tack.shared(tack.f32, 8)
    held[t] = value
    tack.barrier()
    result = held[(t + 1) % tack.group_size()]
    tack.barrier()
    return result

@tack.kernel(group=8)
def k(x, out):
    for i in range(x.shape[0]):
        t = tack.thread_id()
        once = neighbour(x[i], t)
        own = tack.local_array(tack.f32, 3)
        own[1] = once
        twice = neighbour(once + own[0], t)
        own[2] = twice
        tack.barrier()
        out[i] = own[0] + own[1] * own[2]
"""

_VECTORS = """
tile = tack.shared(tack.f32x3, 4)
flags = tack.shared(tack.bool_, (4,))
small = tack.shared(tack.f16, 4)
t = tack.thread_id()
tile[t] = tack.f32x3(x[i], x[i] + 1, 2)
flags[t] = x[i] > 3
small[t] = tack.f16(x[i]) / tack.f16(3)
tack.barrier()
u = 3 - t
v = tile[u]
out[i] = (v.y - v.x * v.z if flags[u] else v.x) + tack.f32(small[u])
"""


_BOXES = """
tile = tack.shared(tack.i32, (2, 3, 4))
a, b, c = tack.thread_id(0), tack.thread_id(1), tack.thread_id(2)
tile[a, b, c] = x[i, j, l]
tack.barrier()
where = tack.group_id(0) * 100 + tack.group_id(1) * 10 + tack.group_id(2)
out[i, j, l] = tile[0, 0, 0] + tack.i32(where * 24 + tack.thread_id())
"""

_ENDED = """
if x[i] >= 0:
    out[i] = x[i] + 1
    continue
if x[x.shape[0] + 2] > 3:
    continue
out[i] = 99
"""

_ROWS = """
held = tack.shared(tack.i32, 8)
t = tack.thread_id(1)
total = tack.i32(0)
for k in range(x[i, 0]):
    if tack.thread_id(0) + i > 40:
        break
    held[t] = x[i, j] + tack.i32(k)
    tack.barrier()
    if i & 1 == 0:
        tack.barrier()
    total += held[0]
    tack.barrier()
if i & 1 == 0:
    total = total + tack.block_sum(x[i, j])
out[i, j] = total
"""

_ROUNDS = """
total = x[i]
for k in range(tack.block_max(x[i]) // 2):
    if x[i] > k:
        total += tack.i32(k)
    k = i
    total += tack.block_min(total)
while n > 0 and tack.block_sum(total) < n:
    total += 50
i = tack.thread_id()
out.flat[i + tack.group_id() * 8] = total
"""

_UNREAD = """
held = tack.shared(tack.i32, 8)
t = tack.thread_id()
held[t] = x[i]
tack.block_sum(t)
out[i] = held[7 - t]
unread = tack.block_max(x[i])
held[t] = out[i] + 1
if n > 3:
    tack.block_min(0)
    out[i] = held[7 - t]
"""

_PADDED = """
out[i] = tack.i32(tack.block_sum(x[i - 3]) + i * 10 + tack.thread_id())
"""


_STORED = """
small = tack.shared(tack.{dtype}, 4)
t = tack.thread_id()
small[t] = x[i] / tack.f32(3)
tack.barrier()
out[i] = tack.f32(small[3 - t]) + tack.block_sum(tack.f32(small[t]))
"""


def _others() -> Iterator[GroupKernel]:
    for dtype in ("u8", "i32", "f32", "f64", "bf16"):
        yield GroupKernel(
            f"reversed by groups, {dtype}",
            _kernel(_REVERSED.format(dtype=dtype), 16),
            f"{dtype}[:], {dtype}[:]",
            (16,),
            (259,),
            edges((dtype, (259,)), (dtype, (259,))),
        )
    for count in (0, 1, 15, 16, 17, 160):
        yield GroupKernel(
            f"prefix sums of {count}",
            _kernel(_SCAN, 16),
            "i32[:], i32[:]",
            (16,),
            (count,),
            _numbers(("int32", (count,)), ("int32", (count,))),
        )
    for rows, columns in ((16, 24), (5, 19), (33, 2)):
        padded = (-(-rows // 8) * 8, -(-columns // 8) * 8)
        yield GroupKernel(
            f"{rows} x {columns} transposed",
            _kernel(
                _TRANSPOSED,
                (8, 8),
                "x, pinned, out",
                "for i, j in tack.ndrange(-(-x.shape[0] // 8) * 8, -(-x.shape[1] // 8) * 8)",
            ),
            "f32[:, :], f32[8, 8], f32[:, :]",
            (8, 8),
            padded,
            edges(("f32", (rows, columns)), ("f32", (8, 8)), ("f32", (columns, rows))),
        )
    yield GroupKernel(
        "a product by tiles",
        _kernel(
            _PRODUCT,
            (4, 4),
            "x, w, out",
            "for i, j in tack.ndrange(-(-x.shape[0] // 4) * 4, -(-w.shape[1] // 4) * 4)",
        ),
        "f32[:, :], f32[:, :], f32[:, :]",
        (4, 4),
        (12, 8),
        _numbers(("float32", (9, 7)), ("float32", (7, 6)), ("float32", (9, 6))),
    )
    for n in (1, 5):
        yield GroupKernel(
            f"control flow that is uniform, n = {n}",
            _kernel(_FLOW, 8, "x, counts, n: tack.i32, out"),
            "i32[:], i32[:], i32, i32[:]",
            (8,),
            (61,),
            lambda n=n: [
                *_numbers(("int32", (61,)))(),
                np.array([3, 9, 1, 7, 0, 2, 6, -1], np.int32),
                np.int32(n),
                np.full(61, 99, np.int32),
            ],
        )
        yield GroupKernel(
            f"locals by which lanes find to barriers, n = {n - 1}",
            _kernel(_UNIFORM_TWICE, 8, "x, n: tack.i32, out"),
            "i32[:], i32, i32[:]",
            (8,),
            (61,),
            lambda n=n: [
                *_numbers(("int32", (61,)))(),
                np.int32(n - 1),
                np.zeros(61, np.int32),
            ],
        )
    for dtype in ("i32", "u32", "u8", "i16", "f32"):
        yield GroupKernel(
            f"a shared histogram of {dtype}",
            _kernel(_HISTOGRAM.format(dtype=dtype), 32),
            f"{dtype}[:], {dtype}[:, :]",
            (32,),
            (90,),
            _numbers((_numpy(dtype), (90,)), (_numpy(dtype), (3, 10))),
        )
    yield GroupKernel(
        "functions that wait",
        _FUNCTIONS,
        "f32[:], f32[:]",
        (8,),
        (64,),
        edges(("f32", (64,)), ("f32", (64,))),
    )
    yield GroupKernel(
        "shared vectors, bools and f16",
        _kernel(_VECTORS, 4),
        "f32[:], f32[:]",
        (4,),
        (28,),
        _numbers(("float32", (28,)), ("float32", (28,))),
    )
    for dtype in ("f8e4m3", "f8e5m2"):
        yield GroupKernel(
            f"shared elements of {dtype}",
            _kernel(_STORED.format(dtype=dtype), 4),
            "f32[:], f32[:]",
            (4,),
            (28,),
            _numbers(("float32", (28,)), ("float32", (28,))),
        )
    yield GroupKernel(
        "three dimensions",
        _kernel(
            _BOXES,
            (2, 3, 4),
            loop="for i, j, l in tack.ndrange(x.shape[0], x.shape[1], x.shape[2])",
        ),
        "i32[:, :, :], i32[:, :, :]",
        (2, 3, 4),
        (3, 5, 9),
        _numbers(("int32", (3, 5, 9)), ("int32", (3, 5, 9))),
    )
    yield GroupKernel(
        "what stands behind the end of every iteration is run by no lane",
        _kernel(_ENDED, 8),
        "i32[:], i32[:]",
        (8,),
        (13,),
        _numbers(("int32", (13,)), ("int32", (13,))),
    )
    yield GroupKernel(
        "an index that a group has one of is one that its iterations have in common",
        _kernel(_ROWS, (1, 8), loop="for i, j in tack.ndrange(x.shape[0], x.shape[1])"),
        "i32[:, :], i32[:, :]",
        (1, 8),
        (5, 21),
        _numbers(("int32", (5, 21)), ("int32", (5, 21))),
    )
    yield GroupKernel(
        "reductions by which loops end",
        _kernel(_ROUNDS, 8, "x, n: tack.i32, out"),
        "i32[:], i32, i32[:]",
        (8,),
        (24,),
        lambda: [*_numbers(("int32", (24,)))(), np.int32(4000), np.zeros(24, np.int32)],
    )
    for n in (3, 4):
        yield GroupKernel(
            f"reductions that nothing reads wait for each other, n = {n}",
            _kernel(_UNREAD, 8, "x, n: tack.i32, out"),
            "i32[:], i32, i32[:]",
            (8,),
            (40,),
            lambda n=n: [*_numbers(("int32", (40,)))(), np.int32(n), np.zeros(40, np.int32)],
        )
    for last, count in ((3, 0), (-5, 0), (4, 1), (12, 5), (37, 17)):
        yield GroupKernel(
            f"a range from 3 to {last} by twos",
            _kernel(_PADDED, 4, "x, n: tack.i64, out", "for i in range(3, n, 2)"),
            "i32[:], i64, i32[:]",
            (4,),
            (count,),
            lambda last=last: [
                *_numbers(("int32", (40,)))(),
                np.int64(last),
                np.full(40, 7, np.int32),
            ],
        )
    yield GroupKernel(
        "two negative extents run nothing",
        _kernel(
            "out[i, j] = tack.block_sum(1)",
            (2, 2),
            "n: tack.i64, out",
            "for i, j in tack.ndrange(n, n)",
        ),
        "i64, i64[:, :]",
        (2, 2),
        (0, 0),
        lambda: [np.int64(-3), np.full((3, 3), 7, np.int64)],
    )
    yield GroupKernel(
        "groups without barriers",
        _kernel("out[i] = x[i] + tack.group_id() * tack.group_size() - tack.thread_id()", 16),
        "i64[:], i64[:]",
        (16,),
        (70,),
        _numbers(("int64", (70,)), ("int64", (70,))),
    )


def _numpy(dtype: str) -> str:
    kind = {"i": "int", "u": "uint", "f": "float"}[dtype[0]]
    return f"{kind}{dtype[1:]}"


GROUP_KERNELS = [*_reductions(), *_others()]
