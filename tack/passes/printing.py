"""What printing a value writes: integers and bools as Python does, floats with all their digits.

Targets print i64, u64, f32 and f64 by C's formats; the rest is said here, in typed IR. A float that
is whole ends in ``.0``, as long as its digits are written out, and a NaN has no sign.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from tack.ir.nodes import Expression, IRBoolOp, IRConstant, dtype_of
from tack.model.dtypes import bool_, f32, i64, u64
from tack.passes.build import call, cast, compare, constant, select

__all__ = ["printed"]

_WRITTEN_OUT: Final = {"f32": 1e9, "f64": 1e17}
"""Below these the digits of a whole number are written out: they are as many as tell a float from
every other one (`tack.render.literals.PRINTED`)."""

Words = tuple[str, str]


def printed(value: Expression) -> Iterator[tuple[Expression, Words | None]]:
    """The values that stand for ``value``, a name or a constant; of bools with their words."""
    dtype = dtype_of(value)
    if dtype.is_bool:
        yield value, ("True", "False")
    elif dtype.is_integer:
        yield cast(value, i64 if dtype.is_signed else u64), None
    else:
        number = cast(value, f32) if dtype.is_narrow_float else value
        kind = dtype_of(number)
        nan = IRConstant(math.nan, kind)
        yield select(compare("==", number, number), number, nan), None
        whole = compare("==", number, call("trunc", number))
        limit = constant(_WRITTEN_OUT[kind.name], kind)
        written_out = compare("<", call("abs", number), limit)
        yield IRBoolOp("and", whole, written_out, bool_), (".0", "")
