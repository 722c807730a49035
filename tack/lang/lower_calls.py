"""Lowering of calls: builtins, casts, and the inlining of device functions."""

from __future__ import annotations

import ast
import builtins as python
import math
from typing import Any, Final

from tack.ir.nodes import Expression, IRCall, IRCast, IRConstant, IRName
from tack.lang import builtins as language
from tack.lang.bindings import MISSING, Constant, dotted_name
from tack.lang.definition import FunctionDefinition, KernelDefinition
from tack.lang.fingerprint import defaults_of
from tack.lang.lower_base import Frame, Meaning
from tack.lang.lower_expressions import ExpressionLowering
from tack.model.dtypes import DTYPES, DType

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
}
_ARITY: Final = {"abs": 1, "floor": 1, "ceil": 1, "trunc": 1, "sqrt": 1, "fma": 3}
_PYTHON_CASTS: Final[dict[Any, DType | None]] = {
    python.int: DTYPES["i64"],
    python.float: None,
    python.bool: DTYPES["bool"],
}
_ADVICE: Final[dict[Any, str]] = {
    python.print: "print in a kernel is not built yet",
    python.round: "round is not built yet; write tack.floor(x + 0.5)",
    python.pow: "pow is not built yet; write the products out",
    python.sum: "sum is not part of the kernel language; add in a loop",
    python.range: "range() stands in the head of a for loop only",
    language.ndrange: "tack.ndrange() stands in the head of the outermost loop only",
    language.local_array: "a local array is made by a statement: name = tack.local_array(...)",
    language.local_array_like: (
        "a local array is made by a statement: name = tack.local_array_like(...)"
    ),
    python.divmod: "divmod is not part of the kernel language; write // and %",
    math.floor: "math.floor gives a Python int; write tack.floor, which keeps the type",
    math.ceil: "math.ceil gives a Python int; write tack.ceil, which keeps the type",
    math.trunc: "math.trunc gives a Python int; write tack.trunc, which keeps the type",
    math.sqrt: "write tack.sqrt, which has every float type",
    math.fabs: "write abs, which has every type",
}


class CallLowering(ExpressionLowering):
    """Lowers calls."""

    def _lower_Call(self, node: ast.Call) -> Expression:
        callee = self._callee(node)
        if isinstance(callee, FunctionDefinition):
            values = self.inline(node, callee)
            if len(values) != 1:
                found = f"gives {len(values)} values" if values else "gives no value"
                raise self.refuse(node, f"{self._spelled(node)}() {found}, and one is needed here")
            return values[0]
        if callee is python.len:
            return self._length(node)
        if isinstance(callee, DType):
            return IRCast(self._single(node), callee)
        if _known(callee, _PYTHON_CASTS):
            return IRCast(self._single(node), _PYTHON_CASTS[callee])
        if _known(callee, _BUILTINS):
            return self._builtin(node, _BUILTINS[callee])
        raise self._refuse_callee(node, callee)

    def _spelled(self, node: ast.Call) -> str:
        return ast.unparse(node.func)

    def _callee(self, node: ast.Call) -> Any:
        callee = self.static(node.func)
        if callee is MISSING:
            dotted = dotted_name(node.func)
            if dotted is not None and dotted.split(".")[0] not in self.frame.locals:
                raise self.undefined(node.func, dotted)
            raise self.refuse(node.func, f"{self._spelled(node)!r} cannot be called in a kernel")
        return callee

    def _refuse_callee(self, node: ast.Call, callee: Any) -> Exception:
        name = self._spelled(node)
        if _known(callee, _ADVICE):
            return self.refuse(node, _ADVICE[callee])
        if isinstance(getattr(callee, "definition", None), KernelDefinition):
            return self.refuse(node, f"{name} is a kernel; a kernel cannot call a kernel")
        if type(callee).__name__ == "function":
            return self.refuse(node, f"{name} is a plain Python function; decorate it @tack.func")
        if getattr(callee, "__module__", "").split(".")[0] == "numpy":
            near = getattr(callee, "__name__", "")
            advice = (
                f"write tack.{near}"
                if near in _ARITY
                else "write it with scalars, or as @tack.func"
            )
            return self.refuse(node, f"{name} is NumPy's; {advice}")
        return self.refuse(node, f"{name} is no builtin of the kernel language and no @tack.func")

    def _positional(self, node: ast.Call) -> list[Expression]:
        if node.keywords:
            raise self.refuse(node, f"{self._spelled(node)} takes no keyword arguments")
        return self.evaluate(node.args)

    def _single(self, node: ast.Call) -> Expression:
        values = self._positional(node)
        if len(values) != 1:
            raise self.refuse(node, f"{self._spelled(node)}() converts 1 value, not {len(values)}")
        return values[0]

    def _builtin(self, node: ast.Call, name: str) -> Expression:
        values = self._positional(node)
        if name in ("min", "max"):
            if len(values) < 2:
                raise self.refuse(node, f"{name} takes 2 values or more here, not {len(values)}")
            result = values[0]
            for value in values[1:]:
                result = self.at(node, IRCall(name, [result, value]))
            return result
        if len(values) != _ARITY[name]:
            raise self.refuse(
                node,
                f"{name} takes {_ARITY[name]} value{'s' * (_ARITY[name] != 1)}, not {len(values)}",
            )
        return IRCall(name, values)

    def _length(self, node: ast.Call) -> Expression:
        """``len(x)``, and ``len(x.shape)``."""
        argument = node.args[0] if len(node.args) == 1 and not node.keywords else node
        shaped = self.shape_of(argument) if argument is not node else None
        if shaped is not None:
            return IRConstant(shaped.spec.rank, DTYPES["i64"])
        array = self.array_of(argument)
        if array is None:
            raise self.refuse(node, "len() takes one array here")
        if array.spec.rank == 0:
            raise self.refuse(node, f"{array.spoken!r} has no dimensions, so no len()")
        return self.extent(array, 0)

    # inlining

    def values_of(self, node: ast.expr) -> list[Expression]:
        """The values of ``node``: of a tuple, a call with several results, a shape, or just one."""
        if isinstance(node, ast.Tuple):
            return self.evaluate(node.elts)
        shaped = self.shape_of(node)
        if shaped is not None:
            return [self.at(node, self.extent(shaped, k)) for k in range(shaped.spec.rank)]
        if isinstance(node, ast.Call):
            callee = self.static(node.func)
            if isinstance(callee, FunctionDefinition):
                return self.inline(node, callee)
        return [self.expression(node)]

    def inline(self, node: ast.Call, callee: FunctionDefinition) -> list[Expression]:
        """Emits the body of ``callee`` for this call, and gives its results."""
        if callee in self.active:
            cycle = [d.name.split(":")[1] for d in self.active[self.active.index(callee) :]]
            cycle.append(cycle[0])
            raise self.refuse(node, f"recursion is not possible: {' -> '.join(cycle)}")
        frame = Frame(callee, suffix=f".{_plain(callee)}.{self.count()}")
        self._check_parameters(frame)
        self._bind(node, callee, frame)
        outer, self.frame = self.frame, frame
        outer_loops, self.loops = self.loops, []
        self.active.append(callee)
        try:
            return self.function_body(node, frame)
        finally:
            self.active.pop()
            self.frame, self.loops = outer, outer_loops

    def function_body(self, node: ast.Call, frame: Frame) -> list[Expression]:
        """Lowers the body of an inlined function."""
        raise NotImplementedError

    def _check_parameters(self, frame: Frame) -> None:
        arguments = frame.definition.source.node.args
        for star in (arguments.vararg, arguments.kwarg):
            if star is not None:
                raise frame.refuse(star, "star parameters are not part of the kernel language")

    def _bind(self, node: ast.Call, callee: FunctionDefinition, frame: Frame) -> None:
        """Evaluates the arguments under the caller's bindings and names them for the callee."""
        given = self._match(node, callee)
        nodes = list(given.values())
        meanings: dict[str, Meaning] = {}
        scalars = [n for n in nodes if self.array_of(n) is None]
        values = dict(zip(map(id, scalars), self.evaluate(scalars), strict=True))
        for name, argument in given.items():
            array = self.array_of(argument)
            meanings[name] = (
                array
                if array is not None
                else self._parameter(node, callee, frame, name, values[id(argument)])
            )
        for name, value in defaults_of(callee).items():
            if name not in given:
                literal = self._default(node, callee, name, value)
                meanings[name] = self._parameter(node, callee, frame, name, literal)
        frame.meanings = meanings

    def _match(self, node: ast.Call, callee: FunctionDefinition) -> dict[str, ast.expr]:
        """Parameter -> argument, in the order in which the call evaluates them."""
        arguments = callee.source.node.args
        positional = [a.arg for a in [*arguments.posonlyargs, *arguments.args]]
        by_keyword = {a.arg for a in [*arguments.args, *arguments.kwonlyargs]}
        name = _plain(callee)
        if len(node.args) > len(positional):
            raise self.refuse(
                node, f"{name}() takes {len(positional)} positional arguments, not {len(node.args)}"
            )
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                raise self.refuse(argument, "star arguments are not part of the kernel language")
        given = dict(zip(positional, node.args, strict=False))
        for keyword in node.keywords:
            if keyword.arg is None:
                raise self.refuse(keyword, "star arguments are not part of the kernel language")
            if keyword.arg not in by_keyword:
                raise self.refuse(keyword, f"{name}() has no parameter {keyword.arg!r}")
            if keyword.arg in given:
                raise self.refuse(keyword, f"{name}() is given {keyword.arg!r} twice")
            given[keyword.arg] = keyword.value
        missing = [p for p in callee.parameters if p not in given and p not in defaults_of(callee)]
        if missing:
            raise self.refuse(node, f"{name}() is not given {', '.join(map(repr, missing))}")
        return given

    def _default(
        self, node: ast.Call, callee: FunctionDefinition, name: str, value: Any
    ) -> IRConstant:
        if isinstance(value, Constant):
            return IRConstant(value.literal, value.dtype, weak=value.dtype is None)
        if type(value) in (bool, int, float):
            return self.literal(node, value)
        raise self.refuse(
            node, f"the default of {name!r} in {_plain(callee)}() is {value!r}, which is no number"
        )

    def _parameter(
        self, node: ast.Call, callee: FunctionDefinition, frame: Frame, name: str, value: Expression
    ) -> Meaning:
        """What a scalar parameter of an inlined function stands for."""
        dtype = dict(zip(callee.parameters, callee.annotations, strict=True))[name]
        assigned = name in _assigned_names(callee)
        if dtype is None and not assigned:
            if isinstance(value, IRConstant):
                return value
            if isinstance(value, IRName):
                return value.name
        target = f"{name}{frame.suffix}"
        if dtype is not None:
            self.declared[target] = dtype
        elif not assigned:
            self.temporaries.add(target)
        self.emit_assign(node, target, value)
        return target


def _plain(callee: FunctionDefinition) -> str:
    return callee.function.__name__


def _assigned_names(callee: FunctionDefinition) -> set[str]:
    return {
        inner.id
        for inner in ast.walk(callee.source.node)
        if isinstance(inner, ast.Name) and not isinstance(inner.ctx, ast.Load)
    }


def _known(value: Any, table: dict[Any, Any]) -> bool:
    """Whether ``value`` itself is a key; what it says of its equality does not count."""
    return any(value is key for key in table)
