"""Rays of a pinhole camera against spheres: what each pixel sees, how far, and its normal."""

import tack

__all__ = ["trace"]


@tack.func
def distance(spheres, k, dx, dy, dz):
    """How far along the unit vector (dx, dy, dz) from the origin sphere ``k`` is hit, or -1."""
    x = spheres[k, 0]
    y = spheres[k, 1]
    z = spheres[k, 2]
    radius = spheres[k, 3]
    along = x * dx + y * dy + z * dz
    under_root = along * along - (x * x + y * y + z * z - radius * radius)
    if under_root < 0.0:
        return -1.0
    return along - tack.sqrt(under_root)


@tack.kernel
def trace(spheres, focal, depth, normals):
    """The camera looks along z; a sphere is (x, y, z, radius), all of it before the camera.

    ``focal`` is the focal length in widths of the image. Where nothing is hit, ``depth`` (h, w) is
    0 and ``normals`` (h, w, 3) are 0.
    """
    for row, column in tack.ndrange(depth.shape[0], depth.shape[1]):
        height, width = depth.shape[0], depth.shape[1]
        dx = (column + 0.5) / width - 0.5
        dy = (row + 0.5 - 0.5 * height) / width
        length = tack.sqrt(dx * dx + dy * dy + focal * focal)
        dx /= length
        dy /= length
        dz = focal / length
        nearest = 0.0
        hit = -1
        for k in range(spheres.shape[0]):
            t = distance(spheres, k, dx, dy, dz)
            if t > 0.0 and (hit < 0 or t < nearest):
                nearest = t
                hit = k
        depth[row, column] = nearest
        if hit < 0:
            normals[row, column, 0] = 0.0
            normals[row, column, 1] = 0.0
            normals[row, column, 2] = 0.0
            continue
        radius = spheres[hit, 3]
        normals[row, column, 0] = (nearest * dx - spheres[hit, 0]) / radius
        normals[row, column, 1] = (nearest * dy - spheres[hit, 1]) / radius
        normals[row, column, 2] = (nearest * dz - spheres[hit, 2]) / radius
