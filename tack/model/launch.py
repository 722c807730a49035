"""How a call becomes a launch: which value goes into which slot, and the host program.

A variant stores both as data, so that the launcher knows no layout rules of its own. The host
program is what the host must work out at a call, a short postfix program over 64-bit integers;
it is evaluated in C++ only (`bindings/`), for every backend. `HOST_OPS` is the one table of its
operations; a test compares it with the launcher's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tack.model.dtypes import DTYPES
from tack.model.errors import BundleError
from tack.model.record import Record

__all__ = ["FLAVOURS", "HOST_OPS", "MAX_SLOTS", "HostOp", "Launch", "Slot"]

HOST_OPS: Final[dict[str, str]] = {
    "const": "value",
    "slot": "slot dtype",
    "add": "dtype",
    "sub": "dtype",
    "mul": "dtype",
    "floordiv": "dtype",
    "mod": "dtype",
    "neg": "dtype",
    "abs": "dtype",
    "min": "dtype",
    "max": "dtype",
    "and": "dtype",
    "or": "dtype",
    "xor": "dtype",
    "shl": "dtype",
    "shr": "dtype",
    "invert": "dtype",
    "lt": "dtype",
    "le": "dtype",
    "eq": "dtype",
    "ne": "dtype",
    "not": "",
    "select": "",
    "cast": "dtype",
    "range": "",
    "loop": "loop",
}
"""Operation -> the operands that follow it. What each does is written beside its C++ code."""

SLOT_KINDS: Final[dict[str, str]] = {
    "pointer": "parameter",
    "extent": "parameter axis",
    "stride": "parameter axis",
    "scalar": "parameter dtype",
    "loop": "loop",
}
"""Kind of slot -> the operands that follow it."""

MAX_SLOTS: Final = 511
"""How many slots a launch can fill."""

FLAVOURS: Final = ("general", "noalias", "aligned")
"""Entry points of a variant: ``noalias`` only where written arrays overlap no other array, and
``aligned`` only where ``multiples`` holds too."""

Slot = tuple[Any, ...]
HostOp = tuple[Any, ...]


class Launch(Record):
    """The stored plan of a variant.

    ``slots[k]`` says what slot ``k`` holds: ``("pointer", p)``, ``("extent", p, axis)``,
    ``("stride", p, axis)`` in bytes, ``("scalar", p, dtype)`` or ``("loop", d)``. ``host`` computes
    the extents of the ``loops`` parallel loops. ``written`` are the parameters that the kernel
    stores to, ``aligned`` those whose elements must each lie at a multiple of its size: it changes
    them in one step, or its target reads no others. ``entries`` maps a flavour to its symbol.
    ``group`` is how many threads a workgroup has along each parallel loop, none where the launcher
    may choose; ``shared`` is how many bytes of memory it gives each workgroup. CUDA's launcher asks
    the driver for them first, for they are more than it gives otherwise.

    ``multiples`` are (slot, number): the entry ``aligned`` asks that the values of these slots,
    addresses or extents, are multiples of these powers of two. Each of its threads does ``lanes``
    iterations at a time along the fastest axis. A kernel that ``prints`` writes to C's standard
    output, which the launcher brings into one order with Python's.
    """

    slots: tuple[Slot, ...]
    host: tuple[HostOp, ...]
    loops: int
    written: tuple[int, ...]
    aligned: tuple[int, ...]
    entries: tuple[tuple[str, str], ...]
    group: tuple[int, ...] = ()
    shared: int = 0
    multiples: tuple[tuple[int, int], ...] = ()
    lanes: int = 1
    prints: bool = False

    def to_json(self) -> dict[str, Any]:
        """The form that the bundle stores."""
        return {
            "slots": [list(slot) for slot in self.slots],
            "host": [list(op) for op in self.host],
            "loops": self.loops,
            "written": list(self.written),
            "aligned": list(self.aligned),
            "entries": dict(self.entries),
            "group": list(self.group),
            "shared": self.shared,
            "multiples": [list(each) for each in self.multiples],
            "lanes": self.lanes,
            "prints": self.prints,
        }

    @classmethod
    def from_json(cls, data: Any, place: str) -> Launch:
        """The plan that `to_json` wrote; `BundleError` naming ``place`` for anything else."""
        try:
            launch = cls(
                slots=_rows(data["slots"], SLOT_KINDS),
                host=_rows(data["host"], HOST_OPS),
                loops=_integer(data["loops"]),
                written=tuple(_integer(p) for p in data["written"]),
                aligned=tuple(_integer(p) for p in data["aligned"]),
                entries=tuple(sorted((str(k), str(v)) for k, v in data["entries"].items())),
                group=tuple(_integer(size) for size in data["group"]),
                shared=_integer(data["shared"]),
                multiples=tuple((_integer(k), _integer(n)) for k, n in data["multiples"]),
                lanes=_integer(data["lanes"]),
                prints=_bool(data["prints"]),
            )
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise BundleError(f"{place}: the launch plan is damaged ({error!r})") from None
        set_loops = sorted(op[1] for op in launch.host if op[0] == "loop")
        if set_loops != list(range(launch.loops)):
            raise BundleError(f"{place}: the host program sets loops {set_loops} of {launch.loops}")
        if len(launch.group) not in (0, launch.loops) or min((1, *launch.group)) < 1:
            raise BundleError(f"{place}: groups {launch.group} of {launch.loops} loops")
        flavours = [flavour for flavour, _ in launch.entries]
        if "general" not in flavours or not set(flavours) <= set(FLAVOURS):
            raise BundleError(f"{place}: entry points {flavours} are not among {list(FLAVOURS)}")
        return launch


def _integer(value: object) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is not an integer")
    return value


def _bool(value: object) -> bool:
    if type(value) is not bool:
        raise TypeError(f"{value!r} is neither true nor false")
    return value


def _rows(rows: Any, table: dict[str, str]) -> tuple[tuple[Any, ...], ...]:
    return tuple(_row(row, table) for row in rows)


def _row(row: Sequence[Any], table: dict[str, str]) -> tuple[Any, ...]:
    name, *operands = row
    expected = table[name].split()
    if len(operands) != len(expected):
        raise ValueError(f"{row!r} takes {len(expected)} operands")
    for kind, operand in zip(expected, operands, strict=True):
        if kind == "dtype":
            DTYPES[operand]
        else:
            _integer(operand)
    return (name, *operands)
