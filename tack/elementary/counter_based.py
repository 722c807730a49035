"""Random numbers as functions of a seed and a counter: Threefry 2x32 and Philox 4x32.

A block cipher of the counter under the seed, of 20 rounds and of 10 (Salmon, Moraes, Dror and Shaw,
"Parallel random numbers: as easy as 1, 2, 3", SC 2011). Both numbers have 64 bits, lower word
first; of Philox, whose counter has four words, the upper two are 0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

from tack.elementary.logarithm import log
from tack.elementary.precise import Double
from tack.elementary.term import (
    Formula,
    Term,
    as_float,
    constant,
    convert,
    from_bits,
    select,
    sqrt,
    trace,
)
from tack.elementary.trigonometric import wave
from tack.model.dtypes import DType, i32, i64, u32, u64

__all__ = ["GENERATORS", "NUMBERS", "OPERANDS", "philox", "random_formula", "threefry"]

Words = tuple[Term, ...]
"""Terms of u32."""

_ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))
_MULTIPLIERS: Final = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS: Final = (0x9E3779B9, 0xBB67AE85)


def threefry(key: Words, counter: Words) -> Words:
    """Threefry 2x32 with 20 rounds."""
    schedule = (*key, key[0] ^ key[1] ^ 0x1BD11BDA)
    x, y = counter[0] + key[0], counter[1] + key[1]
    for group in range(5):
        for count in _ROTATIONS[group % 2]:
            x = x + y
            y = ((y << count) | (y >> (32 - count))) ^ x
        x = x + schedule[(group + 1) % 3]
        y = y + (schedule[(group + 2) % 3] + (group + 1))
    return x, y


def philox(key: Words, counter: Words) -> Words:
    """Philox 4x32 with 10 rounds."""
    (a, b, c, d), (p, q) = counter, key
    for _ in range(10):
        one, other = (
            convert(word, u64) * factor for word, factor in zip((a, c), _MULTIPLIERS, strict=True)
        )
        a, b = _high(other) ^ b ^ p, _low(other)
        c, d = _high(one) ^ d ^ q, _low(one)
        p, q = (word + step for word, step in zip((p, q), _KEY_STEPS, strict=True))
    return a, b, c, d


def _low(x: Term) -> Term:
    return convert(x, u32)


def _high(x: Term) -> Term:
    return convert(x >> 32, u32)


def _threefry(seed: Term, counter: Term) -> Words:
    return threefry((_low(seed), _high(seed)), (_low(counter), _high(counter)))


def _philox(seed: Term, counter: Term) -> Words:
    zero = constant(0, u32)
    return philox((_low(seed), _high(seed)), (_low(counter), _high(counter), zero, zero))


GENERATORS: Final[dict[str, tuple[Callable[[Term, Term], Words], int]]] = {
    "threefry": (_threefry, 2),
    "philox": (_philox, 4),
}
"""Generator -> its words for a seed and a counter of u64, and how many they are."""


def _joined(low: Term, high: Term) -> Term:
    return convert(low, u64) | (convert(high, u64) << 32)


def _fraction(bits: Term, precision: int) -> Term:
    """A float in [0, 1) of as many upper bits of a number as it holds."""
    return as_float(bits >> (bits.dtype.bits - precision)) * 2.0**-precision


def _box_muller(radius: Term, angle: Term) -> Term:
    """``sqrt(-2 log(u)) cos(2 pi v)``, ``u`` in (0, 1] and ``v`` a turn in as many bits as floats.

    The quarter of the turn is told by the bits, so that no angle is reduced.
    """
    bits = angle.dtype.bits
    uniform = as_float(radius) * 2.0**-bits + 2.0 ** -(bits + 1)
    quarter = (angle + (1 << (bits - 3))) >> (bits - 2)
    rest = convert(angle - (quarter << (bits - 2)), i32 if bits == 32 else i64)
    turned = as_float(rest) * (_TURN * 2.0**-bits)
    cosine = from_bits(wave(quarter + 1, Double(turned, constant(0.0, turned))))
    return sqrt(log(uniform) * -2.0) * cosine


_TURN: Final = 6.283185307179586


def _wide_normal(draw: Callable[[Term, Term], Words], seed: Term, counter: Term) -> Term:
    """Four words are needed: where a block has two, the next is that of the block as a counter."""
    words = draw(seed, counter)
    radius = _joined(*words[:2])
    angle = _joined(*(words[2:] or draw(seed, radius)))
    return _box_muller(radius, angle)


def _upper_product(a: Term, b: Term) -> Term:
    """The upper 64 of the 128 bits of a product."""
    a_low, a_high, b_low, b_high = (half for x in (a, b) for half in (x & 0xFFFFFFFF, x >> 32))
    middle = a_high * b_low + (a_low * b_low >> 32)
    other = a_low * b_high + (middle & 0xFFFFFFFF)
    return a_high * b_high + (middle >> 32) + (other >> 32)


def _integer(bits: Term, low: Term, high: Term) -> Term:
    """``low + floor(bits / 2^64 * (high - low))``; ``low`` where there is nothing between."""
    below = convert(low, i64) < convert(high, i64)
    span = select(below, high - low, constant(0, u64))
    return convert(low + _upper_product(bits, span), i64)


def _word(index: int) -> Callable[..., Term]:
    return lambda draw, seed, counter: draw(seed, counter)[index]


NUMBERS: Final[dict[str, Callable[..., Term]]] = {
    "bits.u64": lambda draw, *at: _joined(*draw(*at)[:2]),
    "uniform.f32": lambda draw, *at: _fraction(draw(*at)[0], 24),
    "uniform.f64": lambda draw, *at: _fraction(_joined(*draw(*at)[:2]), 53),
    "normal.f32": lambda draw, *at: _box_muller(*draw(*at)[:2]),
    "normal.f64": _wide_normal,
    "randint.i64": lambda draw, seed, counter, low, high: _integer(
        _joined(*draw(seed, counter)[:2]), low, high
    ),
    **{f"word{index}.u32": _word(index) for index in range(4)},
}
"""Number and its type -> its formula, of the words of a generator, and of seed and counter."""

OPERANDS: Final = {"randint.i64": 4}
"""Number -> how many operands it has, all u64, where they are more than a seed and a counter."""


@cache
def random_formula(name: str) -> Formula:
    """The formula of ``<generator>.<number>``."""
    generator, _, number = name.partition(".")
    draw, _ = GENERATORS[generator]
    operands: tuple[DType, ...] = (u64,) * OPERANDS.get(number, 2)
    return trace(lambda *terms: NUMBERS[number](draw, *terms), operands)
