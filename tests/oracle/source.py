"""A plain function's syntax tree, and what the names in it stand for."""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import textwrap
from dataclasses import dataclass
from functools import lru_cache
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from .rules import BUILTINS
from .types import DTYPES, OracleRefused
from .values import Value, cast, literal
from .vectors import FUNCTIONS, NAMES, of_numpy

__all__ = [
    "OWN_MODULES",
    "WORDS",
    "Builtin",
    "Device",
    "parameters",
    "resolve",
    "spelled",
    "syntax",
    "unwrap",
]

_PYTHON = ("int", "float", "bool", "abs", "min", "max", "range", "round", "any", "all", "len")
OWN_MODULES = ("tack", "tack.math", "tack.random")
WORDS = {*BUILTINS, *NAMES, *FUNCTIONS, "range", "ndrange", "local_array", "local_array_like"}
"""What the language defines under the name `tack`, bool without its underscore."""


@dataclass(frozen=True)
class Builtin:
    """A cast, a builtin or a loop of the language, by its name there."""

    name: str


@dataclass(frozen=True)
class Device:
    """A device function: the plain function under its decorator."""

    function: FunctionType


def spelled(name: str) -> str:
    """`bool_` is `bool`: the name with the underscore keeps clear of Python's own."""
    return name.removesuffix("_")


def unwrap(decorated: Any) -> FunctionType:
    """The plain function under `@tack.kernel` or `@tack.func`."""
    for name in ("py_func", "__wrapped__", "function"):
        inner = getattr(decorated, name, None)
        if isinstance(inner, FunctionType):
            return inner
    if isinstance(decorated, FunctionType):
        return decorated
    raise OracleRefused(f"{decorated!r} is not a function")


@lru_cache(maxsize=4096)
def syntax(function: FunctionType) -> ast.FunctionDef:
    """The function's own definition, parsed from its source. Not to be changed: it is shared."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    node = tree.body[0]
    assert isinstance(node, ast.FunctionDef)
    return node


def parameters(node: ast.FunctionDef) -> list[ast.arg]:
    """Parameters in order, keyword-only ones last."""
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def _scope(function: FunctionType, name: str) -> Any:
    if name in function.__code__.co_freevars:
        cells = function.__closure__ or ()
        return cells[function.__code__.co_freevars.index(name)].cell_contents
    if name in function.__globals__:
        return function.__globals__[name]
    try:
        return getattr(builtins, name)
    except AttributeError:
        raise OracleRefused(f"{name} is not defined") from None


def resolve(function: FunctionType, node: ast.expr) -> Any:
    """What a global name, or an attribute of a module, is.

    A `Builtin`, a `Device`, a constant's `Value` or `Vector`, or a module.
    """
    if isinstance(node, ast.Name):
        return _classify(_scope(function, node.id), node.id)
    if isinstance(node, ast.Attribute):
        owner = resolve(function, node.value)
        if isinstance(owner, ModuleType):
            if owner.__name__ in OWN_MODULES and spelled(node.attr) in WORDS:
                return Builtin(spelled(node.attr))
            found = getattr(owner, node.attr)
            if owner.__name__ in ("math", "numpy") and node.attr in _NUMBERS:
                return literal(found)
            return _classify(found, node.attr)
    raise OracleRefused(f"{ast.unparse(node)} is no name of the language")


_NUMBERS = ("inf", "nan", "pi", "e", "tau")
"""The numbers of `math` and `numpy` that kernels read."""


def _classify(found: Any, name: str) -> Any:
    if name in _NUMBERS and found is getattr(math, name):
        return literal(found)
    if isinstance(found, ModuleType):
        return found
    if found is getattr(builtins, name, None) and name in _PYTHON:
        return Builtin(name)
    if isinstance(found, np.ndarray) and type(found).__name__ == "Vector":
        if found.flags.writeable:
            raise OracleRefused(f"{name} is a vector of the enclosing scope that may change")
        return of_numpy(found)
    module = getattr(found, "__module__", None) or ""
    own = spelled(getattr(found, "__name__", name))
    if module.partition(".")[0] == "tack" and own in WORDS:
        return Builtin(own)
    if isinstance(found, int | float):
        return _constant(found, name)
    return Device(unwrap(found))


def _constant(found: int | float, name: str) -> Value:
    """A `tack.constant`: of its dtype, or as the literal written in its place."""
    if not hasattr(found, "dtype"):
        raise OracleRefused(f"{name} is a plain number of the enclosing scope")
    number = float(found) if isinstance(found, float) else int(found)
    if found.dtype is None:
        return literal(number)
    return cast(DTYPES[found.dtype.name], number)
