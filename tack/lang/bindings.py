"""Static names: what a name outside a function's own locals stands for.

A name resolves through the closure cells and globals of the function that defines it, then the
builtins; an attribute only through modules. No registry: identity of the value decides.
"""

from __future__ import annotations

import ast
import builtins
import types
from collections.abc import Iterator
from typing import Any, Final

from tack.model.dtypes import DType
from tack.model.record import Record
from tack.model.vectors import VectorType, components_of

__all__ = [
    "MISSING",
    "Constant",
    "Declaration",
    "assigned_name",
    "describe",
    "dotted_name",
    "local_names",
    "resolve",
    "static_names",
]

MISSING: Final = object()
"""What a name resolves to when it is bound to nothing."""


class Constant:
    """Mixin of the numbers that `tack.constant` returns: a value and perhaps a dtype.

    ``dtype`` is None for a weak constant, which takes the type of what it meets as a literal
    written in its place would.
    """

    dtype: DType | None = None

    @property
    def literal(self) -> int | float:
        """The plain Python number."""
        raise NotImplementedError


class Declaration(Record):
    """What a decorator was given, by content, where that is part of what a kernel is."""

    text: str


def resolve(function: types.FunctionType, dotted: str) -> Any:
    """The value of a dotted name for ``function``, or `MISSING`.

    Attributes are followed through modules only: those of anything else may differ by the time
    of a call.
    """
    first, *rest = dotted.split(".")
    value = _lookup(function, first)
    for attribute in rest:
        if not isinstance(value, types.ModuleType):
            return MISSING
        value = getattr(value, attribute, MISSING)
    return value


def _lookup(function: types.FunctionType, name: str) -> Any:
    code = function.__code__
    if name in code.co_freevars:
        cell = (function.__closure__ or ())[code.co_freevars.index(name)]
        try:
            return cell.cell_contents
        except ValueError:
            return MISSING
    if name in function.__globals__:
        return function.__globals__[name]
    return getattr(builtins, name, MISSING)


def dotted_name(node: ast.AST) -> str | None:
    """``"a.b.c"`` for a chain of attributes on a name, else None."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(parts)])


def local_names(node: ast.FunctionDef) -> set[str]:
    """Parameters and every name that the function binds: those are locals throughout."""
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every += [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
    names = {argument.arg for argument in every}
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and not isinstance(inner.ctx, ast.Load):
            names.add(inner.id)
    return names


def assigned_name(node: ast.AST) -> str | None:
    """The name that ``node`` assigns, or of which it assigns a component or an element."""
    if isinstance(getattr(node, "ctx", None), ast.Load | None):
        return None
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def static_names(node: ast.FunctionDef, function: types.FunctionType) -> Iterator[str]:
    """The dotted names that the function's body and annotations read statically, each once.

    ``tack.f32`` is followed to the type; of ``x.shape`` with a local ``x`` nothing is static. A
    name on something that is no module ends there.
    """
    seen: set[str] = set()
    local = local_names(node)
    parts: list[ast.AST] = [*node.body, *(a.annotation for a in _arguments(node) if a.annotation)]
    for dotted in _dotted(parts):
        first, *rest = dotted.split(".")
        if first in local:
            continue
        value, length = _lookup(function, first), 1
        for attribute in rest:
            if not isinstance(value, types.ModuleType):
                break
            value, length = getattr(value, attribute, MISSING), length + 1
        name = ".".join([first, *rest][:length])
        if name not in seen:
            seen.add(name)
            yield name


def _arguments(node: ast.FunctionDef) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def _dotted(parts: list[ast.AST]) -> Iterator[str]:
    """Every dotted name in the trees, in order of appearance, the longest chain only."""
    for part in parts:
        name = dotted_name(part)
        if name is not None:
            yield name
        else:
            yield from _dotted(list(ast.iter_child_nodes(part)))


def describe(value: Any) -> str:
    """A static value by content, as keys and bundles hold it.

    Functions of the kernel language are named here; their content has its own digest.
    """
    from tack.lang.definition import FunctionDefinition

    if isinstance(value, Constant):
        kind = value.dtype.name if value.dtype is not None else "weak"
        return f"constant {kind} {_number(value.literal)}"
    if isinstance(value, DType | VectorType):
        return f"dtype {value.name}"
    vector = components_of(value)
    if vector is not None:
        return f"vector {vector[0].name} {' '.join(map(_number, vector[1]))}"
    if isinstance(value, FunctionDefinition):
        return f"func {value.name}"
    if isinstance(value, types.ModuleType):
        return f"module {value.__name__}"
    if isinstance(value, bool | int | float):
        return f"number {_number(value)}"
    if type(value) is tuple:
        return f"tuple {', '.join(map(describe, value))}"
    if isinstance(value, Declaration):
        return f"declared {value.text}"
    if value is MISSING:
        return "nothing"
    owner = value if isinstance(value, type) or callable(value) else type(value)
    module = str(getattr(owner, "__module__", None))
    name = getattr(owner, "__qualname__", type(value).__qualname__)
    # tack's own builtins by their public names: a file moved in a later tack is no miss
    return f"tack {name}" if module.startswith("tack.") else f"object {module}:{name}"


def _number(value: int | float) -> str:
    """A number with its type; floats by their bits (NaN equals itself, -0.0 is not 0.0)."""
    text = value.hex() if isinstance(value, float) else str(int(value))
    return f"{type(value).__name__} {text}"
