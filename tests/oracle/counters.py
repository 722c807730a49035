"""Threefry 2x32 and Philox 4x32 in Python integers, from the paper (Salmon et al., SC 2011)."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["bits", "philox", "randint", "threefry", "uniform", "words"]

_WORD, _LONG = 2**32, 2**64


def threefry(key: Sequence[int], counter: Sequence[int]) -> list[int]:
    """20 rounds; the key is injected before the first and after every fourth."""
    keys = [*key, 0x1BD11BDA ^ key[0] ^ key[1]]
    distances = [13, 15, 26, 6, 17, 29, 16, 24]
    left, right = ((c + k) % _WORD for c, k in zip(counter, key, strict=True))
    for number in range(20):
        left = (left + right) % _WORD
        distance = distances[number % 8]
        right = (right * 2**distance) % _WORD + right // 2 ** (32 - distance)
        right ^= left
        if number % 4 == 3:
            injection = number // 4 + 1
            left = (left + keys[injection % 3]) % _WORD
            right = (right + keys[(injection + 1) % 3] + injection) % _WORD
    return [left, right]


def philox(key: Sequence[int], counter: Sequence[int]) -> list[int]:
    """10 rounds, each with the key of its number."""
    x = list(counter)
    for number in range(10):
        first = (key[0] + number * 0x9E3779B9) % _WORD
        second = (key[1] + number * 0xBB67AE85) % _WORD
        high_0, low_0 = divmod(x[0] * 0xD2511F53, _WORD)
        high_2, low_2 = divmod(x[2] * 0xCD9E8D57, _WORD)
        x = [high_2 ^ first ^ x[1], low_2, high_0 ^ second ^ x[3], low_0]
    return x


def words(generator: str, seed: int, counter: int) -> list[int]:
    """The words of a seed and a counter, which count modulo 2^64, lower words first."""
    key, low = [[n % _WORD, n // _WORD % _WORD] for n in (seed, counter)]
    return threefry(key, low) if generator == "threefry" else philox(key, [*low, 0, 0])


def bits(seed: int, counter: int, generator: str = "threefry") -> int:
    """The first two words as one number."""
    low, high = words(generator, seed, counter)[:2]
    return high * _WORD + low


def uniform(seed: int, counter: int, precision: int = 24, generator: str = "threefry") -> float:
    """From 0 to below 1, a whole number of units of 2^-24, or of 2^-53."""
    if precision == 24:
        return words(generator, seed, counter)[0] // 2**8 / 2**24
    return bits(seed, counter, generator) // 2**11 / 2**53


def randint(seed: int, counter: int, low: int, high: int, generator: str = "threefry") -> int:
    """From low to below high, or low."""
    return low + max(high - low, 0) * bits(seed, counter, generator) // _LONG
