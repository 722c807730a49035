"""Operators, builtins and casts on numbers: one method for each, and for each family it has."""

from __future__ import annotations

from .scope import DTYPES_OF, Scope, Term

__all__ = ["RING", "Operations"]

RING = ["+", "-", "*"]
_FLOOR = ["//", "%"]
_BITS = ["&", "|", "^"]
_SHIFTS = ["<<", ">>"]


class Operations:
    """The part of `Expressions` that draws them; what draws operands is there."""

    # Operators.

    def _pair(self, family: str, scope: Scope, depth: int) -> tuple[str, str]:
        """Two operands of which one at least has a type of its own, seldom none."""
        left, right = self.value(family, scope, depth), self.value(family, scope, depth)
        if left.weak and right.weak:
            left = self._typed(family, left)
        return left.text, right.text

    def _operation(self, family: str, ops: list[str], scope: Scope, depth: int) -> Term:
        op = self.pick(ops)
        left, right = self._pair(family, scope, depth)
        return Term(f"({left} {op} {right})")

    def _ring_i(self, scope: Scope, depth: int) -> Term:
        if self.chance(20):  # on literals and weak locals alone
            left, right = self._leaf("I", scope), self.literal("I")
            return Term(f"({left.text} {self.pick(RING)} {right.text})", left.weak)
        return self._operation("I", RING, scope, depth)

    def _ring_u(self, scope: Scope, depth: int) -> Term:
        return self._operation("U", RING, scope, depth)

    def _ring_f(self, scope: Scope, depth: int) -> Term:
        return self._operation("F", RING, scope, depth)

    def _floor_i(self, scope: Scope, depth: int) -> Term:
        return self._operation("I", _FLOOR, scope, depth)

    def _floor_u(self, scope: Scope, depth: int) -> Term:
        return self._operation("U", _FLOOR, scope, depth)

    def _floor_f(self, scope: Scope, depth: int) -> Term:
        return self._operation("F", _FLOOR, scope, depth)

    def _bits_i(self, scope: Scope, depth: int) -> Term:
        return self._operation("I", _BITS, scope, depth)

    def _bits_u(self, scope: Scope, depth: int) -> Term:
        return self._operation("U", _BITS, scope, depth)

    def _bits_b(self, scope: Scope, depth: int) -> Term:
        return self._operation("B", _BITS, scope, depth)

    def _shift(self, family: str, scope: Scope, depth: int) -> Term:
        left = self.strong(family, scope, depth)
        right = self.value(self.pick(["I", "U"]), scope, depth)
        return Term(f"({left.text} {self.pick(_SHIFTS)} {right.text})")

    def _shift_i(self, scope: Scope, depth: int) -> Term:
        return self._shift("I", scope, depth)

    def _shift_u(self, scope: Scope, depth: int) -> Term:
        return self._shift("U", scope, depth)

    def _power(self, family: str, scope: Scope, depth: int) -> Term:
        left = self.strong(family, scope, depth)
        if self.chance(50):
            return Term(f"({left.text} ** {self.number(0, 5)})")
        right = self.strong(self.pick(["I", "U"]), scope, depth)
        return Term(f"({left.text} ** {right.text})")

    def _power_i(self, scope: Scope, depth: int) -> Term:
        return self._power("I", scope, depth)

    def _power_u(self, scope: Scope, depth: int) -> Term:
        return self._power("U", scope, depth)

    def _negative(self, family: str, scope: Scope, depth: int) -> Term:
        if family == "U":
            return Term(f"(-{self.strong('U', scope, depth).text})")
        term = self.value(family, scope, depth)
        return Term(f"(-{term.text})", term.weak)

    def _invert_i(self, scope: Scope, depth: int) -> Term:
        return Term(f"(~{self.strong('I', scope, depth).text})")

    def _invert_u(self, scope: Scope, depth: int) -> Term:
        return Term(f"(~{self.strong('U', scope, depth).text})")

    def _bool_i(self, scope: Scope, depth: int) -> Term:
        left, right = self.strong("I", scope, depth), self.value("B", scope, depth)
        op = self.pick([*RING, *_FLOOR, *_BITS])
        first, second = (left, right) if self.chance(50) else (right, left)
        return Term(f"({first.text} {op} {second.text})")

    def _divide_f(self, scope: Scope, depth: int) -> Term:
        return self._operation("F", ["/"], scope, depth)

    def _divide_integers(self, scope: Scope, depth: int) -> Term:
        return self._operation(self.pick(["I", "U"]), ["/"], scope, depth)

    def _mixed_f(self, scope: Scope, depth: int) -> Term:
        left = self.strong("F", scope, depth)
        right = self.value(self.pick(["I", "U", "B"]), scope, depth)
        first, second = (left, right) if self.chance(50) else (right, left)
        return Term(f"({first.text} {self.pick([*RING, '/', *_FLOOR])} {second.text})")

    # Builtins and casts.

    def _absolute(self, family: str, scope: Scope, depth: int) -> Term:
        return Term(f"abs({self.strong(family, scope, depth).text})")

    def _extreme(self, family: str, scope: Scope, depth: int) -> Term:
        left, right = self._pair(family, scope, depth)
        third = f", {self.strong(family, scope, depth).text}" if self.chance(25) else ""
        return Term(f"{self.pick(['min', 'max'])}({left}, {right}{third})")

    def _rounded_f(self, scope: Scope, depth: int) -> Term:
        name = self.pick(["tack.floor", "tack.ceil", "tack.trunc", "tack.math.round", "round"])
        return Term(f"{name}({self.strong('F', scope, depth).text})")

    def _limited(self, family: str, scope: Scope, depth: int) -> Term:
        left, right = self._pair(family, scope, depth)
        if self.chance(30):
            return Term(f"tack.step({left}, {right})")
        return Term(f"tack.clamp({left}, {right}, {self.strong(family, scope, depth).text})")

    def _sign(self, family: str, scope: Scope, depth: int) -> Term:
        return Term(f"tack.sign({self.strong(family, scope, depth).text})")

    def _counted(self, family: str, scope: Scope, depth: int) -> Term:
        name = self.pick(["popcount", "clz", "ctz"])
        return Term(f"tack.{name}({self.strong(family, scope, depth).text})")

    def _counted_i(self, scope: Scope, depth: int) -> Term:
        return self._counted("I", scope, depth)

    def _counted_u(self, scope: Scope, depth: int) -> Term:
        return self._counted("U", scope, depth)

    def _drawn(self, name: str, scope: Scope, depth: int, bounds: str = "") -> Term:
        seed, counter = (self.value(self.pick(["I", "U"]), scope, depth).text for _ in range(2))
        return Term(f"tack.random.{name}({seed}, {counter}{bounds})")

    def _drawn_i(self, scope: Scope, depth: int) -> Term:
        low, high = self.value("I", scope, depth).text, self.value("I", scope, depth).text
        return self._drawn("randint", scope, depth, f", {low}, {high}")

    def _drawn_u(self, scope: Scope, depth: int) -> Term:
        return self._drawn("bits", scope, depth)

    def _drawn_f(self, scope: Scope, depth: int) -> Term:
        return self._drawn("uniform", scope, depth)

    def _mix_f(self, scope: Scope, depth: int) -> Term:
        left, right = self._pair("F", scope, depth)
        return Term(f"tack.mix({left}, {right}, {self.value('F', scope, depth).text})")

    def _copysign_f(self, scope: Scope, depth: int) -> Term:
        left, right = self._pair("F", scope, depth)
        return Term(f"tack.copysign({left}, {right})")

    def _asked_b(self, scope: Scope, depth: int) -> Term:
        name = self.pick(["isnan", "isinf", "isfinite"])
        return Term(f"tack.{name}({self.strong('F', scope, depth).text})")

    def _root_f(self, scope: Scope, depth: int) -> Term:
        return Term(f"tack.sqrt({self.strong('F', scope, depth).text})")

    def _square_f(self, scope: Scope, depth: int) -> Term:
        return Term(f"({self.strong('F', scope, depth).text} ** 2)")

    def _fma_f(self, scope: Scope, depth: int) -> Term:
        left, middle = self._pair("F", scope, depth)
        right = self.value(self.pick(["F", "F", "F", "I"]), scope, depth).text
        return Term(f"tack.fma({left}, {middle}, {right})")

    def _cast_i(self, scope: Scope, depth: int) -> Term:
        name = self.pick(["int", *(f"tack.{each}" for each in DTYPES_OF["I"])])
        return Term(f"{name}({self.anything(scope, depth).text})")

    def _cast_u(self, scope: Scope, depth: int) -> Term:
        name = self.pick(DTYPES_OF["U"])
        return Term(f"tack.{name}({self.anything(scope, depth).text})")

    def _cast_f(self, scope: Scope, depth: int) -> Term:
        name = self.pick(["float", *(f"tack.{each}" for each in DTYPES_OF["F"])])
        return Term(f"{name}({self.anything(scope, depth).text})")

    def _cast_b(self, scope: Scope, depth: int) -> Term:
        return Term(f"tack.bool_({self.value(self.pick(['I', 'F', 'U']), scope, depth).text})")
