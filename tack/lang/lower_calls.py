"""Lowering of calls: which of them calls what, builtins, casts and atomics."""

from __future__ import annotations

import ast
import builtins as python
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

from tack.ir.nodes import Expression, IRAtomic, IRCall, IRCast, IRConstant, IRName
from tack.ir.operations import ATOMIC_DTYPES, ATOMIC_OPS, ELEMENTARY, MATH_CALLS
from tack.lang import atomics, elementary, fragments, groups
from tack.lang import builtins as language
from tack.lang.bindings import MISSING, dotted_name
from tack.lang.definition import KernelDefinition, constant
from tack.lang.lower_base import ArrayParameter
from tack.lang.lower_fragments import FragmentLowering
from tack.lang.lower_groups import GROUP_FUNCTIONS
from tack.lang.lower_random import RANDOM_FUNCTIONS, RandomLowering
from tack.lang.lower_vectors import VECTOR_FUNCTIONS
from tack.lang.vectors import (
    Value,
    VectorValue,
    words,
)
from tack.model.dtypes import DTYPES, DType, numpy_name
from tack.model.spelling import counted
from tack.model.vectors import VectorType

__all__ = ["CallLowering"]

_BUILTINS: Final[dict[Any, str]] = {
    python.abs: "abs",
    python.min: "min",
    python.max: "max",
    language.floor: "floor",
    language.ceil: "ceil",
    language.trunc: "trunc",
    language.sqrt: "sqrt",
    language.fma: "fma",
    python.round: "round",
    language.round: "round",
    language.copysign: "copysign",
    language.isnan: "isnan",
    language.isinf: "isinf",
    language.isfinite: "isfinite",
    language.clamp: "clamp",
    language.sign: "sign",
    language.step: "step",
    language.mix: "mix",
    language.popcount: "popcount",
    language.clz: "clz",
    language.ctz: "ctz",
    **{getattr(elementary, name): name for name in ELEMENTARY},
}
_ATOMICS: Final = {getattr(atomics, f"atomic_{op}"): op for op in ATOMIC_OPS}
_ARITY: Final = {**MATH_CALLS, "clamp": 3}
_VECTOR_FUNCTIONS: Final[dict[Any, str]] = {
    getattr(language, name): name for name in VECTOR_FUNCTIONS
}
_PYTHON_CASTS: Final[dict[Any, DType | None]] = {
    python.int: DTYPES["i64"],
    python.float: None,
    python.bool: DTYPES["bool"],
}
_ADVICE: Final[dict[Any, str]] = {
    python.print: "print is a statement of its own in a kernel, and gives no value",
    python.sum: "sum is not part of the kernel language; add in a loop",
    python.range: "range() stands in the head of a for loop only",
    language.ndrange: "tack.ndrange() stands in the head of a for loop only",
    language.local_array: "a local array is made by a statement: name = tack.local_array(...)",
    language.local_array_like: (
        "a local array is made by a statement: name = tack.local_array_like(...)"
    ),
    **{
        maker: f"a fragment is made by a statement: name = tack.{maker.__name__}(...)"
        for maker in (fragments.fragment_a, fragments.fragment_b, fragments.fragment_c)
    },
    **{
        statement: f"tack.{statement.__name__}() is a statement of its own; it gives no value"
        for statement in (fragments.mma, fragments.store_fragment)
    },
    groups.shared: "a shared array is made by a statement: name = tack.shared(...)",
    groups.shared_like: "a shared array is made by a statement: name = tack.shared_like(...)",
    constant: (
        "tack.constant is for numbers outside a kernel; write the number, or cast it: tack.f32(...)"
    ),
    python.super: (
        "super() is not part of the kernel language; name the method outside, as in "
        "base_f = Base.f, and call base_f(self, ...)"
    ),
    python.divmod: "divmod is not part of the kernel language; write // and %",
    math.fabs: "write abs, which has every type",
    **{
        getattr(math, name): f"write tack.{name}, which has every float type"
        for name in MATH_CALLS
        if name != "fmod" and hasattr(math, name)
    },
    **{
        getattr(math, name): (
            f"math.{name} gives a Python int; write tack.{name}, which keeps the type"
        )
        for name in ("floor", "ceil", "trunc")
    },
}

_TEXTS: Final = ("inf", "-inf", "nan")
"""What ``float`` takes as text."""

_OF_NUMPY: Final = {
    **dict.fromkeys(("abs", "absolute", "fabs"), "abs(x)"),
    **dict.fromkeys(("minimum", "fmin", "min", "amin"), "min(a, b), which prefers a number to NaN"),
    **dict.fromkeys(("maximum", "fmax", "max", "amax"), "max(a, b), which prefers a number to NaN"),
    **{f"arc{name[1:]}": f"tack.{name}" for name in ELEMENTARY if name.startswith("a")},
    "rint": "tack.round(x)",
    "clip": "tack.clamp(x, low, high)",
    "where": "a if condition else b",
    "dot": "tack.dot(a, b), of vectors",
    "cross": "tack.cross(a, b), of vectors",
    "power": "a ** b",
    "mod": "a % b",
    "remainder": "a % b",
    "floor_divide": "a // b",
    "sum": "a loop that adds",
    "zeros": "tack.local_array(dtype, shape)",
}
"""Function of NumPy -> what a kernel writes for it."""


class CallLowering(FragmentLowering, RandomLowering):
    """Lowers calls."""

    def _lower_Call(self, node: ast.Call) -> Value:
        function = self.callee_of(node)
        if function is not None:
            values = self.inline(node, function)
            if len(values) != 1:
                found = f"gives {len(values)} values" if values else "gives no value"
                raise self.refuse(node, f"{self._spelled(node)}() {found}, and one is needed here")
            return values[0]
        callee = self._callee(node)
        if callee is python.len:
            return self._length(node)
        if isinstance(callee, VectorType):
            return self.construct(node, callee, self._positional(node))
        converted = self._cast(node, callee)
        if converted is not None:
            return converted
        for functions, lower in self._LOWERED:
            if _known(callee, functions):
                return lower(self, node, functions[callee])
        if callee is python.pow:
            return self._power(node)
        if callee is python.any or callee is python.all:
            return self.any_or_all(node, callee.__name__, self._positional(node))
        raise self._refuse_callee(node, callee)

    def _cast(self, node: ast.Call, callee: Any) -> Expression | None:
        """The number that a call of a scalar type converts; None for another call."""
        if callee is python.float and _is_text(node.args):
            return self._spelled_float(node)
        dtype = callee if isinstance(callee, DType) else _numpy_type(callee)
        if dtype is None and not _known(callee, _PYTHON_CASTS):
            return None
        dtype = dtype or _PYTHON_CASTS[callee]
        return IRCast(self._single(node, dtype), dtype)

    def _spelled_float(self, node: ast.Call) -> Expression:
        """``float("inf")``: a literal like another."""
        text = node.args[0].value if isinstance(node.args[0], ast.Constant) else ""
        if node.keywords or text not in _TEXTS:
            known = ", ".join(f"float({each!r})" for each in _TEXTS)
            raise self.refuse(node, f"float() of text is one of {known}; write a number")
        return self.literal(node, float(text))

    def _spelled(self, node: ast.Call) -> str:
        return ast.unparse(node.func)

    def _callee(self, node: ast.Call) -> Any:
        callee = self.static(node.func)
        if callee is MISSING:
            dotted = dotted_name(node.func)
            if dotted is not None and dotted.split(".")[0] not in self.frame.locals:
                raise self.undefined(node.func, dotted)
            inner = node.func.value if isinstance(node.func, ast.Attribute) else node.func
            if isinstance(inner, ast.Call) and _known(called := self.static(inner.func), _ADVICE):
                raise self.refuse(inner, _ADVICE[called])
            raise self.refuse(
                node.func,
                f"{self._spelled(node)!r} cannot be called in a kernel; what can are builtins of "
                "tack and @tack.func functions",
            )
        return callee

    def _refuse_callee(self, node: ast.Call, callee: Any) -> Exception:
        name = self._spelled(node)
        if _known(callee, _ADVICE):
            return self.refuse(node, _ADVICE[callee])
        if isinstance(getattr(callee, "definition", None), KernelDefinition):
            return self.refuse(node, f"{name} is a kernel; a kernel cannot call a kernel")
        if getattr(callee, "__module__", "").split(".")[0] == "tack":
            return self.refuse(node, f"{name} is for plain Python; call it outside the kernel")
        if type(callee).__name__ == "function":
            return self.refuse(node, f"{name} is a plain Python function; decorate it @tack.func")
        if getattr(callee, "__module__", "").split(".")[0] == "numpy" or _is_ufunc(callee):
            near = getattr(callee, "__name__", "")
            advice = _OF_NUMPY.get(near) or (
                f"tack.{near}" if near in _ARITY else "it with scalars, or as @tack.func"
            )
            return self.refuse(node, f"{name} is NumPy's; write {advice}")
        return self.refuse(node, f"{name} is no builtin of the kernel language and no @tack.func")

    def _positional(self, node: ast.Call) -> list[Value]:
        if node.keywords:
            raise self.refuse(node, f"{self._spelled(node)} takes no keyword arguments")
        return self.evaluate_values(node.args)

    def _single(self, node: ast.Call, dtype: DType | None) -> Expression:
        values = self._positional(node)
        if len(values) != 1:
            raise self.refuse(node, f"{self._spelled(node)}() converts 1 value, not {len(values)}")
        (value,) = values
        if isinstance(value, VectorValue):
            name = "x".join(map(str, (dtype or "f32", *value.shape)))
            raise self.refuse(
                node,
                f"{self._spelled(node)}() converts a number, and this is {words(value)}; "
                f"write tack.{name}(...)",
            )
        return value

    def _builtin(self, node: ast.Call, name: str) -> Value:
        values = self._positional(node)
        if name in ("min", "max"):
            if len(values) < 2:
                raise self.refuse(node, f"{name} takes 2 values or more here, not {len(values)}")
            result = values[0]
            for value in values[1:]:
                result = self.componentwise(
                    node, [result, value], lambda *args: IRCall(name, list(args)), name
                )
            return result
        if len(values) != _ARITY[name]:
            raise self.refuse(
                node,
                f"{name} takes {counted(_ARITY[name], 'value')}, not {len(values)}",
            )
        return self.componentwise(node, values, lambda *args: self._call(node, name, args), name)

    def _of_vectors(self, node: ast.Call, name: str) -> Value:
        return self.vector_function(node, name, self._positional(node))

    def _call(self, node: ast.Call, name: str, args: Sequence[Expression]) -> Expression:
        """A builtin of numbers."""
        if name == "clamp":
            x, low, high = args
            return IRCall("min", [self.at(node, IRCall("max", [x, low])), high])
        return IRCall(name, list(args))

    def _power(self, node: ast.Call) -> Value:
        """Python's ``pow(a, b)``, which is ``a ** b``."""
        values = self._positional(node)
        if len(values) != 2:
            raise self.refuse(node, f"pow takes 2 values here, not {len(values)}")
        return self.binary(node, ast.Pow(), *values)

    def _atomic(self, node: ast.Call, op: str) -> Expression:
        """``tack.atomic_<op>(array, index, ...)``: a statement of its own, for the old element."""
        name, count = self._spelled(node), 4 if op == "cas" else 3
        if node.keywords or len(node.args) != count:
            takes = "an expected and a new value" if op == "cas" else "a value"
            raise self.refuse(node, f"{name} takes an array, an index and {takes}, none by keyword")
        place = ast.copy_location(ast.Subscript(node.args[0], node.args[1], ast.Load()), node)
        found = self.indexed(place)
        if found is None:
            raise self.refuse(node.args[0], f"{name} changes an array's element: name the array")
        array, is_flat = found
        dtype = array.spec.dtype
        if dtype.name not in ATOMIC_DTYPES[op]:
            known = ", ".join(ATOMIC_DTYPES[op])
            raise self.refuse(node, f"{name} has no {dtype} elements; it has {known}")
        nodes = self._atomic_indices(name, place, array, is_flat)
        values = self.evaluate([*nodes, *node.args[2:]])
        indices, operands = values[: len(nodes)], values[len(nodes) :]
        if is_flat:
            indices, is_flat = self.flat_indices(place, array, indices[0])
        else:
            self.check_indices(place, array, indices)
        target, compare = self.fresh("old"), operands[0] if op == "cas" else None
        atomic = IRAtomic(target, op, array.name, indices, operands[-1], compare, is_flat)
        self.emit(node, atomic)
        self.mark_assigned(target)
        return IRName(target)

    def _atomic_indices(
        self, name: str, place: ast.Subscript, array: ArrayParameter, is_flat: bool
    ) -> list[ast.expr]:
        """The index expressions of an atomic; of vectors, those of a component too."""
        given = list(place.slice.elts) if isinstance(place.slice, ast.Tuple) else [place.slice]
        inner, rank = len(array.spec.element), 1 if is_flat else array.spec.rank
        if not inner:
            return [self.flat_node(place, array)] if is_flat else self.index_nodes(place, array)
        if is_flat:
            raise self.refuse(
                place,
                f"{name} changes one number, and {array.spoken}.flat[i] is a vector; index "
                f"{array.spoken!r} itself",
            )
        if len(given) != rank + inner:
            example = ", ".join([*"ijklmnop"[:rank], *"0" * inner])
            raise self.refuse(
                place,
                f"{name} changes one number, and {array.spoken!r} holds vectors; name a component "
                f"behind the index, as in ({example}), and change each by itself",
            )
        return given

    def _length(self, node: ast.Call) -> Expression:
        """``len(x)`` of an array or a vector, and ``len(x.shape)``."""
        if len(node.args) != 1 or node.keywords:
            raise self.refuse(node, "len() takes one array or vector here")
        (argument,) = node.args
        shaped = self.shape_of(argument)
        if shaped is not None:
            return IRConstant(shaped.spec.rank, DTYPES["i64"])
        array = self.array_of(argument)
        table = self.static(argument)
        if isinstance(table, tuple):
            return IRConstant(len(table), None, weak=True)
        if array is None:
            value = self.value(argument)
            if not isinstance(value, VectorValue):
                raise self.refuse(node, "len() takes one array or vector here, not a number")
            return IRConstant(value.shape[0], None, weak=True)
        if array.spec.rank == 0:
            raise self.refuse(node, f"{array.spoken!r} has no dimensions, so no len()")
        return self.extent(array, 0)

    _LOWERED: ClassVar[tuple[tuple[dict[Any, str], Callable[..., Value]], ...]] = (
        (_BUILTINS, _builtin),
        (_ATOMICS, _atomic),
        (GROUP_FUNCTIONS, FragmentLowering.group_function),
        (RANDOM_FUNCTIONS, RandomLowering.random),
        (_VECTOR_FUNCTIONS, _of_vectors),
    )
    """Functions of the language by their names -> what lowers a call of one."""


def _known(value: Any, table: dict[Any, Any]) -> bool:
    """Whether ``value`` itself is a key; what it says of its equality does not count."""
    return any(value is key for key in table)


def _is_text(nodes: Sequence[ast.expr]) -> bool:
    return len(nodes) == 1 and isinstance(nodes[0], ast.Constant) and type(nodes[0].value) is str


def _numpy_type(callee: Any) -> DType | None:
    """The scalar type that one of NumPy's is, such as ``np.float32``."""
    if not isinstance(callee, type) or callee.__module__ not in ("numpy", "ml_dtypes"):
        return None
    return next((d for d in DTYPES.values() if numpy_name(d) == callee.__name__.rstrip("_")), None)


def _is_ufunc(callee: Any) -> bool:
    return type(callee).__module__ == "numpy" and type(callee).__name__ == "ufunc"
