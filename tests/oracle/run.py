"""Runs a kernel under the shim, one iteration at a time."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from .analysis import Analysis, Analyzer, bind
from .arrays import Access, Array, array_dtype, atomic, numpy_dtype
from .flow import annotation, element
from .numbers import convert
from .rewrite import Rewriter
from .source import (
    OWN_MODULES,
    WORDS,
    Builtin,
    Device,
    parameters,
    resolve,
    spelled,
    syntax,
    unwrap,
)
from .templates import Template, is_template, own_attributes
from .types import (
    BOOL,
    F32,
    F64,
    I64,
    Dtype,
    OracleRefused,
    Type,
    VectorType,
    default_float,
    floats_default_to,
    is_integer,
)
from .values import Value, lift, literal, to, value_type
from .vectors import NAMES, Vector, call, of_numpy

__all__ = ["argument", "check", "run", "signature"]

Order = Callable[[list[Any]], Iterable[Any]]


class _Parallel:
    """Stands around the parallel loop's iterable: lists the iterations, or gives one of them."""

    def __init__(self) -> None:
        self.iterations: list[Any] = []
        self.chosen: tuple[Any, ...] = ()

    def __call__(self, iterable: Iterable[Any]) -> Iterable[Any]:
        if not self.chosen:
            self.iterations = list(iterable)
        return self.chosen


class _Shim:
    """Makes what the names of a function stand for while it runs under the shim."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self.parallel = _Parallel()
        self._functions: dict[int, Callable[..., Any]] = {}

    def compiled(self, analysis: Analysis, kernel: bool = False) -> Callable[..., Any]:
        """The rewritten function, ready to be called with values and arrays."""
        key = id(analysis)
        if key not in self._functions:
            rewriter = Rewriter(analysis, kernel)
            node = rewriter.function()
            names = {
                name: self.named(resolve(analysis.function, each))
                for name, each in rewriter.globals.items()
            }
            scope: dict[str, Any] = {
                **names,
                **rewriter.constants,
                "__to": to,
                "__literal": literal,
                "__truth": _truth,
                "__parallel": self.parallel,
            }
            module = ast.Module([node], [])
            exec(compile(module, f"<oracle of {node.name}>", "exec"), scope)
            compiled: Callable[..., Any] = scope[node.name]
            # A function may be called by a name that it also has as a global.
            scope.update(names)
            self._functions[key] = compiled
        return self._functions[key]

    def named(self, found: Any) -> Any:
        """What runs in place of a resolved name."""
        if isinstance(found, Builtin):
            if found.name == "range":
                return _range
            if found.name == "ndrange":
                return _ndrange
            if found.name.startswith("atomic_"):
                op = found.name.removeprefix("atomic_")
                return lambda *arguments: atomic(op, *arguments)
            if found.name in _ARRAY_MAKERS:
                return _ARRAY_MAKERS[found.name]
            if found.name == "len":
                return _length
            if found.name == "float":
                return _float
            return partial(call, found.name)
        if isinstance(found, Device):
            return self.device(found.function)
        return _Module(self, found) if isinstance(found, ModuleType) else found

    def device(self, function: FunctionType) -> Callable[..., Any]:
        """What runs in place of a device function."""

        def call(*positional: Any, **keywords: Any) -> Any:
            bound = [(name, _lifted(given)) for name, given in bind(function, positional, keywords)]
            analysis = self.analyzer.function(function, [value_type(each) for _, each in bound])
            return self.compiled(analysis)(**dict(bound))

        return call


def _float(given: Any) -> Any:
    return literal(float(given)) if isinstance(given, str) else call("float", given)


def _truth(given: Any) -> Any:
    return given if isinstance(given, Vector) else Value(BOOL, bool(given))


def _lifted(given: Any) -> Any:
    """An argument of a device function; a default may be a vector of plain Python."""
    if isinstance(given, np.ndarray):
        return of_numpy(given)
    return given if isinstance(given, Array | Template | Vector) else lift(given)


class _Module:
    """A module whose attributes are the shim's."""

    def __init__(self, shim: _Shim, module: ModuleType) -> None:
        self._shim = shim
        self._module = module

    def __getattr__(self, name: str) -> Any:
        own = self._module.__name__ in OWN_MODULES and spelled(name) in WORDS
        found = Builtin(spelled(name)) if own else _attribute(self._module, name)
        return self._shim.named(found)


def _attribute(module: ModuleType, name: str) -> Any:
    probe = FunctionType((lambda: None).__code__, {"module": module})
    return resolve(probe, ast.parse(f"module.{name}", mode="eval").body)


def _index(operand: Any) -> int:
    value = lift(operand)
    if not is_integer(value.type) or value.type == BOOL:
        raise OracleRefused(f"a bound of type {value.type}")
    return int(convert(value.payload, I64))


def _range(*bounds: Any) -> list[Value] | Iterable[Value]:
    numbers = [_index(each) for each in bounds]
    if len(numbers) == 3 and numbers[2] == 0:
        raise OracleRefused("a step of 0")
    return (Value(I64, each) for each in range(*numbers))


def _ndrange(*sizes: Any) -> Iterable[tuple[Value, ...] | Value]:
    extents = [range(max(_index(each), 0)) for each in sizes]
    for position in itertools.product(*extents):
        indices = tuple(Value(I64, each) for each in position)
        yield indices if len(indices) > 1 else indices[0]


def _local_array(dtype: partial[Any], shape: Any) -> Array:
    extents = [_index(each) for each in (shape if isinstance(shape, tuple) else (shape,))]
    (name,) = dtype.args
    if name not in NAMES:
        return Array(np.zeros(extents, numpy_dtype(name)))
    data = np.zeros([*extents, *NAMES[name].shape], numpy_dtype(str(NAMES[name].dtype)))
    return Array(data, element=NAMES[name])


def _local_array_like(array: Array, dtype: partial[Any] | None = None) -> Array:
    kind = array.data.dtype if dtype is None else numpy_dtype(*dtype.args)
    shape = array.type.element
    element = VectorType(array.type.dtype, shape) if shape else None
    return Array(np.zeros(array.data.shape, kind), element=element)


def _length(operand: Any) -> Any:
    return operand.shape[0] if isinstance(operand, Array) else call("len", operand)


_ARRAY_MAKERS = {"local_array": _local_array, "local_array_like": _local_array_like}


def argument(given: Any, declared: Dtype | None, default_float: Dtype) -> Value:
    """A scalar argument by the language page: annotated, or by the kind of Python number."""
    number = given.item() if isinstance(given, np.generic) else given
    if not isinstance(number, bool | int | float):
        raise OracleRefused(f"argument {given!r}")
    if declared is None:
        declared = (
            BOOL if isinstance(number, bool) else I64 if isinstance(number, int) else default_float
        )
    if isinstance(number, float) and declared.kind != "float":
        raise OracleRefused(f"{given!r} for {declared}")
    if declared.kind == "bool" and not isinstance(number, bool):
        raise OracleRefused(f"{given!r} for bool")
    if declared.kind in ("signed", "unsigned") and not declared.holds(int(number), int(number)):
        raise OracleRefused(f"{given!r} does not fit {declared}")
    return Value(declared, convert(number, declared))


def _arrays(given: Any) -> Iterable[np.ndarray[Any, Any]]:
    """An array, or those that a template holds."""
    if isinstance(given, np.ndarray):
        yield given
    elif is_template(given):
        for _, held in own_attributes(given):
            yield from _arrays(held)


def _parameter(given: Any, declared: Dtype | VectorType | None) -> Any:
    """A scalar argument, or the sequence of numbers that a vector parameter takes."""
    if not isinstance(declared, VectorType):
        return argument(given, declared, default_float())
    numbers = np.array(given, object)  # NumPy makes floats of 1 beside 2**63
    if numbers.shape != declared.shape:
        raise OracleRefused(f"{given!r} for {declared}")
    assert isinstance(declared.dtype, Dtype)
    parts = [argument(each, declared.dtype, F32) for each in numbers.ravel().tolist()]
    return Vector(declared.dtype, declared.shape, parts)


def _floats(arguments: Sequence[Any]) -> AbstractContextManager[None]:
    """Inside, floats without a type are what these arguments make them."""
    arrays = [each for given in arguments for each in _arrays(given)]
    double = any(array_dtype(each) == F64 for each in arrays)
    return floats_default_to(F64 if double else F32)


def _bound(
    function: FunctionType, arguments: Sequence[Any], access: Access | None
) -> list[Array | Template | Value]:
    bound: list[Array | Template | Value] = []
    for parameter, given in zip(parameters(syntax(function)), arguments, strict=True):
        if isinstance(given, np.ndarray):
            bound.append(Array(given, access, element(parameter.annotation)))
        elif is_template(given):
            bound.append(
                Template(
                    given,
                    lambda number, typed: argument(number, typed, default_float()),
                    lambda array: Array(array, access),
                )
            )
        else:
            spelled = parameter.annotation
            declared = None if spelled is None else annotation(spelled)
            bound.append(_parameter(given, declared))
    return bound


def check(kernel: Any, arguments: Sequence[Any]) -> dict[str, Type]:
    """The static types of a kernel's locals for these arguments.

    Raises `OracleRefused` if the language page refuses the program.
    """
    function = unwrap(kernel)
    with _floats(arguments):
        bound = _bound(function, arguments, None)
        return Analyzer().function(function, [value_type(each) for each in bound]).locals


def signature(kernel: Any, arguments: Sequence[Any]) -> str:
    """The types of the parameters, as tack writes a signature: `f32, u8[:, :; strided]`."""
    with _floats(arguments):
        bound = _bound(unwrap(kernel), arguments, None)
    return ", ".join(str(value_type(each)) for each in bound)


def run(
    kernel: Any,
    arguments: Sequence[Any],
    *,
    order: Order = iter,
    access: Callable[[int, str, int, int], None] | None = None,
) -> None:
    """Run `kernel` on `arguments`, one per parameter; arrays are changed in place.

    `order` may permute the iterations, which no race-free program notices; `access` is told of
    every load and store: the iteration's number, "load" or "store", address, bytes.

    Raises `OracleRefused` before anything is stored if the language page refuses the program.
    """
    function = unwrap(kernel)
    if sum(isinstance(each, ast.For) for each in syntax(function).body) != 1:
        raise OracleRefused("a kernel has one outermost parallel loop")
    with _floats(arguments):
        _run(function, arguments, order, access)


def _run(
    function: FunctionType,
    arguments: Sequence[Any],
    order: Order,
    access: Callable[[int, str, int, int], None] | None,
) -> None:
    current = 0

    def watch(kind: str, address: int, size: int) -> None:
        if access is not None:
            access(current, kind, address, size)

    bound = _bound(function, arguments, watch if access is not None else None)
    shim = _Shim(Analyzer())
    analysis = shim.analyzer.function(function, [value_type(each) for each in bound])
    for each in bound:
        if isinstance(each, Template):
            each.attach(shim.device)
    compiled = shim.compiled(analysis, kernel=True)
    compiled(*bound)
    for current, iteration in order(list(enumerate(shim.parallel.iterations))):  # noqa: B007
        shim.parallel.chosen = (iteration,)
        compiled(*bound)
