"""What the template of a source kernel sees: its parameters by their names, and ``tack``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

from tack.ir.nodes import IRFunction, IRParam, LocalArray, Statement
from tack.ir.traversal import kernel_loop
from tack.model.dtypes import DType
from tack.model.errors import CompileError
from tack.model.launch import Launch
from tack.model.signature import ArraySpec
from tack.model.variant import Variant
from tack.render.author_templates import AuthorTemplate, TemplateMisuse
from tack.render.cfamily import Dialect
from tack.render.names import Names
from tack.render.slots import SlotNames
from tack.render.statements import BodyWriter

__all__ = ["ENTRIES_FOLLOW", "AuthorSource", "Loops", "Spelled"]

_JINJA: Final = frozenset({"caller", "false", "loop", "none", "self", "super", "tack", "true"})
"""Names that mean something in a template."""

ENTRIES_FOLLOW: Final = '#line 1 "entry points, written by tack"\n'
"""What stands after an author's text, which would be blamed for what follows otherwise."""

Loops = Callable[[BodyWriter, bool], Sequence[str]]
"""Writes the loops of the iterations around a body; if told so, of groups whose lanes all come."""


class Spelled(NamedTuple):
    """One variant in one language: what is called how."""

    function: IRFunction
    launch: Launch
    names: Names
    slots: SlotNames
    dialect: Dialect


@dataclass(frozen=True, slots=True)
class AuthorSource:
    """What a renderer needs of a source kernel: the variant, and its template."""

    variant: Variant
    template: AuthorTemplate

    def text(self, spelled: Spelled, symbol: str, head: str, loops: Loops) -> str:
        """The author's text: it defines the function that begins with ``head``.

        `CompileError` for a name that the language has taken, what the template asks for in vain,
        a strided array that it takes for a contiguous one, and where it lacks the head.
        """
        values = _Values(spelled, self.variant)
        facts = Facts(head, values, loops)
        text = self.template.fill({**values.parameters(), "tack": facts})
        if symbol not in text:
            raise CompileError(
                f"{self.template.name} never writes {{{{ tack.function }}}}, the head of the "
                f"function that a call of {self.variant.kernel.name} runs; write it, and the "
                "function's body in braces after it"
            )
        for array in values.arrays:
            if array.is_mistaken():
                raise CompileError(
                    f"{self.template.name} takes {array} for a contiguous array, and it is strided "
                    f"for ({self.variant.signature}); write elements as {{{{ {array}.at('i') }}}}, "
                    "which serves both, or pass a contiguous copy (numpy.ascontiguousarray)"
                )
        return text


class _Offers:
    """What a template may ask for; an error lists it."""

    offers: ClassVar[tuple[str, ...]] = ()


class Scalar(_Offers):
    """A number: its name, which is what it prints, and its type."""

    offers = ("name", "type", "dtype")

    def __init__(self, name: str, type_: str, dtype: DType) -> None:
        self.name, self.type, self.dtype = name, type_, dtype.name

    def __str__(self) -> str:
        return self.name


class Components(_Offers):
    """A vector or a matrix: a number for each component."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def add(self, name: str, scalar: Scalar) -> None:
        """Another component."""
        setattr(self, name, scalar)
        self.names.append(name)

    def __str__(self) -> str:
        parts = ", ".join(self.names)
        raise TemplateMisuse(f"a vector is passed as its components {parts}; write one of them")


class Array(_Offers):
    """An array: its pointer's name, which is what it prints, and what is known of it."""

    offers = ("name", "type", "dtype", "rank", "shape", "strides", "strided", "written", "at")

    def __init__(self, values: _Values, param: IRParam, spec: ArraySpec, written: bool) -> None:
        assert param.dims is not None
        self.name = values.slots.name(param.name)
        self.type = values.dialect.type(_typed(param))
        self.dtype, self.rank, self.written = spec.dtype.name, len(param.dims), written
        self.shape = tuple(
            values.slots.extent(param.name, axis) if dim is None else str(dim)
            for axis, dim in enumerate(param.dims)
        )
        self._strides = tuple(
            values.slots.stride(param.name, axis) if param.is_strided else ""
            for axis in range(self.rank)
        )
        self._strided = param.is_strided
        element = values.dialect.space + values.dialect.unaligned[_typed(param).name]
        self._cast = f"{'' if written else 'const '}{element} *"
        self._asked = False

    def is_mistaken(self) -> bool:
        """Whether elements lie by strides, and the template never asked."""
        return self._strided and not self._asked

    def __str__(self) -> str:
        return self.name

    @property
    def strided(self) -> bool:
        """Whether elements lie by strides, in bytes."""
        self._asked = True
        return self._strided

    @property
    def strides(self) -> tuple[str, ...]:
        """The distance of elements along each axis, in bytes; of strided arrays alone."""
        self._asked = True
        if not self._strided:
            raise TemplateMisuse(f"{self} is contiguous and has no strides; ask {self}.strided")
        return self._strides

    def at(self, *indices: object) -> str:
        """The element at some indices, one for each axis, however the array lies in memory."""
        self._asked = True
        if len(indices) != self.rank:
            raise TemplateMisuse(
                f"{self} has {self.rank} axes, and at() was given {len(indices)} indices"
            )
        if self._strided:
            steps = [f"({i}) * {step}" for i, step in zip(indices, self._strides, strict=True)]
            return f"(*({self._cast})({' + '.join([self.name, *steps])}))"
        flat = "0"
        for axis, index in enumerate(indices):
            flat = f"({flat}) * {self.shape[axis]} + ({index})" if axis else f"{index}"
        return f"{self.name}[{flat}]"


class Shared(_Offers):
    """An array that the threads of a block have in common: its name, which is what it prints."""

    offers = ("name", "type", "dtype", "rank", "shape", "size")

    def __init__(self, name: str, type_: str, array: LocalArray) -> None:
        self.name, self.type, self.dtype = name, type_, array.dtype.name
        self.shape, self.rank, self.size = array.dims, len(array.dims), array.size

    def __str__(self) -> str:
        return self.name


class Facts(_Offers):
    """``tack`` in a template."""

    offers = (
        *("function", "iterations", "extents", "indices", "types", "target"),
        *("group", "groups", "lanes", "active"),
    )

    def __init__(self, head: str, values: _Values, loops: Loops) -> None:
        self.function, self.target = head, values.variant.target
        self.extents, self.indices = values.extents, values.indices
        self.types = values.dialect.types
        self.group = values.function.workgroup
        self._slots, self._loops = values.slots, loops

    def iterations(self, caller: Callable[[], str]) -> str:
        """The loops over the iterations of this call, around what stands in the call block."""
        return "".join(f"{line}\n" for line in self._loops(_Given(caller()), False))

    def groups(self, caller: Callable[[], str]) -> str:
        """The loops over the groups of this block, to which all of its threads come."""
        self._need_group("groups()")
        return "".join(f"{line}\n" for line in self._loops(_Given(caller()), True))

    @property
    def lanes(self) -> tuple[str, ...]:
        """In ``groups``: the name of a thread's number in its group, for each index of the loop."""
        self._need_group("lanes")
        return tuple(self._slots.place("thread", axis) for axis in range(len(self.group)))

    @property
    def active(self) -> str:
        """In ``groups``: the name of what is false in a thread that has no iteration."""
        self._need_group("active")
        return self._slots.active()

    def _need_group(self, name: str) -> None:
        if not self.group:
            raise TemplateMisuse(
                f"tack.{name} is for GPUs and kernels that declare a group; write group= in "
                "@tack.source_kernel"
            )


class _Given:
    """A body that is text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def body(self, statements: Sequence[Statement], depth: int) -> list[str]:
        return self._text.removesuffix("\n").split("\n")


class _Values:
    """The parameters of one variant in one language."""

    def __init__(self, spelled: Spelled, variant: Variant) -> None:
        self.function, self.variant, self.names = spelled.function, variant, spelled.names
        self.slots, self.dialect = spelled.slots, spelled.dialect
        self.written = spelled.launch.written
        self.arrays: list[Array] = []
        slots, loop = spelled.slots, kernel_loop(spelled.function)
        for param in spelled.function.params:
            self._check(param.name, slots.name(param.name), param)
        for index in loop.index_vars:
            self._check(index, spelled.names.local(index), loop)
        for name, _ in self._shared():
            self._check(name, spelled.names.local(name), loop)
        self.extents = tuple(slots.count(number) for number in range(len(loop.extents)))
        self.indices = loop.index_vars

    def _check(self, name: str, spelled: str, node: Any) -> None:
        """Refuses a name that cannot stand in the text as it is."""
        language = self.variant.target.backend.replace("cpu", "c").upper()
        if name in _JINJA:
            reason = "it means something else in a template"
        elif spelled != name and "." not in name:
            reason = f"it is no free name in {language}"
        else:
            return
        message = f"{name!r} cannot be a name in a source kernel: {reason}; rename it"
        raise CompileError(message, self.function.positions.get(node))

    def parameters(self) -> dict[str, Any]:
        """What a template sees of each parameter, by its name."""
        found: dict[str, Any] = {}
        flat = self.variant.signature.flat()
        for number, (param, each) in enumerate(zip(self.function.params, flat, strict=True)):
            name, _, component = param.name.partition(".")
            if isinstance(each.spec, ArraySpec):
                array = Array(self, param, each.spec, number in self.written)
                self.arrays.append(array)
                found[name] = array
                continue
            type_ = self.dialect.type(_typed(param))
            scalar = Scalar(self.slots.name(param.name), type_, each.spec.dtype)
            if component:
                found.setdefault(name, Components()).add(component, scalar)
            else:
                found[name] = scalar
        for name, shared in self._shared():
            found[name] = Shared(self.names.local(name), self.dialect.type(shared.dtype), shared)
        return found

    def _shared(self) -> list[tuple[str, LocalArray]]:
        return [(n, array) for n, array in self.function.local_arrays.items() if array.shared]


def _typed(param: IRParam) -> DType:
    assert param.dtype is not None
    return param.dtype
