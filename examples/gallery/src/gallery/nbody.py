"""Bodies under each other's gravity, softened, with a leapfrog in its kick-drift form.

Units in which the constant of gravity is 1. Positions, velocities and accelerations are (n, 3).
"""

from typing import Any

from numpy.typing import NDArray

import tack

__all__ = ["accelerate", "move", "step"]


@tack.func
def pull(positions, masses, i, j, softening):
    """The acceleration of body ``i`` towards body ``j``."""
    dx = positions[j, 0] - positions[i, 0]
    dy = positions[j, 1] - positions[i, 1]
    dz = positions[j, 2] - positions[i, 2]
    square = dx * dx + dy * dy + dz * dz + softening * softening
    strength = masses[j] / (square * tack.sqrt(square))
    return strength * dx, strength * dy, strength * dz


@tack.kernel
def accelerate(positions, masses, softening, accelerations):
    """What all bodies do to each, the body itself included: its distance is 0."""
    for i in range(positions.shape[0]):
        ax = 0.0
        ay = 0.0
        az = 0.0
        for j in range(positions.shape[0]):
            px, py, pz = pull(positions, masses, i, j, softening)
            ax += px
            ay += py
            az += pz
        accelerations[i, 0] = ax
        accelerations[i, 1] = ay
        accelerations[i, 2] = az


@tack.kernel
def move(positions, velocities, accelerations, dt):
    """Velocities by the accelerations, then positions by the new velocities."""
    for i, axis in tack.ndrange(positions.shape[0], positions.shape[1]):
        velocities[i, axis] += dt * accelerations[i, axis]
        positions[i, axis] += dt * velocities[i, axis]


def step(
    positions: NDArray[Any],
    velocities: NDArray[Any],
    masses: NDArray[Any],
    accelerations: NDArray[Any],
    softening: float,
    dt: float,
) -> None:
    """One step of time; ``accelerations`` is where they are kept meanwhile."""
    accelerate(positions, masses, softening, accelerations)
    move(positions, velocities, accelerations, dt)
