"""The invariants of the IR, checked after each stage of a variant's way; never on a warm call.

`STAGES` is their order; a check that holds from some stage on is made at every later one. Checks of
types are in `tack.ir.verify_types`.
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tack.ir.nodes import (
    CHILD_FIELDS,
    Expression,
    IRArrayLoad,
    IRArrayStore,
    IRAssign,
    IRAtomic,
    IRBinOp,
    IRBitcast,
    IRBoolOp,
    IRBreak,
    IRCall,
    IRCompare,
    IRConstant,
    IRDimSize,
    IRFunction,
    IRLocalArray,
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
    IRWhile,
    Statement,
)
from tack.ir.operations import (
    ATOMIC_OPS,
    COMPARISONS,
    GROUP_REDUCTIONS,
    MATH_CALLS,
    PYTHON_BINARY,
    TARGET_BINARY,
)
from tack.ir.traversal import (
    LIST_ROLES,
    child_fields,
    nodes_below,
    set_name,
    statements_of,
    walk_ir,
    walk_paths,
)
from tack.ir.verify_groups import (
    GROUP_CHECKS,
    is_of_lane,
    misplaced_reduction,
    reduction_fault,
    workgroup_fault,
)
from tack.ir.verify_types import TYPE_CHECKS, Scope
from tack.model.errors import IRVerificationError
from tack.model.signature import MAX_RANK
from tack.model.variant import MAX_AXES

__all__ = ["STAGES", "verify_ir"]

STAGES: Final = (
    "lowered",
    "resolved",
    "inferred",
    "typed",
    "localized",
    "optimized",
    "decomposed",
    "packed",
)
"""The stages, in order."""

_ROLE_KINDS: Final[dict[str, type[IRNode]]] = {
    "expr": Expression,
    "optional_expr": Expression,
    "exprs": Expression,
    "stmts": Statement,
    "params": IRParam,
    "functions": IRFunction,
}

_RANKS: Final = {stage: rank for rank, stage in enumerate(STAGES)}


def verify_ir(function: IRFunction, stage: str) -> IRFunction:
    """Gives ``function`` back if every invariant of ``stage`` holds.

    `IRVerificationError` names the kernel, the stage, the node's kind and its path, such as
    ``body[0].body[2].value``. ``ValueError`` for a stage that does not exist.
    """
    if stage not in STAGES:
        raise ValueError(f"{stage!r} is not a stage; they are {', '.join(STAGES)}")
    _Verifier(function, stage).run()
    return function


class _Verifier:
    """The checks of one function, whose ``nodes`` are gathered once, in preorder.

    A node is known by its number there: paths are worked out for what is reported alone. The
    expressions of a statement stand right after it, up to the next statement.
    """

    def __init__(self, function: IRFunction, stage: str) -> None:
        self.function = function
        self.stage = stage
        self.rank = _RANKS[stage]
        self.arrays = function.arrays
        self.scalars = {p.name for p in function.params if not p.is_array}
        self.indices: set[str] = set()
        self.nodes: list[IRNode] = []
        self.statements: list[int] = []

    def reached(self, stage: str) -> bool:
        """Whether the checks of ``stage`` apply."""
        return self.rank >= _RANKS[stage]

    def fail(self, node: IRNode, path: str, message: str) -> IRVerificationError:
        kind = type(node).__name__
        return IRVerificationError(
            self.function.name, self.stage, kind, path or "the root", message
        )

    def fail_at(self, number: int, message: str) -> IRVerificationError:
        """The error for the node of that number."""
        return self.fail(self.nodes[number], self.path(number), message)

    def path(self, number: int) -> str:
        """The path of a node."""
        return next(itertools.islice(walk_paths(self.function), number, None))[0]

    def run(self) -> None:
        self.shapes()
        self.parameters()
        loop = self.parallel_loop()
        self.indices = set(loop.index_vars)
        self.extents(loop)
        first = self.nodes.index(loop) + 1
        body = [number for number in self.statements if number >= first]
        self.bindings(body)
        if self.reached("inferred"):
            self.tables()
        self.each_node(_NODE_CHECKS, self)
        if self.reached("typed"):
            self.types()
        if self.reached("decomposed"):
            self.operators(body[0] if body else len(self.nodes))

    # The tree.

    def shapes(self) -> None:
        """Kinds are known, children fit their roles, nothing contains itself; gathers ``nodes``."""
        try:
            self.gather()
        except (TypeError, ValueError) as error:
            message = str(error)
            try:
                collections.deque(walk_paths(self.function), maxlen=0)
            except (TypeError, ValueError) as placed:
                message = str(placed)
            raise self.fail(self.function, "", message) from None

    def gather(self) -> None:
        """Fills ``nodes`` and ``statements``."""
        nodes, statements = self.nodes, self.statements
        stood: set[int] = set()
        for node in walk_ir(self.function):
            nodes.append(node)
            kind = type(node)
            if kind in _VALUES:
                continue
            held = _HELD.get(kind)
            for child in nodes_below(node):
                if held is None or not isinstance(child, held):
                    self.roles(len(nodes) - 1)
                    break
            if isinstance(node, Statement):
                if id(node) in stood:
                    message = "the statement stands in another place too"
                    raise self.fail_at(len(nodes) - 1, message)
                stood.add(id(node))
                statements.append(len(nodes) - 1)

    def roles(self, number: int) -> None:
        """The children of a node fit their roles."""
        node = self.nodes[number]
        for name, role in child_fields(node):
            value, kind = getattr(node, name), _ROLE_KINDS[role]
            for child in value if role in LIST_ROLES else [value]:
                if not isinstance(child, kind) and (child is not None or role != "optional_expr"):
                    what = type(child).__name__
                    raise self.fail_at(number, f"{name} holds {what}, not {kind.__name__}")

    def parameters(self) -> None:
        names: set[str] = set()
        for index, param in enumerate(self.function.params):
            if param.name in names:
                raise self.fail(param, f"params[{index}]", f"{param.name!r} is declared twice")
            names.add(param.name)
            if param.dtype is None:
                raise self.fail(param, f"params[{index}]", f"{param.name!r} has no dtype")
            if param.dims is not None and len(param.dims) > MAX_RANK:
                message = f"{param.name!r} has {len(param.dims)} dimensions"
                raise self.fail(param, f"params[{index}]", message)

    def parallel_loop(self) -> IRParallelFor:
        found = [n for n in self.statements if type(self.nodes[n]) is IRParallelFor]
        if len(found) != 1:
            raise self.fail(self.function, "", f"{len(found)} parallel loops, not one")
        (number,) = found
        loop = self.nodes[number]
        assert isinstance(loop, IRParallelFor)
        if self.function.body != [loop]:
            raise self.fail_at(number, "the parallel loop is not the whole body of the kernel")
        count = len(loop.index_vars)
        if not 1 <= count <= MAX_AXES or count != len(loop.extents):
            message = f"{count} index variables and {len(loop.extents)} extents"
            raise self.fail_at(number, message)
        taken = [*loop.index_vars, *self.scalars, *self.arrays]
        for name in loop.index_vars:
            if taken.count(name) > 1:
                raise self.fail_at(number, f"the index variable {name!r} is declared twice")
        fault = workgroup_fault(self.function, count)
        if fault is not None:
            raise self.fail(self.function, "", fault)
        return loop

    def extents(self, loop: IRParallelFor) -> None:
        """Extents read scalar parameters and shapes only: the host computes them.

        Until they are typed they may also read what the body sets from these first of all.
        """
        known = set(self.scalars)
        if not self.reached("typed"):
            known.update(s.target for s in loop.body if isinstance(s, IRAssign))
        for index, extent in enumerate(loop.extents):
            root = f"body[0].extents[{index}]"
            for path, node in walk_paths(extent, root):
                if isinstance(node, IRArrayLoad):
                    raise self.fail(node, path, "an extent reads an array element")
                if is_of_lane(node):
                    raise self.fail(node, path, "an extent depends on an iteration")
                if isinstance(node, IRName) and node.name not in known:
                    message = f"an extent reads {node.name!r}, which is no scalar parameter"
                    raise self.fail(node, path, message)
                if isinstance(node, IRTripCount) and path != root:
                    raise self.fail(node, path, "a trip count is not the whole extent")

    # Statements in order: names are bound before they are read, loops are there to be left.

    def bindings(self, body: list[int]) -> None:
        """Checks the statements of the body, whose numbers these are."""
        left = self.left_by_break(body)
        bound, made = self.scalars | self.indices, set[str]()
        for number, end in itertools.pairwise([*body, len(self.nodes)]):
            statement = self.nodes[number]
            if isinstance(statement, IRBreak) and id(statement) not in left:
                raise self.fail_at(number, "break outside a sequential loop")
            self.reads(number, end, bound, made)
            if self.function.workgroup:
                place = misplaced_reduction(statement, self.nodes[number + 1 : end])
                if place is not None:
                    message = "a reduction that is not the whole value of an assignment"
                    raise self.fail_at(number + 1 + place, message)
            name = set_name(statement)
            if name is not None:
                self.binds(number, name, bound)
            if isinstance(statement, IRLocalArray):
                self.makes(number, statement.array, made)
            elif isinstance(statement, IRVectorLoad):
                self.makes(number, statement.local, made)
            changed = _CHANGED.get(type(statement))
            if changed is not None and self.is_missing(getattr(statement, changed), made):
                raise self.fail_at(number, _UNMADE.format(getattr(statement, changed)))

    def left_by_break(self, body: list[int]) -> set[int]:
        """The statements that stand in sequential loops, by identity."""
        loops = [self.nodes[n] for n in body if isinstance(self.nodes[n], _LOOPS)]
        return {id(inner) for loop in loops for inner in statements_of(loop)}

    def reads(self, number: int, end: int, bound: set[str], made: set[str]) -> None:
        """Checks the expressions of the statement of that number."""
        nodes = self.nodes
        for place in range(number + 1, end):
            node = nodes[place]
            kind = type(node)
            if kind is IRName:
                if node.name in bound:  # type: ignore[attr-defined]
                    continue
                assert isinstance(node, IRName)
                if node.name in self.arrays:
                    message = f"the array {node.name!r} is read as a scalar"
                else:
                    message = f"{node.name!r} is read before anything binds it"
                raise self.fail_at(place, message)
            if kind is IRTripCount:
                raise self.fail_at(place, "a trip count outside the parallel loop's extents")
            if isinstance(node, IRArrayLoad) and self.is_missing(node.array, made):
                statement = self.path(number)
                head = self.path(place)[len(statement) + 1 :].partition(".")[0]
                raise self.fail(node, f"{statement}.{head}", _UNMADE.format(node.array))

    def binds(self, number: int, name: str, bound: set[str]) -> None:
        if name in self.scalars or name in self.arrays:
            raise self.fail_at(number, f"the parameter {name!r} is assigned")
        if name in self.indices:
            raise self.fail_at(number, f"the parallel index {name!r} is assigned")
        bound.add(name)

    def makes(self, number: int, name: str, made: set[str]) -> None:
        array = self.function.local_arrays.get(name)
        if array is None or array.shared:
            raise self.fail_at(number, f"{name!r} is no local array")
        if name in made:
            raise self.fail_at(number, f"{name!r} is made twice")
        if not all(type(dim) is int and dim > 0 for dim in array.dims):
            raise self.fail_at(number, f"the size of {name!r} is not known")
        made.add(name)

    def is_missing(self, array: str, made: set[str]) -> bool:
        """Whether this is an array of an iteration that was not made."""
        own = self.function.local_arrays.get(array)
        return own is not None and not own.shared and array not in made

    def tables(self) -> None:
        """``locals`` has a type for every local and, from ``localized`` on, for no other name."""
        setters = (set_name(self.nodes[number]) for number in self.statements)
        bound = [name for name in setters if name is not None]
        for name in bound:
            if name not in self.function.locals:
                raise self.fail(self.function, "", f"the local {name!r} has no type")
        if self.reached("localized") and list(self.function.locals) != list(dict.fromkeys(bound)):
            raise self.fail(self.function, "", "locals are not those assigned, in order")

    def each_node(
        self, checks: Mapping[type[IRNode], Callable[..., str | None]], context: object
    ) -> None:
        """What holds of a node itself, by the check of its kind."""
        for number, node in enumerate(self.nodes):
            check = checks.get(type(node))
            if check is not None:
                message = check(context, node)
                if message is not None:
                    raise self.fail_at(number, message)

    def types(self) -> None:
        """Every expression has a dtype; then, what they have fits together."""
        for number, node in enumerate(self.nodes):
            if isinstance(node, Expression) and node.dtype is None:
                raise self.fail_at(number, "an expression without a dtype")
        self.each_node(TYPE_CHECKS, Scope.of(self.function))

    def operators(self, first: int) -> None:
        """After decomposition the body has target operators only; the host has its own."""
        for number in range(first, len(self.nodes)):
            node = self.nodes[number]
            if isinstance(node, IRBinOp) and node.op not in TARGET_BINARY:
                raise self.fail_at(number, f"{node.op!r} is left")
            if isinstance(node, IRSequentialFor) and not (
                isinstance(node.step, IRConstant) and node.step.value == 1
            ):
                raise self.fail_at(number, "a sequential loop whose step is not 1")


_LOOPS: Final = (IRSequentialFor, IRWhile)
_CHANGED: Final = {IRArrayStore: "array", IRAtomic: "array", IRVectorStore: "local"}
"""Statement -> its field that names an array which must have been made, if it is a local one."""
_UNMADE: Final = "the array {!r} is used before it is made"


def _held(fields: Sequence[tuple[str, str]]) -> type[IRNode] | None:
    held = {_ROLE_KINDS[role] for _, role in fields}
    return held.pop() if len(held) == 1 else None


_VALUES: Final = frozenset(
    kind for kind, fields in CHILD_FIELDS.items() if not fields and issubclass(kind, Expression)
)
"""The expressions without operands."""

_HELD: Final = {kind: _held(fields) for kind, fields in CHILD_FIELDS.items()}
"""Kind -> what every child of such a node is, or None where that depends on the role."""


def _operator(known: frozenset[str]) -> Callable[[_Verifier, IRNode], str | None]:
    def check(_: _Verifier, node: IRNode) -> str | None:
        op = getattr(node, "op", None)
        return None if op in known else f"unknown operator {op!r}"

    return check


def _check_binary(verifier: _Verifier, node: IRBinOp) -> str | None:
    if node.op in PYTHON_BINARY or (node.op in TARGET_BINARY and verifier.reached("decomposed")):
        return None
    return f"unknown operator {node.op!r}"


def _check_call(verifier: _Verifier, node: IRCall) -> str | None:
    count = MATH_CALLS.get(node.function)
    if count is None:
        return f"unknown builtin {node.function!r}"
    if count != len(node.args):
        return f"{node.function} takes {count} operands, not {len(node.args)}"
    return reduction_fault(verifier, node) if node.function in GROUP_REDUCTIONS else None


def _check_access(verifier: _Verifier, node: IRArrayLoad | IRArrayStore | IRAtomic) -> str | None:
    param = verifier.arrays.get(node.array)
    if param is None or param.dims is None:
        return f"{node.array!r} is no array"
    if node.flat and (param.is_strided or verifier.reached("packed")):
        return f"{node.array!r} has no flat index here"
    expected = 1 if node.flat or verifier.reached("packed") else len(param.dims)
    if len(node.indices) != expected:
        return f"{len(node.indices)} indices of {node.array!r}, not {expected}"
    return None


def _check_print(_: _Verifier, node: IRPrint) -> str | None:
    counts = (len(node.texts) - 1, len(node.words))
    if counts != (len(node.values),) * 2:
        return f"{len(node.values)} values, {counts[0]} texts behind them, {counts[1]} words"
    return None


def _check_vector(verifier: _Verifier, node: IRVectorLoad | IRVectorStore) -> str | None:
    if not verifier.reached("packed"):
        return "a vector access before the indices are packed"
    local = verifier.function.local_arrays.get(node.local)
    if local is None or not local.is_vector:
        return f"{node.local!r} is no vector"
    array = verifier.arrays.get(node.array)
    if array is None or array.is_strided or array.dims is None:
        return f"{node.array!r} is no contiguous array"
    if array.dtype is not local.dtype:
        return f"{node.array!r} is of {array.dtype}, {node.local!r} of {local.dtype}"
    return None


def _check_atomic(verifier: _Verifier, node: IRAtomic) -> str | None:
    message = _check_access(verifier, node)
    if message is not None:
        return message
    if node.op not in ATOMIC_OPS:
        return f"unknown atomic {node.op!r}"
    if (node.op == "cas") != (node.compare is not None):
        return f"atomic {node.op} {'without' if node.compare is None else 'with'} a comparison"
    return None


def _check_dim_size(verifier: _Verifier, node: IRDimSize) -> str | None:
    param = verifier.arrays.get(node.array)
    if param is None or param.dims is None or node.array in verifier.function.local_arrays:
        return f"{node.array!r} is no array parameter"
    if not 0 <= node.dim < len(param.dims):
        return f"{node.array!r} has no dimension {node.dim}"
    if verifier.reached("resolved") and param.dims[node.dim] is not None:
        return f"dimension {node.dim} of {node.array!r} is pinned and was not resolved"
    return None


def _check_stride(verifier: _Verifier, node: IRStride) -> str | None:
    param = verifier.arrays.get(node.array)
    if param is None or param.dims is None or not param.is_strided:
        return f"{node.array!r} is no strided array parameter"
    if not 0 <= node.dim < len(param.dims):
        return f"{node.array!r} has no dimension {node.dim}"
    if not verifier.reached("packed"):
        return "a stride before the indices are packed"
    return None


def _check_bitcast(verifier: _Verifier, _: IRBitcast) -> str | None:
    early = not verifier.reached("decomposed")
    return "bits as another type before decomposition" if early else None


def _check_constant(verifier: _Verifier, node: IRConstant) -> str | None:
    if type(node.value) not in (bool, int, float):
        return f"a constant holds {type(node.value).__name__}"
    if node.weak and verifier.reached("typed"):
        return "a literal was not settled"
    if node.weak == (node.dtype is not None):
        return "a constant is weak or has a dtype, one of the two"
    return None


_NODE_CHECKS: Final[dict[type[IRNode], Callable[..., str | None]]] = {
    IRBinOp: _check_binary,
    IRCompare: _operator(COMPARISONS),
    IRBoolOp: _operator(frozenset({"and", "or"})),
    IRUnaryOp: _operator(frozenset({"-", "~", "not"})),
    IRCall: _check_call,
    IRArrayLoad: _check_access,
    IRArrayStore: _check_access,
    IRAtomic: _check_atomic,
    IRPrint: _check_print,
    IRVectorLoad: _check_vector,
    IRVectorStore: _check_vector,
    IRDimSize: _check_dim_size,
    IRStride: _check_stride,
    IRBitcast: _check_bitcast,
    IRConstant: _check_constant,
    **GROUP_CHECKS,
}
