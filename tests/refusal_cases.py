"""Programs that the language refuses, with what is said of each.

`test_refusals` judges them one by one; `error_catalogue` shows one for each message.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from types import ModuleType

import array_refusals
import group_refusals
import pytest
from template_refusals import TEMPLATE, TEMPLATE_LOOPS, TEMPLATES
from vector_refusals import VECTORS, VECTORS_PRELUDE

from tack.compile import generate
from tack.errors import CompileError
from tack.model.signature import Signature
from tack.model.targets import Target
from tack.model.variant import Variant
from tack.render.renderer import renderer_for
from tack.runtime.arguments import call_signature

__all__ = ["CASES", "Case", "refused"]


@dataclass(frozen=True)
class Case:
    """A module whose `kernel` is refused for a signature, or for the arguments that `given` gives.

    `words` are in the message, and the caret stands below `under`; None where that is judged
    elsewhere.
    """

    name: str
    text: str
    signature: str
    words: str | None
    under: str | None = None

    def __str__(self) -> str:
        return self.name


def refused(module: ModuleType, signature: str) -> CompileError:
    """The error that refuses the module's kernel."""
    has_groups = bool(module.kernel.definition.options.group)
    target = Target("cuda", "sm_90") if has_groups else Target("cpu", "x86-64-v3")
    if hasattr(module, "given"):
        given = call_signature(module.kernel.definition, module.given())
    else:
        given = Signature.parse(signature)
    variant = Variant(module.kernel.definition, given, target)
    with pytest.raises(CompileError) as caught:
        generate(variant, renderer_for(target))
    return caught.value


PRELUDE = """
    import math
    import numpy as np
    NUMBER = 3
    TABLE = (1.5, "text")
    NUMPY_NUMBER = np.float32(3)
    CONSTANT = tack.constant(3, tack.i32)
    ARRAY = np.arange(3)

    class Holder:
        value = 3

    def plain(x):
        return x

    @tack.func
    def one(x):
        return x

    @tack.func
    def two(x):
        return x, x

    @tack.func
    def odd_default(x=None):
        return x

    @tack.func
    def store(x, i):
        x[i] = 1.0

    @tack.func
    def loops(x):
        return other(x)

    @tack.func
    def other(x):
        return loops(x)

    @tack.func
    def maybe(x):
        if x > 0:
            return 1

    @tack.func
    def in_loop(x):
        for k in range(3):
            if x > k:
                return k
        return 3

    @tack.func
    def uneven(x):
        if x > 0:
            return 1, 2
        return 1

    @tack.func
    def starred(*x):
        return 1

    @tack.kernel
    def another(x):
        for i in range(x.shape[0]):
            x[i] = 0.0
"""

STATEMENTS = {
    # statement of the loop's body -> (what the caret stands under, words of the message)
    "x[i] = y": ("y", "'y' is not defined"),
    "x[i] = later; later = 1.0": ("later", "'later' may have no value here"),
    "x[i] = NUMBER": ("NUMBER", "tack.constant(3, tack.<dtype>)"),
    "x[i] = NUMPY_NUMBER": ("NUMPY_NUMBER", "tack.constant"),
    "x[i] = float('infinite')": ("float('infinite')", "float() of text is one of float('inf')"),
    "x[i] = np.minimum(x[i], 1)": ("np.minimum(x[i], 1)", "write min(a, b), which prefers a"),
    "x[i] = np.where(i > 1, 1, 0)": ("np.where(i > 1, 1, 0)", "write a if condition else b"),
    "x[i] = TABLE[i]": ("TABLE[i]", "pass an array to look numbers up"),
    "x[i] = TABLE[2]": ("TABLE[2]", "TABLE has 2 numbers, so no TABLE[2]"),
    "x[i] = TABLE[1]": ("TABLE[1]", "TABLE[1] is a str, and a kernel reads numbers"),
    "x[i] = x.T[i]": ("x.T", "for x.T[i, j] write x[j, i]"),
    "x[i] = ARRAY": ("ARRAY", "make it a parameter"),
    "x[i] = Holder.value": ("Holder.value", "attributes are read of modules only"),
    "x[i] = Holder.method(i)": ("Holder.method", "as in holder_method = Holder.method"),
    "x[i] = tack.constant(3)": ("tack.constant(3)", "write the number, or cast it"),
    "x[i] = tack.spec(Holder)": ("tack.spec(Holder)", "call it outside the kernel"),
    "x[i] = super().value(i)": ("super()", "base_f = Base.f, and call base_f(self, ...)"),
    "x[i] = one(i)(i)": ("one(i)", "cannot be called in a kernel; what can are builtins"),
    "x[i] = tack.sqr(x[i])": ("tack.sqr", "tack has no 'sqr'; did you mean 'sqrt'?"),
    "x[i] = math.nothing_like_it": ("math.nothing_like_it", "math has no 'nothing_like_it'"),
    "x[i] = missing.value": ("missing.value", "is not defined"),
    "x[i] = 'a'": ("'a'", "no number"),
    "x[i] = None": ("None", "no number"),
    "x[i] = 1j": ("1j", "no number"),
    "x[i] = 2**70 if i else 18446744073709551616": ("18446744073709551616", "fits no integer type"),
    "x[i] = x": ("x", "the array 'x' has no value of its own"),
    "x = 1.0": ("x", "'x' is an array"),
    "x[i, 0] = 1.0": ("x[i, 0]", "'x' has 1 dimension and is given 2 indices"),
    "x[i] = x[-1]": ("x[-1]", "indices do not wrap around; write x.shape[0] - 1"),
    "x[-2] = 1.0": ("x[-2]", "negative"),
    "x[0:2] = 1.0": ("0:2", "slices are not built yet"),
    "x[i] = x.shape": ("x.shape", "write .shape[k]"),
    "x[i] = x.shape[1]": ("x.shape[1]", "'x' has 1 dimension, so no .shape[1]"),
    "x[i] = x.shape[i]": ("x.shape[i]", "literal"),
    "x[i] = i.real": ("i.real", "a number has no attribute"),
    "x[i] = i[0]": ("i[0]", "only arrays"),
    "x[i] = plain(i)": ("plain(i)", "decorate it @tack.func"),
    "x[i] = TABLE": ("TABLE", "write TABLE[0]"),
    "x[i] = np.sin(i)": ("np.sin(i)", "np.sin is NumPy's; write tack.sin"),
    "x[i] = np.arctan2(i, i)": ("np.arctan2(i, i)", "write tack.atan2"),
    "x[i] = np.interp(i, i, i)": (
        "np.interp(i, i, i)",
        "np.interp is NumPy's; write it with scalars",
    ),
    "x[i] = math.atan2(i, i)": ("math.atan2(i, i)", "write tack.atan2, which has every float type"),
    "x[i] = np.floor(x[i])": ("np.floor(x[i])", "write tack.floor"),
    "x[i] = math.floor(x[i])": ("math.floor(x[i])", "write tack.floor"),
    "x[i] = another(x)": ("another(x)", "a kernel cannot call a kernel"),
    "x[i] = missing(i)": ("missing", "'missing' is not defined"),
    "x[i] = i.f()": ("i.f", "cannot be called"),
    "x[i] = print(i)": ("print(i)", "a statement of its own"),
    "print(x)": ("x", "has no value of its own"),
    "print(*x)": ("*x", "takes values one by one"),
    "print(i, file=x)": ("x", "of keywords it has sep and end"),
    "print(i, flush=True)": ("True", "of keywords it has sep and end"),
    "print(i, sep=x)": ("x", "sep of a print in a kernel is a text, as sep=','"),
    "print(i, end=1)": ("1", "end of a print in a kernel is a text"),
    "print(f'{x[i]:.3f}')": (None, "has no formats; write the value alone"),
    "print(f'{x[i]!a}')": (None, "has no formats"),
    "print('a\\0b')": ("'a\\0b'", "no NUL"),
    "print(None)": ("None", "None"),
    "print(tack.f32x2(1, 2))": ("tack.f32x2(1, 2)", "a number is needed here"),
    f"print({', '.join('i' * 17)})": (None, "16 values at most, not 17; make two"),
    "x[i] = round(x[i], 2)": ("round(x[i], 2)", "round takes 1 value, not 2"),
    "x[i] = math.isnan(x[i])": ("math.isnan(x[i])", "write tack.isnan"),
    "x[i] = math.isinf(x[i])": ("math.isinf(x[i])", "write tack.isinf"),
    "x[i] = math.isfinite(x[i])": ("math.isfinite(x[i])", "write tack.isfinite"),
    "x[i] = math.copysign(x[i], 1)": ("math.copysign(x[i], 1)", "write tack.copysign"),
    "tack.atomic_add(x, i)": (
        "tack.atomic_add(x, i)",
        "tack.atomic_add takes an array, an index and a value, none by keyword",
    ),
    "tack.atomic_cas(x, i, 1.0)": (
        "tack.atomic_cas(x, i, 1.0)",
        "tack.atomic_cas takes an array, an index and an expected and a new value",
    ),
    "tack.atomic_add(x[0], i, 1.0)": ("x[0]", "changes an array's element: name the array"),
    "tack.atomic_and(x, i, 1)": (
        "tack.atomic_and(x, i, 1)",
        "tack.atomic_and has no f32 elements; it has bool, i8, i16",
    ),
    "tack.atomic_add(x, (i, 0), 1.0)": (
        "tack.atomic_add(x, (i, 0), 1.0)",
        "'x' has 1 dimension and is given 2 indices",
    ),
    "tack.atomic_add(x, -1, 1.0)": ("tack.atomic_add(x, -1, 1.0)", "indices do not wrap around"),
    "x[i] = tack.clamp(x[i], 0)": ("tack.clamp(x[i], 0)", "clamp takes 3 values, not 2"),
    "x[i] = tack.random.uniform(1)": (
        "tack.random.uniform(1)",
        "uniform takes 2 values, a seed and a counter, not 1",
    ),
    "x[i] = tack.random.bits(1, 2, dtype=tack.f64)": (
        "tack.random.bits(1, 2, dtype=tack.f64)",
        "bits takes no dtype by keyword",
    ),
    "x[i] = tack.random.uniform(1, 2, dtype=tack.f16)": ("tack.f16", "dtype is tack.f32 or"),
    'x[i] = tack.random.uniform(1, 2, generator="philx")': (
        '"philx"',
        "generator is one of threefry, philox; did you mean 'philox'?",
    ),
    "x[i] = tack.random.threefry(1, tack.f32x2(1)).x": (
        "tack.random.threefry(1, tack.f32x2(1))",
        "threefry takes numbers, and this is a vector of 2",
    ),
    "x[i] = min(i)": ("min(i)", "2 values or more"),
    "x[i] = abs(i, i)": ("abs(i, i)", "takes 1 value, not 2"),
    "x[i] = tack.sqrt(x=1.0)": ("tack.sqrt(x=1.0)", "no keyword arguments"),
    "x[i] = tack.f32(1, 2)": ("tack.f32(1, 2)", "converts 1 value, not 2"),
    "x[i] = tack.f32": ("tack.f32", "not a number"),
    "x[i] = math": ("math", "module"),
    "x[i] = two(i)": ("two(i)", "gives 2 values, and one is needed"),
    "x[i] = store(x, i)": ("store(x, i)", "gives no value"),
    "a, b, c = two(i)": ("a, b, c = two(i)", "2 values cannot be unpacked into 3 names"),
    "a = two(i)": ("two(i)", "gives 2 values, and one is needed"),
    "x[i] = one()": ("one()", "is not given 'x'"),
    "x[i] = one(i, i)": ("one(i, i)", "one() takes 1 positional argument, not 2"),
    "x[i] = one(i, x=i)": ("x=i", "'x' twice"),
    "x[i] = one(y=i)": ("y=i", "no parameter 'y'"),
    "x[i] = one(*i)": ("*i", "star arguments"),
    "x[i] = one(**i)": ("**i", "star arguments"),
    "x[i] = starred(i)": ("starred(i)", None),
    "x[i] = loops(i)": ("loops(x)", "loops -> other -> loops"),
    "x[i] = maybe(i)": (None, "can end without a return"),
    "x[i] = in_loop(i)": ("return k", "a return inside a loop of a function"),
    "x[i] = uneven(i)": ("return 1", "gives 1 value and an earlier one 2"),
    "return": ("return", "a kernel returns nothing"),
    "return i": ("return i", "a kernel returns nothing"),
    "break": ("break", "use 'continue'"),
    "x[i] = [v for v in x]": ("[v for v in x]", "comprehension"),
    "x[i] = (lambda: 1)()": ("lambda: 1", "cannot be called"),
    "x[i] = (v := 1)": ("v := 1", "':='"),
    "x[i] = [1, 2]": ("[1, 2]", "list"),
    "x[i] = (1, 2)": ("(1, 2)", "unpack it"),
    "x[i] = f'{i}'": ("f'{i}'", "text"),
    "x[i] = i is i": ("i is i", "'is' is not part"),
    "x[i] = i not in x": ("i not in x", "'not in' is not part"),
    "x[i] = x[i] @ x[i]": ("x[i] @ x[i]", "matrices"),
    "for k in x: pass": ("x", "range(...)"),
    "for k in tack.ndrange(2, 2): pass": ("k", "tack.ndrange of 2 extents gives 2 indices; write"),
    "for a, x[0] in tack.ndrange(2, 2): pass": ("x[0]", "a loop over tack.ndrange are names"),
    "for a, b in tack.ndrange(2, 2):\n    if a: break": (
        "break",
        "leaves all of its loops at once",
    ),
    "for a, b in tack.ndrange(2, 2.5): pass": (None, "is an integer, not a float literal"),
    "for k in range(): pass": ("range()", "1 to 3 arguments"),
    "for k in range(0, 3, 0): pass": ("range(0, 3, 0)", "step of a range is not 0"),
    "for a, b in range(3): pass": ("a, b", "one name"),
    "for k in range(3): pass\nelse: pass": ("pass", "'else' of a loop"),
    "while i: break\nelse: pass": ("pass", "'else' of a loop"),
    "try: pass\nfinally: pass": ("try: pass", "'try'"),
    "with i: pass": ("with i: pass", "'with'"),
    "def f(): pass": ("def f(): pass", "nested definition"),
    "import os": ("import os", "import"),
    "global NUMBER": ("global NUMBER", "'global'"),
    "del i": ("del i", "'del'"),
    "raise ValueError": ("raise ValueError", "'raise'"),
    "match i:\n  case 1: pass": (None, "write if/elif"),
    "a: int = 3": ("int", "says no width; write tack.i64"),
    "a: NUMBER = 3": ("NUMBER", "an annotation is a scalar type"),
    "a: tack.i32 = 3; a: tack.i64 = 4": ("a: tack.i64 = 4", "annotated i64 here and i32 before"),
    "(a, (b, c)) = two(i)": ("(b, c)", "nested unpacking"),
    "x[i] = 1.0 if i else missing": ("missing", "is not defined"),
    "continue; x[i] = missing": ("missing", "is not defined"),
    "assert missing": ("missing", "is not defined"),
    "é = missing": ("missing", "is not defined"),
    "x[i] = pow(i, 2, 3)": ("pow(i, 2, 3)", "pow takes 2 values here, not 3"),
    "x[i] = sum(x)": ("sum(x)", "add in a loop"),
    "x[i] = divmod(i, 2)": ("divmod(i, 2)", "write // and %"),
    "x[i] = range(3)": ("range(3)", "in the head of a for loop only"),
    "x[i] = tack.ndrange(2, 2)": (
        "tack.ndrange(2, 2)",
        "tack.ndrange() stands in the head of a for loop only",
    ),
    "x[i] = math.ceil(x[i])": ("math.ceil(x[i])", "write tack.ceil"),
    "x[i] = math.trunc(x[i])": ("math.trunc(x[i])", "write tack.trunc"),
    "x[i] = math.sqrt(x[i])": ("math.sqrt(x[i])", "write tack.sqrt"),
    "x[i] = math.fabs(x[i])": ("math.fabs(x[i])", "write abs"),
    "x[i] = math.gcd(i, 2)": ("math.gcd(i, 2)", "is no builtin of the kernel language"),
    "x[i] = odd_default()": ("odd_default()", "the default of 'x' in odd_default() is None"),
    "x[i] = abs(v for v in x)": ("(v for v in x)", "a generator"),
    "x[i] = one(lambda: 1)": ("lambda: 1", "write a @tack.func"),
    "x[i] = {1: 2}": ("{1: 2}", "a dict"),
    "x[i] = {1, 2}": ("{1, 2}", "a set"),
    "a, b = (*two(i),)": ("*two(i)", "write the values out"),
    "a, b = c = two(i)": ("a, b = c = two(i)", "2 values cannot go into one name; unpack them"),
    "a = 1, 2": ("1, 2", "a tuple has no value here"),
    "x.real = 1.0": ("x", "only names, elements of arrays"),
    "i[0] = 1.0": ("i", "'i' is a number here, which has no parts to assign"),
    "x[i]: tack.f32 = 1.0": ("x[i]: tack.f32 = 1.0", "only a name can be annotated"),
    "async def f(): pass": ("async def f(): pass", "'async'"),
    "class C: pass": ("class C: pass", "a class cannot be defined"),
    "x[i] = ~1.5": ("~1.5", "takes an integer"),
}

KERNELS = {
    "def kernel(x): pass": "has 0",
    "def kernel(x):\n  for i in range(3): pass\n  for i in range(3): pass": "make two kernels",
    "def kernel(x):\n  if x[0] > 3:\n    for i in range(3): pass": "stands at its top level",
    "def kernel(x):\n  while x:\n    if x:\n      for i in range(3): pass": "at its top level",
    "def kernel(x):\n  for i in range(3): pass\n  x[0] = 1.0": "after the parallel loop",
    "def kernel(x):\n  x[0] = 1.0\n  for i in range(3): pass": "only names can be set",
    "def kernel(x):\n  n = x[0]\n  for i in range(n): pass": "reads no array elements",
    "def kernel(x):\n  x = 3\n  for i in range(3): pass": "is set before the parallel loop",
    "def kernel(x):\n  n = 3\n  for i in range(3): n = 4": "cannot change in it",
    "def kernel(x):\n  n = 3\n  n = n + 1\n  for i in range(n): pass": "set twice before",
    "def kernel(x):\n  assert missing\n  for i in range(3): pass": "is not defined",
    "def kernel(x):\n  for i in range(x[0]): pass": "reads no array elements",
    "def kernel(x):\n  for i in range(one(3)): pass": None,
    "def kernel(x):\n  for (i, j), k in tack.ndrange(2, 2): pass": "the targets of a parallel loop",
    "async def kernel(x):\n  for i in range(3): pass": None,
    "def kernel(x):\n  for i in range(two(3)): pass": "gives 2 values",
    "def kernel(x):\n  for i in range(3, 0, -1): pass": "positive",
    "def kernel(x):\n  for i in x: pass": "range(...) or tack.ndrange(...)",
    "def kernel(x):\n  for i in tack.ndrange(2, 2): pass": "write i, j",
    "def kernel(x):\n  for i in tack.ndrange(3): pass": "write range(...)",
    "def kernel(x):\n  for i, i in tack.ndrange(2, 2): pass": "stands twice",
    "def kernel(x):\n  for x in range(2): pass": "an array",
    "def kernel(x):\n  for i, j, k, l in tack.ndrange(2, 2, 2, 2): pass": "1 to 3 extents",
    "def kernel(x):\n  for i in range(3): pass\n  else: pass": "'else'",
    "def kernel(x, *y):\n  for i in range(3): pass": "star parameters",
    "def kernel(x, *, y):\n  for i in range(3): pass": None,
    "def kernel(x: int):\n  for i in range(3): pass": "says no width",
    "def kernel(x: 'what'):\n  for i in range(3): pass": "an annotation is a scalar type",
}

TYPED = {
    # statement -> (types of the scalars a and b, and of the array x; words of the message)
    "x[i] = a + b": ("i64, u64, f32[:]", "i64 and u64 have no common type"),
    "x[i] = a < b": ("i8, u64, f32[:]", "cast one of them: tack.i8(...) or tack.u64(...)"),
    "x[i] = a + -1": ("u64, u64, f32[:]", "-1 does not fit u64"),
    "x[i] = a + 18446744073709551615": (
        "i64, i64, f32[:]",
        "18446744073709551615 does not fit i64",
    ),
    "x[i] = ~(a > 0)": ("i64, i64, f32[:]", "'~' of a bool; write not"),
    "x[i] = ~a": ("f32, f32, f32[:]", "'~' takes integers, not an f32"),
    "x[i] = a & 0.5": ("i64, i64, f32[:]", "'&' takes integers, not a float literal"),
    "x[i] = a << b": ("f32, i64, f32[:]", "'<<' takes integers"),
    "x[i] = a ** -1": ("i64, i64, f32[:]", "negative power"),
    "x[i] = 1 // 0": ("i64, i64, f32[:]", "divides a literal by zero"),
    "x[i] = 1 << -1": ("i64, i64, f32[:]", "negative count"),
    "x[i] = tack.fma(a, 1, 2)": ("i64, i64, f32[:]", "fma takes floats, not an i64"),
    "x[i] = tack.isnan(a)": ("i64, i64, f32[:]", "every integer is finite"),
    "x[i] = tack.popcount(a)": ("f32, f32, f32[:]", "popcount takes integers, not an f32"),
    "x[i] = tack.random.uniform(a, 1)": ("f32, f32, f32[:]", "a seed is an integer, not an f32"),
    "x[i] = tack.random.randint(1, 1, 0, b)": ("i64, u64, f32[:]", "a bound of randint is i64"),
    "for k in range(a): pass": ("f32, f32, f32[:]", "an argument of range is an integer"),
    "for k in range(b): pass": ("i64, u64, f32[:]", "cast it: tack.i64(...)"),
    "t = a; t = b; x[i] = t": ("i64, u64, f32[:]", "'t' is i64 elsewhere and u64 here"),
    "t = 2 ** 64; x[i] = t": ("i64, i64, f32[:]", "fits no integer type"),
    "x[i] = a": ("f32, f32, u8[:]", "an element of x is u8 and this is an f32; cast it: tack.u8"),
    "x[a] = 1": ("f32, f32, u8[:]", "an index of x is an integer, not an f32"),
    "x[a > 0] = 1": ("i64, i64, u8[:]", "an index of x is an integer, not a bool"),
    "x[0] = x[a]": (
        "bool, i64, u8[:]",
        "write int(...) for a number, and an if where it is a mask",
    ),
    "x[a and b] += 1": ("i64, i64, u8[:]", "an index of x is an integer, not a bool"),
    "x[True] = 1": ("i64, i64, u8[:]", "an index of x is an integer, not a bool"),
    "x.flat[a] = 1": ("bool, i64, u8[:, :]", "an index of x is an integer, not a bool"),
    "x[0, 0] = x.flat[a]": ("bool, i64, u8[:, :; strided]", "an index is an integer, not a bool"),
    "y = x.flat[a].x": ("bool, i64, u8x3[:]", "an index of x is an integer, not a bool"),
    "x[a, 0] = x[0, 0]": ("bool, i64, u8x2[:]", None),
    "tack.atomic_add(x, a, 1)": ("bool, i64, u8[:]", "an index of x is an integer, not a bool"),
    "y = tack.local_array(tack.f32, 2); y[a] = 1": ("bool, i64, u8[:]", "not a bool; write int"),
    "for k in range(a > 0): pass": (
        "i64, i64, u8[:]",
        "range is an integer, not a bool; ",
    ),
    "for k in range(0, 3, a): pass": ("bool, i64, u8[:]", "not a bool; cast it: int(...)"),
    "x[9223372036854775808] = 1": ("f32, f32, u8[:]", "does not hold 9223372036854775808"),
}

BOUNDS = {
    "int(a * 2.0)": "it is a float",
    "tack.clz(b)": "it calls clz; of builtins it has abs, min and max",
    "x.shape[0] / 2": "is an integer",
    "2 ** b": "an exponent is a literal",
    "b ** 65": "an exponent is a literal",
}


APART = {
    """
    @tack.kernel
    def kernel(x):
        for i in range(3):
            x[i][0] = 1.0
    """: ("f32[:, :]", "a part of 'x' is no array here; write x[i, 0]"),
    """
    @tack.kernel
    def kernel(x):
        for i, j in tack.ndrange(x.shape):
            x[i, j] = 1.0
    """: ("f32[:, :]", "a shape is several extents; write *x.shape"),
    """
    V = tack.f32x3(1, 2, 3)

    @tack.kernel
    def kernel(x):
        for i in range(3):
            x[i] = V.y
    """: ("f32[:]", "write V = tack.constant((1.0, 2.0, 3.0), tack.f32x3)"),
    # the whole module -> (signature, words of the message)
    """
    @tack.kernel
    def kernel(x):
        for i in range(3):
            tack.atomic_add(x, i, 1)
    """: ("i32x3[:]", "holds vectors; name a component behind the index, as in (i, 0)"),
    """
    @tack.kernel
    def kernel(x):
        for i in range(3):
            tack.atomic_add(x.flat, i, 1)
    """: ("i32x3[:]", "tack.atomic_add changes one number, and x.flat[i] is a vector"),
    """
    @tack.kernel
    def kernel(x):
        for i in range(3):
            tack.atomic_add(x, (i, 3), 1)
    """: ("i32x3[:]", "the index 3 is out of range for i32x3[:]"),
    """
    @tack.kernel
    def kernel(x):
        for i in range(3):
            tack.atomic_add(x, (i, -1), 1)
    """: ("i32x3[:]", "indices do not wrap around; write 3 - 1"),
    """
    @tack.kernel
    def kernel(x):
        for i in range(3):
            x[5] = 1.0
    """: ("f32[3]", "the index 5 is out of range"),
    """
    def make():
        count = 0
        @tack.kernel
        def kernel(x):
            for i in range(3):
                nonlocal count
        return kernel
    kernel = make()
    """: ("f32[:]", "'nonlocal'"),
    """
    @tack.kernel
    def kernel(x, n):
        for n in range(3):
            x[n] = 1.0
    """: ("f32[:], i64", "the loop's index 'n' has the name of a parameter"),
    """
    @tack.func
    def clamped(n):
        if n > 100:
            return 100
        return n
    @tack.kernel
    def kernel(x, n):
        for i in range(clamped(n)):
            x[i] = 1.0
    """: ("f32[:], i64", "calls no device functions"),
}

# The loop of a source kernel: (under the caret, words).
DECLARATIONS: dict[str, tuple[str, str]] = {
    "for i in range(1, 3): ...": ("range(1, 3)", "counts from 0 in steps of 1; write range(n)"),
    "for i in range(3): x[i] = 1.0": ("x[i] = 1.0", "what they do is written in the template"),
}


STATEMENTS |= array_refusals.STATEMENTS
APART |= array_refusals.APART | group_refusals.APART


def _cases() -> list[Case]:
    start, prelude = "import tack\n\n@tack.kernel\n", textwrap.dedent(PRELUDE)
    cases = []
    for statement, (under, words) in STATEMENTS.items():
        text = f"def kernel(x):\n    for i in range(3):\n{_inside(statement)}\n"
        cases.append(Case(statement, start + text + prelude, "f32[:]", words, under))
    for text, words in KERNELS.items():
        if words is not None:
            cases.append(Case(text, f"{start}{text}\n{prelude}", "f32[:]", words))
    for statement, (signature, words) in TYPED.items():
        text = f"def kernel(a, b, x):\n    for i in range(3):\n{_inside(statement)}\n"
        cases.append(Case(statement, start + text, signature, words))
    for bound, words in BOUNDS.items():
        text = f"def kernel(a, b, x):\n    for i in range({bound}):\n        x[i] = a\n"
        cases.append(Case(f"range({bound})", start + text, "f32, i64, f32[:]", words))
    for statement, (under, words) in VECTORS.items():
        before = "v = tack.f32x3(out[0], 1, 2); m = tack.f32x2x3(v, v); n = 1"
        text = f"def kernel(out):\n    for i in range(3):\n        {before}\n{_inside(statement)}\n"
        cases.append(Case(statement, start + text + VECTORS_PRELUDE, "f32[:]", words, under))
    for text, (signature, words) in APART.items():
        module = "import tack\n" + textwrap.dedent(text)
        cases.append(Case(words, module, signature, words))
    for statement, (under, words) in TEMPLATES.items():
        text = f"def kernel(grid, x):\n    for i in range(3):\n{_inside(statement)}\n"
        cases.append(_with_template(statement, text, words, under))
    for head, (under, words) in TEMPLATE_LOOPS.items():
        text = f"def kernel(grid, x):\n    {head}\n        x[0] = 1\n"
        cases.append(_with_template(head, text, words, under))
    decorator = '@tack.source_kernel(c="kernel.c.j2", writes="x")'
    for loop, (under, words) in DECLARATIONS.items():
        text = f"import tack\n\n{decorator}\ndef kernel(x):\n    {loop}\n"
        cases.append(Case(loop, text, "f32[:]", words, under))
    return cases


def _with_template(name: str, text: str, words: str, under: str) -> Case:
    whole = f"import numpy as np\nimport tack\n{TEMPLATE}\n@tack.kernel\n{text}"
    return Case(name, whole, "", words, under)


def _inside(statement: str) -> str:
    return textwrap.indent(statement, " " * 8)


CASES = _cases()
