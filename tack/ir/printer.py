"""IR as text that a person can read: one statement a line, fully parenthesized, with types.

A literal that still waits for a type is written bare (``2``), a settled one with it (``2:u8``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from tack.ir.nodes import (
    IRActive,
    IRArrayLoad,
    IRArrayStore,
    IRAssign,
    IRAtomic,
    IRBarrier,
    IRBinOp,
    IRBitcast,
    IRBoolOp,
    IRBreak,
    IRCall,
    IRCast,
    IRCompare,
    IRConstant,
    IRContinue,
    IRDimSize,
    IRFragmentLoad,
    IRFragmentStore,
    IRFunction,
    IRGroupIndex,
    IRIf,
    IRIfExp,
    IRLocalArray,
    IRMma,
    IRModule,
    IRName,
    IRNode,
    IRParallelFor,
    IRParam,
    IRPrint,
    IRSequentialFor,
    IRStride,
    IRTripCount,
    IRUnaryOp,
    IRVectorLoad,
    IRVectorStore,
    IRWarpSize,
    IRWhile,
)

__all__ = ["print_ir"]

_INDENT: Final = "    "


def print_ir(node: IRNode) -> str:
    """``node`` as text, without a trailing newline; the same for the same tree."""
    return "\n".join(_WRITERS[type(node)](node))


def _text(node: IRNode) -> str:
    """An expression."""
    (line,) = _WRITERS[type(node)](node)
    return line


def _list(nodes: Sequence[IRNode]) -> str:
    return ", ".join(map(_text, nodes))


def _block(head: str, body: Sequence[IRNode]) -> Iterator[str]:
    yield head
    for node in body:
        for line in _WRITERS[type(node)](node):
            yield _INDENT + line
    if not body:
        yield f"{_INDENT}pass"


def _constant(node: IRConstant) -> Iterator[str]:
    yield f"{node.value!r}" if node.dtype is None else f"{node.value!r}:{node.dtype}"


def _name(node: IRName) -> Iterator[str]:
    yield node.name


def _infix(node: IRBinOp | IRBoolOp | IRCompare) -> Iterator[str]:
    relaxed = "~" if isinstance(node, IRBinOp) and node.relaxed else ""
    yield f"({_text(node.left)} {relaxed}{node.op} {_text(node.right)})"


def _unary(node: IRUnaryOp) -> Iterator[str]:
    space = " " if node.op.isalpha() else ""
    yield f"({node.op}{space}{_text(node.operand)})"


def _choice(node: IRIfExp) -> Iterator[str]:
    then_value, else_value = _text(node.then_value), _text(node.else_value)
    yield f"({then_value} if {_text(node.condition)} else {else_value})"


def _call(node: IRCall) -> Iterator[str]:
    yield f"{node.function}({_list(node.args)})"


def _cast(node: IRCast) -> Iterator[str]:
    yield f"{node.dtype or 'float'}({_text(node.value)})"


def _bitcast(node: IRBitcast) -> Iterator[str]:
    yield f"bits_as_{node.dtype}({_text(node.value)})"


def _dim_size(node: IRDimSize) -> Iterator[str]:
    yield f"{node.array}.shape[{node.dim}]"


def _stride(node: IRStride) -> Iterator[str]:
    yield f"{node.array}.strides[{node.dim}]"


def _element(node: IRArrayLoad | IRArrayStore) -> str:
    return f"{node.array}{'.flat' * node.flat}[{_list(node.indices) or '()'}]"


def _load(node: IRArrayLoad) -> Iterator[str]:
    yield _element(node)


def _group_index(node: IRGroupIndex) -> Iterator[str]:
    yield f"{node.kind}_id({node.axis})"


def _active(node: IRActive) -> Iterator[str]:
    yield "warp_active" if node.whole_warp else "active"


def _warp_size(_: IRNode) -> Iterator[str]:
    yield "warp_size()"


def _trip_count(node: IRTripCount) -> Iterator[str]:
    yield f"trip_count({_list([node.start, node.end, node.step])})"


def _assign(node: IRAssign) -> Iterator[str]:
    type_ = "" if node.resolved_type is None else f": {node.resolved_type}"
    yield f"{node.target}{type_} = {_text(node.value)}"


def _store(node: IRArrayStore) -> Iterator[str]:
    yield f"{_element(node)} = {_text(node.value)}"


def _local_array(node: IRLocalArray) -> Iterator[str]:
    yield f"{node.array} = zeros"


def _print(node: IRPrint) -> Iterator[str]:
    parts = [repr(node.texts[0])]
    for value, words, text in zip(node.values, node.words, node.texts[1:], strict=True):
        parts += [_text(value) + (f" as {'/'.join(words)}" if words else ""), repr(text)]
    yield f"print({', '.join(part for part in parts if part != repr(''))})"


def _vector_load(node: IRVectorLoad) -> Iterator[str]:
    yield f"{node.local} = vector at {node.array}[{_text(node.index)}]"


def _vector_store(node: IRVectorStore) -> Iterator[str]:
    yield f"vector at {node.array}[{_text(node.index)}] = {node.local}"


def _atomic(node: IRAtomic) -> Iterator[str]:
    operands = [node.value] if node.compare is None else [node.compare, node.value]
    element = f"{node.array}[{_list(node.indices)}]"
    yield f"{node.target} = atomic_{node.op}({element}, {_list(operands)})"


def _fragment_load(node: IRFragmentLoad) -> Iterator[str]:
    yield f"{node.fragment} = fragment of {node.array}[{_list(node.indices)}]"


def _fragment_store(node: IRFragmentStore) -> Iterator[str]:
    yield f"{node.array}[{_list(node.indices)}] = fragment {node.fragment}"


def _mma(node: IRMma) -> Iterator[str]:
    yield f"{node.function or 'mma'}({node.c}, {node.a}, {node.b})"


def _barrier(_: IRNode) -> Iterator[str]:
    yield "barrier"


def _branch(node: IRIf) -> Iterator[str]:
    yield from _block(f"if {_text(node.condition)}:", node.then_body)
    if node.else_body:
        yield from _block("else:", node.else_body)


def _while(node: IRWhile) -> Iterator[str]:
    return _block(f"while {_text(node.condition)}:", node.body)


def _for(node: IRSequentialFor) -> Iterator[str]:
    arguments = _list([node.start, node.end, node.step])
    unrolled = "unrolled " * node.unrolled
    return _block(f"{unrolled}for {node.var} in range({arguments}):", node.body)


def _break(_: IRNode) -> Iterator[str]:
    yield "break"


def _continue(_: IRNode) -> Iterator[str]:
    yield "continue"


def _parallel(node: IRParallelFor) -> Iterator[str]:
    names, extents = ", ".join(node.index_vars), _list(node.extents)
    lanes = f", by {node.lanes}" if node.lanes > 1 else ""
    return _block(f"parallel for {names} in ndrange({extents}){lanes}:", node.body)


def _param(node: IRParam) -> Iterator[str]:
    dims = ""
    if node.dims is not None:
        inner = ", ".join(":" if dim is None else str(dim) for dim in node.dims) or "()"
        dims = f"[{inner}{'; strided' * node.is_strided}]"
    yield f"{node.name}: {node.dtype or '?'}{dims}"


def _function(node: IRFunction) -> Iterator[str]:
    groups = f" in groups of {' x '.join(map(str, node.workgroup))}" if node.workgroup else ""
    yield f"kernel {node.name}({_list(node.params)}){groups}:"
    for name, dtype in node.locals.items():
        weak = "  # literals only" if name in node.weak else ""
        yield f"{_INDENT}local {name}: {dtype}{weak}"
    for name, array in node.local_arrays.items():
        kind = "shared" if array.shared else "local"
        yield f"{_INDENT}{kind} {name}: {array.dtype}[{', '.join(map(str, array.dims))}]"
    yield from list(_block("", node.body))[1:]


def _module(node: IRModule) -> Iterator[str]:
    for index, function in enumerate(node.functions):
        if index:
            yield ""
        yield from _function(function)


_WRITERS: Final[dict[type[IRNode], Callable[..., Iterator[str]]]] = {
    IRConstant: _constant,
    IRName: _name,
    IRBinOp: _infix,
    IRBoolOp: _infix,
    IRCompare: _infix,
    IRUnaryOp: _unary,
    IRIfExp: _choice,
    IRCall: _call,
    IRCast: _cast,
    IRBitcast: _bitcast,
    IRDimSize: _dim_size,
    IRStride: _stride,
    IRArrayLoad: _load,
    IRGroupIndex: _group_index,
    IRActive: _active,
    IRWarpSize: _warp_size,
    IRTripCount: _trip_count,
    IRAssign: _assign,
    IRArrayStore: _store,
    IRAtomic: _atomic,
    IRLocalArray: _local_array,
    IRBarrier: _barrier,
    IRFragmentLoad: _fragment_load,
    IRFragmentStore: _fragment_store,
    IRMma: _mma,
    IRPrint: _print,
    IRVectorLoad: _vector_load,
    IRVectorStore: _vector_store,
    IRIf: _branch,
    IRWhile: _while,
    IRSequentialFor: _for,
    IRBreak: _break,
    IRContinue: _continue,
    IRParallelFor: _parallel,
    IRParam: _param,
    IRFunction: _function,
    IRModule: _module,
}
