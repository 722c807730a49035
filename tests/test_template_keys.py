"""What makes two templates the same to a kernel, in a process and by content."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import tack
from tack import _core
from tack.model.keys import source_key
from tack.model.signature import Signature
from tack.model.variant import DEFAULT_OPTIONS
from tack.runtime import jit
from tack.runtime.arguments import call_signature

HOLDER = """
    @tack.device_class
    class Holder:
        k = 1

    @tack.kernel
    def kernel(obj, out):
        for i in range(1):
            out[0] = obj.k
"""


def specs(module, *values, name="k"):
    """The specs of a Holder for each value of a number of the class."""
    found = []
    for value in values:
        setattr(module.Holder, name, value)
        found.append(call_signature(module.kernel.definition, (module.Holder(), np.zeros(1))))
    return found


NAN = float("nan")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1, 1.0, False),
        (1, True, False),
        (1.0, True, False),
        (0.0, -0.0, False),
        (NAN, float("nan"), True),
        (0.1 + 0.2, 0.3, False),
        (float("inf"), float("inf"), True),
        (3, np.int8(3), True),
        (3, tack.constant(3, tack.u8), False),
        (tack.constant(3, tack.i8), tack.constant(3, tack.u8), False),
    ],
)
def test_constants_are_typed_and_floats_count_by_their_bits(load, one, other, same) -> None:
    first, second = specs(load(HOLDER), one, other)
    assert (first == second) is same
    assert (str(first) == str(second)) is same


def test_a_constant_has_its_type_in_the_kernel(load) -> None:
    module = load(HOLDER.replace("out[0] = obj.k", "out[0] = tack.u8(250) + obj.k"))
    out = np.zeros(1)
    for value, expected in ((10, 4), (1.5, 251.5), (tack.constant(10, tack.i16), 260)):
        module.Holder.k = value
        module.kernel(module.Holder(), out)
        assert out[0] == expected


def test_a_constant_of_the_class_that_changes_is_seen_at_the_next_call(load) -> None:
    module = load(HOLDER)
    holder, out = module.Holder(), np.zeros(1)
    for value in (1, 2, 1, 2.5, True, -0.0, 0.0, 7):
        module.Holder.k = value
        for _ in range(2):
            module.kernel(holder, out)
            assert out[0] == value
            assert np.signbit(out[0]) == np.signbit(float(value))


def test_a_value_that_hides_a_constant_is_in_the_key(load) -> None:
    module = load(HOLDER)
    out = np.zeros(1)
    for value in (3, 4.5, 3):
        holder = module.Holder()
        holder.k = value
        module.kernel(holder, out)
        assert out[0] == value
    assert _core.templated_count(module.kernel) == 2


def test_values_of_run_time_scalars_are_not_in_the_key_but_their_names_are(load) -> None:
    module = load(HOLDER)
    out = np.zeros(1)
    for n in range(5):
        holder = module.Holder()
        holder.n = n
        module.kernel(holder, out)
    assert _core.templated_count(module.kernel) == 1
    holder.m = 1
    module.kernel(holder, out)
    assert _core.templated_count(module.kernel) == 2


def test_a_launch_length_alone_does_not_specialize(load) -> None:
    module = load(
        """
        @tack.device_class
        class Line:
            tack_extents = ("n",)

        @tack.kernel
        def kernel(line, out):
            for c in line:
                out[c] = line.data[c] + 1
        """
    )
    line = module.Line()
    for n in (3, 5, 0, 4):
        line.n, line.data = n, np.zeros(n)
        out = np.zeros(9)
        module.kernel(line, out)
        assert out.sum() == n
    assert _core.templated_count(module.kernel) == 1


def test_an_attribute_that_changes_its_type_gets_another_variant(load) -> None:
    module = load(HOLDER.replace("obj.k", "obj.n"))
    holder, out = module.Holder(), np.zeros(1)
    for value in (3, 2.5, True, 3, np.float32(0.5), np.int8(4)):
        holder.n = value
        module.kernel(holder, out)
        assert out[0] == value
    assert _core.templated_count(module.kernel) == 3
    holder.n = np.array([1.0])
    with pytest.raises(tack.errors.CompileError, match=r"array 'obj\.n' has no value"):
        module.kernel(holder, out)


def test_a_function_that_the_object_holds_is_in_the_key(load) -> None:
    module = load(
        HOLDER.replace("obj.k", "obj.step(1)")
        + """

    @tack.func
    def one(x):
        return x + 1

    @tack.func
    def two(x):
        return x + 2
    """
    )
    holder, out = module.Holder(), np.zeros(1)
    for function, expected in ((module.one, 2), (module.two, 3), (module.one, 2)):
        holder.step = function
        module.kernel(holder, out)
        assert out[0] == expected


def test_a_method_that_is_replaced_is_seen_at_the_next_call(load) -> None:
    module = load(
        """
        @tack.device_class
        class Base:
            @tack.func
            def value(self):
                return 1

        class Holder(Base):
            pass

        @tack.func
        def other(self):
            return 2

        @tack.kernel
        def kernel(obj, out):
            for i in range(1):
                out[0] = obj.value()
        """
    )
    holder, out = module.Holder(), np.zeros(1)
    module.kernel(holder, out)
    assert out[0] == 1
    module.Base.value = module.other
    module.kernel(holder, out)
    assert out[0] == 2


REDEFINED = """
    @tack.device_class
    class Holder:
        @tack.func
        def value(self):
            return VALUE
"""


def test_a_class_redefined_under_its_name_does_not_reuse_the_code_of_the_old_one(load) -> None:
    kernel = load(HOLDER.replace("obj.k", "obj.value()")).kernel
    out = np.zeros(1)
    holders = []
    for value in (1, 2):
        module = load(REDEFINED.replace("VALUE", str(value)))
        module.Holder.__module__ = "same"
        holders.append(module.Holder())
        kernel(holders[-1], out)
        assert out[0] == value
    kernel(holders[0], out)
    assert out[0] == 1


def test_a_class_that_is_collected_retires_its_variants(load) -> None:
    kernel = load(HOLDER.replace("obj.k", "obj.value()")).kernel
    make = load(
        """
        def make(number):
            @tack.device_class
            class Holder:
                __slots__ = ("n", "inner")

                @tack.func
                def value(self):
                    return 3 + self.n

            return Holder
        """
    ).make
    out = np.zeros(1)
    for number in range(4):
        cls = make(number)
        holder = cls()
        holder.n = number
        kernel(holder, out)
        assert out[0] == 3 + number
        assert _core.templated_count(kernel) == 1
        gone = weakref.ref(cls)
        del cls, holder
        gc.collect()
        assert gone() is None
        assert _core.templated_count(kernel) == 0


def test_a_nested_class_that_is_collected_retires_the_variants(load) -> None:
    kernel = load(HOLDER.replace("obj.k", "obj.inner.value()")).kernel
    holder = load(HOLDER).Holder()
    make = load(
        """
        def make():
            @tack.device_class
            class Inner:
                @tack.func
                def value(self):
                    return 3

            return Inner
        """
    ).make
    out = np.zeros(1)
    for _ in range(3):
        holder.inner = make()()
        kernel(holder, out)
        assert out[0] == 3
        assert _core.templated_count(kernel) == 1
        assert len(jit._pending[kernel.definition]) == 1
        del holder.inner
        gc.collect()
        assert _core.templated_count(kernel) == 0
        assert not jit._pending[kernel.definition]


def test_the_paths_and_classes_of_nested_templates_are_in_the_key(load) -> None:
    module = load(
        """
        @tack.device_class
        class Outer:
            pass

        @tack.device_class
        class One:
            @tack.func
            def value(self):
                return 1

        class Two(One):
            @tack.func
            def value(self):
                return 2

        @tack.kernel
        def kernel(obj, out):
            for i in range(1):
                out[0] = obj.a.value() * 10 + obj.b.value()
        """
    )
    outer, out = module.Outer(), np.zeros(1)
    kinds = (module.One, module.Two)
    for count, (a, b) in enumerate([(a, b) for a in kinds for b in kinds], 1):
        outer.a, outer.b = a(), b()
        module.kernel(outer, out)
        assert out[0] == (1 + (a is module.Two)) * 10 + 1 + (b is module.Two)
        assert _core.templated_count(module.kernel) == count
    outer.c = module.One()
    module.kernel(outer, out)
    assert _core.templated_count(module.kernel) == 5


def test_dtype_rank_and_layout_of_an_array_are_in_the_key_and_its_extents_are_not(load) -> None:
    module = load(
        """
        @tack.device_class
        class Holder:
            pass

        @tack.kernel
        def kernel(obj, out):
            for i in range(1):
                out[0] = obj.data.ndim * 10 + obj.data.flat[1]
        """
    )
    holder, out = module.Holder(), np.zeros(1)
    plain = np.arange(6.0)
    kinds = [plain, plain.astype(np.float32), plain.reshape(2, 3), plain.reshape(3, 2).T]
    for count, data in enumerate(kinds, 1):
        for each in (data, data[:2].copy() if data.flags.c_contiguous else data):
            holder.data = each
            module.kernel(holder, out)
            assert out[0] == each.ndim * 10 + each.flat[1]
        assert _core.templated_count(module.kernel) == count


def test_aliasing_and_alignment_choose_an_entry_point_and_not_a_variant(load) -> None:
    module = load(
        """
        @tack.device_class
        class Holder:
            pass

        @tack.kernel
        def kernel(obj, out):
            for i in range(3):
                out[i] = obj.data[i] + 1
        """
    )
    memory, holder = np.zeros(9), module.Holder()
    given = [
        (memory[:3], memory[4:7]),  # apart
        (memory[:3], memory[:3]),  # the same
        (memory[1:4], memory[5:8]),  # at addresses that no vector would be aligned to
        (memory[::2][:3].copy(), memory[3:6]),
    ]
    for data, out in given:
        memory[:] = np.arange(9)
        holder.data = data
        wanted = data + 1
        module.kernel(holder, out)
        assert list(out) == list(wanted)
    assert _core.templated_count(module.kernel) == 1


# --- by content

METHODS = """
    FACTOR = tack.constant(2.0, tack.f32)

    @tack.func
    def deep(x):
        return x * FACTOR

    @tack.func
    def helper(x):
        return deep(x)

    @tack.device_class
    class Base:
        @tack.func
        def value(self, x):
            return helper(x) + 1  # a comment

    @tack.device_class
    class Holder(Base):
        k = 1

    @tack.func
    def step(x):
        return x

    @tack.kernel
    def kernel(obj, out):
        for i in range(1):
            out[0] = obj.value(out[0])
"""


def key_of(module, **attributes) -> str:
    """The source key of the kernel for a Holder."""
    given = Signature((tack.spec(module.Holder, **attributes), *Signature.parse("f32[:]")))
    print_ = module.kernel.definition.fingerprint(given)
    return source_key(print_.digest, given, DEFAULT_OPTIONS)


def test_the_same_text_in_a_moved_file_hits(load) -> None:
    one, other = load(METHODS), load("\n\n    # moved\n" + METHODS)
    assert one.__name__ != other.__name__
    assert key_of(one) == key_of(other)
    assert key_of(one, f=one.step) == key_of(other, f=other.step)


def test_an_edited_comment_hits(load) -> None:
    assert key_of(load(METHODS)) == key_of(load(METHODS.replace("a comment", "another")))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("helper(x) + 1", "helper(x) + 2", id="a method of a base"),
        pytest.param("x * FACTOR", "x / FACTOR", id="a callee two levels down"),
        pytest.param("constant(2.0", "constant(3.0", id="a constant that a callee reads"),
        ("k = 1", "k = 1.0"),
        ("k = 1", "k = 1\n        m = 2"),
        ("k = 1", "k = 1\n        tack_extents = ('k',)"),
        ("class Holder(Base):", "class Between(Base):\n        pass\n\n    class Holder(Between):"),
        ("k = 1", "k = 1\n\n        @tack.func\n        def unused(self):\n            return 1"),
        ("        @tack.func\n        def value(self, x)",
         "        @staticmethod\n        @tack.func\n        def value(self, x)"),
    ],
)  # fmt: skip
def test_an_edit_that_counts_misses(load, old, new) -> None:
    assert old in METHODS
    assert key_of(load(METHODS)) != key_of(load(METHODS.replace(old, new, 1)))


def test_names_types_and_functions_of_the_object_count(load) -> None:
    module = load(METHODS)
    keys = [
        key_of(module),
        key_of(module, n="i64"),
        key_of(module, m="i64"),
        key_of(module, n="f32"),
        key_of(module, n="i32[:]"),
        key_of(module, n="i32[3]"),
        key_of(module, n=tack.spec(module.Base)),
        key_of(module, n=tack.spec(module.Holder)),
        key_of(module, n=module.step),
        key_of(module, n=module.deep),
        key_of(module, k=2),
        key_of(module, k=True),
    ]
    assert len(set(keys)) == len(keys)


# --- the text form


@pytest.mark.parametrize(
    "text",
    [
        "m:Grid()",
        "m.n:Outer.Grid(n: i64), f32",
        "m:Grid(data: f32[:, 3], n: i64, a=1, b=-1.5, c=True, d=nan, e=-inf, f=u8(3))",
        "m:Grid(a=f32(1e-07), b=1e+300)",
        "m:Grid(inner: m:Inner(n: i64), f=@m:f.<locals>.g), f32[:]",
        "m:make.<locals>.Grid(n: i64)",
    ],
)
def test_the_text_of_a_signature_parses_back(text) -> None:
    signature = Signature.parse(text)
    assert str(signature) == text
    assert Signature.parse(str(signature)) == signature


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("m:Grid(n)", "'n' is no attribute"),
        ("m:Grid(_n: i64)", "is no attribute"),
        ("m:Grid(n: i65)", "unknown type 'i65'"),
        ("m:Grid(n: i64, n=3)", "'n' stands twice"),
        ("m:Grid(n=x)", "neither a number nor @module:function"),
        ("m:Grid(a__b=1, a: m:Inner(b=2))", "both flatten to 'a__b'"),
        ("Grid(n: i64)", "neither a scalar"),
    ],
)
def test_a_text_that_is_no_template_is_refused(text, said) -> None:
    with pytest.raises(ValueError, match=said):
        Signature.parse(text)


def test_a_kernel_is_shown_for_a_signature_that_was_written(load) -> None:
    module = load(METHODS)
    text = f"{module.__name__}:Holder(k=1, n: i64), f32[:]"
    assert "kernel" in module.kernel.source("c", text)
    with pytest.raises(ValueError, match="there is no nowhere:Holder"):
        module.kernel.ir("nowhere:Holder(), f32[:]")
    with pytest.raises(ValueError, match=r"json:JSONDecoder is no class under @tack\.device_class"):
        module.kernel.ir("json:JSONDecoder(), f32[:]")
