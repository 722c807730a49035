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
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from tack.ir.nodes import IRFunction
from tack.ir.traversal import kernel_loop
from tack.model.dtypes import DTYPES, i64
from tack.model.gpus import GPUS
from tack.model.launch import FLAVOURS, Launch
from tack.render.author_values import ENTRIES_FOLLOW, AuthorSource, Spelled
from tack.render.cfamily import Dialect
from tack.render.names import Names
from tack.render.renderer import Renderer
from tack.render.slots import SlotNames, SlotParameter, listed
from tack.render.source import Source
from tack.render.statements import BARRIER, INDENT, BodyWriter, writer_of
from tack.render.templates import fill

__all__ = ["GROUP", "GpuDialect", "gpu_renderer"]

GROUP: Final = 256
"""Threads of a block of an ordinary kernel at most."""

Builtin = tuple[str, str, str]
"""A parameter: its declaration, its name, and the attribute by which an entry point gets it."""

_HELPER: Final = re.compile(r"\btack_\w+(?=\()")
_AXES: Final = "xyz"
_WORD: Final = 32


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
    flavours: tuple[str, ...] = FLAVOURS
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
    )


_OPERATORS: Final = frozenset({"cmpeq", "cmple", "fdiv", "neg", "shl", "shr"})
"""What languages of the family have operators for."""


def _operations(dialect: GpuDialect) -> frozenset[str]:
    """The operations that the language has operators or functions for, and others that it has.

    Functions for ``fp="fast"`` do not count: their results are those of a target, and not tack's.
    """
    named = frozenset(dialect.language.functions) - dialect.native
    return _OPERATORS | {function for function, _ in named} | dialect.supported


def _render(dialect: GpuDialect, function: IRFunction, launch: Launch, symbol: str) -> str:
    names, slots, writer = writer_of(function, launch, dialect.language)
    shared = _shared(dialect, function, names)
    write = _group_loops if function.workgroup else _loops
    lines = list(write(dialect, function, writer, names, slots))
    used = slots.parameters(dialect.language)
    head = _head(dialect, function, symbol, used, shared)
    definition = "\n".join([head, "{", *lines, "}", ""])
    return _with_entries(
        dialect,
        function,
        definition,
        slots=slots,
        used=used,
        launch=launch,
        symbol=symbol,
        shared=shared,
    )


def _render_author(
    dialect: GpuDialect, function: IRFunction, launch: Launch, symbol: str, author: AuthorSource
) -> str:
    language = dialect.language
    names, slots, _ = writer_of(function, launch, language)
    every, shared = slots.every(language), _shared(dialect, function, names)

    def loops(body: BodyWriter, groups: bool) -> list[str]:
        write = _group_loops if groups else _loops
        return list(write(dialect, function, body, names, slots))

    spelled = Spelled(function, launch, names, slots, language)
    head = _head(dialect, function, symbol, every, shared)
    text = author.text(spelled, symbol, head, loops) + ENTRIES_FOLLOW
    return _with_entries(
        dialect,
        function,
        text,
        slots=slots,
        used=every,
        launch=launch,
        symbol=symbol,
        shared=shared,
    )


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
    shared: Sequence[tuple[str, str, int]],
) -> str:
    """What the function of a variant begins with."""
    declarations = listed(
        [
            *(each.declaration for each in used),
            *(f"{dialect.language.shared_space}{kind} *{name}" for name, kind, _ in shared),
            *(declaration for declaration, _, _ in _builtins(dialect, function)),
        ]
    )
    return "\n".join([f"TACK_INLINE void {symbol}(", *(f"    {line}" for line in declarations)])


def _with_entries(
    dialect: GpuDialect,
    function: IRFunction,
    definition: str,
    *,
    slots: SlotNames,
    used: Sequence[SlotParameter],
    launch: Launch,
    symbol: str,
    shared: Sequence[tuple[str, str, int]],
) -> str:
    """The structs of a variant, its function, and its entry points."""
    language, every = dialect.language, slots.every(dialect.language)
    arrays = [each for each in every if _is_pointer(each)]
    builtins = _builtins(dialect, function)
    return fill(
        f"{dialect.folder}/kernel.j2",
        symbol=symbol,
        group=math.prod(function.workgroup) if function.workgroup else GROUP,
        definition=definition,
        arguments=listed(
            [
                *(_argument(dialect, each) for each in used),
                *(f"shared.{name}" for name, _, _ in shared),
                *(name for _, name, _ in builtins),
            ]
        ),
        builtins=[f"{declaration} {attribute}" for declaration, _, attribute in builtins],
        shared=[f"{kind} {name}[{size}]" for name, kind, size in shared],
        given=launch.shared > 0,
        arrays={
            "general": [each.declaration for each in arrays],
            "noalias": [each.restricted for each in arrays],
        },
        values=[
            f"{language.types[_stored(each)]} {each.name}"
            for each in every
            if not _is_pointer(each)
        ],
        entries=launch.entries,
    )


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


def _loops(
    dialect: GpuDialect,
    function: IRFunction,
    writer: BodyWriter,
    names: Names,
    slots: SlotNames,
) -> Iterator[str]:
    """The lines of the loops that run the iterations of one thread."""
    kind, loop = dialect.language.type(i64), kernel_loop(function)
    depth = len(loop.index_vars)
    for number, var in enumerate(loop.index_vars):
        axis = _AXES[depth - 1 - number]
        index, lead = names.local(var), INDENT * (number + 1)
        first, step = dialect.first.format(axis), dialect.step.format(axis)
        if function.workgroup:  # an author may want no barriers; the threads know their lanes
            size, lane = function.workgroup[number], dialect.lane.format(axis)
            first = f"({kind}){dialect.group.format(axis)} * {size} + {lane}"
            step = f"({kind}){dialect.groups.format(axis)} * {size}"
        stride = names.fresh(f"{var}_step")
        test = f"{index} < {slots.count(number)}"
        yield f"{lead}const {kind} {stride} = {step};"
        yield f"{lead}for ({kind} {index} = {first}; {test}; {index} += {stride}) {{"
    yield from writer.body(loop.body, depth + 1)
    for number in reversed(range(depth)):
        yield f"{INDENT * (number + 1)}}}"


def _group_loops(
    dialect: GpuDialect,
    function: IRFunction,
    writer: BodyWriter,
    names: Names,
    slots: SlotNames,
) -> Iterator[str]:
    """The lines of the loops that run the groups of one thread, and its lane of each.

    Where the next group's arrays lie where those of the last one did, its lanes wait for all.
    """
    kind, loop = dialect.language.type(i64), kernel_loop(function)
    depth = len(loop.index_vars)
    waits = any(array.shared for array in function.local_arrays.values())
    inside: list[str] = []
    for number, var in enumerate(loop.index_vars):
        axis = _AXES[depth - 1 - number]
        lane, group = slots.place("thread", number), slots.place("group", number)
        size, count = function.workgroup[number], slots.count(number)
        after = f", {BARRIER}" if waits and number == depth - 1 else ""
        first, step = dialect.group.format(axis), dialect.groups.format(axis)
        yield f"{INDENT * (number + 1)}const {kind} {lane} = {dialect.lane.format(axis)};"
        yield (
            f"{INDENT * (number + 1)}for ({kind} {group} = {first}; {group} * {size} < {count}; "
            f"{group} += {step}{after}) {{"
        )
        inside.append(f"const {kind} {names.local(var)} = {group} * {size} + {lane};")
    body = writer.body(loop.body, depth + 1)
    for warp in slots.lanes:
        first = f" - {slots.place('thread', 0)} % {warp}" if warp else ""
        ends = (
            f"{names.local(v)}{first} < {slots.count(k)}" for k, v in enumerate(loop.index_vars)
        )
        inside.append(f"const bool {slots.active(warp)} = {' && '.join(ends)};")
    yield from (f"{INDENT * (depth + 1)}{line}" for line in inside)
    yield from body
    for number in reversed(range(depth)):
        yield f"{INDENT * (number + 1)}}}"


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
        types=language.types,
        spaces=[language.space, *_shared_spaces(language, sources)],
        sources=sources,
    )


def _shared_spaces(language: Dialect, sources: Sequence[Source]) -> list[str]:
    """The address space of shared arrays, if the language has one of their own and they occur."""
    space = language.shared_space
    return [space] if space and any(space in source.text for source in sources) else []


def _needed_by_atomics(dtype: str) -> set[str]:
    """The helpers that those of atomics of a type may call."""
    bits = max(DTYPES[dtype].bits, _WORD)
    as_bits = {f"tack_bits_of_{dtype}", f"tack_{dtype}_of_bits"} if dtype[0] == "f" else set()
    return as_bits | {f"tack_cas_u{bits}"}
