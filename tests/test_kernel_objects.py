"""A kernel as a Python object: binding of arguments, references, and the manners of a function."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import sys
import weakref
from pathlib import Path
from typing import Any

import native
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from native import array, make, scalar

import tack
from tack import _core


def one(a):
    pass


# Binding arguments to parameters

PARAMETERS = ["alpha", "beta", "gamma", "delta", "epsilon"]


@st.composite
def functions(draw: st.DrawFn) -> Any:
    """A function of up to five parameters of every kind, with and without defaults."""
    count = draw(st.integers(0, 5))
    cuts = sorted(draw(st.lists(st.integers(0, count), min_size=2, max_size=2)))
    names = PARAMETERS[:count]
    optional = cuts[1] - draw(st.integers(0, cuts[1]))
    parts = []
    for number, name in enumerate(names):
        if number == cuts[1]:
            parts.append("*")
        default = draw(st.booleans()) if number >= cuts[1] else number >= optional
        parts.append(f"{name}='default {name}'" if default else name)
        if number + 1 == cuts[0]:
            parts.append("/")
    scope: dict[str, Any] = {}
    exec(
        f"class Owner:\n def function({', '.join(parts)}):\n"
        f"  return ({''.join(name + ',' for name in names)})",
        scope,
    )
    return scope["Owner"].function


@settings(max_examples=400, deadline=None)
@given(
    functions(),
    st.integers(0, 7),
    st.lists(st.sampled_from([*PARAMETERS, "zeta"]), unique=True),
    st.booleans(),
)
def test_arguments_are_bound_as_python_binds_them(
    function: Any, positional: int, keywords: list[str], interned: bool
) -> None:
    class Bound(Exception):
        pass

    def on_miss(called, arguments):
        raise Bound(arguments)

    called = native.kernel(function, on_miss=on_miss)
    args = [f"argument {i}" for i in range(positional)]
    kwargs = {k if interned else "".join(list(k)): f"keyword {k}" for k in keywords}
    try:
        wanted = function(*args, **kwargs)
    except TypeError as error:
        words = str(error)
        with pytest.raises(TypeError) as caught:
            called(*args, **kwargs)
        assert words.startswith(str(caught.value))  # newer Pythons may add a suggestion
    else:
        with pytest.raises(Bound) as bound:
            called(*args, **kwargs)
        assert bound.value.args == (wanted,)


def test_defaults_are_those_at_the_time_of_decoration() -> None:
    def function(x, n=3):
        pass

    called = native.kernel(function, make([array(), scalar("i64")]))
    function.__defaults__ = (5,)
    native.spied().clear(slots=3)
    called(np.zeros(1, "f4"))
    assert native.spied().slots(3)[2] == 3


# Memory


def test_no_reference_is_kept_or_lost() -> None:
    called = native.saxpy_kernel()
    a, x, y, out = np.float32(2.5), *np.zeros((3, 4), "f4")
    wrong = np.zeros(4, "f8")
    held = [a, x, y, out, wrong, None, called]

    def calls() -> None:
        called(a, x, y, out)
        called(2.5, x, y=y, out=out)
        for arguments in ((1.0, x, y), (1.0, x, y, wrong), (1j, x, y, out)):
            try:
                called(*arguments)
            except (TypeError, LookupError):
                pass
            else:
                raise AssertionError

    calls()
    gc.collect()
    before = [sys.getrefcount(value) for value in held]
    for _ in range(500):
        calls()
    gc.collect()
    after = [sys.getrefcount(value) for value in held]
    # None is counted loosely: other code takes and gives it, and newer Pythons do not count it.
    assert after[:5] == before[:5]
    assert abs(after[5] - before[5]) < 400
    assert after[6] == before[6]


class Token:
    pass


def test_a_kernel_keeps_its_records_and_lets_go_of_them() -> None:
    token = Token()
    alive = weakref.ref(token)
    called = native.kernel(one, make([array()], keepalive=token))
    del token
    gc.collect()
    assert alive() is not None
    _core.uninstall(called)  # a call in another thread may still be running it
    assert alive() is not None
    del called
    gc.collect()
    assert alive() is None


def test_cycles_are_collected() -> None:
    def function(x, default=None):
        pass

    token = Token()
    function.__defaults__ = (token,)
    called = _core.make_kernel(function, token, ("x", "default"), (False, False), print)
    _core.install(called, make([array(), array()], keepalive=token))
    token.kernel = called  # type: ignore[attr-defined]
    called.itself = called  # type: ignore[attr-defined]
    alive = weakref.ref(token), weakref.ref(called)
    del token, called, function
    gc.collect()
    assert alive[0]() is None
    assert alive[1]() is None


# Manners


@native.kernel
def documented(x, *, n: int = 3):
    """What it does."""


def test_a_kernel_looks_like_its_function() -> None:
    assert repr(documented) == f"<tack.kernel {__name__}:documented>"
    assert documented.__name__ == documented.__qualname__ == "documented"
    assert documented.__module__ == __name__
    assert documented.__doc__ == "What it does."
    assert documented.py_func is documented.__wrapped__
    assert str(inspect.signature(documented)) in {"(x, *, n: int = 3)", "(x, *, n: 'int' = 3)"}
    documented.__signature__ = inspect.Signature()
    assert str(inspect.signature(documented)) == "()"
    del documented.__signature__
    assert callable(documented)
    assert vars(documented)["__wrapped__"] is documented.py_func


def test_it_takes_attributes_and_weak_references() -> None:
    called = native.kernel(one)
    called.mark = 1  # type: ignore[attr-defined]
    assert called.mark == 1  # type: ignore[attr-defined]
    assert weakref.ref(called)() is called
    assert called == called
    assert hash(called) == hash(called)
    with pytest.raises(AttributeError):
        called.py_func = one
    with pytest.raises(TypeError):
        _core.Kernel.mark = 1
    with pytest.raises(TypeError):
        type(called)()
    with pytest.raises(TypeError):
        type("Sub", (_core.Kernel,), {})


def test_it_is_pickled_and_copied_by_name() -> None:
    assert pickle.loads(pickle.dumps(documented)) is documented
    assert copy.copy(documented) is documented
    assert copy.deepcopy({"k": documented})["k"] is documented
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(native.kernel(lambda x: None))


@tack.func
def device_function(x):
    return x


class Owner:
    @tack.func
    def method(self):
        return 1

    @staticmethod
    @tack.func
    def static(x):
        return x


@pytest.mark.parametrize("found", [device_function, Owner.method, Owner.static], ids=str)
def test_a_device_function_is_pickled_and_copied_by_name(found) -> None:
    assert pickle.loads(pickle.dumps(found)) is found
    assert copy.copy(found) is found
    assert copy.deepcopy({"k": found})["k"] is found


def test_it_is_a_method_in_a_class() -> None:
    seen = []

    def on_miss(called, arguments):
        seen.append(arguments)
        raise LookupError

    class Owner:
        def method(self, x, n=2):
            pass

        method = native.kernel(method, on_miss=on_miss)
        static = staticmethod(native.kernel(one, on_miss=on_miss))
        klass = classmethod(native.kernel(one, on_miss=on_miss))

    owner = Owner()
    for call in (
        lambda: owner.method(1),
        lambda: Owner.method(owner, 1),
        lambda: owner.method(x=1),
    ):
        with pytest.raises(LookupError):
            call()
        assert seen.pop() == (owner, 1, 2)
    assert Owner.method is Owner.__dict__["method"]
    assert owner.method.__self__ is owner
    assert str(inspect.signature(owner.method)) == "(x, n=2)"
    with pytest.raises(TypeError, match=r"Owner.method\(\) missing 1 required positional arg"):
        owner.method()
    with pytest.raises(LookupError):
        owner.static(4)
    assert seen.pop() == (4,)
    with pytest.raises(LookupError):
        owner.klass()
    assert seen.pop() == (Owner,)


def test_make_kernel_checks_what_it_is_given() -> None:
    with pytest.raises(TypeError, match="made of a Python function"):
        _core.make_kernel(print, None, (), (), native.missed)
    with pytest.raises(ValueError, match="not those of the function"):
        _core.make_kernel(one, None, ("b",), (False,), native.missed)
    with pytest.raises(ValueError, match="differ in length"):
        _core.make_kernel(one, None, ("a",), (), native.missed)
    with pytest.raises(TypeError, match="a Kernel was expected"):
        _core.install(one, make([array()]))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a Launchable was expected"):
        _core.install(native.kernel(one), one)  # type: ignore[arg-type]


# Libraries and the machine


def test_a_library_gives_the_addresses_of_its_symbols() -> None:
    library = native.library()
    assert library.symbol("spy") > 0
    assert library.path == str(native.path())
    with pytest.raises(AttributeError, match="no_such_kernel"):
        library.symbol("no_such_kernel")


def test_a_library_that_cannot_be_loaded_is_an_os_error(tmp_path) -> None:
    with pytest.raises(OSError, match=r"missing\.so"):
        _core.Library(str(tmp_path / "missing.so"))
    other = tmp_path / "other.so"
    other.write_bytes(b"no library")
    with pytest.raises(OSError, match=r"other\.so"):
        _core.Library(other)
    with pytest.raises(ValueError, match="null"):
        _core.Library("a\0b")


def test_cpu_levels_are_those_of_the_kernel_of_the_system() -> None:
    levels = _core.cpu_levels()
    information = Path("/proc/cpuinfo")
    text = information.read_text(encoding="ascii") if information.exists() else ""
    lines = [line for line in text.splitlines() if line.startswith("flags")]
    if not lines:
        pytest.skip("this machine lists no x86 flags")
    flags = set(lines[0].split())
    v2 = {"cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"}
    v3 = {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"}
    v4 = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
    wanted = ["x86-64"]
    for name, needed in (("x86-64-v2", v2), ("x86-64-v3", v3), ("x86-64-v4", v4)):
        if not needed <= flags:
            break
        wanted.append(name)
    assert levels == wanted
