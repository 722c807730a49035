"""The functions of one variant: its loop, always inlined, and its entry points.

An entry point unpacks slots and calls the loop, as in the C dialect; the ``noalias`` one through a
function whose pointers promise that nothing else reaches what they write.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from llvmlite import ir

from tack.ir.nodes import IRFunction, IRParallelFor
from tack.ir.traversal import kernel_loop
from tack.model.dtypes import DTYPES, DType, i64
from tack.model.launch import Launch, Slot
from tack.render.llvm_code import INDEX, POINTER, VOID, Code, load, value_type
from tack.render.llvm_expressions import Bindings
from tack.render.llvm_loops import parallel_loop
from tack.render.llvm_statements import StatementWriter
from tack.render.names import ascii_identifier

__all__ = ["functions_of"]

_SPAN = ("begin", "end")


class _Parameter(NamedTuple):
    """What the loop takes for a slot: a name, and a dtype, or None for a pointer."""

    name: str
    dtype: DType | None

    @property
    def type(self) -> ir.Type:
        """The type of the parameter."""
        return POINTER if self.dtype is None else value_type(self.dtype)


def functions_of(function: IRFunction, launch: Launch, symbol: str) -> str:
    """The text of the functions, without declarations of what they call."""
    loop = kernel_loop(function)
    parameters = [_parameter(slot, function, loop) for slot in launch.slots]
    entries = dict(launch.entries)
    module = ir.Module(context=ir.Context())
    inner = _inlined(module, symbol, parameters)
    _write_loop(inner, function, loop, launch)
    general = _entry(module, entries["general"], parameters, inner)
    functions = [inner, general]
    if "noalias" in entries:
        # Left to calls whose arrays overlap: testing that they do not, to run faster if so, is
        # what half the time of compiling goes into. For size, LLVM makes no such tests.
        general.attributes.add("optsize")
        disjoint = _inlined(module, f"{symbol}_disjoint", parameters)
        for argument in disjoint.args:
            if argument.type is POINTER:
                argument.add_attribute("noalias")
        builder = ir.IRBuilder(disjoint.append_basic_block("entry"))
        builder.call(inner, disjoint.args)
        builder.ret_void()
        functions += [disjoint, _entry(module, entries["noalias"], parameters, disjoint)]
    texts = [each for each in module.global_values if isinstance(each, ir.GlobalVariable)]
    return "\n".join(map(str, [*texts, *functions]))


def _parameter(slot: Slot, function: IRFunction, loop: IRParallelFor) -> _Parameter:
    kind, number, *rest = slot
    if kind == "loop":
        return _Parameter(f"{loop.index_vars[number]}_count", i64)
    name = function.params[number].name
    if kind in ("extent", "stride"):
        what = "shape" if kind == "extent" else kind
        return _Parameter(f"{name}_{what}_{rest[0]}", i64)
    return _Parameter(name, None if kind == "pointer" else DTYPES[rest[0]])


def _inlined(module: ir.Module, name: str, parameters: Sequence[_Parameter]) -> ir.Function:
    """A function of slots' values and a span, which exists only in its callers."""
    types = [*(parameter.type for parameter in parameters), INDEX, INDEX]
    function = _function(module, name, types, [*(p.name for p in parameters), *_SPAN])
    function.linkage = "internal"
    function.attributes.add("alwaysinline")
    return function


def _function(
    module: ir.Module, name: str, types: Sequence[ir.Type], names: Sequence[str]
) -> ir.Function:
    function = ir.Function(module, ir.FunctionType(VOID, types), name)
    function.attributes.add("nounwind")
    for argument, wish in zip(function.args, names, strict=True):
        argument.name = ascii_identifier(wish)
    return function


def _entry(
    module: ir.Module, name: str, parameters: Sequence[_Parameter], inner: ir.Function
) -> ir.Function:
    """A `tack_entry` (``tack_abi.h``), which calls ``inner`` with the values of its slots."""
    names = ("ctx", "args", *_SPAN)
    function = _function(module, name, (POINTER, POINTER, INDEX, INDEX), names)
    _, args, *span = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    values = []
    for position, parameter in enumerate(parameters):
        slot = builder.gep(args, [ir.Constant(INDEX, position)], source_etype=INDEX)
        if parameter.dtype is None:
            values.append(builder.load(slot, align=8, typ=POINTER))
        else:
            values.append(load(builder, slot, parameter.dtype))
    builder.call(inner, [*values, *span])
    builder.ret_void()
    return function


def _write_loop(
    inner: ir.Function, function: IRFunction, loop: IRParallelFor, launch: Launch
) -> None:
    """The body of the function that runs the iterations of a span."""
    strided = frozenset(param.name for param in function.params if param.is_strided)
    code, bindings = Code(inner), Bindings(strided=strided)
    *values, begin, end = inner.args
    counts = []
    for (kind, number, *rest), value in zip(launch.slots, values, strict=True):
        if kind == "loop":
            counts.append(value)
        elif kind == "extent":
            bindings.extents[function.params[number].name, rest[0]] = value
        elif kind == "stride":
            bindings.strides[function.params[number].name, rest[0]] = value
        else:
            bindings.values[function.params[number].name] = value
    writer = StatementWriter(code, bindings, function.locals, function.local_arrays)

    def iteration(indices: Sequence[ir.Value], following: ir.Block) -> None:
        bindings.values.update(zip(loop.index_vars, indices, strict=True))
        writer.iteration(loop.body, following)

    parallel_loop(code, loop.index_vars, (begin, end), counts, iteration)
    code.finish()
