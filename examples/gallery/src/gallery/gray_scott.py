"""Reaction and diffusion of two chemicals after Gray and Scott, on a torus.

P. Gray, S. K. Scott: Autocatalytic reactions in the isothermal, continuous stirred tank reactor,
Chemical Engineering Science 39 (1984). The nine-point Laplacian is the usual one of such programs.
"""

import tack

__all__ = ["react"]


@tack.func
def laplacian(field, y, x, up, down, left, right):
    """How far the neighbours of (y, x) lie above it: 0.2 beside it, 0.05 across a corner."""
    beside = field[up, x] + field[down, x] + field[y, left] + field[y, right]
    diagonal = field[up, left] + field[up, right] + field[down, left] + field[down, right]
    return 0.2 * beside + 0.05 * diagonal - field[y, x]


@tack.kernel
def react(u, v, feed, kill, dt, next_u, next_v):
    """One step of time; ``u`` spreads at the rate 1.0, ``v`` at 0.5."""
    height, width = u.shape
    for y, x in tack.ndrange(height, width):
        up = y - 1 if y > 0 else height - 1
        down = y + 1 if y + 1 < height else 0
        left = x - 1 if x > 0 else width - 1
        right = x + 1 if x + 1 < width else 0
        here = u[y, x]
        other = v[y, x]
        reaction = here * other * other
        spread_u = laplacian(u, y, x, up, down, left, right)
        spread_v = 0.5 * laplacian(v, y, x, up, down, left, right)
        next_u[y, x] = here + dt * (spread_u - reaction + feed * (1.0 - here))
        next_v[y, x] = other + dt * (spread_v + reaction - (feed + kill) * other)
