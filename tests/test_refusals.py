"""What the language refuses: one sentence, with function, file, line and a caret."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tack.errors import CompileError
from tack.lang.lower import lower_kernel
from tack.model.signature import Signature

PRELUDE = """
    import math
    import numpy as np
    NUMBER = 3
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
    "x[i] = math.pi": ("math.pi", "write PI = tack.constant(math.pi, tack.<dtype>)"),
    "x[i] = ARRAY": ("ARRAY", "make it a parameter"),
    "x[i] = Holder.value": ("Holder.value", "attributes are read of modules only"),
    "x[i] = Holder.method(i)": ("Holder.method", "attributes are read of modules only"),
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
    "x[i] = x.shape[1]": ("x.shape[1]", "1 dimensions, so no .shape[1]"),
    "x[i] = x.shape[i]": ("x.shape[i]", "literal"),
    "x[i] = x.size": ("x.size", "no .size"),
    "x[i] = i.real": ("i.real", "a number has no attribute"),
    "x[i] = i[0]": ("i[0]", "only arrays"),
    "x[i] = plain(i)": ("plain(i)", "decorate it @tack.func"),
    "x[i] = np.sin(i)": ("np.sin(i)", "NumPy's"),
    "x[i] = np.floor(x[i])": ("np.floor(x[i])", "write tack.floor"),
    "x[i] = math.floor(x[i])": ("math.floor(x[i])", "write tack.floor"),
    "x[i] = another(x)": ("another(x)", "a kernel cannot call a kernel"),
    "x[i] = missing(i)": ("missing", "'missing' is not defined"),
    "x[i] = i.f()": ("i.f", "cannot be called"),
    "x[i] = len(x)": ("len(x)", "write .shape[0]"),
    "print(i)": ("print(i)", "not built yet"),
    "x[i] = round(x[i])": ("round(x[i])", "not built yet"),
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
    "x[i] = one(i, i)": ("one(i, i)", "1 positional arguments, not 2"),
    "x[i] = one(i, x=i)": ("x=i", "'x' twice"),
    "x[i] = one(y=i)": ("y=i", "no parameter 'y'"),
    "x[i] = one(*i)": ("*i", "star arguments"),
    "x[i] = one(**i)": ("**i", "star arguments"),
    "x[i] = starred(i)": ("starred(i)", None),
    "x[i] = loops(i)": ("loops(x)", "loops -> other -> loops"),
    "x[i] = maybe(i)": (None, "can end without a return"),
    "x[i] = in_loop(i)": ("return k", "a return inside a loop of a function"),
    "x[i] = uneven(i)": ("return 1", "1 values and an earlier one 2"),
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
    "x[i] = x @ x": ("x @ x", "matrices"),
    "for k in x: pass": ("x", "range(...)"),
    "for k in tack.ndrange(2, 2): pass": ("tack.ndrange(2, 2)", "outermost"),
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
    "def kernel(x, /):\n  for i in range(3): pass": "not built yet",
    "def kernel(x: int):\n  for i in range(3): pass": "says no width",
    "def kernel(x: 'what'):\n  for i in range(3): pass": "an annotation is a scalar type",
}


def refusal(module, signature="f32[:]"):
    with pytest.raises(CompileError) as caught:
        lower_kernel(module.kernel.definition, Signature.parse(signature))
    return caught.value


def check_form(error, module):
    """Function, file, line and column, the line itself and a caret under the place."""
    first, line, caret = str(error).splitlines()
    place = error.position
    assert first.startswith(
        f"{module.__file__}:{place.line}:{place.column + 1}: in {module.__name__}:"
    )
    lines = Path(module.__file__).read_text(encoding="utf-8").splitlines()
    assert line.strip() == lines[place.line - 1].strip()
    assert set(caret) == {" ", "^"}
    return line[caret.index("^") : len(caret)]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_refused_statement_is_named_and_pointed_at(load, statement):
    under, words = STATEMENTS[statement]
    body = textwrap.indent(statement, " " * 12)
    module = load(
        f"{PRELUDE}\n    @tack.kernel\n    def kernel(x):\n        for i in range(3):\n{body}\n"
    )
    error = refusal(module)
    pointed_at = check_form(error, module)
    if words is not None:
        assert words in error.message
    if under is not None and error.position.function.endswith(":kernel"):
        assert pointed_at == under.splitlines()[0]


@pytest.mark.parametrize("text", [text for text, words in KERNELS.items() if words is not None])
def test_a_refused_kernel_is_named_and_pointed_at(load, text):
    module = load(PRELUDE + "\n    @tack.kernel\n" + textwrap.indent(text, "    ") + "\n")
    error = refusal(module)
    check_form(error, module)
    assert KERNELS[text] in error.message


def test_a_signature_of_the_wrong_length_names_the_parameters(load):
    module = load("@tack.kernel\ndef kernel(a, x):\n    for i in range(3): x[i] = a")
    with pytest.raises(ValueError, match=r"1 entries and the kernel 2 parameters \(a, x\)"):
        lower_kernel(module.kernel.definition, Signature.parse("f32"))


def test_a_signature_against_an_annotation_is_named(load):
    module = load("@tack.kernel\ndef kernel(a: tack.u8, x):\n    for i in range(3): x[i] = a")
    with pytest.raises(ValueError, match="'a' is annotated u8, not f32"):
        lower_kernel(module.kernel.definition, Signature.parse("f32, f32[:]"))
    with pytest.raises(ValueError, match="'a' is annotated u8, and 'u8"):
        lower_kernel(module.kernel.definition, Signature.parse("u8[:], f32[:]"))


def test_a_file_edited_after_import_is_refused(load):
    module = load("@tack.kernel\ndef kernel(x):\n    for i in range(3): x[i] = 1.0")
    path = Path(module.__file__)
    path.write_text(path.read_text("utf-8").replace("1.0", "2.5"), "utf-8")
    with pytest.raises(CompileError, match=r"edited after it was imported.*reload"):
        lower_kernel(module.kernel.definition, Signature.parse("f32[:]"))


def test_a_file_edited_elsewhere_after_import_still_works(load):
    module = load("@tack.kernel\ndef kernel(x):\n    for i in range(3): x[i] = 1.0")
    path = Path(module.__file__)
    path.write_text("# a comment\n\n" + path.read_text("utf-8"), "utf-8")
    lowered = lower_kernel(module.kernel.definition, Signature.parse("f32[:]"))
    assert lowered.name.endswith(":kernel")


def test_no_source_is_refused_with_the_reason():
    scope = {}
    exec("import tack\n@tack.kernel\ndef kernel(x):\n  for i in range(3): x[i] = 1.0\n", scope)
    with pytest.raises(CompileError, match="cannot be read"):
        lower_kernel(scope["kernel"].definition, Signature.parse("f32[:]"))


@pytest.mark.parametrize(
    ("value", "dtype", "error"),
    [
        ("a", None, TypeError),
        (1, int, TypeError),
        (300, "u8", OverflowError),
        (-1, "u64", OverflowError),
        (1.5, "i32", ValueError),
        (2**64, None, OverflowError),
        (1e300, "f32", OverflowError),
        (10**400, "f64", OverflowError),
    ],
)
def test_a_constant_that_is_none_is_refused(value, dtype, error):
    import tack

    with pytest.raises(error, match=r"tack\.constant"):
        tack.constant(value, getattr(tack, dtype) if isinstance(dtype, str) else dtype)


def test_what_is_no_plain_function_is_refused_by_the_decorators():
    import tack

    async def coroutine(x): ...

    def generator(x):
        yield x

    for decorator in (tack.kernel, tack.func):
        for wrong in (lambda x: x, coroutine, generator, print, 3):
            with pytest.raises(TypeError, match="tack decorates"):
                decorator(wrong)
