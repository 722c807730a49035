"""Elementary functions of the kernel language, as plain Python over NumPy: the bits of a kernel.

Integers count as f32, as in a kernel; a Python float is a double. f16 and bf16 are computed as f32
and rounded. How far each function is from the exact value at most is told in docs/arithmetic.md.
"""

from __future__ import annotations

from typing import Any

from tack.elementary.functions import FUNCTIONS, formula_of
from tack.model.dtypes import f32, f64

__all__ = ["exp"]

assert set(__all__) == set(FUNCTIONS), "each function is a builtin"


def exp(x: Any) -> Any:
    """E to the power of ``x``, in the type of the float ``x``.

    >>> float(exp(0.0))
    1.0
    """
    return _apply("exp", x)


def _apply(name: str, *args: Any) -> Any:
    import numpy as np

    from tack.elementary.evaluate import evaluate

    dtype = np.result_type(*(each if hasattr(each, "dtype") else type(each) for each in args))
    if dtype.kind in "biu":
        dtype = np.dtype(np.float32)
    wide = f64 if dtype == np.float64 else f32
    numbers = [np.asarray(each).astype(f"f{wide.itemsize}")[()] for each in args]
    result = evaluate(formula_of(name, wide), *numbers)
    shaped = next((each for each in args if isinstance(each, np.ndarray)), None)
    if shaped is None:
        return dtype.type(result)
    return result.astype(dtype).view(type(shaped))
