"""Code of one function while it is being written, as llvmlite's builder holds it.

`Code` keeps the blocks in the order in which they are entered, which is the order a person reads
them in, and knows how values of a dtype look in registers and in memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from tack.model.dtypes import DType
from tack.render.llvm_dialect import CLEAR, PRINTF
from tack.render.names import ascii_identifier

__all__ = ["BOOL", "INDEX", "POINTER", "VOID", "Code", "load", "value_type"]

VOID = ir.VoidType()
POINTER = ir.PointerType()
BOOL = ir.IntType(1)
INDEX = ir.IntType(64)
_BYTE = ir.IntType(8)
_FLOATS = {"f32": ir.FloatType(), "f64": ir.DoubleType()}
"""(Those of 16 bits are only ever their bits.)"""


def value_type(dtype: DType) -> ir.Type:
    """The type of a value in a register; a bool is one bit."""
    return _FLOATS.get(dtype.name) or ir.IntType(dtype.bits)


def load(
    builder: ir.IRBuilder, address: ir.Value, dtype: DType, align: int | None = None
) -> ir.Value:
    """The value in an array or a slot, aligned to its size by default; a bool is a byte there."""
    if dtype.is_bool:
        byte = builder.load(address, align=1, typ=_BYTE)
        return builder.icmp_unsigned("!=", byte, ir.Constant(_BYTE, 0))
    return builder.load(address, align=align or dtype.itemsize, typ=value_type(dtype))


class Code:
    """A function's blocks; ``builder`` writes into the one that was entered last.

    Memory for locals is allocated in a block in front of all others, where LLVM's ``mem2reg``
    looks for what may become registers.
    """

    def __init__(self, function: ir.Function) -> None:
        self.function = function
        self._entry = ir.IRBuilder(function.append_basic_block("entry"))
        self._start = self.block("start")
        self.builder = ir.IRBuilder()
        self.enter(self._start)

    def finish(self) -> None:
        """Ends the function: it returns from where it is."""
        self.builder.ret_void()
        self._entry.branch(self._start)

    # Blocks.

    def block(self, name: str) -> ir.Block:
        """A block that is still to be entered."""
        return ir.Block(self.function, ascii_identifier(name))

    def enter(self, block: ir.Block) -> None:
        """Goes on in ``block``, which stands behind all that were entered before."""
        self.function.blocks.append(block)
        self.builder.position_at_end(block)

    def jump(self, block: ir.Block) -> None:
        """Goes to ``block``, unless the code has left this one already."""
        if not self.left:
            self.builder.branch(block)

    @property
    def left(self) -> bool:
        """Whether nothing can follow in this block: a break or continue ended it."""
        ended: bool = self.builder.block.is_terminated
        return ended

    # Values and memory.

    def index(self, value: int) -> ir.Constant:
        """A constant of the type that indices have."""
        return ir.Constant(INDEX, value)

    def local(self, name: str, dtype: DType) -> ir.Value:
        """Memory for a local that changes."""
        place = self._entry.alloca(value_type(dtype), name=ascii_identifier(name))
        place.type = POINTER  # llvmlite would write the pointer of old, i64*
        return place

    def array(self, name: str, dtype: DType, size: int) -> ir.Value:
        """Memory for a local array."""
        element = _BYTE if dtype.is_bool else value_type(dtype)
        place = self._entry.alloca(ir.ArrayType(element, size), name=ascii_identifier(name))
        place.type = POINTER
        return place

    def clear(self, address: ir.Value, size: int) -> None:
        """Zeroes so many bytes."""
        module = self.builder.module
        function = module.globals.get(CLEAR)
        if function is None:
            kinds = [POINTER, _BYTE, INDEX, BOOL]
            function = ir.Function(module, ir.FunctionType(VOID, kinds), CLEAR)
        nothing = ir.Constant(_BYTE, 0)
        self.builder.call(function, [address, nothing, self.index(size), ir.Constant(BOOL, 0)])

    def text(self, value: str) -> ir.Value:
        """The address of a text, which ends with a zero."""
        data = bytearray(value.encode() + b"\0")
        kind = ir.ArrayType(_BYTE, len(data))
        module = self.builder.module
        name = f"{self.function.name}.text.{len(module.globals)}"
        place = ir.GlobalVariable(module, kind, name)
        place.linkage, place.global_constant = "private", True
        place.initializer = ir.Constant(kind, data)
        place.type = POINTER
        return place

    def printf(self, form: str, arguments: Sequence[ir.Value]) -> None:
        """Calls C's function of that name."""
        module = self.builder.module
        function = module.globals.get(PRINTF)
        if function is None:
            kind = ir.FunctionType(ir.IntType(32), [POINTER], var_arg=True)
            function = ir.Function(module, kind, PRINTF)
        self.builder.call(function, [self.text(form), *arguments])

    def element(self, array: ir.Value, index: ir.Value, dtype: DType) -> ir.Value:
        """The address of an array's element."""
        kind = _BYTE if dtype.is_bool else value_type(dtype)
        return self.builder.gep(array, [index], inbounds=True, source_etype=kind)

    def byte(self, array: ir.Value, offset: ir.Value) -> ir.Value:
        """The address of what begins so many bytes behind that of an array."""
        return self.builder.gep(array, [offset], inbounds=True, source_etype=_BYTE)

    def load(self, address: ir.Value, dtype: DType, align: int | None = None) -> ir.Value:
        """The value of an array's element, aligned to its size by default."""
        return load(self.builder, address, dtype, align)

    def store(
        self, value: ir.Value, address: ir.Value, dtype: DType, align: int | None = None
    ) -> None:
        """Stores an array's element, aligned to its size by default."""
        if dtype.is_bool:
            value = self.builder.zext(value, _BYTE)
        self.builder.store(value, address, align=align or dtype.itemsize)
