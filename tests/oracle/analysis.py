"""Static types of a function's locals, by a least fixpoint over its syntax tree.

Each function is worked out once for each list of argument types, as inlining would. A first round
leaves what comes from literals weak; locals that end weak without being assigned only literals then
get their type (`types.settled`), and the round is repeated with those fixed.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import FunctionType
from typing import Any

import numpy as np

from . import rules, vectors
from .flow import assigned_names, declared, goes_on
from .source import Builtin, Device, parameters, resolve, syntax
from .types import (
    BOOL,
    DTYPES,
    I64,
    U64,
    ArrayType,
    Dtype,
    OracleRefused,
    TemplateType,
    Type,
    VectorType,
    WeakInt,
    is_integer,
    join,
    loaded,
    settled,
)
from .values import Value, is_known, lift, literal, value_type

__all__ = ["RESULT", "Analysis", "Analyzer", "bind"]

RESULT = "return"
"""The name, no identifier, under which a function's results are joined like a local."""
_ROUNDS = 64
_OF_VECTORS = ("any", "all", "len")


@dataclass
class Analysis:
    """What was worked out for one function and one list of argument types."""

    function: FunctionType
    node: ast.FunctionDef
    names: frozenset[str]
    """Parameters and locals, those among them that no reachable statement sets."""
    locals: dict[str, Type]
    choices: dict[ast.expr, Type] = field(default_factory=dict)
    """The type of each conditional expression: the promotion of its branches."""

    @property
    def result(self) -> Type | None:
        """The type of what the function returns; `None` for a procedure."""
        return self.locals.get(RESULT)


def bind(
    function: FunctionType, positional: Sequence[Any], keywords: dict[str, Any]
) -> list[tuple[str, Any]]:
    """Arguments by parameter as Python binds them, defaults filled in as literals."""
    node = syntax(function)
    names = [each.arg for each in parameters(node)]
    if len(positional) > len(names):
        raise OracleRefused(f"{function.__name__}: too many arguments")
    found = dict(zip(names, positional, strict=False))
    for name, value in keywords.items():
        if name not in names or name in found:
            raise OracleRefused(f"{function.__name__}: argument {name}")
        found[name] = value
    defaults = function.__defaults__ or ()
    plain = [*node.args.posonlyargs, *node.args.args]
    for each, default in zip(plain[len(plain) - len(defaults) :], defaults, strict=True):
        found.setdefault(each.arg, default)
    for name, default in (function.__kwdefaults__ or {}).items():
        found.setdefault(name, default)
    missing = [name for name in names if name not in found]
    if missing:
        raise OracleRefused(f"{function.__name__}: no argument for {missing}")
    return [(name, found[name]) for name in names]


class Analyzer:
    """Works out functions and remembers them; one per call of a kernel."""

    def __init__(self) -> None:
        self._known: dict[tuple[FunctionType, tuple[Type, ...]], Analysis] = {}
        self._active: list[FunctionType] = []

    def function(self, function: FunctionType, types: Sequence[Type]) -> Analysis:
        """The analysis of `function` for these argument types, one per parameter."""
        key = function, tuple(types)
        if key not in self._known:
            if function in self._active:
                raise OracleRefused(f"{function.__name__} calls itself")
            self._active.append(function)
            try:
                self._known[key] = _Rounds(self, function, types).run()
            finally:
                self._active.pop()
        return self._known[key]


class _Rounds:
    """The fixpoint for one function."""

    def __init__(self, owner: Analyzer, function: FunctionType, types: Sequence[Type]) -> None:
        self.owner = owner
        self.function = function
        self.node = syntax(function)
        self.base: dict[str, Type] = {}
        self.arguments = dict(zip((each.arg for each in parameters(self.node)), types, strict=True))
        assigned = assigned_names(self.node)
        self.declared = declared(self.node)
        self.names = frozenset(assigned | set(self.arguments))
        self.transparent = (set(self.arguments) - assigned - set(self.declared)) | {RESULT}
        self.locals: dict[str, Type] = {}
        self.choices: dict[ast.expr, Type] = {}
        self.final = False

    def run(self) -> Analysis:
        """Rounds until nothing changes, then weak computed locals typed, then again."""
        while True:
            self._fixpoint()
            weak = {
                name: settled(t)
                for name, t in self.locals.items()
                if name not in self.transparent and settled(t) != t
            }
            if not weak:
                break
            self.base.update(weak)
        self.final = True
        for name in self.arguments.keys() & self.declared.keys():
            self._stored(self.arguments[name], self.declared[name])
        self._round()
        for t in self.locals.values():
            rules.held(t)
        kept = {
            name: t if name in self.transparent else loaded(t) for name, t in self.locals.items()
        }
        return Analysis(self.function, self.node, self.names, kept, self.choices)

    def _fixpoint(self) -> None:
        self.locals = {}
        for name, t in [*self.arguments.items(), *self.base.items()]:
            self._assign(name, t)
        for _ in range(_ROUNDS):
            before = dict(self.locals)
            self._round()
            if before == self.locals:
                return
        raise AssertionError("the types of locals do not settle")

    def _round(self) -> None:
        self._statements(self.node.body)

    def _assign(self, name: str, t: Type | None) -> None:
        if name in self.declared:
            self._stored(t, self.declared[name])
            self.locals[name] = self.declared[name]
            return
        try:
            joined = join(self.locals.get(name), t)
        except OracleRefused:
            if self.final:
                raise
            return
        if joined is not None:
            self.locals[name] = joined

    # Statements.

    def _statements(self, body: Sequence[ast.stmt]) -> None:
        """Statements as far as they can be reached."""
        for statement in body:
            self._statement(statement)
            if not goes_on(statement):
                break

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                t = self.type(value)
                for target in targets:
                    self._target(target, t)
            case ast.AugAssign(target=target, op=op, value=value):
                read = self.type(target)
                result = self._operation(rules.BINARY[type(op)], read, value)
                self._target(target, result)
            case ast.AnnAssign(target=ast.Name(id=name), value=value):
                if value is not None:
                    self._assign(name, self.type(value))
            case (
                ast.If(test=test, body=body, orelse=orelse)
                | ast.While(test=test, body=body, orelse=orelse)
            ):
                self._truth(test)
                self._statements(body)
                self._statements(orelse)
            case ast.For(target=target, body=body, iter=iterable):
                for bound in getattr(iterable, "args", []):
                    if self._integer(bound) == U64:
                        raise OracleRefused("a bound is i64, which does not hold every u64")
                for each in target.elts if isinstance(target, ast.Tuple) else [target]:
                    self._target(each, I64)
                self._statements(body)
            case ast.Return(value=value):
                if value is not None:
                    self._assign(RESULT, self.type(value))
            case ast.Expr(value=ast.Call() as call):
                self._call(call, statement=True)
            case ast.Expr(value=ast.Constant()) | ast.Pass() | ast.Break() | ast.Continue():
                pass
            case ast.Assert():
                pass
            case _:
                raise OracleRefused(f"statement {ast.unparse(node)}")

    def _target(self, target: ast.expr, t: Type | None) -> None:
        match target:
            case ast.Name(id=name):
                if isinstance(t, tuple):
                    raise OracleRefused("a local holds one value")
                self._assign(name, t)
            case ast.Tuple(elts=targets):
                if t is None:
                    return
                if isinstance(t, VectorType):
                    t = (vectors.component_type(t, 1),) * t.shape[0]
                if not isinstance(t, tuple) or len(t) != len(targets):
                    raise OracleRefused("unpacking does not fit")
                for each, one in zip(targets, t, strict=True):
                    self._target(each, one)
            case ast.Subscript() | ast.Attribute():
                element, root = self.type(target), _root(target)
                if element is None or t is None:
                    return
                if isinstance(self.locals.get(root), ArrayType | TemplateType):
                    self._stored(t, element)
                else:
                    self._component(root, element, t)
            case _:
                raise OracleRefused(f"assignment to {ast.unparse(target)}")

    def _component(self, root: str, element: Type, t: Type) -> None:
        """Assignment to components of a local vector: its type is joined, as a local's is."""
        vector = self.locals.get(root)
        shapes = [getattr(each, "shape", ()) for each in (element, t)]
        if not isinstance(vector, VectorType) or shapes[0] != shapes[1]:
            raise OracleRefused(f"components of {root}")
        self._assign(root, VectorType(getattr(t, "dtype", t), vector.shape))

    def _stored(self, t: Type | None, into: Type) -> None:
        if t is None or not self.final:
            return
        if isinstance(t, VectorType) and isinstance(into, VectorType) and t.shape == into.shape:
            t, into = t.dtype, into.dtype
        if not isinstance(into, Dtype):
            raise OracleRefused(f"a {t} into {into}")
        rules.store(t, into)

    # Expressions. `None` is a type that is not known yet.

    def type(self, node: ast.expr) -> Type | None:
        """The type of an expression under the types that locals have now."""
        try:
            return self._expression(node)
        except OracleRefused:
            if self.final:
                raise
            return None

    def _expression(self, node: ast.expr) -> Type | None:
        match node:
            case ast.Constant(value=bool() | int() | float() as number):
                return literal(number).type
            case ast.Name(id=name) if name in self.names:
                t = self.locals.get(name)
                return t if t is None or name in self.transparent else loaded(t)
            case ast.Subscript(value=value, slice=index):
                return self._subscript(value, index)
            case ast.Attribute() if self._member(node) is not None:
                return self._member(node)
            case ast.Attribute(value=value, attr=name) if self._of_vector(value):
                t = self.type(value)
                if t is None:
                    return None
                if not isinstance(t, VectorType):
                    raise OracleRefused(f"{t} has no {name}")
                count = len(vectors.picked(name, t.shape))
                return VectorType(t.dtype, (count,)) if count > 1 else t.dtype
            case ast.Attribute() if self._shaped(node):
                shaped = self._shaped(node)
                return (I64,) * (shaped.rank if shaped else 0)
            case ast.Attribute(value=owner, attr="size" | "ndim") if isinstance(
                self._whole(owner), ArrayType
            ):
                return I64
            case ast.Name() | ast.Attribute():
                found = resolve(self.function, node)
                if not isinstance(found, Value | vectors.Vector):
                    raise OracleRefused(f"{ast.unparse(node)} is no value")
                return found.type
            case ast.BinOp(left=left, op=op, right=right):
                return self._operation(rules.BINARY[type(op)], self.type(left), right)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self._truth(operand)
                return BOOL
            case ast.UnaryOp(op=op, operand=operand):
                t = self.type(operand)
                return None if t is None else self._unary(rules.UNARY[type(op)], t)
            case ast.BoolOp(values=values):
                for each in values:
                    self._truth(each)
                return BOOL
            case ast.Compare(left=left, comparators=comparators):
                types = [self.type(each) for each in (left, *comparators)]
                if any(isinstance(each, VectorType) for each in types):
                    if len(types) > 2:
                        raise OracleRefused("a chain of vectors")
                    if None in types:
                        return None
                    vectors.static(rules.compare, types)  # type: ignore[arg-type]
                    return vectors.static(lambda *_: BOOL, types)  # type: ignore[arg-type]
                for a, b in itertools.pairwise(types):
                    if a is not None and b is not None:
                        rules.compare(a, b)
                return BOOL
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self._truth(test)
                t = join(self.type(body), self.type(orelse))
                if t is not None:
                    rules.held(t)
                    self.choices[node] = t
                return t
            case ast.Tuple(elts=elements):
                types = [self.type(each) for each in elements]
                return None if None in types else tuple(types)  # type: ignore[arg-type]
            case ast.Call():
                return self._call(node)
        raise OracleRefused(f"expression {ast.unparse(node)}")

    def _operation(self, op: str, left: Type | None, node: ast.expr) -> Type | None:
        right = self.type(node)
        if left is None or right is None:
            return None
        if op == "@":
            return vectors.product_type(left, right, self._scalars)
        return vectors.static(lambda a, b: self._scalars(op, a, b), [left, right])

    def _scalars(self, op: str, left: Type, right: Type) -> Type:
        a, b = _known_literal(left), _known_literal(right)
        if op == "**" and b is not None and b.payload < 0:
            raise OracleRefused("a negative literal exponent")
        if a is not None and b is not None:
            return value_type(_apply(op, a, b))
        return rules.binary(op, left, right)[0]

    def _unary(self, op: str, t: Type) -> Type:
        if isinstance(t, VectorType):
            return vectors.static(lambda each: rules.unary(op, each), [t])
        known = _known_literal(t)
        if known is not None:
            return value_type(-known if op == "-" else ~known if op == "~" else +known)  # type: ignore[operator]
        return rules.unary(op, t)

    def _truth(self, node: ast.expr) -> None:
        t = self.type(node)
        if t is not None and self.final:
            rules.truth(t)

    def _integer(self, node: ast.expr) -> Type | None:
        t = self.type(node)
        if t is not None and (not is_integer(t) or t == BOOL):
            raise OracleRefused(f"{ast.unparse(node)} is no integer")
        if isinstance(t, WeakInt) and not (
            t.low is None or t.high is None or -(2**63) <= t.low <= t.high < 2**63
        ):
            raise OracleRefused(f"{ast.unparse(node)} is beyond i64")
        return t

    def _shaped(self, node: ast.expr) -> ArrayType | None:
        """The array whose shape `node` is."""
        match node:
            case ast.Attribute(value=value, attr="shape"):
                array = self._whole(value)
                return array if isinstance(array, ArrayType) else None
        return None

    def _whole(self, node: ast.expr) -> Type | None:
        """The array or template that `node` names."""
        found = None
        if isinstance(node, ast.Name) and node.id in self.names:
            found = self.locals.get(node.id)
        elif isinstance(node, ast.Attribute):
            found = self._member(node)
        return found if isinstance(found, ArrayType | TemplateType) else None

    def _array(self, name: str) -> ArrayType:
        array = self.locals.get(name)
        if not isinstance(array, ArrayType):
            raise OracleRefused(f"{name} is no array")
        return array

    def _member(self, node: ast.Attribute) -> Type | None:
        """The type of an attribute of a template; `None` for other attributes."""
        owner = self._whole(node.value)
        if not isinstance(owner, TemplateType):
            return None
        found = dict(owner.members)
        if node.attr not in found or node.attr[0] == "_":
            raise OracleRefused(f"{ast.unparse(node)}: no such attribute")
        return found[node.attr]

    def _method(self, node: ast.expr) -> tuple[FunctionType, list[Type]] | None:
        """The function that `node` names on a template, and the self that it takes, if it does."""
        owner = self._whole(node.value) if isinstance(node, ast.Attribute) else None
        if not isinstance(node, ast.Attribute) or not isinstance(owner, TemplateType):
            return None
        for name, function in owner.functions:
            if name == node.attr:
                return function, []
        for name, function, static in owner.methods:
            if name == node.attr:
                return function, [] if static else [owner]
        raise OracleRefused(f"{ast.unparse(node)}: no such method")

    def _subscript(self, value: ast.expr, index: ast.expr) -> Type | None:
        if self._shaped(value):
            return I64
        flat = isinstance(value, ast.Attribute) and value.attr == "flat"
        owner = value.value if isinstance(value, ast.Attribute) and flat else value
        array = self._whole(owner)
        indices = index.elts if isinstance(index, ast.Tuple) else [index]
        if not isinstance(array, ArrayType):
            return self._of_index(self.type(value), indices)
        if len(indices) != (1 if flat else array.rank):
            raise OracleRefused(f"{len(indices)} indices on rank {array.rank}")
        for each in indices:
            t = self._integer(each)
            known = None if t is None else _known_literal(t)
            if known is not None and known.payload < 0:
                raise OracleRefused("a negative literal index")
        return VectorType(array.dtype, array.element) if array.element else array.dtype

    def _of_index(self, t: Type | None, indices: Sequence[ast.expr]) -> Type | None:
        """The type of a component or a row of a vector."""
        for each in indices:
            given = self._integer(each)
            if t is None:
                return None
            if not isinstance(t, VectorType):
                raise OracleRefused(f"an index of {t}")
            known = None if given is None else _known_literal(given)
            if known is not None:
                vectors.literal_index(known.payload, t)
            t = vectors.component_type(t, 1)
        return t

    def _of_vector(self, value: ast.expr) -> bool:
        """Whether an attribute of `value` is a component: of whatever is no array and no module."""
        if self._whole(value) is not None:
            return False
        root = value
        while isinstance(root, ast.Attribute):
            root = root.value
        if not isinstance(root, ast.Name):
            return True
        if root is value and root.id not in self.names:
            return isinstance(resolve(self.function, root), vectors.Vector)
        return root.id in self.names and not isinstance(self.locals.get(root.id), ArrayType)

    def _call(self, node: ast.Call, statement: bool = False) -> Type | None:
        method = self._method(node.func)
        called = Device(method[0]) if method else resolve(self.function, node.func)
        if isinstance(called, Builtin) and called.name.startswith("local_array"):
            return self._local_array(called.name, node)
        if called == Builtin("float") and isinstance(getattr(node.args[0], "value", 0), str):
            return literal(0.0).type
        atomic = isinstance(called, Builtin) and called.name.startswith("atomic_")
        positional = [self._flat(each) if atomic else self._argument(each) for each in node.args]
        keywords = {each.arg or "": self._argument(each.value) for each in node.keywords}
        if None in positional or None in keywords.values():
            return None
        if called == Builtin("len") and isinstance(positional[0], ArrayType):
            if positional[0].rank == 0:
                raise OracleRefused("len without a dimension")
            return I64
        if isinstance(called, Builtin):
            if called.name in vectors.NAMES or called.name in (*vectors.FUNCTIONS, *_OF_VECTORS):
                return vectors.function_type(called.name, positional, self._scalars)  # type: ignore[arg-type]
            if any(isinstance(each, VectorType) for each in positional):
                return self._builtin_of_vectors(called.name, positional)  # type: ignore[arg-type]
            return rules.builtin(called.name, positional)[0]  # type: ignore[arg-type]
        if not isinstance(called, Device):
            raise OracleRefused(f"{ast.unparse(node.func)} is not callable")
        types = []
        positional = [*(method[1] if method else []), *positional]
        for _, given in bind(called.function, positional, keywords):
            constant = isinstance(given, bool | int | float | Value)
            if isinstance(given, np.ndarray):
                given = vectors.of_numpy(given).type  # noqa: PLW2901
            types.append(lift(given).type if constant else given)
        result = self.owner.function(called.function, types).result
        if result is None and not statement:
            raise OracleRefused(f"{called.function.__name__} gives no value")
        return result

    def _local_array(self, name: str, node: ast.Call) -> Type | None:
        first, *others = node.args
        if name == "local_array":
            (shape,) = others
            rank = len(getattr(shape, "elts", [shape]))
            found = resolve(self.function, first)
            if isinstance(found, Builtin) and found.name in vectors.NAMES:
                vector = vectors.NAMES[found.name]
                assert isinstance(vector.dtype, Dtype)
                return ArrayType(vector.dtype, rank, vector.shape)
            return ArrayType(self._dtype(first), rank)
        like = self._argument(first)
        if like is not None and not isinstance(like, ArrayType):
            raise OracleRefused(f"{ast.unparse(first)} is no array")
        dtypes = [self._dtype(each) for each in others]
        if like is None:
            return None
        if like.element and dtypes:
            raise OracleRefused("vectors like those of an array, of another type")
        return ArrayType((*dtypes, like.dtype)[0], like.rank, like.element)

    def _dtype(self, node: ast.expr) -> Dtype:
        found = resolve(self.function, node)
        if not isinstance(found, Builtin) or found.name not in DTYPES:
            raise OracleRefused(f"{ast.unparse(node)} is no dtype")
        return DTYPES[found.name]

    def _builtin_of_vectors(self, name: str, types: list[Type]) -> Type:
        if name not in rules.COMPONENTWISE:
            raise OracleRefused(f"{name} of vectors")
        return vectors.static(lambda *each: rules.builtin(name, each)[0], types)

    def _flat(self, node: ast.expr) -> Type | None:
        """The array that an atomic changes, as a whole or by `.flat`; other arguments as ever."""
        if isinstance(node, ast.Attribute) and node.attr == "flat":
            array = self._whole(node.value)
            if isinstance(array, ArrayType):
                if array.element:
                    raise OracleRefused("an atomic of a flat view of vectors")
                return replace(array, rank=1)
        return self._argument(node)

    def _argument(self, node: ast.expr) -> Type | None:
        return self._whole(node) or self.type(node)


def _root(target: ast.expr) -> str:
    """The name of which `target` is a component or an element."""
    while isinstance(target, ast.Attribute | ast.Subscript):
        target = target.value
    if not isinstance(target, ast.Name):
        raise OracleRefused(f"assignment to {ast.unparse(target)}")
    return target.id


def _known_literal(t: Type) -> Value | None:
    return Value(t, t.low) if isinstance(t, WeakInt) and is_known(t) else None


def _apply(op: str, a: Value, b: Value) -> Any:
    """A literal integer operation, done by the values themselves."""
    return getattr(a, _METHODS[op])(b)


_METHODS = {
    "+": "__add__",
    "-": "__sub__",
    "*": "__mul__",
    "/": "__truediv__",
    "//": "__floordiv__",
    "%": "__mod__",
    "**": "__pow__",
    "<<": "__lshift__",
    ">>": "__rshift__",
    "&": "__and__",
    "|": "__or__",
    "^": "__xor__",
}
