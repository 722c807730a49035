"""Random numbers that a seed and a counter decide: ``tack.random.uniform(seed, counter)``.

Nothing is kept between calls, so that an iteration numbers its own draws, and the same numbers come
out on every target and in plain Python.
"""

from __future__ import annotations

from tack.lang.counter_based import bits, normal, philox, randint, threefry, uniform

__all__ = ["bits", "normal", "philox", "randint", "threefry", "uniform"]
