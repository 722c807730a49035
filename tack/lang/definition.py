"""What a decorator captured: the function, its options, and lazily what follows from its source."""

from __future__ import annotations

import ast
import contextlib
import functools
import math
import types
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from tack.lang.array import Array, ArrayOf
from tack.lang.bindings import (
    MISSING,
    Constant,
    assigned_name,
    dotted_name,
    local_names,
    resolve,
)
from tack.lang.source import SourceFunction, read_function, stamp_file
from tack.model.dtypes import DTYPES, DType, bool_
from tack.model.errors import TOO_DEEP, CompileError
from tack.model.vectors import VectorType, components_of

if TYPE_CHECKING:
    from tack.lang.fingerprint import Fingerprint
    from tack.model.signature import Signature
    from tack.model.variant import Options

__all__ = ["Annotation", "FunctionDefinition", "KernelDefinition", "constant", "func"]


Annotation = DType | VectorType | ArrayOf
"""What an annotation says: the type of a value, or what an array holds."""

_SUSPENDING: Final = 0x20 | 0x80 | 0x200
"""The code flags of generators, coroutines and async generators; `inspect` is slow to import."""


class _Definition:
    """A decorated function. Its source is read when first asked for."""

    def __init__(self, function: Callable[..., Any]) -> None:
        if not isinstance(function, types.FunctionType) or function.__name__ == "<lambda>":
            what = (
                "a lambda" if isinstance(function, types.FunctionType) else type(function).__name__
            )
            raise TypeError(f"tack decorates functions written with def, not {what}")
        if function.__code__.co_flags & _SUSPENDING:
            raise TypeError(
                f"tack decorates plain functions; {function.__qualname__} is a generator or async"
            )
        self.function = function
        self.stamp = stamp_file(function.__code__.co_filename)

    @property
    def module(self) -> str:
        """The name of the module; code that was executed in a bare namespace has none."""
        return self.function.__module__ or "__main__"

    @property
    def name(self) -> str:
        """``package.module:qualified.name``."""
        return f"{self.module}:{self.function.__qualname__}"

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters, in order."""
        code = self.function.__code__
        return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]

    @functools.cached_property
    def source(self) -> SourceFunction:
        """Syntax tree and lines; `tack.lang.source.SourceUnavailable` where there are none."""
        return read_function(self.function, self.stamp)

    @functools.cached_property
    def local_names(self) -> frozenset[str]:
        """The parameters and every name that the function binds."""
        return frozenset(local_names(self.source.node))

    @functools.cached_property
    def assigned_names(self) -> frozenset[str]:
        """The names that the function assigns, or of which it assigns components or elements."""
        names = map(assigned_name, ast.walk(self.source.node))
        return frozenset(name for name in names if name is not None)

    @functools.cached_property
    def annotations(self) -> tuple[Annotation | None, ...]:
        """What each parameter's annotation names; None for none, or for a plain ``tack.Array``.

        Raises `CompileError` for an annotation that says nothing about a parameter.
        """
        arguments = self.source.node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        return tuple(self._annotation(argument) for argument in every)

    def _annotation(self, argument: ast.arg) -> Annotation | None:
        from tack.lang.template import is_device_class

        if argument.annotation is None:
            return None
        node = _unquoted(argument.annotation)
        value = self._named(node)
        if isinstance(value, ArrayOf):
            return value
        if value is Array or is_device_class(value):
            return None
        return self.value_type(node, array_too=True)

    @property
    def declared(self) -> Mapping[str, Any]:
        """What the decorator of a source kernel was given, by content; nothing of others."""
        return {}

    def annotation_in(self, text: str) -> Any:
        """What an annotation in quotes stands for, or `MISSING`."""
        try:
            return self._named(ast.parse(text.strip(), mode="eval").body)
        except SyntaxError:
            return MISSING

    def value_type(self, node: ast.expr, *, array_too: bool = False) -> DType | VectorType:
        """The scalar, vector or matrix type that an annotation names."""
        node = _unquoted(node)
        value = self._named(node)
        if isinstance(value, DType | VectorType):
            return value
        if value in (bool, int, float):
            python = {bool: "tack.bool_", int: "tack.i64", float: "tack.f64"}[value]
            raise self.source.refuse(
                node,
                f"the annotation {dotted_name(node)} says no width; write {python} or another "
                "scalar type",
            )
        known = ", ".join(f"tack.{n}" for n in DTYPES if n != "bool")
        raise self.source.refuse(
            node,
            f"an annotation is a scalar type ({known}, tack.bool_), a vector or matrix type such "
            "as tack.f32x3" + (", tack.Array or a @tack.device_class" if array_too else ""),
        )

    def _named(self, node: ast.expr) -> Any:
        """What an annotation stands for: a name, or an array of what a name stands for."""
        if isinstance(node, ast.Subscript) and self._named(node.value) is Array:
            element = self._named(node.slice)
            return ArrayOf(element) if isinstance(element, VectorType) else MISSING
        dotted = dotted_name(node)
        return resolve(self.function, dotted) if dotted else MISSING


def _unquoted(node: ast.expr) -> ast.expr:
    """An annotation in quotes without them."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        with contextlib.suppress(SyntaxError):
            return ast.copy_location(ast.parse(node.value, mode="eval").body, node)
    return node


class KernelDefinition(_Definition):
    """What ``@tack.kernel`` captured; the callable has it as ``definition``."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        super().__init__(function)
        self._given = options
        self._fingerprint: Fingerprint | None = None

    @functools.cached_property
    def options(self) -> Options:
        """The options; raises ``ValueError`` for one that is not known."""
        from tack.model.variant import Options

        return Options(**self._given)

    def fingerprint(self, signature: Signature | None = None) -> Fingerprint:
        """The digest of the kernel's code and of everything it reaches, with what it captured.

        With a signature, that includes what its templates reach. Raises `CompileError` where
        source is missing. That of the kernel alone is worked out once.
        """
        from tack.lang.fingerprint import fingerprint

        try:
            if signature is not None and signature.templates:
                return fingerprint(self, signature)
            if self._fingerprint is None:
                self._fingerprint = fingerprint(self)
        except RecursionError:
            raise CompileError(TOO_DEEP.format(self.name)) from None
        return self._fingerprint


class FunctionDefinition(_Definition):
    """A device function, as ``@tack.func`` returns it: inlined into kernels, callable in Python."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the plain Python function."""
        return self.function(*args, **kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Binds as a function does."""
        return self if instance is None else functools.partial(self, instance)

    def __reduce__(self) -> str:
        """Pickles and copies as a function does: by name, to the same object."""
        return self.function.__qualname__

    def __repr__(self) -> str:
        return f"<tack.func {self.name}>"


def func(function: Callable[..., Any]) -> FunctionDefinition:
    """Marks a device function: kernels that call it have it inlined.

    Early ``return`` works anywhere but inside a loop of the function; several results, keyword
    arguments and defaults work; recursion is refused. Called from Python it is a plain function.
    """
    return FunctionDefinition(function)


class _IntConstant(Constant, int):
    @property
    def literal(self) -> int | float:
        return bool(self) if self.dtype is bool_ else int(self)


class _FloatConstant(Constant, float):
    @property
    def literal(self) -> int | float:
        return float(self)


def constant(value: Any, dtype: DType | VectorType | None = None) -> Any:
    """A number or vector that kernels may read from an enclosing scope, baked in when they compile.

    With ``dtype`` it has that type; without, it takes the type of what it meets, as a literal
    written in its place would. In plain Python it is the number. With a vector or matrix type it
    takes what that type is called with, a tuple of numbers too; the vector cannot be changed.

    Raises ``TypeError`` for what is no number or no scalar type, ``OverflowError`` for an integer
    that ``dtype`` cannot hold, ``ValueError`` for a float given an integer type.

    >>> constant(3, dtypes.u8) + 1
    4
    """
    made = components_of(value)
    if dtype is None and made is not None:
        dtype = made[0]
    if isinstance(dtype, VectorType):
        vector = dtype(*value) if isinstance(value, tuple | list) else dtype(value)
        vector = vector.copy()
        vector.flags.writeable = False
        return vector
    item = value.item() if getattr(value, "ndim", 0) == 0 and hasattr(value, "item") else value
    if not isinstance(item, bool | int | float):
        raise TypeError(f"tack.constant takes a number, not {type(value).__name__}")
    if dtype is not None and not isinstance(dtype, DType):
        raise TypeError(f"tack.constant({value!r}, ...): {dtype!r} is not a scalar type")
    if dtype is None:
        dtype = bool_ if isinstance(item, bool) else None
        if not isinstance(item, float) and not -(2**63) <= item < 2**64:
            raise OverflowError(f"tack.constant({value!r}) fits no integer type of 64 bits")
    elif dtype.is_float:
        given, item = item, float(dtype.convert(item))
        is_kept = isinstance(given, float) and (given == item or math.isnan(given))
        if not math.isfinite(item) and not is_kept:
            raise OverflowError(
                f"tack.constant({value!r}, tack.{dtype}) is beyond the range of {dtype}"
            )
    elif isinstance(item, float):
        raise ValueError(f"tack.constant({value!r}, tack.{dtype}): a float is no {dtype}")
    elif not dtype.holds(item):
        raise OverflowError(
            f"tack.constant({value!r}, tack.{dtype}): {dtype} holds {dtype.minimum} to "
            f"{dtype.maximum}"
        )
    number = _FloatConstant(item) if isinstance(item, float) else _IntConstant(item)
    number.dtype = dtype
    return number
