"""Wrong uses of workgroups, for `refusal_cases`."""

from __future__ import annotations

__all__ = ["APART"]


def _body(statements: str, group: object = 8, parameters: str = "x, y") -> str:
    lines = "\n".join(f"            {line}" for line in statements.splitlines())
    return (
        f"\n    @tack.kernel(group={group})\n    def kernel({parameters}):\n"
        f"        for i in range(x.shape[0]):\n{lines}\n"
    )


_SAME = "is not the same for all of them"

_ONE = "f32[:], i64[:]"

_DIVERGENT = {
    "if x[i] > 1:\n  tack.barrier()": "the 'if' in line 6, which depends on i,",
    "if tack.thread_id() == 0:\n  tack.barrier()": "depends on tack.thread_id(),",
    "if y[0] == 0:\n  tack.barrier()\ny[i] = 2": "depends on an element of y,",
    "a = i + 1\nif y[0] == 0 and a > 3:\n  tack.barrier()": "depends on a,",
    "for k in range(y[i]):\n  tack.barrier()": "the 'for' in line 6, which depends on i,",
    "k = 0\nwhile k < i:\n  k += 1\n  tack.barrier()": "the 'while' in line 7",
    "if x[i] > 1:\n  continue\ntack.barrier()": _SAME,
    "for k in range(3):\n  if x[i] > k:\n    break\n  tack.barrier()": _SAME,
    "for k in range(3):\n  tack.barrier()\n  if x[i] > k:\n    break": _SAME,
    "for k in range(3):\n  if x[i] > k:\n    continue\n  tack.barrier()": _SAME,
    "b = 0\nif i == 2:\n  b = 1\nif b == 1:\n  tack.barrier()": "depends on b,",
    "b = 0\nfor k in range(y[i]):\n  b = k\nif b == 1:\n  tack.barrier()": "depends on b,",
    "own = tack.local_array(tack.i32, 2)\nif own[0] == 0:\n  tack.barrier()": "element of own,",
    "s = tack.shared(tack.i32, 2)\ns[0] = 1\nif s[0] == 0:\n  tack.barrier()": "element of s,",
    "b = tack.atomic_add(y, 0, 1)\nif b == 0:\n  tack.barrier()": "depends on b,",
    "a = i\nwhile a < 9 and tack.block_sum(a) < 9:\n  a += 1": "which depends on a, is",
    "if i > 3:\n  y[0] = tack.block_sum(i)": "comes to tack.block_sum(), and",
    "if i > 3:\n  tack.block_sum(i)": "comes to tack.block_sum(), and",
    "y[0] = tack.block_max(i) if i > 3 else 0": "comes to tack.block_max(), and",
    "if i > 3 and tack.block_min(i) > 0:\n  y[i] = 0": "comes to tack.block_min(), and",
}

_HALVES = "f16[:, :], f32[:, :]"
_MADE = (
    "a = tack.fragment_a(x, 0, 0)\nb = tack.fragment_b(x, 0, 0)\nc = tack.fragment_c(tack.f32)\n"
)

_FRAGMENTS = {
    "a = b = tack.fragment_a(x, 0, 0)": "a fragment gets one name",
    "x = tack.fragment_a(x, 0, 0)": "names a fragment, and something else too",
    "a = tack.fragment_a(x, 0)": "tack.fragment_a takes an array of two dimensions, a row and",
    "a = tack.fragment_b(i, 0, 0)": "tack.fragment_b takes an array of two dimensions, a row and",
    "a = tack.fragment_a(y, 0, 0)": "takes an array of f16 or bf16, and this is f32",
    "c = tack.fragment_c(tack.f64)": "an accumulator is made by tack.fragment_c(tack.f32)",
    "y[0, 0] = tack.fragment_c(tack.f32)": "a fragment gets one name",
    "y[0, 0] = 1 + tack.fragment_c(tack.f32)": "a fragment is made by a statement",
    "y[0, 0] = tack.mma(1, 2, 3)": "is a statement of its own; it gives no value",
    _MADE + "y[0, 0] = c": "the fragment 'c' has no value of its own; give it to tack.mma",
    _MADE + "y[0, 0] = c[0]": "has no value of its own",
    _MADE + "tack.mma(c, b, a)": "takes a fragment here that tack.fragment_a(array, row,",
    _MADE + "tack.mma(c, a, c)": "takes a fragment here that tack.fragment_b(array, row,",
    _MADE + "tack.mma(1, a, b)": "takes a fragment here that tack.fragment_c(tack.f32) made",
    _MADE + "tack.mma(c, a)": "takes a fragment here that tack.fragment_b",
    _MADE + "tack.mma(c, a, b, c)": "tack.mma takes three fragments, as in tack.mma(c, a, b)",
    _MADE + "tack.store_fragment(c, i, 0, 0)": "tack.store_fragment takes an array of two",
    "if x.shape[0] > 3:\n  c = tack.fragment_c(tack.f32)\ntack.store_fragment(c, y, 0, 0)": (
        "'c' may have no value here; make it on every path before"
    ),
    "a = tack.fragment_a(x, i, 0)": "the same row and column, and this depends on i;",
    "a = tack.fragment_b(x, 0, tack.thread_id() + 1)": "this depends on tack.thread_id();",
    "c = tack.fragment_c(tack.f32)\ntack.store_fragment(c, y, int(y[0, 0]), 0)": (
        "this depends on an element of y;"
    ),
    "r = 0\nif tack.warp_id() > 0:\n  r = 16\na = tack.fragment_a(x, r, 0)": (
        "worked out where all iterations of a group come"
    ),
    "if i > 3:\n  a = tack.fragment_a(x, 0, 0)": "comes to tack.fragment_a(), and",
    "if i > 3:\n  b = tack.fragment_b(x, 0, 0)": "comes to tack.fragment_b(), and",
    _MADE + "if i > 3:\n  tack.mma(c, a, b)": "comes to tack.mma(), and",
    _MADE + "if i > 3:\n  tack.store_fragment(c, y, 0, 0)": "comes to tack.store_fragment(), and",
    "y[0, 0] = tack.warp_id(0)": "tack.warp_id() takes no arguments",
}

APART: dict[str, tuple[str, str]] = {
    **{_body(statements): (_ONE, words) for statements, words in _DIVERGENT.items()},
    **{_body(text, 32): (_HALVES, words) for text, words in _FRAGMENTS.items()},
    _body(
        "a = tack.fragment_a(x, 0, 0)\nb = tack.fragment_b(z, 0, 0)\n"
        "c = tack.fragment_c(tack.f32)\ntack.mma(c, a, b)",
        32,
        "x, y, z",
    ): (
        "f16[:, :], f32[:, :], bf16[:, :]",
        "tack.mma takes operands of one type, and these are f16 and bf16",
    ),
    _body("c = tack.fragment_c(tack.f32)\ntack.store_fragment(c, y, 0, 0)", 32): (
        "f16[:, :], i32[:, :]",
        "takes an array of floats, and this is i32",
    ),
    """
    @tack.kernel(group=(1, 32))
    def kernel(x, y):
        for i, j in tack.ndrange(x.shape[0], x.shape[1]):
            c = tack.fragment_c(tack.f32)
            tack.store_fragment(c, y, 0, 0)
    """: (_HALVES, "fragments are for kernels whose parallel loop has one index"),
    """
    @tack.kernel(group=32)
    def kernel(x, y):
        c = tack.fragment_c(tack.f32)
        for i in range(x.shape[0]):
            tack.store_fragment(c, y, 0, 0)
    """: (_HALVES, "a fragment belongs to a warp; make it in the parallel loop"),
    _body("tack.barrier()", group=(4, 4)): (
        _ONE,
        "1 index and group=(4, 4) has 2 sizes; write one for each, as in group=16",
    ),
    _body("tack.barrier(1)"): (_ONE, "tack.barrier() takes no arguments"),
    _body("y[i] = tack.barrier()"): (_ONE, "is a statement of its own; it gives no value"),
    _body("y[i] = tack.thread_id(1)"): (_ONE, "that of an index of the parallel loop"),
    _body("y[i] = tack.thread_id(i)"): (_ONE, "a literal of 0"),
    _body("y[i] = tack.group_size(0, 0)"): (_ONE, "takes one axis, or nothing"),
    _body("y[i] = tack.group_size(of=0)"): (_ONE, "takes one axis, or nothing"),
    _body("y[i] = tack.block_sum(i, i)"): (_ONE, "takes one number"),
    _body("y[i] = tack.block_sum(tack.f32x2(1.0, 2.0))"): (_ONE, "a number is needed here"),
    _body("y[i] = 1 + tack.shared(tack.f32, 3)"): (_ONE, "made by a statement"),
    _body("y[i] = 1 + tack.shared_like(x)"): (_ONE, "made by a statement"),
    _body("s = tack.shared(tack.f32, i)"): (_ONE, "known while compiling"),
    _body("s = tack.shared(tack.f32)"): (_ONE, "tack.shared takes a dtype and a shape"),
    _body("s = tack.shared_like()"): (_ONE, "tack.shared_like takes an array"),
    _body("s = tack.shared_like(x)"): (_ONE, "pin the extents of 'x'"),
    _body("s = t = tack.shared(tack.f32, 3)"): (_ONE, "a shared array gets one name"),
    _body("y = tack.shared(tack.f32, 3)"): (_ONE, "names a shared array, and something else too"),
    """
    @tack.kernel(group=8)
    def kernel(x, y):
        s = tack.shared(tack.f32, 3)
        for i in range(x.shape[0]):
            y[i] = 1
    """: (_ONE, "a shared array belongs to a group; make it inside the parallel loop"),
    **{
        f"""
    @tack.kernel(group=8)
    def kernel(x, y):
        n = {value}
        for i in range(n):
            y[i] = n
    """: (_ONE, "is about an iteration and its group; write it inside the parallel loop")
        for value in ("tack.thread_id()", "tack.block_max(x.shape[0])")
    },
    """
    @tack.kernel(group=8)
    def kernel(x, y):
        for i in range(x.shape[0] + tack.group_id()):
            y[i] = i
    """: (_ONE, "tack.group_id() is about an iteration and its group; write it inside"),
    """
    @tack.kernel(group=(4, 4))
    def kernel(x, y):
        for i, j in tack.ndrange(x.shape[0], x.shape[0]):
            y[i] = tack.group_id()
    """: (_ONE, "this kernel has groups along 2 axes; say which one, as in tack.group_id(0)"),
    **{
        f"""
    @tack.kernel
    def kernel(x, y):
        for i in range(x.shape[0]):
            {statement}
    """: (_ONE, "is for kernels with groups; write @tack.kernel(group=256)")
        for statement in (
            "tack.barrier()",
            "y[i] = tack.thread_id()",
            "y[i] = tack.block_max(i)",
            "s = tack.shared(tack.f32, 3)",
        )
    },
}
"""Modules whose ``kernel`` is refused -> its signature, and words of the error."""
