"""Whole programs: the parallel loop, what each iteration owns, parameters and their memory.

Programs are free of races by construction: an array that the kernel may write is touched, to read
or to write, only at elements that belong to the iteration alone, and arguments that share memory
share that division of it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from .expressions import Choose, Expressions
from .functions import Written, write_function
from .objects import Objects
from .program import Argument, Buffer, Numbers, Program, View, numpy_dtype
from .scope import DTYPES_OF, Array, Scope, Shape, Variable, VectorVariable
from .statements import Place, Statements, indent
from .vectors import type_name

__all__ = ["draw"]

_INTEGERS = DTYPES_OF["I"] + ("u64",)
_ARRAY_NAMES = ("out", "res", "src", "tab", "aux", "img", "short", "λ")


def family_of(dtype: str) -> str:
    """The family of an array's elements."""
    if dtype in DTYPES_OF["F"]:
        return "F"
    return "B" if dtype == "bool" else "U" if dtype == "u64" else "I"


@dataclass(frozen=True)
class _Parameter:
    """A parameter, or an attribute of one: annotation, argument, what the program knows of it."""

    name: str
    argument: Argument
    annotation: str = ""
    array: Array | None = None


class _Kernel:
    """Draws one program."""

    def __init__(self, choose: Choose) -> None:
        self.expressions = Expressions(choose)
        self.statements = Statements(self.expressions)
        self.pick = self.expressions.pick
        self.number = self.expressions.number
        self.chance = self.expressions.chance
        self.scope = Scope()
        self.buffers: list[Buffer] = []
        self.parameters: list[_Parameter] = []
        self.objects = Objects(self.expressions, self.scope)

    def program(self) -> Program:
        """The program."""
        self.expressions.careless = self.chance(6)
        self.objects.draw()
        self._scalars()
        self._vectors()
        for _ in range(self.number(0, 2)):
            self._table()
        constants = self._constants()
        before = self._before()
        dims, header, indices, extents = self._loop()
        header = self._owned(dims, indices, extents, header)
        for each in self.parameters:
            if each.array is not None:
                self.scope.add(each.array)
        self.objects.reach(tuple(indices))
        functions = [
            write_function(f"helper_{at}", self.statements, self.scope)
            for at in range(self.number(0, 5))
        ]
        arguments = self._arguments(functions)
        place = Place(iteration=True)
        body = self.statements.block(self.scope, place, 5)
        signature = ", ".join(
            f"{each.name}: {each.annotation}" if each.annotation else each.name
            for each in arguments
        )
        lines = ["import tack", "", *constants, "", "", *self.objects.definitions(functions)]
        lines += ["@tack.kernel", f"def kernel({signature}):", *indent(before), f"    {header}"]
        lines += indent(indent(body))
        given = tuple(each.argument for each in arguments)
        return Program("\n".join(lines) + "\n", given, tuple(self.buffers))

    def _arguments(self, functions: list[Written]) -> list[_Parameter]:
        """The parameters, in another order than that in which they were thought of."""
        found = [each for each in self.parameters if "." not in each.name]
        attributes = [(each.name, each.argument) for each in self.parameters if "." in each.name]
        made = self.objects.arguments(attributes, functions)
        found += [_Parameter(name, each) for name, each in made.items()]
        for at in range(len(found) - 1):
            other = self.number(at, len(found) - 1)
            found[at], found[other] = found[other], found[at]
        return found

    def _buffer(self, dtype: str, count: int) -> int:
        self.buffers.append(Buffer(dtype, count, self.number(0, 2**16)))
        return len(self.buffers) - 1

    # Scalars.

    def _scalars(self) -> None:
        for at in range(self.number(0, 3)):
            kind = self.pick(["i64", "float", "bool", "annotated"])
            name = self.scope.fresh(("n", "alpha", "flag", "k")[at])
            if kind == "annotated":
                dtype = self.pick([*_INTEGERS, *DTYPES_OF["F"], "bool"])
                annotation = "tack.bool_" if dtype == "bool" else f"tack.{dtype}"
                family = "B" if dtype == "bool" else family_of(dtype)
            else:
                dtype, annotation = {"i64": "i64", "float": "f32", "bool": "bool"}[kind], ""
                family = "B" if kind == "bool" else family_of(dtype)
            name = name if annotation else self.objects.home(name)
            self.parameters.append(_Parameter(name, self._scalar(dtype), annotation))
            writable = self.chance(30) and "." not in name
            self.scope.variables.append(Variable(name, family, writable=writable))

    def _vectors(self) -> None:
        """Parameters that are vectors or matrices."""
        for at in range(self.pick([0, 0, 0, 1, 2])):
            dtype = self.pick([*_INTEGERS, *DTYPES_OF["F"], "bool"])
            shape = self.expressions.vectors.shape()
            name = self.scope.fresh(("vec", "mat")[at])
            annotation = f"tack.{type_name(dtype, shape)}"
            self.parameters.append(_Parameter(name, self._numbers(dtype, shape), annotation))
            self.scope.vectors.append(VectorVariable(name, family_of(dtype), shape))

    def _numbers(self, dtype: str, shape: Shape) -> Numbers:
        first, *rest = shape
        return tuple(
            self._numbers(dtype, tuple(rest)) if rest else self._scalar(dtype) for _ in range(first)
        )

    def _scalar(self, dtype: str) -> int | float | bool:
        if dtype == "bool":
            return self.chance(50)
        if dtype in DTYPES_OF["F"]:
            return self.pick([0.0, 1.0, -1.5, 0.1, 1e30, float("inf"), float("nan"), -0.0])
        bits = int(dtype[1:])
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if dtype[0] == "i" else (0, 2**bits - 1)
        value: int = self.pick([3, 0, 1, 2, 5, -1, -7, low, high, 100])
        return min(max(value, low), high)

    def _constants(self) -> list[str]:
        lines: list[str] = []
        for at in range(self.number(0, 1)):
            name = self.scope.fresh(f"K{at}")
            family = self.pick(["I", "F"])
            dtype = self.pick(DTYPES_OF[family])
            value = "2.5" if family == "F" else str(self.number(0, 100))
            weak = self.chance(30)
            self.scope.variables.append(Variable(name, family, weak, writable=False))
            lines.append(f"{name} = tack.constant({value}{'' if weak else f', tack.{dtype}'})")
        return lines

    def _before(self) -> list[str]:
        """What is set before the loop, from scalars and shapes."""
        lines = ['"""A generated kernel."""'] if self.chance(30) else []
        tables = [each.array for each in self.parameters if each.array is not None]
        for _ in range(self.pick([0, 0, 0, 1, 2])):
            array = self.pick(tables) if tables and self.chance(30) else None
            if array is not None and 1 <= array.rank <= 3:
                names = [self.scope.fresh(each) for each in ("nx", "ny", "nz")[: array.rank]]
                lines.append(f"{', '.join(names)}{',' * (len(names) == 1)} = {array.name}.shape")
            else:
                names = [self.scope.fresh("m")]
                lines.append(f"{names[0]} = {self._host(2)}")
            self.scope.variables += [Variable(each, "I", writable=False) for each in names]
        return lines

    def _host(self, depth: int) -> str:
        """An integer expression that the host can compute."""
        known = self.scope.of("I")
        tables = [each.array for each in self.parameters if each.array is not None]
        if depth <= 0 or self.chance(20):
            if known and self.chance(60):
                return self.pick(known).name
            if tables and self.chance(60):
                array = self.pick(tables)
                if array.rank == 0 or self.chance(20):
                    return f"{array.name}.{self.pick(['size', 'ndim'])}"
                return f"{array.name}.shape[{self.number(0, array.rank - 1)}]"
            return str(self.number(-3, 300))
        left, right = self._host(depth - 1), self._host(depth - 1)
        match self.number(0, 6):
            case 0 | 1:
                return f"({left} {self.pick(['+', '-', '*'])} tack.i64({right}))"
            case 2:
                return f"({left} {self.pick(['//', '%', '&', '|', '^'])} tack.i32({right}))"
            case 3:
                return f"(tack.i16({left}) {self.pick(['<<', '>>'])} {right})"
            case 4:
                return f"{self.pick(['min', 'max'])}({left}, tack.i64({right}))"
            case 5:
                test = self.pick(["<", "<=", "==", "!=", ">", ">="])
                return f"({left} if {self._host(0)} {test} {self._host(0)} else {right})"
            case _:
                cast = self.pick(["tack.u8", "tack.i8", "int", "abs", "-tack.i32", "~tack.u16"])
                return f"({cast}({left}))"

    # The loop.

    def _loop(self) -> tuple[int, str, list[str], list[int]]:
        """Dimensions, header, the index that owns (from 0), and the extents."""
        dims = self.pick([1, 1, 1, 2, 3])
        names = [self.scope.fresh(each) for each in ("i", "j", "k2")[:dims]]
        found = self._header(dims, names)
        for each in names:
            self.scope.variables.append(Variable(each, "I", writable=False))
        return found

    def _header(self, dims: int, names: list[str]) -> tuple[int, str, list[str], list[int]]:
        over = self.objects.loop(dims, names)
        if over is not None:
            header, attributes, extents = over
            self.parameters += [_Parameter(*each) for each in attributes.items()]
            return dims, header, names, extents
        if dims > 1:
            most = {2: 4, 3: 3}[dims]
            bounds = [self._bound(most) for _ in range(dims)]
            texts = ", ".join(text for text, _ in bounds)
            header = f"for {', '.join(names)} in tack.ndrange({texts}):"
            return dims, header, names, [max(value, 0) for _, value in bounds]
        text, end = self._bound(self.pick([3, 5, 8, 37]))
        match self.number(0, 2):
            case 0:
                return 1, f"for {names[0]} in range({text}):", names, [max(end, 0)]
            case 1:
                start = self.number(-2, 2)
                header = f"for {names[0]} in range({start}, {text}):"
                own = f"({names[0]} - {start})" if start >= 0 else f"({names[0]} + {-start})"
                return 1, header, [own], [max(end - start, 0)]
            case _:
                start, step = self.number(0, 2), self.number(1, 3)
                header = f"for {names[0]} in range({start}, {text}, {step}):"
                return 1, header, names, [max(end, 0)]

    def _bound(self, most: int) -> tuple[str, int]:
        """An integer expression that the host can compute, and what it is at most."""
        value = self.number(0, most)
        known = [
            each
            for each in self.parameters
            if type(each.argument) is int and each.annotation != "tack.u64"
        ]
        if self.chance(30):
            return f"({self._host(3)}) % {most + 1}", most
        if self.chance(20):
            return f"min({self._host(3)}, {value})", value
        if known and self.chance(50):
            parameter = self.pick(known)
            number = int(parameter.argument)  # type: ignore[arg-type]
            if -4 <= number <= most:
                return parameter.name, number
        return str(value), value

    # Arrays.

    def _owned(self, dims: int, indices: list[str], extents: list[int], header: str) -> str:
        """Add what iterations write; the header may turn out to be over an extent of it."""
        exact = self.chance(30)
        leading = tuple(each + (0 if exact else self.number(0, 2)) for each in extents)
        for _ in range(self.number(1, 3)):
            dtype = self.pick([*_INTEGERS, *DTYPES_OF["F"], "f32", "bool"])
            name = self.scope.fresh(self.pick(_ARRAY_NAMES))
            array = Array(name, family_of(dtype), dims, tuple(indices))
            shape = leading
            if dims < 3 and self.chance(40):
                shape = (*leading, self.number(2, 3))
                array = replace(array, rank=dims + 1, free="axis")
            elif dims == 1 and self.chance(40):
                width = self.number(2, 4)
                shape = (leading[0] * width,)
                array = replace(array, free="segment", width=width, pitch=width)
            if self.chance(20):
                array = replace(array, element=self.expressions.vectors.shape())
                shape = (*shape, *array.element)
            name = self._place(array, dtype, shape)
            if exact and array.free != "segment":
                sizes = ", ".join(f"{name}.shape[{axis}]" for axis in range(dims))
                target = header.partition(" in ")[0]
                loop = "tack.ndrange" if dims > 1 else "range"
                return f"{target} in {loop}({sizes}):" if indices[0] in target else header
        return header

    def _place(self, array: Array, dtype: str, shape: tuple[int, ...]) -> str:
        """The parameter for an owned array, perhaps with another over the same memory; its name."""
        count = 1
        for extent in shape:
            count *= extent
        alias = self.pick(["", "", "same", "pun", "shifted"])
        alias = alias if not array.element or alias == "same" else ""
        name = self.scope.fresh(self.pick(_ARRAY_NAMES)) if alias else ""
        if alias == "same":
            view = self._spread(View(self._buffer(dtype, count), dtype, 0, shape))
            self._array(array, view)
            self._array(replace(array, name=name), view)
        elif alias == "shifted" and array.free == "segment":
            # Two views, one element apart, of segments that are one element longer.
            wide = shape[0] // array.width * (array.width + 1)
            step = self.pick([1, 1, 2, 3])
            buffer = self._buffer(dtype, (wide + 1) * step)
            for each, offset in ((array.name, 0), (name, step)):
                strides = (step * numpy_dtype(dtype).itemsize,) if step > 1 else None
                view = View(buffer, dtype, offset, (wide,), strides)
                self._array(replace(array, name=each, pitch=array.width + 1), view)
        elif alias == "pun" and array.free == "axis" and dtype not in DTYPES_OF["F"]:
            narrow = self.pick(["u8", "i8", dtype])
            ratio = numpy_dtype(dtype).itemsize // numpy_dtype(narrow).itemsize
            buffer = self._buffer(dtype, count)
            self._array(array, View(buffer, dtype, 0, shape))
            other = replace(array, name=name, family=family_of(narrow))
            self._array(other, View(buffer, narrow, 0, (*shape[:-1], shape[-1] * ratio)))
        else:
            view = View(self._buffer(dtype, count), dtype, 0, shape)
            self._array(array, self._spread(view))
        return self.parameters[-1].name

    def _spread(self, view: View, repeats: bool = False) -> View:
        """Now and then, the same elements in another order and further apart, perhaps unaligned.

        With `repeats` an axis may have the stride 0.
        """
        if not self.chance(35) or 0 in view.shape:
            return view
        item = numpy_dtype(view.dtype).itemsize
        axes = list(range(len(view.shape)))
        if self.chance(40):
            axes.reverse()
        strides, first = [0] * len(axes), 0
        step = item * self.pick([1, 2, 3]) + (self.number(1, item) if self.chance(20) else 0)
        for axis in reversed(axes):
            if repeats and self.chance(20):
                continue
            strides[axis] = step
            step *= view.shape[axis]
            if self.chance(25):
                first += strides[axis] * (view.shape[axis] - 1)
                strides[axis] = -strides[axis]
        skew = first + (self.number(1, item) if self.chance(30) else 0)
        count = -(-(step + 2 * item) // item)
        self.buffers[view.buffer] = replace(self.buffers[view.buffer], count=count)
        return replace(view, strides=tuple(strides), skew=skew)

    def _array(self, array: Array, view: View) -> None:
        name, annotation = array.name, ""
        if array.element:
            annotation = f"tack.Array[tack.{type_name(view.dtype, array.element)}]"
        else:
            name = self.objects.home(name)
        strided = view.strides is not None
        atomic = not strided and view.dtype not in ("bool", "f8e4m3", "f8e5m2")
        array = replace(array, name=name, strided=strided, atomic=atomic)
        self.parameters.append(_Parameter(name, view, annotation, array))

    def _table(self) -> None:
        """An array that nothing writes and every iteration may read anywhere."""
        dtype = self.pick([*_INTEGERS, *DTYPES_OF["F"], "bool"])
        rank = self.pick([1, 2, 3, 1, 2, 3, 0, 4, 5])
        element = self.expressions.vectors.shape() if self.chance(25) else ()
        shape = (*(self.number(2, 4) for _ in range(rank)), *element)
        count = 1
        for extent in shape:
            count *= extent
        name = self.scope.fresh(self.pick(_ARRAY_NAMES))
        view = self._spread(View(self._buffer(dtype, count), dtype, 0, shape), repeats=True)
        self._array(Array(name, family_of(dtype), rank, element=element), view)


def draw(seed: str) -> Program:
    """A race-free kernel with its arguments, the same one for a seed wherever it is drawn.

    Not by Hypothesis: that draws from the constants of whatever modules happen to be imported, and
    repeats parts of what it drew, so that five programs of six would be an earlier one.
    """
    return _Kernel(random.Random(seed).randint).program()
