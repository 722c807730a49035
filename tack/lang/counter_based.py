"""Random numbers of the kernel language, as plain Python over NumPy: the bits of a kernel.

Each is a function of a seed and a counter, integers of any type that count modulo 2^64. Nothing is
kept between calls: the same two give the same number on every target, in every order, and where
they are arrays, in plain Python, the same element by element.
"""

from __future__ import annotations

from typing import Any

from tack.elementary.counter_based import GENERATORS, random_formula
from tack.model.dtypes import DType, f32, f64
from tack.model.spelling import advice

__all__ = ["bits", "normal", "philox", "randint", "threefry", "uniform"]


def threefry(seed: Any, counter: Any) -> Any:
    """The two words of Threefry 2x32, 20 rounds, as a vector of u32.

    Seed and counter give their lower word first.

    >>> [hex(word) for word in threefry(0, 0)]
    ['0x6b200159', '0x99ba4efe']
    """
    return _words("threefry", seed, counter)


def philox(seed: Any, counter: Any) -> Any:
    """The four words of Philox 4x32, 10 rounds, as a vector of u32.

    Seed and counter give their lower word first; the upper two words of the counter are 0.

    >>> hex(philox(0, 0).x)
    '0x6627e8d5'
    """
    return _words("philox", seed, counter)


def bits(seed: Any, counter: Any, *, generator: str = "threefry") -> Any:
    """The first two words of a generator as a u64, the first one below.

    >>> hex(bits(0, 0))
    '0x99ba4efe6b200159'
    """
    return _drawn(generator, "bits.u64", seed, counter)


def uniform(seed: Any, counter: Any, *, dtype: DType = f32, generator: str = "threefry") -> Any:
    """A float from 0 to below 1: a whole number of 24 bits / 2^24, of f64 53 bits / 2^53.

    >>> float(uniform(0, 0))
    0.4184565544128418
    """
    return _drawn(generator, f"uniform.{_float(dtype)}", seed, counter)


def normal(seed: Any, counter: Any, *, dtype: DType = f32, generator: str = "threefry") -> Any:
    """A float of the normal distribution of mean 0 and variance 1.

    By the method of Box and Muller, ``sqrt(-2 log(u)) cos(2 pi v)``, with tack's own logarithm and
    cosine. ``u`` and ``v`` have the bits of a word each, of f64 of two: f32 reaches 6.8, f64 9.5.

    >>> float(normal(0, 0))
    -1.066573977470398
    """
    return _drawn(generator, f"normal.{_float(dtype)}", seed, counter)


def randint(seed: Any, counter: Any, low: Any, high: Any, *, generator: str = "threefry") -> Any:
    """An i64 from ``low`` to below ``high``; ``low`` where there is nothing between.

    64 bits decide, so that no number is more or less likely than another by more than 2^-64.

    >>> int(randint(0, 0, 1, 7))
    4
    """
    return _drawn(generator, "randint.i64", seed, counter, low, high)


def _float(dtype: DType) -> str:
    if dtype not in (f32, f64):
        raise ValueError(f"dtype is tack.f32 or tack.f64, not {dtype!r}")
    return dtype.name


def _words(generator: str, seed: Any, counter: Any) -> Any:
    import numpy as np

    from tack.model.vector_value import Vector

    _, count = GENERATORS[generator]
    words = [_drawn(generator, f"word{index}.u32", seed, counter) for index in range(count)]
    return np.stack(words, axis=-1).view(Vector)


def _drawn(generator: str, number: str, *operands: Any) -> Any:
    import numpy as np

    from tack.elementary.evaluate import evaluate

    if generator not in GENERATORS:
        raise ValueError(f"no generator is called {generator!r}; {advice(generator, GENERATORS)}")
    values = np.broadcast_arrays(*map(_modulo, operands))
    return evaluate(random_formula(f"{generator}.{number}"), *(each[()] for each in values))


def _modulo(value: Any) -> Any:
    """An integer, or an array of them, modulo 2^64."""
    import numpy as np

    if isinstance(value, int):
        return np.uint64(value & 0xFFFFFFFFFFFFFFFF)
    if np.asarray(value).dtype.kind not in "biu":
        raise TypeError(f"seeds, counters and bounds are integers, not {value!r}")
    return np.asarray(value).astype(np.uint64)
