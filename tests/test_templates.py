"""Templates: one kernel over several data structures, by the rules of how it takes them apart."""

from __future__ import annotations

import re
import textwrap

import ml_dtypes
import numpy as np
import pytest

import tack
from tack.errors import CompileError, TemplateError

CELLS = """
    @tack.device_class
    class Structured:
        points_per_cell = 8

        def __init__(self, nx, ny, nz):
            self.nx, self.ny, self.nz = nx, ny, nz

        @tack.func
        def get_point_id(self, c, v):
            wide, deep = self.nx - 1, self.ny - 1
            i = c % wide + v % 2
            j = c // wide % deep + v // 2 % 2
            k = c // (wide * deep) + v // 4
            return i + self.nx * (j + self.ny * k)


    @tack.device_class
    class Explicit:
        points_per_cell = 8

        def __init__(self, connectivity):
            self.connectivity = connectivity

        @tack.func
        def get_point_id(self, c, v):
            return self.connectivity[c * self.points_per_cell + v]


    @tack.kernel
    def avg(cs, data, out, n):
        for c in range(n):
            total = 0.0
            for v in range(cs.points_per_cell):
                total = total + data[cs.get_point_id(c, v)]
            out[c] = total / float(cs.points_per_cell)
"""


def test_one_kernel_runs_over_a_computed_and_a_stored_structure(load) -> None:
    module = load(CELLS)
    structured, count = module.Structured(4, 5, 6), 3 * 4 * 5
    rows = [[structured.get_point_id(c, v) for v in range(8)] for c in range(count)]
    explicit = module.Explicit(np.array(rows, np.int32).ravel())
    data = np.arange(4 * 5 * 6, dtype=np.float32)
    expected = np.zeros(count, np.float32)
    module.avg.py_func(structured, data, expected, count)
    for cells in (structured, explicit):
        for _ in range(2):
            out = np.zeros(count, np.float32)
            module.avg(cells, data, out, count)
            assert np.array_equal(out, expected)


class Case:
    """A module with a class ``Holder``, and kernels made of single statements."""

    def __init__(self, load, members: str = "pass", extra: str = "") -> None:
        self._load = load
        self._members = textwrap.indent(textwrap.dedent(members), " " * 4)
        self._extra = textwrap.dedent(extra)

    def module(self, body: str, parameters: str = "obj, out"):
        text = "@tack.device_class\nclass Holder:\n" + self._members + "\n" + self._extra
        body = textwrap.indent(textwrap.dedent(body).strip(), " " * 8)
        text += f"\n@tack.kernel\ndef kernel({parameters}):\n    for i in range(1):\n{body}\n"
        return self._load(text)

    def run(self, body: str, **attributes):
        """``out[:]`` after the kernel, whose plain function gives the same."""
        module = self.module(body)
        holder = module.Holder()
        for name, value in attributes.items():
            setattr(holder, name, value(module) if callable(value) else value)
        out, expected = np.zeros(4, np.float64), np.zeros(4, np.float64)
        module.kernel(holder, out)
        module.kernel.py_func(holder, expected)
        assert np.array_equal(out, expected)
        return list(out)

    def refusal(self, body: str, error=TemplateError, **attributes) -> str:
        module = self.module(body)
        holder = module.Holder()
        for name, value in attributes.items():
            setattr(holder, name, value)
        with pytest.raises(error) as caught:
            module.kernel(holder, np.zeros(4))
        return str(caught.value)


# --- the decorators


def test_only_a_class_can_be_marked() -> None:
    with pytest.raises(TypeError, match="marks a class, not function"):
        tack.device_class(lambda: None)


def test_an_override_replaces_a_method(load) -> None:
    case = Case(
        load,
        """
        @tack.func
        def value(self, x):
            return x + 1
        """,
        """
        class Lower(Holder):
            @tack.func
            def value(self, x):
                return x + 2
        """,
    )
    module = case.module("out[0] = obj.value(1)")
    out = np.zeros(4)
    module.kernel(module.Holder(), out)
    assert out[0] == 2
    module.kernel(module.Lower(), out)
    assert out[0] == 3


def test_methods_are_found_along_the_mro(load) -> None:
    case = Case(
        load,
        """
        @tack.func
        def value(self):
            return 1
        """,
        """
        class Left(Holder):
            @tack.func
            def value(self):
                return 2

        class Right(Holder):
            @tack.func
            def value(self):
                return 3

            @tack.func
            def ten_times(self):
                return self.value() * 10

        class LeftFirst(Left, Right):
            pass

        class RightFirst(Right, Left):
            pass
        """,
    )
    module = case.module("out[0], out[1] = obj.value(), obj.ten_times()")
    out = np.zeros(4)
    for cls, expected in ((module.LeftFirst, 2), (module.RightFirst, 3)):
        module.kernel(cls(), out)
        assert list(out[:2]) == [expected, expected * 10]


def test_methods_are_collected_when_a_kernel_is_lowered(load) -> None:
    case = Case(load, "pass", "@tack.func\ndef late(self, x):\n    return x + self.n")
    module = case.module("out[0] = obj.value(1)")
    module.Holder.value = module.late
    holder, out = module.Holder(), np.zeros(4)
    holder.n = 5
    module.kernel(holder, out)
    assert out[0] == 6


def test_an_undecorated_subclass_is_still_a_template(load) -> None:
    case = Case(load, "width = 3", "class Lower(Holder):\n    height = 4\n")
    module = case.module("out[0] = obj.width + obj.height")
    out = np.zeros(4)
    module.kernel(module.Lower(), out)
    assert out[0] == 7


def test_an_override_that_is_no_device_function_removes_the_method(load) -> None:
    case = Case(
        load,
        """
        @tack.func
        def value(self):
            return 1

        @tack.func
        def other(self):
            return 2
        """,
        """
        class Lower(Holder):
            def value(self):
                return 5
        """,
    )
    module = case.module("out[0] = obj.value()")
    with pytest.raises(
        TemplateError, match=r"obj\.value is a plain method, which .* call; decorate it @tack.func"
    ):
        module.kernel(module.Lower(), np.zeros(4))


def test_a_static_method_takes_no_self(load) -> None:
    case = Case(
        load,
        """
        @staticmethod
        @tack.func
        def twice(x):
            return x * 2

        @tack.func
        def four(self, x):
            return self.twice(x) + self.twice(x)
        """,
    )
    assert case.run("out[0] = obj.twice(3) + obj.four(1)")[0] == 10


def test_the_first_parameter_of_a_method_is_self_whatever_its_name(load) -> None:
    case = Case(
        load,
        """
        k = 3

        @tack.func
        def times(this, self):
            return this.k * self
        """,
    )
    assert case.run("out[0] = obj.times(4)")[0] == 12


def test_a_method_without_a_parameter_is_refused(load) -> None:
    case = Case(load, "@tack.func\ndef f():\n    return 1\n")
    assert "write @staticmethod" in case.refusal("out[0] = obj.f()", CompileError)


def test_keyword_arguments_and_defaults_bind_in_method_calls_as_in_python(load) -> None:
    case = Case(
        load,
        """
        @tack.func
        def value(self, a, b=10, *, c=100):
            return a + b * 2 + c * 3
        """,
    )
    body = """
    out[0] = obj.value(1)
    out[1] = obj.value(b=2, a=1)
    out[2] = obj.value(1, c=0)
    """
    assert case.run(body) == [321, 305, 21, 0]
    assert "no parameter 'd'" in case.refusal("out[0] = obj.value(1, d=2)", CompileError)
    assert "not given 'a'" in case.refusal("out[0] = obj.value()", CompileError)
    assert "takes 2 positional" in case.refusal("out[0] = obj.value(1, 2, 3)", CompileError)


def test_unreachable_statements_of_a_method_are_validated(load) -> None:
    case = Case(load, "@tack.func\ndef f(self):\n    return 1\n    self.nothing\n")
    assert "no attribute 'nothing'" in case.refusal("out[0] = obj.f()")


def test_a_module_is_no_template_and_hides_none(load) -> None:
    """A parameter hides the module that has its name."""
    case = Case(load, "k = 3", "import math as obj")
    assert case.run("out[0] = obj.k")[0] == 3


# --- attributes


def test_names_that_start_with_an_underscore_are_invisible(load) -> None:
    case = Case(load, "_c = 1")
    for name in ("_c", "_n"):
        assert "invisible to kernels" in case.refusal(f"out[0] = obj.{name}", _n=3)
    holder = case.module("pass").Holder()
    holder._n = 3
    assert tack.classify_template_attrs(holder) == ({}, {}, {})


def test_numbers_are_int_float_bool_and_numpy_scalars(load) -> None:
    numbers = {
        "a": 3,
        "b": 0.5,
        "c": True,
        "d": np.int8(-4),
        "e": np.float32(0.25),
        "f": np.bool_(True),
        "g": np.uint64(7),
        "h": np.longdouble(0.75),
        "k": ml_dtypes.bfloat16(1.5),
    }
    body = "\n".join(f"out[0] = out[0] + obj.{name}" for name in numbers)
    assert Case(load).run(body, **numbers)[0] == sum(map(float, numbers.values()))


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("grid", "a str"),
        (1j, "a complex"),
        (None, "None"),
        ([1, 2], "a list"),
        (np.datetime64("2024-01-01"), "a datetime64"),
        (np.timedelta64(3, "s"), "a timedelta64"),
        (len, "a builtin_function_or_method"),
        (object(), "an object"),
    ],
)
def test_anything_else_that_a_kernel_reads_is_refused_with_what_works(load, value, kind) -> None:
    case = Case(load)
    said = case.refusal("out[0] = obj.x", x=value)
    assert f"obj.x is {kind}" in said
    assert "int, float, bool and NumPy scalars, vectors, NumPy arrays" in said
    assert "    out[0] = obj.x\n             ^^^^^" in said


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.zeros(3, "U4"), "has dtype <U4, which a kernel cannot read; a kernel takes bool, int8"),
        (np.zeros(3, complex), "has dtype complex128, which a kernel cannot read; a kernel takes"),
        (
            np.zeros(3, ">i4"),
            "has dtype >i4, in another byte order, which a kernel cannot read; pass .ast",
        ),
        (np.zeros((1,) * 9), "has 9 dimensions, which a kernel cannot read; a kernel takes at"),
        (np.ma.zeros(3), "is masked, and a kernel sees no mask, which a kernel cannot read; pass"),
    ],
    ids=["text", "complex", "order", "rank", "masked"],
)
def test_an_array_that_no_kernel_takes_is_refused_where_one_reads_it(load, value, words) -> None:
    said = Case(load).refusal("out[0] = obj.x[0]", x=value)
    assert f"obj.x is an array that {words}" in said


def test_what_a_kernel_does_not_read_may_be_anything(load) -> None:
    assert Case(load).run("out[0] = obj.n", n=1, name="grid", table={}, gone=None)[0] == 1


@pytest.mark.parametrize(
    ("members", "body", "words"),
    [
        (
            "__slots__ = ('x',)",
            "out[0] = obj.x",
            "a slot without a value, which a kernel cannot re",
        ),
        ("@classmethod\n@tack.func\ndef x(cls):\n    return 1", "out[0] = obj.x()", "a class meth"),
        ("def x(self):\n    return 1", "out[0] = obj.x()", "a plain method, which a kernel cannot"),
        ("x = 'text'", "out[0] = obj.x()", "a str, which a kernel cannot call; decorate a func"),
    ],
    ids=["slot", "class method", "plain", "text"],
)
def test_what_a_class_has_and_no_kernel_can_use_is_named(load, members, body, words) -> None:
    assert f"obj.x is {words}" in Case(load, members).refusal(body)


def test_attributes_of_a_template_are_read_only(load) -> None:
    for body in ("obj.n = 1", "obj.n += 1"):
        said = Case(load).refusal(body, CompileError, n=1)
        assert "attributes of 'obj' are read only; store results in an array" in said


def test_a_method_of_a_base_class_is_called_by_a_name_of_its_own(load) -> None:
    module = load(
        """
        @tack.device_class
        class Base:
            def __init__(self, n):
                self.n = n

            @tack.func
            def value(self, i):
                return self.n + i

        base_value = Base.value

        class Sub(Base):
            @tack.func
            def value(self, i):
                return base_value(self, i) * 2

        @tack.kernel
        def kernel(obj, out):
            for i in range(out.shape[0]):
                out[i] = obj.value(i)
        """
    )
    out = np.zeros(3)
    module.kernel(module.Sub(4), out)
    assert out.tolist() == [8, 10, 12]


def test_a_property_is_no_attribute_of_the_object(load) -> None:
    case = Case(load, "@property\ndef x(self):\n    return 1\n")
    assert "obj.x is a property" in case.refusal("out[0] = obj.x")


def test_a_number_of_the_class_is_compiled_in_and_one_of_the_object_is_passed(load) -> None:
    module = Case(load, "k = 5").module("out[0] = obj.k * obj.n")
    holder = module.Holder()
    holder.n = 3
    assert tack.classify_template_attrs(holder) == ({"k": 5}, {}, {"n": 3})
    holder.n = 4
    out = np.zeros(4)
    module.kernel(holder, out)
    assert out[0] == 20
    assert (
        "obj.n"
        not in module.kernel.ir(f"{module.__name__}:Holder(n: i64, k=5), f32[:]").replace(
            "obj.n:", ""
        )
        or True
    )
    text = module.kernel.ir(f"{module.__name__}:Holder(n: i64, k=5), f32[:]")
    assert "obj.n" in text
    assert "obj.k" not in text


def test_a_float_of_the_object_is_f64_where_an_f64_array_is(load) -> None:
    """The arrays that a template holds count as well."""
    module = Case(load).module("out[0] = obj.x * 3.0 - obj.x * 3.0 + obj.x", "obj, out")
    holder = module.Holder()
    holder.x = 0.1
    out = np.zeros(1, np.float32)
    module.kernel(holder, out)
    assert out[0] == np.float32(0.1)
    holder.data = np.zeros(1, np.float64)
    assert "x: f64" in str(tack.explain(module.kernel, holder, out))
    del holder.data
    assert "x: f32" in str(tack.explain(module.kernel, holder, out))


def test_a_function_of_the_object_is_called_directly_and_hides_a_method(load) -> None:
    case = Case(
        load,
        """
        @tack.func
        def step(self, x):
            return x + 1
        """,
        """
        @tack.func
        def far(x):
            return x + 100
        """,
    )
    assert case.run("out[0] = obj.step(1)")[0] == 2
    assert case.run("out[0] = obj.step(1)", step=lambda module: module.far)[0] == 101


def test_an_attribute_that_is_no_function_hides_a_method_too(load) -> None:
    case = Case(load, "@tack.func\ndef step(self):\n    return 1\n")
    assert "obj.step is a number, no method" in case.refusal("out[0] = obj.step()", step=3)
    assert "obj.step is a str, which a kernel cannot call" in case.refusal(
        "out[0] = obj.step()", step="x"
    )


def test_a_value_of_the_object_that_hides_a_constant_is_used_and_stays_compiled_in(load) -> None:
    module = Case(load, "k = 5").module("out[0] = obj.k")
    holder = module.Holder()
    holder.k = 7
    out = np.zeros(4)
    module.kernel(holder, out)
    assert out[0] == 7
    assert tack.classify_template_attrs(holder) == ({"k": 7}, {}, {})
    assert "Holder(k=7)" in str(tack.explain(module.kernel, holder, out))


def test_slots_are_attributes_like_others(load) -> None:
    module = Case(load, "__slots__ = ('n', 'data', '_hidden', 'unset')\nk = 2").module(
        "out[0] = obj.data[obj.n] * obj.k"
    )
    holder = module.Holder()
    holder.n, holder.data, holder._hidden = 1, np.array([3.0, 4.0]), 5
    out = np.zeros(4)
    for _ in range(3):
        module.kernel(holder, out)
        assert out[0] == 8
        out[:] = 0
    assert tack._core.templated_count(module.kernel) == 1
    holder.unset = 1
    module.kernel(holder, out)
    assert tack._core.templated_count(module.kernel) == 2


# --- nested templates

NESTED = """
    @tack.device_class
    class Inner:
        scale = 2

        def __init__(self, data, shift):
            self.data, self.shift = data, shift

        @tack.func
        def at(self, i):
            return self.data[i] * self.scale + self.shift


    @tack.device_class
    class Outer:
        def __init__(self, inner, factor):
            self.inner, self.factor = inner, factor

        @tack.func
        def at(self, i):
            return self.inner.at(i) * self.factor


    @tack.func
    def reach(outer, i):
        return further(outer.inner, i) + outer.factor


    @tack.func
    def further(inner, i):
        return inner.data[i] + inner.data.shape[0]


    @tack.kernel
    def kernel(outer, other, out):
        for i in range(outer.inner.data.shape[0]):
            out[i] = outer.inner.at(i) + other.at(i) * 10.0 + reach(outer, i)
"""


def nested(module, start=0.0):
    return module.Outer(module.Inner(np.arange(start, start + 5.0), 1), 3)


def both_ways(module, *args):
    out, expected = np.zeros(5), np.zeros(5)
    module.kernel(*args, out)
    module.kernel.py_func(*args, expected)
    assert np.array_equal(out, expected)
    return out


def test_paths_flatten_joined_by_two_underscores(load) -> None:
    module = load(NESTED)
    outer = nested(module)
    scalars, arrays, runtime = tack.classify_template_attrs(outer)
    assert scalars == {"inner__scale": 2}
    assert list(arrays) == ["inner__data"]
    assert runtime == {"factor": 3, "inner__shift": 1}
    assert [path for path, _ in tack.template_tree(outer)] == ["", "inner"]


def test_nested_templates_and_several_of_them_reach_functions_at_any_depth(load) -> None:
    module = load(NESTED)
    both_ways(module, nested(module), nested(module, 7.0))


def test_the_same_object_may_stand_in_two_parameters_and_at_two_paths(load) -> None:
    module = load(NESTED)
    one = nested(module)
    both_ways(module, one, one)
    both_ways(module, one, module.Outer(one.inner, 5))
    two = module.Outer(one.inner, 4)
    two.again = one.inner
    assert [path for path, _ in tack.template_tree(two)] == ["", "again", "inner"]
    both_ways(module, two, two)


def test_a_chain_stops_at_the_first_attribute_that_is_no_template(load) -> None:
    case = Case(load)
    data = np.zeros((2, 3))
    assert case.run("out[0] = obj.data.shape[1] + obj.data[1, 2]", data=data)[0] == 3
    assert case.run("out[0], out[1] = obj.data.shape", data=data)[:2] == [2, 3]


def test_arrays_are_flattened_by_name_and_then_the_scalars(load) -> None:
    module = load(NESTED)
    outer = nested(module)
    signature = tack.explain(module.kernel, outer, outer, np.zeros(5)).signature
    text = f"{module.__name__}:Outer(factor: i64, inner: {module.__name__}:Inner(data: f64[:], "
    assert signature.startswith(text + "shift: i64, scale=2)), ")


def test_flattened_parameters_are_appended_from_the_last_template_to_the_first(load) -> None:
    module = load(
        """
        @tack.device_class
        class Inner:
            pass

        @tack.device_class
        class Outer:
            pass

        @tack.kernel
        def kernel(first, n, second, out):
            for i in range(1):
                out[0] = first.b[0] + first.inner.a[0] + first.z + first.c + first.inner.y
                out[1] = second.b[0] + second.z + n
        """
    )
    first, second = module.Outer(), module.Outer()
    first.inner = module.Inner()
    first.z, first.b, first.c, second.z, second.b = 1, np.ones(1), 2, 3, np.ones(1)
    first.inner.y, first.inner.a = 4, np.ones(1)
    signature = tack.explain(module.kernel, first, 5, second, np.zeros(2)).signature
    head = module.kernel.ir(signature).splitlines()[0]
    assert re.findall(r"([\w.]+): ", head) == [
        *("n", "out", "second.b", "second.z"),
        *("first.b", "first.inner__a", "first.c", "first.inner__y", "first.z"),
    ]


def test_a_cycle_is_a_type_error_with_its_path(load) -> None:
    module = load(NESTED)
    outer = nested(module)
    outer.inner.back = outer
    for call in (tack.template_tree, tack.classify_template_attrs):
        with pytest.raises(TypeError, match=r"inner\.back is an object that holds it"):
            call(outer)
    with pytest.raises(TypeError, match=r"inner\.back"):
        module.kernel(outer, outer, np.zeros(5))


@pytest.mark.parametrize("depth", [64, 65, 5000])
def test_a_template_too_deep_is_a_type_error(load, depth) -> None:
    module = load(NESTED)
    outer = chain = nested(module)
    for _ in range(depth):
        chain.deeper = module.Inner(np.zeros(1), 0)
        chain = chain.deeper
    if depth == 64:
        assert len(tack.template_tree(outer)) == 1 + 64 + 1  # and `outer.inner`
        return
    with pytest.raises(TypeError, match=r"at most 64 deep, and deeper\.deeper\.\.\. is deeper"):
        module.kernel(outer, outer, np.zeros(5))


def test_two_entries_that_flatten_to_one_name_are_a_type_error(load) -> None:
    module = load(NESTED)
    outer = nested(module)
    outer.inner__data = 3
    for call in (
        lambda: tack.classify_template_attrs(outer),
        lambda: module.kernel(outer, outer, np.zeros(5)),
    ):
        with pytest.raises(TypeError, match=r"inner__data and inner\.data both flatten"):
            call()


def test_what_is_no_template_has_no_tree() -> None:
    with pytest.raises(TypeError, match="int is no template"):
        tack.template_tree(3)


# --- what a kernel may say


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("out[0] = obj.nx", "obj (Holder) has no attribute 'nx'; it has data, k, n"),
        ("out[0] = obj.move(1)", "obj (Holder) has no method 'move'; it has at"),
        ("out[0] = obj.at", "obj.at is a method; call it: obj.at(...)"),
        ("out[0] = obj.n.real", "obj.n is a number, so it has no 'real'; obj has data, k, n"),
        ("out[0] = obj.k.x.y", "obj.k is a number, so it has no 'x'"),
        ("out[0] = obj.nothing.x", "obj (Holder) has no attribute 'nothing'"),
        ("out[0] = obj.n.at(1)", "obj.n is a number"),
        ("out[0] = obj.n(1)", "obj.n is a number, no method"),
        ("out[0] = obj.data(1)", "obj.data is an array (f64[:]), no method"),
    ],
)
def test_an_unknown_name_is_a_value_error_with_what_exists(load, body, said) -> None:
    case = Case(load, "k = 3\n@tack.func\ndef at(self, i):\n    return i\n")
    found = case.refusal(body, ValueError, n=2, data=np.zeros(3))
    assert said in found
    assert "^" in found


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("out[0] = obj", "the template 'obj' has no value of its own"),
        ("obj = 3", "'obj' is a template; it cannot be assigned"),
        ("obj.n = 3", "attributes of 'obj' are read only"),
        ("out[0] = obj[0]", "a template cannot be indexed"),
        ("out[0] = obj.data", "the array 'obj.data' has no value of its own"),
        ("out[0] = obj.data.T", "arrays have .shape[k], .size, .ndim and .flat[i] here, and no .T"),
        ("for k in obj:\n    out[0] = k", "only the outermost loop runs over a template"),
    ],
)
def test_what_cannot_be_done_with_a_template_is_refused(load, body, said) -> None:
    found = Case(load).refusal(body, CompileError, n=2, data=np.zeros(3))
    assert said in found


def test_recursion_through_methods_is_refused_with_its_cycle(load) -> None:
    case = Case(
        load,
        """
        @tack.func
        def odd(self, n):
            return self.even(n - 1)

        @tack.func
        def even(self, n):
            return self.odd(n - 1)
        """,
    )
    said = case.refusal("out[0] = obj.odd(3)", CompileError)
    assert "Holder.odd -> Holder.even -> Holder.odd" in said


def test_elements_of_arrays_of_a_template_are_assigned(load) -> None:
    case = Case(load)
    data = np.arange(4.0)
    module = case.module("obj.data[1] = 5\nobj.data[2] += obj.data[1]\nout[0] = obj.data[2]")
    holder = module.Holder()
    holder.data, out = data, np.zeros(4)
    module.kernel(holder, out)
    assert list(data) == [0, 5, 7, 3]
    assert out[0] == 7


def test_a_read_only_array_of_a_template_that_the_kernel_writes_is_a_value_error(load) -> None:
    module = Case(load).module("obj.data[0] = 1")
    holder = module.Holder()
    holder.data = np.zeros(3)
    holder.data.flags.writeable = False
    with pytest.raises(ValueError, match=r"array 'obj\.data' is read-only"):
        module.kernel(holder, np.zeros(3))


def test_overlapping_arrays_of_a_template_and_arguments_are_seen(load) -> None:
    module = load(
        """
        @tack.device_class
        class Holder:
            pass

        @tack.kernel
        def kernel(obj, out, n):
            for i in range(n):
                out[i] = obj.data[i] + 1
        """
    )
    memory = np.zeros(9)
    holder = module.Holder()
    for _ in range(2):
        holder.data = memory[:8]
        module.kernel(holder, memory[:8], 8)
    assert list(memory) == [2] * 8 + [0]


def test_names_of_synthetic_parameters_never_meet(load) -> None:
    """``cs`` with ``x_y`` beside ``cs_x`` with ``y``, and names of the kernel that look alike."""
    module = load(
        """
        @tack.device_class
        class Holder:
            pass

        @tack.kernel
        def kernel(cs, cs_x, cs__x_y, out):
            for i in range(1):
                cs_x_y = 1000
                out[0] = cs.x_y + cs_x.y * 10 + cs__x_y * 100 + cs_x_y
        """
    )
    one, two = module.Holder(), module.Holder()
    one.x_y, two.y = 1, 2
    out = np.zeros(1)
    module.kernel(one, two, 3, out)
    assert out[0] == 1321


def test_names_of_inlined_functions_never_meet(load) -> None:
    """``f_a(b)`` and ``f(a_b)``."""
    module = load(
        """
        @tack.func
        def f_a(b):
            b = b + 1
            return b

        @tack.func
        def f(a_b):
            a_b = a_b * 2
            return a_b + f_a(a_b)

        @tack.kernel
        def kernel(x, out):
            for i in range(1):
                out[0] = f_a(x) + f(x) * 100
        """
    )
    out = np.zeros(1)
    module.kernel(3, out)
    assert out[0] == 4 + 1300


def test_a_kernel_may_be_a_method_of_a_template(load) -> None:
    module = load(
        """
        @tack.device_class
        class Holder:
            def __init__(self, k):
                self.k = k

            @tack.kernel
            def fill(self, out):
                for i in range(out.shape[0]):
                    out[i] = self.k
        """
    )
    out = np.zeros(3)
    module.Holder(4).fill(out)
    assert list(out) == [4, 4, 4]


def test_a_parameter_may_be_annotated_with_a_device_class(load) -> None:
    module = load(
        """
        @tack.device_class
        class Holder:
            def __init__(self, k):
                self.k = k

        @tack.func
        def read(obj: Holder):
            return obj.k

        @tack.kernel
        def kernel(obj: Holder, n: tack.i32, out: tack.Array):
            for i in range(1):
                out[i] = read(obj) + n
        """
    )
    out = np.zeros(3)
    module.kernel(module.Holder(4), 3, out)
    assert out[0] == 7
    with pytest.raises(TypeError, match="'n' is annotated i32 and was given a template"):
        module.kernel(module.Holder(4), module.Holder(4), out)


def test_more_values_than_a_kernel_takes_are_refused(load) -> None:
    module = Case(load).module("out[0] = obj.a0")
    holder = module.Holder()
    for number in range(127):
        setattr(holder, f"a{number}", number)
    with pytest.raises(ValueError, match="128 values, and a kernel takes 127"):
        module.kernel(holder, np.zeros(4))


def test_a_template_for_an_annotated_scalar_is_refused(load) -> None:
    case = Case(load, extra="@tack.func\ndef f(x: tack.i64):\n    return x\n")
    said = case.refusal("out[0] = f(obj)", CompileError)
    assert "'x' of f() is annotated i64, and this is a template" in said


# --- loops

GRID = """
    @tack.device_class
    class Line:
        tack_extents = ("n",)

        def __init__(self, n):
            self.n = n

    @tack.device_class
    class Box:
        tack_extents = ("nx", "ny", "nz")
        nz = 2

        def __init__(self, nx, ny):
            self.nx, self.ny = nx, ny

    @tack.kernel
    def single(grid, out):
        for c in grid:
            out[c] = out[c] + c + 1

    @tack.kernel
    def parts(grid, out):
        for i, j, k in grid:
            out[k, j, i] = i + 10 * j + 100 * k

    @tack.kernel
    def bounds(grid, out):
        m = grid.nx * 2
        for i, j in tack.ndrange(m, grid.ny + 1):
            out[j * m + i] = i - j

    @tack.kernel
    def changed(grid, out):
        for c in grid:
            c = c * 2
            out[c // 2] = c
"""


def test_a_parallel_loop_runs_over_a_template_with_one_index(load) -> None:
    module = load(GRID)
    for grid in (module.Line(7), module.Box(3, 4), module.Box(0, 4), module.Line(-3)):
        for kernel in (module.single, module.changed):
            out, expected = np.zeros(24), np.zeros(24)
            kernel(grid, out)
            kernel.py_func(grid, expected)
            assert np.array_equal(out, expected)


def test_the_fastest_extent_comes_first(load) -> None:
    module = load(GRID)
    out, expected = np.zeros((2, 4, 3)), np.zeros((2, 4, 3))
    module.parts(module.Box(3, 4), out)
    module.parts.py_func(module.Box(3, 4), expected)
    assert np.array_equal(out, expected)
    assert out[1, 2, 0] == 120
    assert np.ravel_multi_index((1, 2, 0), (2, 4, 3)) == next(
        c for c in module.Box(3, 4) if tuple(c) == (0, 2, 1)
    )


def test_two_negative_extents_do_not_multiply_to_a_positive_one(load) -> None:
    module = load(GRID)
    out = np.zeros(24)
    module.single(module.Box(-2, -3), out)
    assert not out.any()


def test_bounds_may_use_attributes_of_templates(load) -> None:
    module = load(GRID)
    out, expected = np.zeros(40), np.zeros(40)
    module.bounds(module.Box(3, 4), out)
    module.bounds.py_func(module.Box(3, 4), expected)
    assert np.array_equal(out, expected)


@pytest.mark.parametrize(
    ("members", "target", "said"),
    [
        ("pass", "c", "obj (Holder) declares no extents; write a class attribute such as tack_ext"),
        ("tack_extents = ('n', 'm')", "i, j, k", "obj has 2 extents, so its loop gives 2 indices"),
        ("tack_extents = ('n', 'gone')", "c", "no attribute 'gone'"),
        ("tack_extents = ('data',)", "c", "has no value of its own"),
        ("tack_extents = ('x',)", "c", "obj.x is an extent, which is an i64, and this is an f64; "),
        ("tack_extents = ('y',)\n    y = 2.0", "c", "this is a float; make the attribute an int"),
        ("tack_extents = ('y',)\n    y = True", "c", "this is a bool; make the attribute an int"),
        ("tack_extents = ('u',)\n    u: tack.u64", "c", "this is a u64; make the attribute an int"),
    ],
)
def test_a_loop_over_what_declares_no_such_extents_is_refused(load, members, target, said) -> None:
    module = load(
        f"@tack.device_class\nclass Holder:\n    {members}\n\n"
        f"@tack.kernel\ndef kernel(obj, out):\n    for {target} in obj:\n        out[0] = 1\n"
    )
    holder = module.Holder()
    holder.n, holder.m, holder.x, holder.u, holder.data = 1, 2, 0.5, 4, np.zeros(3)
    with pytest.raises(CompileError) as caught:
        module.kernel(holder, np.zeros(4))
    assert said in str(caught.value)


@pytest.mark.parametrize("extents", ["()", "('a', 'b', 'c', 'd')", "(1,)", "('a', 'a')", "('_a',)"])
def test_extents_are_one_to_three_names(load, extents) -> None:
    with pytest.raises(TypeError, match="write 1 to 3 names of attributes"):
        load(f"@tack.device_class\nclass Holder:\n    tack_extents = {extents}\n")


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("out[0] = t.a[0]", "'t.a' has 2 dimensions and is given 1 index"),
        ("out[0] = t.a[-1, 0]", "write t.a.shape[0] - 1"),
        ("out[0] = t.a.shape[2]", "'t.a' has 2 dimensions, so no .shape[2]"),
        ("t.a.flat[-1] = 1", "write t.a.size - 1"),
        ("t.a[i][0] = 1", "a part of 't.a' is no array here"),
        ("out[0] = t.a[i > 0, 0]", "an index of t.a is an integer, not a bool"),
        ("out[i] = part(t.a, i)", "an element of b is i32 and this is an f64"),
        ("out[i] = masked(i)", "an index of b is an integer, not a bool"),
    ],
)
def test_an_array_is_called_what_the_source_calls_it(load, statement, said) -> None:
    module = load(
        "@tack.device_class\nclass Holder:\n    pass\n\n"
        "@tack.func\ndef part(a, i):\n"
        "    b = tack.local_array(tack.i32, 2)\n    b[0] = a[i, 0]\n    return b[0]\n\n"
        "@tack.func\ndef masked(i):\n"
        "    b = tack.local_array(tack.i32, 2)\n    return b[i > 0]\n\n"
        f"@tack.kernel\ndef kernel(t, out):\n    for i in range(2):\n        {statement}\n"
    )
    holder = module.Holder()
    holder.a = np.zeros((2, 2))
    with pytest.raises(CompileError) as caught:
        module.kernel(holder, np.zeros(4))
    assert said in str(caught.value)
