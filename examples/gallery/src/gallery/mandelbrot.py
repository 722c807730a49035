"""The Mandelbrot set: how soon a point escapes under ``z -> z * z + c``."""

import tack

__all__ = ["escape_times"]


@tack.kernel
def escape_times(xs, ys, limit, times):
    """The number of steps after which ``xs[j] + i ys[i]`` leaves the disc of radius 2.

    ``times`` (rows of ``ys``, columns of ``xs``) holds ``limit`` where it never did.
    """
    for row, column in tack.ndrange(ys.shape[0], xs.shape[0]):
        x = 0.0
        y = 0.0
        steps = 0
        while steps < limit and x * x + y * y <= 4.0:
            x, y = x * x - y * y + xs[column], 2.0 * x * y + ys[row]
            steps += 1
        times[row, column] = steps
