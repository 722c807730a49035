"""One kernel, compiled when the wheel is built."""

import tack

__all__ = ["saxpy"]


@tack.kernel
def saxpy(a, x, y, out):
    """Store ``a * x + y`` in ``out``."""
    for i in range(x.shape[0]):
        out[i] = a * x[i] + y[i]
