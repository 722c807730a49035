"""Random kernels with workgroups, by seed: free of races, and in bounds for iterations.

Every program is one that the analysis must accept; with ``wild`` chances some of what is said to be
the same for a group is not, so that it may be refused, or must be right. Code that never runs loads
behind the end of arrays, where a lane that should not run it would fault.

What another iteration may do with an array between barriers is tracked as marks: an array that
neighbours have read is not ``written`` before the next barrier, nor the other way round.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

__all__ = ["GroupProgram", "draw_group_program"]

_GROUPS: Final = {
    1: ((1,), (2,), (3,), (5,), (8,), (8,), (16,), (64,)),
    2: ((1, 8), (4, 2), (3, 5), (2, 1), (8, 8)),
    3: ((2, 3, 4), (1, 1, 5), (4, 1, 2), (1, 4, 1)),
}
_INTEGERS: Final = ("i32", "i64", "u8", "i16", "bool")
_FLOATS: Final = ("f32", "f16", "bf16", "f64")
_COUNT: Final = 8
"""Elements of ``w``, whose elements all lanes may have in common."""
_NEVER: Final = "n < -1000"
_NEVER_HERE: Final = "v0 == 77 and v0 == 78"
_ALWAYS_HERE: Final = "v0 != 77 or v0 != 78"


@dataclass(frozen=True)
class GroupProgram:
    """A module with the kernel ``k(x, f, w, n, m, out, fout, y)``.

    ``extents`` is how many iterations its parallel loop has, ``shape`` that of its arrays. Where it
    is ``aliased``, ``x`` and ``out`` are one array.
    """

    text: str
    group: tuple[int, ...]
    extents: tuple[int, ...]
    shape: tuple[int, ...]
    integer: str
    floating: str
    aliased: bool

    @property
    def signature(self) -> str:
        """The types of the arguments."""
        axes = ", ".join(":" * len(self.shape))
        whole = [f"{each}[{axes}]" for each in (self.integer, self.floating)]
        outs = [f"{each}[{axes}]" for each in ("i32", self.floating, "i32")]
        return ", ".join([*whole, "i32[:]", "i32", "i32", *outs])


@dataclass
class _Array:
    """An array with a place for each iteration: its own one, and that of a neighbour."""

    own: str
    near: Callable[[], str]
    floating: bool = False
    marks: set[str] = field(default_factory=set)


@dataclass
class _Place:
    """Where a statement stands: in ``uniform`` control flow, in a loop, in code that never runs."""

    uniform: bool = True
    loop: list[set[str]] | None = None
    dead: bool = False
    depth: int = 0


class _Drawer:
    def __init__(self, seed: int, wild: float) -> None:
        self.random = random.Random(seed)
        self.wild = wild
        self.lines: list[str] = []
        self.indent = 2
        self.budget = 26
        self.names = 0
        self.dims = self.pick((1, 1, 1, 2, 3))
        self.group = self.pick(_GROUPS[self.dims])
        self.first, self.step = 0, 1
        if self.dims == 1:
            extents: tuple[int, ...] = (self.pick((1, 2, 7, 8, 23, 40)),)
            if self.chance(0.3):
                self.first, self.step = self.pick((0, 3)), self.pick((1, 2, 5))
        else:
            most = 12 if self.dims == 2 else 5
            extents = tuple(self.random.randint(1, most) for _ in range(self.dims))
        self.extents = extents
        self.integer, self.floating = self.pick(_INTEGERS), self.pick(_FLOATS)
        self.counters: list[str] = []
        self.reassigned = self.chance(0.2)
        self.aliased = self.integer == "i32" and self.chance(0.4)
        self.escaped = False
        self.arrays: list[_Array] = []
        self.place = _Place()

    # chances

    def pick(self, options: Sequence[Any]) -> Any:
        """One of them; of functions what one gives."""
        chosen = self.random.choice(options)
        return chosen() if callable(chosen) else chosen

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def fresh(self, stem: str) -> str:
        self.names += 1
        return f"{stem}{self.names}"

    # the text

    def emit(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    @contextmanager
    def inside(self, head: str, **changes: object) -> Iterator[None]:
        """Statements of a block; a `pass` where it stays empty."""
        outer, self.place = self.place, _Place(**{**self.place.__dict__, **changes})
        self.place.depth += 1
        self.emit(head)
        self.indent += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self.emit("pass")
        self.indent -= 1
        self.place = outer
        if self.escaped:
            self.place.uniform = False

    def program(self) -> GroupProgram:
        index = ("i", "j", "l")[: self.dims]
        own = ", ".join(f"me{a}" for a in range(self.dims))
        sizes = ", ".join(map(str, self.group)) + "," * (self.dims == 1)
        if self.dims > 1:
            loop = f"{', '.join(index)} in tack.ndrange(*x.shape)"
            shape = self.extents
        else:
            last = self.first + (self.extents[0] - 1) * self.step + 1
            shape = (last,)
            loop = f"i in range({self.first}, x.shape[0], {self.step})"
        for axis, name in enumerate(index):
            self.emit(f"me{axis} = {name}")
            self.emit(f"t{axis} = tack.thread_id({axis})")
            count, size = self.extents[axis], self.group[axis]
            self.emit(f"c{axis} = min({size}, {count} - tack.group_id({axis}) * {size})")
        self.emit(f"s = tack.shared(tack.i32, ({sizes}))")
        self.emit(f"g = tack.shared(tack.{self.floating}, ({sizes}))")
        self.emit("bins = tack.shared(tack.i32, 4)")
        self.emit("own = tack.local_array(tack.i32, 4)")
        lanes = ", ".join(f"t{a}" for a in range(self.dims))
        self.arrays = [
            _Array(f"s[{lanes}]", lambda: f"s[{self.near()}]"),
            _Array(f"g[{lanes}]", lambda: f"g[{self.near()}]", floating=True),
            _Array(f"y[{own}]", lambda: f"y[{self.near_globally()}]"),
        ]
        self.bins = _Array("", lambda: f"bins[({self.varying()}) & 3]")
        self.emit(f"v0 = tack.i32(x[{own}])")
        self.emit("v1 = v0 + tack.i32(tack.thread_id())")
        self.emit(f"h0 = f[{own}]")
        self.emit(f"h1 = h0 + tack.{self.floating}(1)")
        self.emit("u0 = n + 1")
        self.emit("u1 = m + tack.i32(tack.group_id(0))")
        self.emit(f"r0 = tack.{self.floating}(m)")
        self.emit(f"s[{lanes}] = v0")
        self.emit(f"g[{lanes}] = h0")
        with self.inside("if tack.thread_id() == 0:"):
            self.emit("for q in range(4):")
            self.emit("    bins[q] = tack.i32(0)")
        for array in [*self.arrays, self.bins]:
            array.marks = {"written"}
        self.barrier()
        while self.budget > 0:
            self.statement()
        self.emit(f"out[{own}] += v0 + v1 * 3 + u0 + u1")
        self.emit(f"fout[{own}] = h0 - h1 * r0")
        body = "\n".join(self.lines)
        text = (
            f"import tack\n{_FUNCTIONS}\n\n@tack.kernel(group={self.group})\n"
            f"def k(x, f, w, n: tack.i32, m: tack.i32, out, fout, y):\n    for {loop}:\n{body}\n"
        )
        return GroupProgram(
            text, self.group, self.extents, shape, self.integer, self.floating, self.aliased
        )

    # numbers

    def near(self) -> str:
        return ", ".join(f"(t{a} + {self.random.randint(0, 3)}) % c{a}" for a in range(self.dims))

    def near_globally(self) -> str:
        found = []
        for axis, lane in enumerate(self.near().split(", ")):
            place = f"tack.group_id({axis}) * {self.group[axis]} + {lane}"
            found.append(f"{self.first} + {self.step} * ({place})" if self.dims == 1 else place)
        return ", ".join(found)

    def uniform(self, depth: int = 0) -> str:
        """An i32 that all iterations of a group have in common."""
        if self.chance(self.wild):
            return self.varying(depth)
        if depth < 2 and self.chance(0.5):
            op = self.pick(("+", "-", "*", "&", "^", "|"))
            right = self.uniform(depth + 1) if self.chance(0.6) else str(self.random.randint(0, 5))
            return f"({self.uniform(depth + 1)} {op} {right})"
        if depth < 2 and self.chance(0.15):
            return f"({self.uniform(2)} if {self.common(1)} else {self.uniform(2)})"
        axis = self.random.randrange(self.dims)
        options: list[Any] = ["n", "m", "u0", "u1", f"tack.i32(tack.group_id({axis}))"]
        if depth < 3:
            options.append(lambda: self.element(depth + 1))
        options += [f"tack.i32({name})" for name in self.counters]
        if self.group[axis] == 1 and not self.reassigned:
            options.append(f"tack.i32({'ijl'[axis]})")
        return str(self.pick(options))

    def element(self, depth: int = 2) -> str:
        """An element of ``w``; in code that never runs one that is not there."""
        if self.place.dead:
            return f"w[{_COUNT} + ({self.uniform(depth)} & 7)]"
        if self.chance(0.15):
            return f"(w[w.shape[0] + 2] if {_NEVER} else n)"
        return f"w[{self.uniform(depth)} & {_COUNT - 1}]"

    def varying(self, depth: int = 0) -> str:
        """An i32 of an iteration."""
        if depth < 2 and self.chance(0.5):
            op = self.pick(("+", "-", "*", "&", "^", "|"))
            right = self.varying(depth + 1) if self.chance(0.6) else str(self.random.randint(0, 5))
            return f"({self.varying(depth + 1)} {op} {right})"
        options: list[Any] = ["v0", "v1", "tack.i32(t0)", "own[v0 & 3]", self.arrays[0].own]
        options += [
            f"tack.i32(me{self.dims - 1})",
            f"tack.i32(x[{self.own()}])",
            lambda: self.neighbour(floating=False),
        ]
        if depth < 2:
            options += [lambda: self.uniform(depth + 1), lambda: f"twice({self.varying(2)})"]
        return str(self.pick(options))

    def neighbour(self, *, floating: bool) -> str:
        """What a neighbour stored before the last barrier."""
        arrays = [each for each in self.arrays if each.floating == floating]
        if not floating:
            arrays.append(self.bins)
        free = [each for each in arrays if "written" not in each.marks]
        if not free or self.place.dead:
            return "h1" if floating else "v1"
        array = self.random.choice(free)
        array.marks.add("read")
        if array is self.bins:
            return f"bins[{self.random.randint(0, 3)}]"
        return array.near()

    def real(self, depth: int = 0) -> str:
        """A float of an iteration."""
        if depth < 2 and self.chance(0.5):
            op = self.pick(("+", "-", "*"))
            return f"({self.real(depth + 1)} {op} {self.real(depth + 1)})"
        if depth < 2 and self.chance(0.1):
            return f"({self.real(2)} if {self.different(1)} else {self.real(2)})"
        near = partial(self.neighbour, floating=True)
        return str(self.pick(["h0", "h1", "r0", near, self.arrays[1].own]))

    def common(self, depth: int = 0) -> str:
        """A condition that all iterations of a group have in common."""
        if self.chance(self.wild):
            return self.different(depth)
        if depth < 1 and self.chance(0.3):
            word = self.pick(("and", "or"))
            return f"({self.common(1)} {word} {self.common(1)})"
        if depth < 1 and self.chance(0.1):
            return f"not {self.common(1)}"
        if depth < 1 and self.place.uniform and self.chance(0.15):
            how = self.pick(("max", "min", "sum"))
            return f"tack.block_{how}({self.varying(1)}) > {self.uniform(1)}"
        if self.chance(0.1):
            return f"({_NEVER} and w[{_COUNT + 3}] > 0)"
        return f"{self.uniform(1)} {self.pick(('<', '==', '>=', '!='))} {self.uniform(1)}"

    def different(self, depth: int = 0) -> str:
        """A condition of an iteration."""
        if depth < 1 and self.chance(0.2):
            return f"({self.common(1)} {self.pick(('and', 'or'))} {self.different(1)})"
        return f"{self.varying(1)} {self.pick(('<', '==', '>=', '!='))} {self.varying(1)}"

    # statements

    def statement(self) -> None:
        self.budget -= 1
        uniform = self.place.uniform or self.chance(self.wild)
        options: list[tuple[int, Callable[[], None]]] = [
            (4, lambda: self.emit(f"v{self.random.randint(0, 1)} = {self.varying()}")),
            (3, lambda: self.emit(f"h{self.random.randint(0, 1)} = {self.real()}")),
            (2, lambda: self.emit(f"out[{self.own()}] += {self.varying()}")),
            (1, lambda: self.emit(f"own[{self.uniform(1)} & 3] = {self.varying()}")),
            (1, self.vector),
            (4, self.store),
            (1, self.count),
        ]
        if self.reassigned:
            options.append(
                (1, lambda: self.emit(f"{'ijl'[self.random.randrange(self.dims)]} += 2"))
            )
        if uniform:
            options += [
                (3, lambda: self.emit(f"u{self.random.randint(0, 1)} = {self.uniform()}")),
                (2, self.reduction),
                (4, self.barrier),
                (2, self.call),
                (1, lambda: self.emit("tack.block_max(v0)")),
            ]
        if self.place.uniform and not self.wild:  # asserts that do nothing are not analysed
            options.append((1, lambda: self.emit("assert tack.block_sum(0) == 0")))
        if self.place.depth < 4:
            options += [(3, self.branch), (2, self.divergent_branch), (1, self.never)]
            options += [(1, self.divergent_loop)]
            if uniform:
                options += [(3, self.loop), (2, self.while_loop)]
        if self.place.loop is not None:
            options += [(2, self.leave), (1, self.divergent_continue)]
        elif self.place.depth < 2 and self.budget < 8:
            options += [(1, self.end), (1, self.divergent_end)]
        weights = [weight for weight, _ in options]
        (chosen,) = self.random.choices([make for _, make in options], weights)
        chosen()

    def own(self) -> str:
        return ", ".join(f"me{a}" for a in range(self.dims))

    def block(self, most: int = 4) -> None:
        for _ in range(self.random.randint(1, most)):
            self.statement()

    def vector(self) -> None:
        if self.floating == "f32":
            name = self.fresh("p")
            self.emit(f"{name} = tack.f32x2({self.real(1)}, {self.real(1)})")
            self.emit(f"h1 = {name}.y * {name}.x")

    def store(self) -> None:
        free = [each for each in self.arrays if "read" not in each.marks]
        if free:
            array = self.random.choice(free)
            value = self.real() if array.floating else self.varying()
            if "read" in array.marks:  # the value reads it
                return
            array.marks.add("written")
            self.emit(f"{array.own} = {value}")

    def count(self) -> None:
        index, value = self.varying(1), self.varying(1)
        if "read" not in self.bins.marks:
            self.bins.marks.add("written")
            how = self.pick(("add", "add", "sub"))
            self.emit(f"tack.atomic_{how}(bins, {index} & 3, {value})")

    def barrier(self) -> None:
        self.emit("tack.barrier()")
        for array in [*self.arrays, self.bins]:
            array.marks.clear()

    def reduction(self) -> None:
        how = self.pick(("sum", "min", "max"))
        if self.chance(0.5):
            self.emit(f"u{self.random.randint(0, 1)} = tack.block_{how}({self.varying()})")
        elif self.chance(0.5):
            self.emit(f"r0 = tack.block_{how}({self.real()})")
        else:
            self.emit(f"v1 = {self.varying(1)} + tack.block_{how}({self.varying(1)})")

    def call(self) -> None:
        """A device function that waits, and writes and reads the first array."""
        array = self.arrays[0]
        value, common = self.varying(), self.uniform()
        if "read" in array.marks:
            return
        lanes = ", ".join(f"t{a}" for a in range(self.dims))
        near = self.near()
        name = self.pick(("shifted", "early"))
        if self.dims == 1:
            self.emit(f"v1 = {name}(s, {value}, {common}, {lanes}, {near})")
            array.marks |= {"read", "written"}
        else:
            self.emit(f"v1 = settled({value}, {common})")

    def marks(self) -> list[set[str]]:
        return [set(each.marks) for each in [*self.arrays, self.bins]]

    def restore(self, marks: list[set[str]]) -> None:
        for array, own in zip([*self.arrays, self.bins], marks, strict=True):
            array.marks = set(own)

    def join(self, marks: list[set[str]]) -> None:
        for array, own in zip([*self.arrays, self.bins], marks, strict=True):
            array.marks |= own

    def branch(self) -> None:
        head = f"if {self.common()}:"
        before = self.marks()
        with self.inside(head):
            self.block()
        after = self.marks()
        self.restore(before)
        if self.chance(0.4):
            with self.inside("else:"):
                self.block(3)
        self.join(after)

    def divergent_branch(self) -> None:
        head = f"if {self.different()}:"
        with self.inside(head, uniform=False):
            self.block(3)
        if self.chance(0.4):
            with self.inside("else:", uniform=False):
                self.block(2)

    def never(self) -> None:
        """Code that does not run, and would fault."""
        head, uniform = self.pick(((_NEVER, True), (_NEVER_HERE, False)))
        before = self.marks()
        with self.inside(f"if {head}:", dead=True, uniform=self.place.uniform and uniform):
            self.emit(f"{'u0' if self.place.uniform else 'v1'} = {self.element()}")
            self.block(3)
        self.join(before)

    def divergent_loop(self) -> None:
        """A loop of which the iterations run rounds of their own, or leave it where they like."""
        for array in [*self.arrays, self.bins]:
            if not array.marks:
                array.marks.add(str(self.pick(("read", "written"))))
        name = self.fresh("k")
        rounds = self.varying(1) if self.chance(0.6) else self.uniform(1)
        escaped = self.escaped
        with self.inside(f"for {name} in range({rounds} & 3):", uniform=False, loop=[]):
            self.block(3)
            if self.chance(0.5):
                self.emit(f"if {self.different()}:")
                self.emit(f"    {self.pick(('break', 'continue'))}")
                self.block(2)
            self.escaped = escaped

    def loop(self) -> None:
        name = self.fresh("k")
        low = self.uniform(1)
        bounds = self.pick(
            (f"{low} & 3", f"0, {low} & 7, 3", f"({low} & 3), -1, -1", f"5, ({low} & 7) + 5, n")
        )
        self.rounds(f"for {name} in range({bounds}):", name, "")

    def while_loop(self) -> None:
        name = self.fresh("q")
        self.emit(f"{name} = {self.uniform(1)} & 3")
        extra = f" and {self.common(1)}" if self.chance(0.4) else ""
        self.rounds(f"while {name} > 0{extra}:", name, f"{name} -= 1")

    def rounds(self, head: str, counter: str, first: str) -> None:
        before, escaped = self.marks(), self.escaped
        left: list[list[set[str]]] = []
        reassigned = not first and self.chance(0.2)
        with self.inside(head, loop=left):
            if first:
                self.emit(first)
            for array in [*self.arrays, self.bins]:
                array.marks = {"read", "written"}
            if self.chance(0.7) and self.place.uniform:
                self.barrier()
            if reassigned:
                self.emit(f"{counter} = {self.varying(1)}")
            else:
                self.counters.append(counter)
            self.block()
            if not reassigned:
                self.counters.remove(counter)
            self.escaped = escaped
        self.join(before)
        for each in left:
            self.join(each)

    def leave(self) -> None:
        """A break or continue that all iterations of a group take, or none."""
        head = f"if {self.common()}:" if self.place.uniform else f"if {self.different()}:"
        with self.inside(head):
            self.place.loop.append(self.marks())
            self.emit(str(self.pick(("break", "continue"))) if self.place.uniform else "continue")
            self.escaped = self.escaped or not self.place.uniform

    def divergent_continue(self) -> None:
        if self.chance(0.5):
            self.emit(f"if {self.different()}:")
            self.emit("    continue")
            self.place.loop.append(self.marks())
            self.place.uniform, self.escaped = False, True

    def end(self) -> None:
        self.emit(f"if {self.common()}:")
        self.emit("    continue")
        self.escaped = self.escaped or not self.place.uniform

    def divergent_end(self) -> None:
        """Some iterations end here, or all of them; then what follows would fault."""
        all_of_them = self.chance(0.5)
        self.emit(f"if {_ALWAYS_HERE if all_of_them else self.different()}:")
        self.emit(f"    out[{self.own()}] += v0")
        self.emit("    continue")
        self.place.uniform, self.escaped = False, True
        self.place.dead = self.place.dead or all_of_them


_FUNCTIONS: Final = """

@tack.func
def twice(a):
    if a > 3:
        return a * 2
    return a + 1


@tack.func
def settled(a, common):
    if common > 3:
        return a
    total = tack.block_sum(a)
    if common == 1:
        return total
    tack.barrier()
    if common & 1 > 0:
        total = total + 1
        if common > 2:
            return a - total
    tack.barrier()
    return total - a


@tack.func
def shifted(s, a, common, t, near):
    s[t] = a
    tack.barrier()
    result = s[near]
    tack.barrier()
    if common > 2:
        result = result + common
    return result


@tack.func
def early(s, a, common, t, near):
    s[t] = a
    if common < 0:
        tack.barrier()
        return settled(s[near], common)
    if common > 2:
        if common > 9:
            return a
    tack.barrier()
    if a > 2:
        return s[near]
    return s[near] + 1
"""


def draw_group_program(seed: int, wild: float = 0.0) -> GroupProgram:
    """The program of a seed."""
    return _Drawer(seed, wild).program()
