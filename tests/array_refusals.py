"""Wrong uses of arrays as wholes, for `refusal_cases`: extents, flat indices, local arrays."""

from __future__ import annotations

__all__ = ["APART", "STATEMENTS"]

STATEMENTS: dict[str, tuple[str | None, str]] = {
    "x[i] = x.nbytes": ("x.nbytes", "no .nbytes"),
    "x[i] = x.flat": ("x.flat", "write .flat[i]"),
    "x[i] = x.flat[-1]": ("x.flat[-1]", "write x.size - 1"),
    "x[i] = x.flat[i, 0]": ("x.flat[i, 0]", "x.flat takes one index"),
    "x.flat[0:2] = 1.0": ("x.flat[0:2]", "x.flat takes one index"),
    "x[()] = 1.0": ("x[()]", "1 dimension and is given 0 indices"),
    "x[i] = len(i)": ("len(i)", "len() takes one array"),
    "x[i] = len(x, x)": ("len(x, x)", "len() takes one array"),
    "b = tack.local_array(tack.f32, i)": ("i", "known while compiling"),
    "b = tack.local_array(tack.f32, len(x))": ("len(x)", "known while compiling"),
    "b = tack.local_array(tack.f32, 2.0)": ("2.0", "known while compiling"),
    "b = tack.local_array(tack.f32, 0)": ("0", "1 or more, not 0"),
    "b = tack.local_array(tack.f32, (2, 1 - 3))": ("1 - 3", "1 or more, not -2"),
    "b = tack.local_array(tack.f32, ())": ("()", "1 to 8 dimensions"),
    "b = tack.local_array(tack.f64, 8193)": ("tack.local_array(tack.f64, 8193)", "65544 bytes"),
    "b = tack.local_array(4, tack.f32)": ("4", "is a dtype, such as tack.f32"),
    "b = tack.local_array(tack.f32)": ("tack.local_array(tack.f32)", "a dtype and a shape"),
    "b = tack.local_array(dtype=tack.f32, shape=3)": (
        "tack.local_array(dtype=tack.f32, shape=3)",
        "a dtype and a shape",
    ),
    "b = tack.local_array_like(i)": ("i", "takes an array"),
    "b = tack.local_array_like()": ("tack.local_array_like()", "takes an array"),
    "b = c = tack.local_array(tack.f32, 3)": (
        "b = c = tack.local_array(tack.f32, 3)",
        "gets one name",
    ),
    "x[i] = tack.local_array(tack.f32, 3)[0]": ("tack.local_array(tack.f32, 3)", "by a statement"),
    "x[0] = tack.local_array(tack.f32, 3)": (
        "x[0] = tack.local_array(tack.f32, 3)",
        "gets one name",
    ),
    "y = 1 + tack.local_array_like(x)": ("tack.local_array_like(x)", "by a statement"),
    "y = 1 + tack.local_array(tack.f32, 3)": ("tack.local_array(tack.f32, 3)", "by a statement"),
    "x = tack.local_array(tack.f32, 3)": ("x", "names a local array, and something else too"),
    "b = tack.local_array(tack.f32, 3)\nb = tack.local_array(tack.f32, 3)": (None, "use two names"),
    "b = 1.0\nb = tack.local_array(tack.f32, 3)": (None, "use two names"),
    "b = tack.local_array(tack.f32, 3)\nb = 2.0": (None, "use two names"),
    "b = tack.local_array(tack.f32, 3)\nc = b": (None, "has no value of its own"),
    "b = tack.local_array(tack.f32, 3)\nx[i] = b": (None, "has no value of its own"),
    "if x[i] > 0:\n  b = tack.local_array(tack.f32, 3)\nx[i] = b[0]": (
        None,
        "on every path before",
    ),
    "for k in range(i):\n  b = tack.local_array(tack.f32, 3)\nx[i] = b[0]": (
        None,
        "on every path before",
    ),
    "x[i] = b[0]\nb = tack.local_array(tack.f32, 3)": (None, "may have no value here"),
    "b = tack.local_array(tack.f32, 3)\nx[i] = b[3]": (None, "out of range for f32[3]"),
    "b = tack.local_array(tack.f32, (3, 2))\nx[i] = b.flat[6]": (
        None,
        "out of range for f32[3, 2]",
    ),
    "b = tack.local_array(tack.f32, 3)\nx[i] = b[0, 0]": (None, "has 1 dimension and is given 2"),
    "b = tack.local_array(tack.i32, 3)\nb[0] = x[i]": (None, "cast"),
    "b = tack.local_array(tack.f32, 9000)\nc = tack.local_array(tack.f32, 9000)": (
        None,
        "36000 bytes",
    ),
    "b = tack.local_array(tack.f32x3, 3)\nc = tack.local_array_like(b, tack.f64)": (
        None,
        "of vectors has their type",
    ),
    "b = tack.local_array_like(x)": (
        "tack.local_array_like(x)",
        "pin the extents of 'x' in the signature, as in f32[3]",
    ),
}

APART = {
    """
    @tack.func
    def gives(x):
        b = tack.local_array(tack.f32, 2)
        return b
    @tack.kernel
    def kernel(x):
        for i in range(3):
            y = gives(x)
    """: ("f32[:]", "an array cannot be returned; give it to the function to fill"),
    """
    @tack.kernel
    def kernel(x):
        b = tack.local_array(tack.f32, 3)
        for i in range(3):
            x[i] = b[0]
    """: ("f32[:]", "make it inside the parallel loop"),
    """
    @tack.kernel
    def kernel(x):
        for i in range(len(x)):
            x[()] = 1.0
    """: ("f32[()]", "'x' has no dimensions, so no len()"),
    **{
        f"""
    @tack.kernel
    def kernel(x):
        for i in range(3):
            {statement}
    """: (
            "f32[()]",
            "'x' has 0 dimensions and is given 1 index; the index of its one element is ()",
        )
        for statement in ("x[0] = 1.0", "x[i] += 1.0", "y = x[i]", "tack.atomic_add(x, 0, 1.0)")
    },
    """
    @tack.kernel
    def kernel(x):
        for i in range(3):
            x[()] = x
    """: ("f32[()]", "index an element of it: x[()]"),
    """
    @tack.kernel
    def kernel(x):
        for i in range(3):
            b = tack.local_array_like(x)
    """: ("f32[()]", "makes arrays of 1 to 8 dimensions"),
    """
    @tack.kernel
    def kernel(x):
        for i in range(3):
            x.flat[6] = 1.0
    """: ("f32[2, 3]", "the index 6 is out of range for f32[2, 3]"),
}
