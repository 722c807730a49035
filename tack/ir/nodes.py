"""The nodes of the IR, a tree of slotted dataclasses with plain attributes.

`CHILD_FIELDS` gives each kind's structural children and their roles; traversal, verifier, printer
and copier read that table only. Dtypes, names and operators are attributes, never children.

Expressions are pure: they load, but never store. What has an effect is a statement. An expression
node may stand in several places of a tree; a statement stands in one.

What operators, builtins and atomics there are is in `tack.ir.operations`. Lowering writes Python's
operators (``PYTHON_BINARY``); ``decompose`` replaces the hazardous ones by the C-like ones
(``TARGET_BINARY``), which are undefined where C's are, in guards that keep them defined.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tack.model.dtypes import DType

if TYPE_CHECKING:
    from tack.ir.positions import Positions

__all__ = [
    "CHILD_FIELDS",
    "Expression",
    "IRActive",
    "IRArrayLoad",
    "IRArrayStore",
    "IRAssign",
    "IRAtomic",
    "IRBarrier",
    "IRBinOp",
    "IRBitcast",
    "IRBoolOp",
    "IRBreak",
    "IRCall",
    "IRCast",
    "IRCompare",
    "IRConstant",
    "IRContinue",
    "IRDimSize",
    "IRFragmentLoad",
    "IRFragmentStore",
    "IRFunction",
    "IRGroupIndex",
    "IRIf",
    "IRIfExp",
    "IRLocalArray",
    "IRMma",
    "IRModule",
    "IRName",
    "IRNode",
    "IRParallelFor",
    "IRParam",
    "IRPrint",
    "IRSequentialFor",
    "IRStride",
    "IRTripCount",
    "IRUnaryOp",
    "IRVectorLoad",
    "IRVectorStore",
    "IRWarpSize",
    "IRWhile",
    "LocalArray",
    "Statement",
    "WeakLocal",
    "dtype_of",
]


class IRNode:
    """Base of all nodes."""

    __slots__ = ()

    def __str__(self) -> str:
        from tack.ir.printer import print_ir

        return print_ir(self)


class Expression(IRNode):
    """A node that has a value. ``dtype`` is None until the typed stage."""

    __slots__ = ()
    dtype: DType | None


def dtype_of(node: Expression) -> DType:
    """The dtype that every expression has from the typed stage on."""
    assert node.dtype is not None
    return node.dtype


class Statement(IRNode):
    """A node that has an effect."""

    __slots__ = ()


@dataclass(slots=True, eq=False)
class IRConstant(Expression):
    """A literal. ``weak`` ones take the type of what they meet; the typed stage settles it.

    ``value`` is a Python bool, int or float; of a float type always a float (f32 values exactly
    representable), of an integer type an int in range, of bool a bool.
    """

    value: int | float
    dtype: DType | None = None
    weak: bool = False


@dataclass(slots=True, eq=False)
class IRName(Expression):
    """The value of a local, of a loop index, or of a scalar parameter."""

    name: str
    dtype: DType | None = None


@dataclass(slots=True, eq=False)
class IRBinOp(Expression):
    """``left op right``; both operands have the node's dtype from the typed stage on.

    (The count of a shift and the exponent of ``**`` keep an integer type of their own until
    ``decompose``.) A ``relaxed`` one, of floats, may be regrouped with others that are, and fused.
    """

    op: str
    left: Expression
    right: Expression
    dtype: DType | None = None
    relaxed: bool = False


@dataclass(slots=True, eq=False)
class IRUnaryOp(Expression):
    """``-x``, ``~x`` or ``not x``."""

    op: str
    operand: Expression
    dtype: DType | None = None


@dataclass(slots=True, eq=False)
class IRCompare(Expression):
    """``left op right``: bool. From the typed stage on both operands have one dtype."""

    op: str
    left: Expression
    right: Expression
    dtype: DType | None = None


@dataclass(slots=True, eq=False)
class IRBoolOp(Expression):
    """``and`` / ``or``: evaluates the right operand only where the left one leaves it open."""

    op: str
    left: Expression
    right: Expression
    dtype: DType | None = None


@dataclass(slots=True, eq=False)
class IRIfExp(Expression):
    """``value if condition else other``: evaluates only what it chooses."""

    condition: Expression
    then_value: Expression
    else_value: Expression
    dtype: DType | None = None


@dataclass(slots=True, eq=False)
class IRCall(Expression):
    """A builtin of `MATH_CALLS`."""

    function: str
    args: list[Expression]
    dtype: DType | None = None


@dataclass(slots=True, eq=False)
class IRCast(Expression):
    """A conversion to ``dtype``; ``dtype`` None is ``float(x)``: the default float."""

    value: Expression
    dtype: DType | None


@dataclass(slots=True, eq=False)
class IRBitcast(Expression):
    """The bits of ``value`` as another type of the same width; only in decomposed IR."""

    value: Expression
    dtype: DType | None = None


@dataclass(slots=True, eq=False)
class IRDimSize(Expression):
    """``array.shape[dim]``, an i64 known at run time."""

    array: str
    dim: int
    dtype: DType | None = None


@dataclass(slots=True, eq=False)
class IRStride(Expression):
    """``array.strides[dim]``, an i64 in bytes; of strided arrays, from ``pack`` on."""

    array: str
    dim: int
    dtype: DType | None = None


@dataclass(slots=True, eq=False)
class IRArrayLoad(Expression):
    """``array[indices]``, or ``array.flat[index]``.

    After ``pack`` one index: in elements, or in bytes where the array is strided.
    """

    array: str
    indices: list[Expression]
    dtype: DType | None = None
    flat: bool = False


@dataclass(slots=True, eq=False)
class IRGroupIndex(Expression):
    """Where an iteration stands along an axis of the parallel loop, an i64.

    ``kind`` is ``"thread"``, the number of the iteration in its group, or ``"group"``, the number
    of the group. Axes count as the indices of the loop do. Until ``groups`` it may be ``"warp"``,
    the number of the warp in the group, along axis 0.
    """

    kind: str
    axis: int
    dtype: DType | None = None


@dataclass(slots=True, eq=False)
class IRActive(Expression):
    """Whether this is an iteration of the parallel loop, and no lane of a group beyond its end.

    Made by ``groups``, from which on the body is run by every lane of a group. Of a ``whole_warp``:
    whether any of its lanes is one, in a kernel with one index.
    """

    dtype: DType | None = None
    whole_warp: int = 0


@dataclass(slots=True, eq=False)
class IRWarpSize(Expression):
    """How many lanes a warp has, an i64; ``groups`` makes it the number that the target has."""

    dtype: DType | None = None


@dataclass(slots=True, eq=False)
class IRAssign(Statement):
    """``target = value`` for a local. ``resolved_type`` is the local's one type."""

    target: str
    value: Expression
    resolved_type: DType | None = None


@dataclass(slots=True, eq=False)
class IRArrayStore(Statement):
    """``array[indices] = value``; the indices are as those of a load."""

    array: str
    indices: list[Expression]
    value: Expression
    flat: bool = False


@dataclass(slots=True, eq=False)
class IRLocalArray(Statement):
    """Makes a local array, all zeros; every round of a loop around it makes it anew.

    Nothing reads or writes it before; its type is in `IRFunction.local_arrays`.
    """

    array: str


@dataclass(slots=True, eq=False)
class IRAtomic(Statement):
    """``target = array[indices]``, and the element becomes what ``op`` makes of it and ``value``.

    In one step, in no order with others. ``op`` is of `ATOMIC_OPS`; of ``cas`` alone there is a
    ``compare``: only an element with its very bits is replaced. The target, a local of the type of
    the elements, may go unread.
    """

    target: str
    op: str
    array: str
    indices: list[Expression]
    value: Expression
    compare: Expression | None = None
    flat: bool = False


@dataclass(slots=True, eq=False)
class IRBarrier(Statement):
    """No iteration of a group goes on before all have come here; each sees what all have stored."""


@dataclass(slots=True, eq=False)
class IRFragmentLoad(Statement):
    """Makes a fragment, and fills it from the 16 x 16 elements of ``array`` from ``indices`` on.

    Until ``groups``, which knows who holds which element.
    """

    fragment: str
    array: str
    indices: list[Expression]


@dataclass(slots=True, eq=False)
class IRFragmentStore(Statement):
    """Stores a fragment to the 16 x 16 elements of ``array`` from ``indices`` on; as a load."""

    fragment: str
    array: str
    indices: list[Expression]


@dataclass(slots=True, eq=False)
class IRMma(Statement):
    """``c += a @ b`` of fragments, by every lane of a warp.

    ``function`` is the `TensorCore`'s name, from ``groups`` on.
    """

    c: str
    a: str
    b: str
    function: str = ""


@dataclass(slots=True, eq=False)
class IRPrint(Statement):
    """Writes ``texts[0]``, ``values[0]``, ``texts[1]``, ... to standard output in one step.

    From the typed stage on values are i64, u64, f32, f64 or bool, and ``words`` has what to write
    for a bool that is true and for one that is false; for another value it has None.
    """

    texts: list[str]
    values: list[Expression]
    words: list[tuple[str, str] | None]


@dataclass(slots=True, eq=False)
class IRVectorLoad(Statement):
    """Makes a local array and loads it in one access: ``local[k] = array[index + k]`` for every k.

    ``index`` is a packed one, in elements. The element there lies at a multiple of the size of the
    whole local array. Only in what ``widen`` makes.
    """

    local: str
    array: str
    index: Expression


@dataclass(slots=True, eq=False)
class IRVectorStore(Statement):
    """``array[index + k] = local[k]`` for every k, in one access; as for `IRVectorLoad`."""

    array: str
    index: Expression
    local: str


@dataclass(slots=True, eq=False)
class IRIf(Statement):
    """Conditional."""

    condition: Expression
    then_body: list[Statement]
    else_body: list[Statement] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class IRWhile(Statement):
    """Loop; the condition is evaluated before every round."""

    condition: Expression
    body: list[Statement]


@dataclass(slots=True, eq=False)
class IRSequentialFor(Statement):
    """``for var in range(start, end, step)``, arguments evaluated once, on entry.

    ``var`` is a local that the body may assign without disturbing the loop; after the loop it
    keeps its last value, and an empty loop leaves it alone. A step of zero runs nothing. A loop
    that is ``unrolled`` is one that a compiler should write out.
    """

    var: str
    start: Expression
    end: Expression
    step: Expression
    body: list[Statement]
    unrolled: bool = False


@dataclass(slots=True, eq=False)
class IRBreak(Statement):
    """Leaves the innermost sequential loop."""


@dataclass(slots=True, eq=False)
class IRContinue(Statement):
    """Ends this round of the innermost loop; of the parallel loop: this iteration."""


@dataclass(slots=True, eq=False)
class IRParallelFor(Statement):
    """The parallel loop over ``[0, extents[0]) x ...``, one to three dimensions, last fastest.

    ``extents`` are what the host computes: integer expressions of scalar parameters and
    `IRDimSize`, or the `IRTripCount` of a ``range``; a negative one runs nothing. ``index_vars``
    are i64 and start at 0: lowering moves the start and step of a ``range`` into the body.

    With ``lanes``, the body does as many iterations that follow each other along the last index,
    which is that of the first of them; those that are left at its end are not done.
    """

    index_vars: list[str]
    extents: list[Expression]
    body: list[Statement]
    lanes: int = 1


@dataclass(slots=True, eq=False)
class IRTripCount(Expression):
    """How many values ``range(start, end, step)`` has; only in the extents of the parallel loop."""

    start: Expression
    end: Expression
    step: Expression
    dtype: DType | None = None


@dataclass(slots=True, eq=False)
class IRParam(IRNode):
    """A parameter: its name, dtype and, for an array, its dims (None where free) and layout."""

    name: str
    dtype: DType | None = None
    dims: tuple[int | None, ...] | None = None
    is_strided: bool = False

    @property
    def is_array(self) -> bool:
        """Whether the parameter is an array."""
        return self.dims is not None


@dataclass(frozen=True, slots=True)
class WeakLocal:
    """A local that is assigned only literals: floats, or integers from ``low`` to ``high``.

    A temporary may be weak without being a ``literal``.
    """

    floating: bool
    low: int | None = None
    high: int | None = None
    literal: bool = False


@dataclass(frozen=True, slots=True)
class LocalArray:
    """An array of one iteration, or ``shared`` by those of a group; contiguous.

    One of an iteration is made, all zeros, by an `IRLocalArray`; a shared one is there from the
    beginning, and holds nothing in particular until something is stored. A ``fragment`` is the part
    of one that a lane holds: of the operand ``"a"`` or ``"b"`` of a product, or of its result. A
    vector is what one access loads or stores.
    """

    dtype: DType
    dims: tuple[int, ...]
    shared: bool = False
    fragment: str = ""
    is_vector: bool = False

    @property
    def is_strided(self) -> bool:
        """Whether it may have any strides: it may not."""
        return False

    @property
    def size(self) -> int:
        """How many elements it has."""
        return math.prod(self.dims)


@dataclass(slots=True, eq=False)
class IRFunction(IRNode):
    """A kernel: parameters and a body with exactly one `IRParallelFor`.

    ``declared`` are the locals whose type the source annotates. ``locals`` maps each local of an
    iteration to its one type, in order of appearance (from the inferred stage on). Those in
    ``weak`` are assigned literals only, and take the type of what they meet. ``default_float`` is
    the type of a float that meets no other. ``temporaries`` are the locals that lowering made to
    evaluate an expression once: they have its type, whatever that is, so that they change none.
    ``local_arrays`` are the arrays of an iteration or of a group. ``workgroup`` has how many
    iterations are a group along each axis of the parallel loop; it is empty if they have nothing to
    do with each other. ``groups`` are the locals that share one type: the components of each
    vector. ``indices`` are the declared locals that hold an index, and take what an index may be.
    ``facts`` are what of a target it was made for: the names of narrow floats that it converts, and
    ``"warps"`` if it asked for warps. ``relaxed`` says that there are operations that are.
    ``positions`` lies beside the tree and is in no key. ``wide`` is the form of a packed function
    that `widen` makes beside it; it is verified and printed on its own.
    """

    name: str
    params: list[IRParam]
    body: list[Statement]
    default_float: DType
    positions: Positions
    declared: dict[str, DType] = field(default_factory=dict)
    locals: dict[str, DType] = field(default_factory=dict)
    weak: dict[str, WeakLocal] = field(default_factory=dict)
    temporaries: set[str] = field(default_factory=set)
    groups: list[tuple[str, ...]] = field(default_factory=list)
    indices: set[str] = field(default_factory=set)
    local_arrays: dict[str, LocalArray] = field(default_factory=dict)
    workgroup: tuple[int, ...] = ()
    facts: frozenset[str] = frozenset()
    relaxed: bool = False
    wide: IRFunction | None = None

    @property
    def arrays(self) -> dict[str, IRParam | LocalArray]:
        """Every array, parameter or local, by its name."""
        return {param.name: param for param in self.params if param.is_array} | self.local_arrays


@dataclass(slots=True, eq=False)
class IRModule(IRNode):
    """Functions that are rendered together."""

    functions: list[IRFunction]


CHILD_FIELDS: Final[dict[type[IRNode], tuple[tuple[str, str], ...]]] = {
    IRConstant: (),
    IRName: (),
    IRBinOp: (("left", "expr"), ("right", "expr")),
    IRUnaryOp: (("operand", "expr"),),
    IRCompare: (("left", "expr"), ("right", "expr")),
    IRBoolOp: (("left", "expr"), ("right", "expr")),
    IRIfExp: (("condition", "expr"), ("then_value", "expr"), ("else_value", "expr")),
    IRCall: (("args", "exprs"),),
    IRCast: (("value", "expr"),),
    IRBitcast: (("value", "expr"),),
    IRDimSize: (),
    IRStride: (),
    IRGroupIndex: (),
    IRActive: (),
    IRWarpSize: (),
    IRArrayLoad: (("indices", "exprs"),),
    IRTripCount: (("start", "expr"), ("end", "expr"), ("step", "expr")),
    IRAssign: (("value", "expr"),),
    IRArrayStore: (("indices", "exprs"), ("value", "expr")),
    IRAtomic: (("indices", "exprs"), ("compare", "optional_expr"), ("value", "expr")),
    IRLocalArray: (),
    IRBarrier: (),
    IRFragmentLoad: (("indices", "exprs"),),
    IRFragmentStore: (("indices", "exprs"),),
    IRMma: (),
    IRPrint: (("values", "exprs"),),
    IRVectorLoad: (("index", "expr"),),
    IRVectorStore: (("index", "expr"),),
    IRIf: (("condition", "expr"), ("then_body", "stmts"), ("else_body", "stmts")),
    IRWhile: (("condition", "expr"), ("body", "stmts")),
    IRSequentialFor: (
        ("start", "expr"),
        ("end", "expr"),
        ("step", "expr"),
        ("body", "stmts"),
    ),
    IRBreak: (),
    IRContinue: (),
    IRParallelFor: (("extents", "exprs"), ("body", "stmts")),
    IRParam: (),
    IRFunction: (("params", "params"), ("body", "stmts")),
    IRModule: (("functions", "functions"),),
}
"""Kind -> (attribute, role) of each structural child, in order of evaluation."""
