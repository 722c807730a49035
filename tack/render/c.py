"""The C dialect: C11 with the builtins of gcc and clang, for the CPU.

A variant becomes one function with its loop, always inlined, and its entry points, which unpack
slots and call it; the ``noalias`` entry goes through a function whose pointers are ``restrict``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tack.ir.nodes import IRFunction
from tack.ir.traversal import kernel_loop
from tack.model.abi import ABI
from tack.model.dtypes import DTYPES, NARROW
from tack.model.launch import Launch, Slot
from tack.render.author_values import ENTRIES_FOLLOW, AuthorSource, Spelled
from tack.render.c_dialect import ATOMICS, BITCASTS, MULACC, NATIVE, C
from tack.render.loops import parallel_loop
from tack.render.renderer import Renderer
from tack.render.slots import SlotParameter, listed
from tack.render.source import Source
from tack.render.statements import INDENT, BodyWriter, writer_of
from tack.render.templates import fill

__all__ = ["assemble", "render", "render_author", "renderer"]

_SPAN: Final = ("begin", "end")
_SPAN_TYPES: Final = tuple(f"{C.types['i64']} {name}" for name in _SPAN)


def renderer() -> Renderer:
    """The renderer of C for the CPU, without a compiler."""
    return Renderer(
        render=render,
        assemble=assemble,
        suffix=".c",
        needs="gcc or clang",
        native_math=frozenset(NATIVE),
        language="c",
        render_author=render_author,
    )


def render(function: IRFunction, launch: Launch, symbol: str) -> str:
    """The functions of one variant; ``function`` is packed, ``symbol`` names the loop."""
    names, slots, writer = writer_of(function, launch, C)
    lines = parallel_loop(kernel_loop(function), writer, names, slots)
    parameters = slots.parameters(C)
    relaxed, has_exact = function.relaxed, any("TACK_EXACT(" in line for line in lines)
    mode = "TACK_RELAXED " if relaxed and not has_exact else ""
    regroup = [f"{INDENT}TACK_REGROUP"] if relaxed else []
    definition = [_head(symbol, parameters, mode), "{", *regroup, *lines, "}", ""]
    return _with_entries("\n".join(definition), parameters, launch, symbol, mode)


def render_author(function: IRFunction, launch: Launch, symbol: str, author: AuthorSource) -> str:
    """As `render`, of a source kernel: its author's template defines the function."""
    names, slots, _ = writer_of(function, launch, C)
    parameters, loop = slots.every(C), kernel_loop(function)

    def loops(body: BodyWriter, _groups: bool) -> list[str]:
        return parallel_loop(loop, body, names, slots)

    spelled = Spelled(function, launch, names, slots, C)
    text = author.text(spelled, symbol, _head(symbol, parameters), loops)
    return _with_entries(text + ENTRIES_FOLLOW, parameters, launch, symbol)


def _head(symbol: str, parameters: Sequence[SlotParameter], mode: str = "") -> str:
    """What the function of a variant begins with; ``mode`` says how floats are compiled."""
    declarations = listed([*(p.declaration for p in parameters), *_SPAN_TYPES])
    lines = (f"    {line}" for line in declarations)
    return "\n".join([f"TACK_INLINE {mode}void {symbol}(", *lines])


def _with_entries(
    definition: str,
    parameters: Sequence[SlotParameter],
    launch: Launch,
    symbol: str,
    mode: str = "",
) -> str:
    """The function of a variant, and its entry points."""
    return fill(
        "c/kernel.c.j2",
        symbol=symbol,
        definition=definition,
        restricted=listed([*(p.restricted for p in parameters), *_SPAN_TYPES]),
        values=listed([*(f"args[{p.position}].{_member(p.slot)}" for p in parameters), *_SPAN]),
        names=listed([*(p.name for p in parameters), *_SPAN]),
        uses_slots=bool(parameters),
        entries=dict(launch.entries),
        mode=mode,
    )


_MEMBERS: Final = {
    "bool": "u8 != 0",
    **{name: f"u{DTYPES[name].bits}" for name in NARROW},
}


def _member(slot: Slot) -> str:
    """The member of ``tack_slot`` that holds the value; a bool is the byte 0 or 1.

    A float of 8 or 16 bits is taken as its bits.
    """
    if slot[0] == "scalar":
        return _MEMBERS.get(slot[2], str(slot[2]))
    return "ptr" if slot[0] == "pointer" else "i64"


def assemble(unit: str, sources: Sequence[Source]) -> str:
    """The file of a unit."""
    texts = [source.text for source in sources]
    bitcasts = [
        (name, C.types[source], C.types[result])
        for (source, result), name in BITCASTS.items()
        if any(f"{name}(" in text for text in texts)
    ]
    atomics = [
        (name, op, C.types[dtype], DTYPES[dtype].is_float)
        for (op, dtype), name in ATOMICS.items()
        if any(f"{name}(" in text for text in texts)
    ]
    unaligned = [
        (C.types[name], spelling)
        for name, spelling in C.unaligned.items()
        if spelling != C.types[name] and any(f"{spelling} *)" in text for text in texts)
    ]
    return fill(
        "c/unit.c.j2",
        unit=unit,
        abi=ABI,
        bitcasts=bitcasts,
        atomics=atomics,
        unaligned=unaligned,
        mulacc=[
            (name, C.types[dtype], C.functions["fma", dtype])
            for (_, dtype), name in MULACC.items()
            if any(f"{name}(" in text for text in texts)
        ],
        relaxed=any("TACK_REGROUP" in text for text in texts),
        sources=sources,
    )
