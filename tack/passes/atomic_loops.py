"""Atomics of elements that lie as another type: on the integers that they lie as.

What an atomic does to a bool or a float of 16 bits is tried, by ``cas`` of that integer, until
nobody else changed it meanwhile. Different integers may stand for one element, as those of NaN do:
``cas`` replaces each of them.
"""

from __future__ import annotations

from collections.abc import Callable

from tack.ir.nodes import Expression, IRAtomic, IRBreak, IRIf, IRName, IRWhile
from tack.model.dtypes import DType, bool_
from tack.passes.build import compare, constant, either, negate
from tack.passes.decompose import Block

__all__ = ["change", "exchange", "replace"]


def exchange(out: Block, node: IRAtomic, value: Expression) -> IRName:
    """Writes ``value`` in place of an element's integer; that integer."""
    return _atomic(out, node, "exchange", value)


def change(out: Block, node: IRAtomic, word: DType, changed: Callable[..., Expression]) -> IRName:
    """Makes of an element's integer, of type ``word``, what ``changed`` gives; that integer.

    ``changed`` takes the integer and the block for what it needs.
    """
    node.indices = [out.hold(index) for index in node.indices]
    seen = out.local(word, "seen")
    out.assign(seen, _atomic(out, node, "or", constant(0, word)))  # reads it
    body = out.inner()
    now = _atomic(body, node, "cas", body.hold(changed(seen, body)), seen)
    body.statements.append(IRIf(compare("==", now, seen), [IRBreak()]))
    body.assign(seen, now)
    out.statements.append(IRWhile(constant(1, bool_), body.statements))
    return seen


def replace(
    out: Block,
    node: IRAtomic,
    wanted: Expression,
    value: Expression,
    alike: Callable[[Expression], Expression],
) -> IRName:
    """Writes ``value`` in place of the integer ``wanted``, or of one that is ``alike``; the old."""
    node.indices = [out.hold(index) for index in node.indices]
    value = out.hold(value)
    seen = out.evaluate(wanted)
    now = out.local(seen.dtype or bool_, "now")
    body = out.inner()
    body.assign(now, _atomic(body, node, "cas", value, seen))
    done = either(compare("==", now, seen), negate(alike(now)))
    body.statements.append(IRIf(done, [IRBreak()]))
    body.assign(seen, now)
    out.statements.append(IRWhile(constant(1, bool_), body.statements))
    return now


def _atomic(
    out: Block, node: IRAtomic, op: str, value: Expression, expected: Expression | None = None
) -> IRName:
    """One atomic on the element that ``node`` changes; what it was."""
    assert value.dtype is not None
    old = out.local(value.dtype, "old")
    out.statements.append(
        IRAtomic(old.name, op, node.array, list(node.indices), value, expected, node.flat)
    )
    return old
