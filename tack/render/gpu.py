"""GPU dialects: one thread an iteration, and more by strides where a grid is too small.

A variant becomes a struct of its scalars and extents, a function with its loops, always inlined,
and its entry points, which take the pointers and that struct. The struct has one field of 8 bytes
for each slot that is no pointer, in the order of the launch plan, so that the host copies slots as
they are; the entry of ``noalias`` promises that pointers do not alias.

Each dimension of the parallel loop is an axis of the grid, the fastest index along x, and each
thread steps over the whole grid along every axis. So every iteration is run by exactly one thread
whatever the sizes of grid and block are, along the axes that the loop has (along others they are
1): the host may choose them at every call.

A kernel with workgroups steps over groups in the same way, with blocks of the very size of a group.
Its shared arrays are the members of one struct, which an entry point declares, or lays over the
memory that the launcher gives it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

from tack.ir.nodes import IRFunction
from tack.ir.traversal import kernel_loop
from tack.model.dtypes import DTYPES, i64
from tack.model.gpus import GPUS
from tack.model.launch import Launch
from tack.render.author_values import ENTRIES_FOLLOW, AuthorSource, Spelled
from tack.render.cfamily import Dialect
from tack.render.gpu_loops import group_loops, thread_loops
from tack.render.names import Names
from tack.render.renderer import Renderer
from tack.render.slots import SlotParameter, listed
from tack.render.source import Source
from tack.render.statements import BodyWriter, writer_of
from tack.render.templates import fill

__all__ = ["GROUP", "VECTOR_SIZES", "GpuDialect", "gpu_renderer"]

GROUP: Final = 256
"""Threads of a block of an ordinary kernel at most."""

Builtin = tuple[str, str, str]
"""A parameter: its declaration, its name, and the attribute by which an entry point gets it."""

_HELPER: Final = re.compile(r"\btack_\w+(?=\()")
_WORD: Final = 32

VECTOR_SIZES: Final = (2, 4, 8)
"""How many elements one access moves; 16 bytes at most."""


@dataclass(frozen=True, slots=True)
class GpuDialect:
    """What GPU languages differ in, beside a `Dialect`.

    ``folder`` holds the templates, ``suffix`` ends the names of files, ``needs`` says what compiles
    them. ``first`` and ``step``: the number of a thread along an axis and the number of threads
    along it, ``{}`` being x, y or z.
    ``lane``, ``group`` and ``groups``: the number of a thread in its workgroup along an axis, that
    of the workgroup, and how many of these there are. ``threads`` are parameters by which a
    function knows the former, and ``lanes`` those by which it knows the latter, where the language
    has no names for them. ``pointer`` is how an entry point reads an array's pointer, ``flavours``
    are the entry points that make sense. ``calls``: a function of the templates -> the others that
    it calls. ``supported`` are the operations that the language has beside those that it can
    spell, ``native`` the elementary functions that ``fp="fast"`` calls. ``exact`` says that floats
    are rounded as IEEE 754 does it, subnormals too.
    """

    language: Dialect
    folder: str
    suffix: str
    needs: str
    first: str
    step: str
    lane: str
    group: str
    groups: str
    threads: tuple[Builtin, ...] = ()
    lanes: tuple[Builtin, ...] = ()
    pointer: str = "{}"
    flavours: tuple[str, ...] = ("general", "noalias")
    calls: Mapping[str, Collection[str]] = field(default_factory=dict)
    supported: frozenset[str] = frozenset()
    native: frozenset[tuple[str, str]] = frozenset()
    exact: bool = True


def gpu_renderer(dialect: GpuDialect) -> Renderer:
    """The renderer of a GPU dialect, without a compiler.

    Its limits are the greatest of the backend that is called as the dialect's folder, so that all
    architectures share it.
    """
    limits = [gpu.limits for gpu in GPUS[dialect.folder].values()]
    most = limits[0]
    return Renderer(
        render=partial(_render, dialect),
        assemble=partial(_assemble, dialect),
        suffix=dialect.suffix,
        needs=dialect.needs,
        dtypes=frozenset(dialect.language.types),
        exact=dialect.exact,
        code_for_op=_operations(dialect),
        native_math=dialect.native,
        atomics=frozenset(dialect.language.atomics),
        has_local=True,
        has_shared=True,
        global_max=most.global_max,
        global_prod_max=most.global_prod_max,
        local_max=most.local_max,
        local_prod_max=most.local_prod_max,
        shared_max=max(each.shared_max for each in limits),
        shared_static=max(each.shared_static for each in limits),
        unaligned=False,
        flavours=dialect.flavours,
        language=dialect.folder,
        render_author=partial(_render_author, dialect),
        supports_float4=True,
    )


_OPERATORS: Final = frozenset({"cmpeq", "cmple", "fdiv", "neg", "shl", "shr"})
"""What languages of the family have operators for."""


def _operations(dialect: GpuDialect) -> frozenset[str]:
    """The operations that the language has operators or functions for, and others that it has.

    Functions for ``fp="fast"`` do not count: their results are those of a target, and not tack's.
    """
    named = frozenset(dialect.language.functions) - dialect.native
    return _OPERATORS | {function for function, _ in named} | dialect.supported


class _Form(NamedTuple):
    """One function of a variant, and its text: its parameters are slots, and then others.

    ``passed`` are what an entry point gives it for these.
    """

    symbol: str
    text: str
    used: Sequence[SlotParameter]
    passed: Sequence[str]


class _Entry(NamedTuple):
    """An entry point: the declarations of its arrays, and the calls that it makes."""

    symbol: str
    arrays: list[str]
    calls: list[tuple[str, list[str]]]


def _render(dialect: GpuDialect, function: IRFunction, launch: Launch, symbol: str) -> str:
    forms = [_form(dialect, function, launch, symbol)]
    if function.wide is not None:
        forms.append(_form(dialect, function.wide, launch, f"{symbol}_wide"))
    return _with_entries(dialect, function, forms, launch, symbol)


def _render_author(
    dialect: GpuDialect, function: IRFunction, launch: Launch, symbol: str, author: AuthorSource
) -> str:
    language = dialect.language
    names, slots, _ = writer_of(function, launch, language)
    every = slots.every(language)

    def loops(body: BodyWriter, groups: bool) -> list[str]:
        write = group_loops if groups else thread_loops
        return list(write(dialect, function, body, names, slots))

    spelled = Spelled(function, launch, names, slots, language)
    head, passed = _head(dialect, function, symbol, every, names)
    form = _Form(symbol, author.text(spelled, symbol, head, loops) + ENTRIES_FOLLOW, every, passed)
    return _with_entries(dialect, function, [form], launch, symbol)


def _form(dialect: GpuDialect, function: IRFunction, launch: Launch, symbol: str) -> _Form:
    """The function that runs the iterations of one thread: all of them, or so many at a time.

    The plain one beside a wide one is told where to begin along the fastest axis.
    """
    language = dialect.language
    names, slots, writer = writer_of(function, launch, language)
    last = kernel_loop(function).index_vars[-1]
    begin = names.fresh(f"{last}_begin") if function.wide else None
    if function.workgroup:
        lines = list(group_loops(dialect, function, writer, names, slots))
    else:
        lines = list(thread_loops(dialect, function, writer, names, slots, begin=begin))
    used = slots.parameters(language)
    more = [] if begin is None else [f"{language.type(i64)} {begin}"]
    head, passed = _head(dialect, function, symbol, used, names, *more)
    return _Form(symbol, "\n".join([head, "{", *lines, "}", ""]), used, passed)


def _shared(dialect: GpuDialect, function: IRFunction, names: Names) -> list[tuple[str, str, int]]:
    """The shared arrays: name, type and size of each."""
    return [
        (names.local(name), dialect.language.type(array.dtype), array.size)
        for name, array in function.local_arrays.items()
        if array.shared
    ]


def _builtins(dialect: GpuDialect, function: IRFunction) -> tuple[Builtin, ...]:
    """The parameters by which a function knows where it is."""
    return dialect.lanes if function.workgroup else dialect.threads


def _head(
    dialect: GpuDialect,
    function: IRFunction,
    symbol: str,
    used: Sequence[SlotParameter],
    names: Names,
    *more: str,
) -> tuple[str, list[str]]:
    """What the function of a variant begins with, and what it is passed beside slots and ``more``.

    ``more`` are declarations of further parameters, the last ones.
    """
    shared, builtins = _shared(dialect, function, names), _builtins(dialect, function)
    declarations = listed(
        [
            *(each.declaration for each in used),
            *(f"{dialect.language.shared_space}{kind} *{name}" for name, kind, _ in shared),
            *(declaration for declaration, _, _ in builtins),
            *more,
        ]
    )
    lines = (f"    {line}" for line in declarations)
    passed = [*(f"shared.{name}" for name, _, _ in shared), *(name for _, name, _ in builtins)]
    return "\n".join([f"TACK_INLINE void {symbol}(", *lines]), passed


def _with_entries(
    dialect: GpuDialect,
    function: IRFunction,
    forms: Sequence[_Form],
    launch: Launch,
    symbol: str,
) -> str:
    """The structs of a variant, its functions, and its entry points."""
    language = dialect.language
    names, slots, _ = writer_of(function, launch, language)
    every = slots.every(language)
    return fill(
        f"{dialect.folder}/kernel.j2",
        symbol=symbol,
        group=math.prod(function.workgroup) if function.workgroup else GROUP,
        definition="\n".join(form.text for form in forms),
        builtins=[
            f"{declaration} {attribute}"
            for declaration, _, attribute in _builtins(dialect, function)
        ],
        shared=[f"{kind} {name}[{size}]" for name, kind, size in _shared(dialect, function, names)],
        given=launch.shared > 0,
        arrays=[each.declaration for each in every if _is_pointer(each)],
        values=[
            f"{language.types[_stored(each)]} {each.name}"
            for each in every
            if not _is_pointer(each)
        ],
        entries=[_entry(dialect, flavour, forms, every, launch) for flavour, _ in launch.entries],
    )


def _entry(
    dialect: GpuDialect,
    flavour: str,
    forms: Sequence[_Form],
    every: Sequence[SlotParameter],
    launch: Launch,
) -> _Entry:
    """An entry point. That of the wide form has the plain one do what that leaves."""
    plain, *wide = forms
    symbols = dict(launch.entries)
    promises = flavour != "general" and "noalias" in symbols
    pointers = [each for each in every if _is_pointer(each)]
    begin = ["0"] * len(wide)
    calls = []
    if flavour == "aligned":
        count = next(each for each in every if each.slot == ("loop", launch.loops - 1))
        end = _argument(dialect, count)
        begin = [f"{end} - {end} % {launch.lanes}"]
        calls = [(each.symbol, _arguments(dialect, each, every)) for each in wide]
    calls.append((plain.symbol, _arguments(dialect, plain, every, begin)))
    declared = [each.restricted if promises else each.declaration for each in pointers]
    return _Entry(symbols[flavour], declared, calls)


def _arguments(
    dialect: GpuDialect, form: _Form, every: Sequence[SlotParameter], begin: Sequence[str] = ()
) -> list[str]:
    """What an entry point gives a form, whose names of slots may be others than its own."""
    used = [_argument(dialect, every[each.position]) for each in form.used]
    return listed([*used, *form.passed, *begin])


def _is_pointer(parameter: SlotParameter) -> bool:
    return bool(parameter.slot[0] == "pointer")


def _stored(parameter: SlotParameter) -> str:
    """The name of the type that a slot's value has in the struct; a bool is the byte 0 or 1."""
    kind, _, *rest = parameter.slot
    dtype = rest[0] if kind == "scalar" else i64.name
    return "u8" if dtype == "bool" else str(dtype)


def _argument(dialect: GpuDialect, parameter: SlotParameter) -> str:
    """What an entry point passes on of a parameter."""
    if _is_pointer(parameter):
        return dialect.pointer.format(parameter.name)
    compared = " != 0" if parameter.slot[2:] == ("bool",) else ""
    return f"values.{parameter.name}{compared}"


def _assemble(dialect: GpuDialect, unit: str, sources: Sequence[Source]) -> str:
    language = dialect.language
    used = {name for source in sources for name in _HELPER.findall(source.text)}
    atomics = [(name, op, dtype) for (op, dtype), name in language.atomics.items() if name in used]
    for _, _, dtype in atomics:
        used |= _needed_by_atomics(dtype)
    used.update(*(dialect.calls.get(name, ()) for name in used))
    return fill(
        f"{dialect.folder}/unit.j2",
        unit=unit,
        helpers=frozenset(used),
        atomics=atomics,
        vectors=_vectors(language, sources),
        types=language.types,
        spaces=[language.space, *_shared_spaces(language, sources)],
        sources=sources,
    )


def _shared_spaces(language: Dialect, sources: Sequence[Source]) -> list[str]:
    """The address space of shared arrays, if the language has one of their own and they occur."""
    space = language.shared_space
    return [space] if space and any(space in source.text for source in sources) else []


def _vectors(language: Dialect, sources: Sequence[Source]) -> list[tuple[str, str, int, int]]:
    """The types of vectors that are used: name, type of the elements, their number, bytes."""
    return [
        (name, spelling, size, size * DTYPES[dtype].itemsize)
        for dtype, spelling in language.types.items()
        for size in VECTOR_SIZES
        for name in [language.vector(DTYPES[dtype], size)]
        if any(f"{name} " in source.text for source in sources)
    ]


def _needed_by_atomics(dtype: str) -> set[str]:
    """The helpers that those of atomics of a type may call."""
    bits = max(DTYPES[dtype].bits, _WORD)
    as_bits = {f"tack_bits_of_{dtype}", f"tack_{dtype}_of_bits"} if dtype[0] == "f" else set()
    return as_bits | {f"tack_cas_u{bits}"}
