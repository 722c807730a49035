"""Where rays meet a sphere, with vectors: parameters, arrays, functions, and plain NumPy beside."""

import numpy as np

import tack


@tack.func
def distance(origin, direction, center, radius):
    """How far along the ray the sphere begins; -1 where the ray misses it."""
    offset = origin - center
    along = tack.dot(offset, direction)
    under_root = along * along - tack.dot(offset, offset) + radius * radius
    return -along - tack.sqrt(under_root) if under_root >= 0 else -1.0


@tack.kernel
def shade(
    directions: tack.Array[tack.f32x3], center: tack.f32x3, radius: tack.f32, light: tack.f32x3, out
):
    for i in range(directions.shape[0]):
        ray = tack.normalize(directions[i])
        far = distance(tack.f32x3(0), ray, center, radius)
        normal = (ray * far - center) / radius
        out[i] = max(tack.dot(normal, light), 0.0) if far > 0 else 0.0


@tack.kernel
def turn(points: tack.Array[tack.f32x3], matrix: tack.f32x3x3):
    for i in range(points.shape[0]):
        points[i] = matrix @ points[i]
        points[i].z += 0.5


def main():
    rng = np.random.default_rng(1)
    directions = rng.normal((0, 0, 2), 0.5, (1000, 3)).astype(np.float32)
    out = np.zeros(1000, np.float32)
    shade(directions, (0, 0, 4), 1.5, tack.normalize(tack.f32x3(1, 1, -1)), out)

    rays = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    along = rays @ np.array([0, 0, -4])
    under_root = along**2 - 16 + 1.5**2
    far = -along - np.sqrt(np.maximum(under_root, 0))
    normals = (rays * far[:, np.newaxis] - [0, 0, 4]) / 1.5
    lit = np.maximum(normals @ (np.array([1, 1, -1]) / np.sqrt(3)), 0)
    assert np.allclose(out, np.where(under_root >= 0, lit, 0), atol=1e-3)

    points, matrix = directions.copy(), np.linalg.qr(rng.normal(size=(3, 3)))[0]
    turn(points, matrix)
    assert np.allclose(points, directions @ matrix.T + [0, 0, 0.5], atol=1e-5)
    print(f"{np.count_nonzero(out)} of {len(out)} rays meet lit ground")


if __name__ == "__main__":
    main()
