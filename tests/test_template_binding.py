"""How calls in kernels and methods find their functions, and how arguments are bound."""

from __future__ import annotations

import numpy as np
import pytest

import tack
from tack.errors import CompileError


def run(kernel, *args, size=4):
    """``out`` after the kernel, whose plain function gives the same."""
    out, expected = np.zeros(size), np.zeros(size)
    kernel(*args, out)
    kernel.py_func(*args, expected)
    assert np.array_equal(out, expected)
    return list(out)


SHARED = """
    FACTOR = tack.constant(FACTOR_VALUE)

    @tack.func
    def helper(x):
        return x * FACTOR

    @tack.device_class
    class Holder:
        @tack.func
        def value(self, x):
            return helper(x)
"""


def test_a_method_resolves_names_where_it_was_defined(load) -> None:
    """Two modules have a helper of one name; each method calls its own."""
    one = load(SHARED.replace("FACTOR_VALUE", "2"))
    two = load(SHARED.replace("FACTOR_VALUE", "3"))
    kernel = load(
        """
        FACTOR = tack.constant(100)

        @tack.func
        def helper(x):
            return x * FACTOR

        @tack.kernel
        def kernel(a, b, out):
            for i in range(1):
                out[0] = a.value(1) + b.value(10) + helper(1)
        """
    ).kernel
    assert run(kernel, one.Holder(), two.Holder())[0] == 2 + 30 + 100


def test_closure_cells_are_followed(load) -> None:
    make = load(
        """
        def make(number):
            constant = tack.constant(number)

            @tack.func
            def scaled(x):
                return x * constant

            @tack.device_class
            class Holder:
                @tack.func
                def value(self, x):
                    return scaled(x) + self.n

                def __init__(self):
                    self.n = 1

            @tack.kernel
            def kernel(obj, out):
                for i in range(1):
                    out[0] = obj.value(10)

            return Holder(), kernel
        """
    ).make
    for number in (2, 3):
        holder, kernel = make(number)
        assert run(kernel, holder)[0] == number * 10 + 1


def test_aliases_and_module_qualified_names_work(load) -> None:
    module = load(SHARED.replace("FACTOR_VALUE", "2"))
    user = load(
        f"""
        import {module.__name__} as library

        alias = library.helper

        @tack.device_class
        class Holder:
            @tack.func
            def value(self, x):
                return library.helper(x) + alias(x)

            again = value

        @tack.kernel
        def kernel(obj, out):
            for i in range(1):
                out[0] = obj.value(1) + obj.again(10)
        """
    )
    assert run(user.kernel, user.Holder())[0] == 44


def test_locals_and_parameters_hide_outer_names(load) -> None:
    module = load(
        """
        helper = tack.constant(1000)
        obj = tack.constant(1000)

        @tack.device_class
        class Holder:
            def __init__(self):
                self.n = 1

            @tack.func
            def value(self, helper):
                obj = helper + self.n
                return obj

        @tack.kernel
        def kernel(obj, out):
            for i in range(1):
                helper = obj.value(1)
                out[0] = helper
        """
    )
    assert run(module.kernel, module.Holder())[0] == 2


def test_properties_and_run_time_callables_are_not_followed(load) -> None:
    module = load(
        """
        class Space:
            pass

        space = Space()

        @tack.func
        def helper(x):
            return x

        space.helper = helper

        @tack.kernel
        def kernel(obj, out):
            for i in range(1):
                out[0] = space.helper(1)
        """
    )
    holder = load("@tack.device_class\nclass Holder:\n    pass\n").Holder()
    with pytest.raises(CompileError, match="attributes are read of modules only"):
        module.kernel(holder, np.zeros(1))


def test_arguments_are_lowered_under_the_bindings_of_the_caller(load) -> None:
    """The names of caller and callee are the same and mean other things."""
    module = load(
        """
        @tack.device_class
        class Holder:
            def __init__(self, n):
                self.n = n

            @tack.func
            def mixed(self, obj, n):
                self_n = self.n
                return obj.n * 100 + n * 10 + self_n

        @tack.kernel
        def kernel(obj, self, out):
            for n in range(1):
                out[n] = obj.mixed(self, obj.n + n) + self.mixed(n=n, obj=obj)
        """
    )
    assert run(module.kernel, module.Holder(1), module.Holder(2))[0] == 211 + 102


def test_loop_targets_and_unpacked_names_of_methods_are_their_own(load) -> None:
    module = load(
        """
        @tack.device_class
        class Holder:
            count = 3

            @tack.func
            def both(self, i):
                a, b = i, i + 1
                total = 0
                for k in range(self.count):
                    a, b = b, a + k
                    total += a
                return total, b

        @tack.kernel
        def kernel(obj, out):
            for i in range(2):
                a, b, k, total = 1, 2, 3, 4
                x, y = obj.both(i)
                u, v = obj.both(i + 10)
                out[2 * i] = a + b + k + total + x * y
                out[2 * i + 1] = u - v
        """
    )
    run(module.kernel, module.Holder())


def test_an_early_return_ends_a_method_on_its_path(load) -> None:
    module = load(
        """
        @tack.device_class
        class Holder:
            limit = 2

            @tack.func
            def clamp(self, i):
                if i < self.limit:
                    if i == 0:
                        return -1
                    return i
                i = i * 2
                if i > 5:
                    return 5
                return i

        @tack.kernel
        def kernel(obj, out):
            for i in range(4):
                out[i] = obj.clamp(i) + obj.clamp(i + 1)
        """
    )
    run(module.kernel, module.Holder())


def test_a_method_that_may_end_without_a_value_is_refused(load) -> None:
    module = load(
        """
        @tack.device_class
        class Holder:
            @tack.func
            def value(self, i):
                if i > 1:
                    return 1

        @tack.kernel
        def kernel(obj, out):
            for i in range(1):
                out[i] = obj.value(i)
        """
    )
    with pytest.raises(CompileError, match=r"value\(\) can end without a return"):
        module.kernel(module.Holder(), np.zeros(1))


def test_a_method_may_store_and_give_nothing(load) -> None:
    module = load(
        """
        @tack.device_class
        class Holder:
            k = 3

            @tack.func
            def fill(self, array, i):
                self.put(array, i, self.k)

            @tack.func
            def put(self, array, i, value):
                array[i] = value + i

        @tack.kernel
        def kernel(obj, out):
            for i in range(out.shape[0]):
                obj.fill(out, i)
        """
    )
    assert run(module.kernel, module.Holder()) == [3, 4, 5, 6]


def test_arrays_and_templates_pass_through_any_depth(load) -> None:
    module = load(
        """
        @tack.device_class
        class Holder:
            def __init__(self, data):
                self.data = data

            @tack.func
            def first(self, i):
                return second(self.data, self, i)

        @tack.func
        def second(array, holder, i):
            return third(holder, i, rest=array)

        @tack.func
        def third(holder, i, rest):
            return rest[i] + holder.data.shape[0] * 10

        @tack.kernel
        def kernel(obj, out):
            for i in range(out.shape[0]):
                out[i] = obj.first(i)
        """
    )
    assert run(module.kernel, module.Holder(np.arange(4.0))) == [40, 41, 42, 43]


def test_a_function_of_the_object_may_take_the_object(load) -> None:
    module = load(
        """
        @tack.func
        def total(holder, i):
            return holder.data[i] + holder.n

        @tack.device_class
        class Holder:
            def __init__(self, data):
                self.data, self.n, self.total = data, 5, total

        @tack.kernel
        def kernel(obj, out):
            for i in range(out.shape[0]):
                out[i] = obj.total(obj, i)
        """
    )
    assert run(module.kernel, module.Holder(np.arange(4.0))) == [5, 6, 7, 8]


def test_the_identity_of_a_function_selects_its_body(load) -> None:
    """Functions of one name and one text, with other captures; no registry could tell them."""
    module = load(
        """
        def make(number):
            factor = tack.constant(number)

            @tack.func
            def helper(x):
                return x * factor

            return helper

        two, three = make(2), make(3)
        again = two

        @tack.device_class
        class Holder:
            def __init__(self):
                self.helper = make(5)

        @tack.kernel
        def kernel(obj, out):
            for i in range(1):
                out[0] = two(1) + three(10) + again(100) + obj.helper(1000)
        """
    )
    assert run(module.kernel, module.Holder())[0] == 2 + 30 + 200 + 5000


def test_methods_give_several_results_and_vectors(load) -> None:
    module = load(
        """
        @tack.device_class
        class Holder:
            def __init__(self, scale):
                self.scale = scale

            @tack.func
            def both(self, x, y):
                if x > y:
                    return tack.f64x2(x, y), x
                return tack.f64x2(y, x) * self.scale, y

        @tack.kernel
        def kernel(obj, out):
            for i in range(1):
                pair, most = obj.both(3.0, 1.0)
                other, _ = obj.both(1.0, 2.0)
                out[0], out[1] = pair
                out[2], out[3] = most, other.x
        """
    )
    assert run(module.kernel, module.Holder(10)) == [3, 1, 3, 20]


def test_local_arrays_are_aliased_in_methods_and_none_is_assigned(load) -> None:
    text = """
        @tack.device_class
        class Holder:
            @tack.func
            def fill(self, points, n):
                for k in range(n):
                    points[k] = k + self.start
                self.double(points, n)

            @tack.func
            def double(self, them, n):
                for k in range(n):
                    them[k] *= 2

        @tack.kernel
        def kernel(obj, out):
            for i in range(1):
                a = tack.local_array(tack.f64, 4)
                obj.fill(a, 3)
                for k in range(4):
                    out[k] = a[k]
    """
    module = load(text)
    holder = module.Holder()
    holder.start = 5
    assert run(module.kernel, holder) == [10, 12, 14, 0]
    assigned = load(text.replace("them[k] *= 2", "them = 2"))
    holder = assigned.Holder()
    holder.start = 5
    with pytest.raises(CompileError, match="'them' is an array; it cannot be assigned a value"):
        assigned.kernel(holder, np.zeros(4))


def test_a_shadowed_builtin_is_the_method(load) -> None:
    module = load(
        """
        @tack.device_class
        class Holder:
            @tack.func
            def abs(self, x):
                return x + 1

            @tack.func
            def range(self, x):
                return abs(x)

        @tack.kernel
        def kernel(obj, out):
            for i in range(1):
                out[0] = obj.abs(-5) + obj.range(-7) * 100
        """
    )
    assert run(module.kernel, module.Holder())[0] == -4 + 700
    assert isinstance(tack.classify_template_attrs(module.Holder()), tuple)
