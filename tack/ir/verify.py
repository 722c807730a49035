"""The invariants of the IR, checked after each stage of a variant's way; never on a warm call.

`STAGES` is their order; a check that holds from some stage on is made at every later one. Checks of
types are in `tack.ir.verify_types`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from tack.ir.nodes import (
    ATOMIC_OPS,
    COMPARISONS,
    MATH_CALLS,
    PYTHON_BINARY,
    TARGET_BINARY,
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
    IRSequentialFor,
    IRStride,
    IRTripCount,
    IRUnaryOp,
    IRWhile,
    Statement,
)
from tack.ir.traversal import LIST_ROLES, child_fields, walk_ir, walk_paths
from tack.ir.verify_types import TYPE_CHECKS
from tack.model.errors import IRVerificationError
from tack.model.signature import MAX_RANK

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

MAX_DIMENSIONS: Final = 3


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
    def __init__(self, function: IRFunction, stage: str) -> None:
        self.function = function
        self.stage = stage
        self.rank = STAGES.index(stage)
        self.arrays = function.arrays
        self.scalars = {p.name for p in function.params if not p.is_array}
        self.indices: set[str] = set()
        self.made: set[str] = set()
        self.statements: set[int] = set()
        self.nodes: list[tuple[str, IRNode]] = []

    def reached(self, stage: str) -> bool:
        """Whether the checks of ``stage`` apply."""
        return self.rank >= STAGES.index(stage)

    def fail(self, node: IRNode, path: str, message: str) -> IRVerificationError:
        kind = type(node).__name__
        return IRVerificationError(
            self.function.name, self.stage, kind, path or "the root", message
        )

    def run(self) -> None:
        self.shapes()
        self.parameters()
        loop = self.parallel_loop()
        self.indices = set(loop.index_vars)
        self.extents(loop)
        self.walk_body(loop.body, "body[0].body", in_loop=False, bound=set())
        if self.reached("inferred"):
            self.tables()
        for path, node in self.nodes:
            for message in _NODE_CHECKS.get(type(node), _no_check)(self, node):
                raise self.fail(node, path, message)
        if self.reached("typed"):
            self.types()
        if self.reached("decomposed"):
            self.operators()

    # The tree.

    def shapes(self) -> None:
        """Kinds are known, children fit their roles, nothing contains itself; gathers ``nodes``."""
        try:
            for path, node in walk_paths(self.function):
                self.nodes.append((path, node))
                for name, role in child_fields(node):
                    value = getattr(node, name)
                    for child in value if role in LIST_ROLES else [value]:
                        if child is None and role == "optional_expr":
                            continue
                        if not isinstance(child, _ROLE_KINDS[role]):
                            word = _ROLE_KINDS[role].__name__
                            what = type(child).__name__
                            raise self.fail(node, path, f"{name} holds {what}, not {word}")
                if isinstance(node, Statement):
                    if id(node) in self.statements:
                        raise self.fail(node, path, "the statement stands in another place too")
                    self.statements.add(id(node))
        except (TypeError, ValueError) as error:
            raise self.fail(self.function, "", str(error)) from None

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
        loops = [(path, n) for path, n in self.nodes if type(n) is IRParallelFor]
        if len(loops) != 1:
            raise self.fail(self.function, "", f"{len(loops)} parallel loops, not one")
        path, loop = loops[0]
        assert isinstance(loop, IRParallelFor)
        if path != "body[0]" or len(self.function.body) != 1:
            raise self.fail(loop, path, "the parallel loop is not the whole body of the kernel")
        count = len(loop.index_vars)
        if not 1 <= count <= MAX_DIMENSIONS or count != len(loop.extents):
            message = f"{count} index variables and {len(loop.extents)} extents"
            raise self.fail(loop, path, message)
        taken = [*loop.index_vars, *self.scalars, *self.arrays]
        for name in loop.index_vars:
            if taken.count(name) > 1:
                raise self.fail(loop, path, f"the index variable {name!r} is declared twice")
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
                if isinstance(node, IRName) and node.name not in known:
                    message = f"an extent reads {node.name!r}, which is no scalar parameter"
                    raise self.fail(node, path, message)
                if isinstance(node, IRTripCount) and path != root:
                    raise self.fail(node, path, "a trip count is not the whole extent")

    # Statements in order: names are bound before they are read, loops are there to be left.

    def walk_body(
        self, body: list[Statement], path: str, *, in_loop: bool, bound: set[str]
    ) -> None:
        for index, statement in enumerate(body):
            self.walk_statement(statement, f"{path}[{index}]", in_loop, bound)

    def walk_statement(
        self, statement: Statement, path: str, in_loop: bool, bound: set[str]
    ) -> None:
        if isinstance(statement, IRBreak) and not in_loop:
            raise self.fail(statement, path, "break outside a sequential loop")
        lists: list[tuple[str, list[Statement]]] = []
        for name, role in child_fields(statement):
            if role == "stmts":
                lists.append((f"{path}.{name}", getattr(statement, name)))
            elif role == "optional_expr" and getattr(statement, name) is None:
                continue
            elif role == "exprs":
                for index, child in enumerate(getattr(statement, name)):
                    self.reads(child, f"{path}.{name}[{index}]", bound)
            else:
                self.reads(getattr(statement, name), f"{path}.{name}", bound)
        if isinstance(statement, IRAssign | IRAtomic):
            self.binds(statement, statement.target, path, bound)
        elif isinstance(statement, IRSequentialFor):
            self.binds(statement, statement.var, path, bound)
        elif isinstance(statement, IRLocalArray):
            self.makes(statement, path)
        if isinstance(statement, IRArrayStore | IRAtomic):
            self.uses(statement, path)
        loops = in_loop or isinstance(statement, IRSequentialFor | IRWhile)
        for place, statements in lists:
            self.walk_body(statements, place, in_loop=loops, bound=bound)

    def binds(self, statement: Statement, name: str, path: str, bound: set[str]) -> None:
        if name in self.scalars or name in self.arrays:
            raise self.fail(statement, path, f"the parameter {name!r} is assigned")
        if name in self.indices:
            raise self.fail(statement, path, f"the parallel index {name!r} is assigned")
        bound.add(name)

    def makes(self, statement: IRLocalArray, path: str) -> None:
        if statement.array not in self.function.local_arrays:
            raise self.fail(statement, path, f"{statement.array!r} is no local array")
        if statement.array in self.made:
            raise self.fail(statement, path, f"{statement.array!r} is made twice")
        dims = self.function.local_arrays[statement.array].dims
        if not all(type(dim) is int and dim > 0 for dim in dims):
            raise self.fail(statement, path, f"the size of {statement.array!r} is not known")
        self.made.add(statement.array)

    def uses(self, node: IRArrayLoad | IRArrayStore | IRAtomic, path: str) -> None:
        if node.array in self.function.local_arrays and node.array not in self.made:
            raise self.fail(node, path, f"the array {node.array!r} is used before it is made")

    def reads(self, expression: Expression, root: str, bound: set[str]) -> None:
        for node in walk_ir(expression):
            if isinstance(node, IRArrayLoad) and node.array in self.function.local_arrays:
                self.uses(node, root)
            if isinstance(node, IRTripCount):
                message = "a trip count outside the parallel loop's extents"
            elif not isinstance(node, IRName) or self.is_bound(node.name, bound):
                continue
            elif node.name in self.arrays:
                message = f"the array {node.name!r} is read as a scalar"
            else:
                message = f"{node.name!r} is read before anything binds it"
            path = next(path for path, each in walk_paths(expression, root) if each is node)
            raise self.fail(node, path, message)

    def is_bound(self, name: str, locals_: set[str]) -> bool:
        return name in locals_ or name in self.scalars or name in self.indices

    def tables(self) -> None:
        """``locals`` has a type for every local and, from ``localized`` on, for no other name."""
        bound = [
            statement.var if isinstance(statement, IRSequentialFor) else statement.target
            for _, statement in self.nodes
            if isinstance(statement, IRAssign | IRAtomic | IRSequentialFor)
        ]
        for name in bound:
            if name not in self.function.locals:
                raise self.fail(self.function, "", f"the local {name!r} has no type")
        if self.reached("localized") and list(self.function.locals) != list(dict.fromkeys(bound)):
            raise self.fail(self.function, "", "locals are not those assigned, in order")

    def types(self) -> None:
        """Every expression has a dtype; then, what they have fits together."""
        for path, node in self.nodes:
            if isinstance(node, Expression) and node.dtype is None:
                raise self.fail(node, path, "an expression without a dtype")
        for path, node in self.nodes:
            for message in TYPE_CHECKS.get(type(node), _no_check)(self.function, node):
                raise self.fail(node, path, message)

    def operators(self) -> None:
        """After decomposition the body has target operators only; the host has its own."""
        for path, node in self.nodes:
            if not path.startswith("body[0].body"):
                continue
            if isinstance(node, IRBinOp) and node.op not in TARGET_BINARY:
                raise self.fail(node, path, f"{node.op!r} is left")
            if isinstance(node, IRSequentialFor) and not (
                isinstance(node.step, IRConstant) and node.step.value == 1
            ):
                raise self.fail(node, path, "a sequential loop whose step is not 1")


def _operator(known: frozenset[str]) -> Callable[[_Verifier, IRNode], Iterator[str]]:
    def check(_: _Verifier, node: IRNode) -> Iterator[str]:
        op = getattr(node, "op", None)
        if op not in known:
            yield f"unknown operator {op!r}"

    return check


def _check_binary(verifier: _Verifier, node: IRBinOp) -> Iterator[str]:
    known = PYTHON_BINARY | TARGET_BINARY if verifier.reached("decomposed") else PYTHON_BINARY
    if node.op not in known:
        yield f"unknown operator {node.op!r}"


def _check_call(_: _Verifier, node: IRCall) -> Iterator[str]:
    count = MATH_CALLS.get(node.function)
    if count is None:
        yield f"unknown builtin {node.function!r}"
    elif count != len(node.args):
        yield f"{node.function} takes {count} operands, not {len(node.args)}"


def _check_access(
    verifier: _Verifier, node: IRArrayLoad | IRArrayStore | IRAtomic
) -> Iterator[str]:
    param = verifier.arrays.get(node.array)
    if param is None or param.dims is None:
        yield f"{node.array!r} is no array"
        return
    if node.flat and (param.is_strided or verifier.reached("packed")):
        yield f"{node.array!r} has no flat index here"
    expected = 1 if node.flat or verifier.reached("packed") else len(param.dims)
    if len(node.indices) != expected:
        yield f"{len(node.indices)} indices of {node.array!r}, not {expected}"


def _check_atomic(verifier: _Verifier, node: IRAtomic) -> Iterator[str]:
    yield from _check_access(verifier, node)
    if node.op not in ATOMIC_OPS:
        yield f"unknown atomic {node.op!r}"
    if (node.op == "cas") != (node.compare is not None):
        yield f"atomic {node.op} {'without' if node.compare is None else 'with'} a comparison"


def _check_dim_size(verifier: _Verifier, node: IRDimSize) -> Iterator[str]:
    param = verifier.arrays.get(node.array)
    if param is None or param.dims is None or node.array in verifier.function.local_arrays:
        yield f"{node.array!r} is no array parameter"
    elif not 0 <= node.dim < len(param.dims):
        yield f"{node.array!r} has no dimension {node.dim}"
    elif verifier.reached("resolved") and param.dims[node.dim] is not None:
        yield f"dimension {node.dim} of {node.array!r} is pinned and was not resolved"


def _check_stride(verifier: _Verifier, node: IRStride) -> Iterator[str]:
    param = verifier.arrays.get(node.array)
    if param is None or param.dims is None or not param.is_strided:
        yield f"{node.array!r} is no strided array parameter"
    elif not 0 <= node.dim < len(param.dims):
        yield f"{node.array!r} has no dimension {node.dim}"
    if not verifier.reached("packed"):
        yield "a stride before the indices are packed"


def _check_bitcast(verifier: _Verifier, _: IRBitcast) -> Iterator[str]:
    if not verifier.reached("decomposed"):
        yield "bits as another type before decomposition"


def _check_constant(verifier: _Verifier, node: IRConstant) -> Iterator[str]:
    if type(node.value) not in (bool, int, float):
        yield f"a constant holds {type(node.value).__name__}"
    if node.weak and verifier.reached("typed"):
        yield "a literal was not settled"
    elif node.weak == (node.dtype is not None):
        yield "a constant is weak or has a dtype, one of the two"


def _no_check(*_: object) -> Iterator[str]:
    return iter(())


_NODE_CHECKS: Final[dict[type[IRNode], Callable[..., Iterator[str]]]] = {
    IRBinOp: _check_binary,
    IRCompare: _operator(COMPARISONS),
    IRBoolOp: _operator(frozenset({"and", "or"})),
    IRUnaryOp: _operator(frozenset({"-", "~", "not"})),
    IRCall: _check_call,
    IRArrayLoad: _check_access,
    IRArrayStore: _check_access,
    IRAtomic: _check_atomic,
    IRDimSize: _check_dim_size,
    IRStride: _check_stride,
    IRBitcast: _check_bitcast,
    IRConstant: _check_constant,
}
