"""One step of k-means (Lloyd's algorithm), with sums that never depend on the machine.

Points (n, d) are summed in blocks of a fixed length, each block by one iteration in the order of
its points, and the blocks in their order: no atomic operation, so the same bits every time.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import tack

__all__ = ["BLOCK", "add_blocks", "assign", "step", "sum_blocks"]

BLOCK = 1024
"""How many points are summed one after another."""


@tack.func
def square_distance(points, i, centroids, k):
    """The square of the distance from a point to a centroid."""
    total = 0.0
    for axis in range(points.shape[1]):
        difference = points[i, axis] - centroids[k, axis]
        total += difference * difference
    return total


@tack.kernel
def assign(points, centroids, labels):
    """The nearest centroid of each point; of equally near ones the first."""
    for i in range(points.shape[0]):
        nearest = square_distance(points, i, centroids, 0)
        label = 0
        for k in range(1, centroids.shape[0]):
            candidate = square_distance(points, i, centroids, k)
            if candidate < nearest:
                nearest = candidate
                label = k
        labels[i] = label


@tack.kernel
def sum_blocks(points, labels, block, sums, counts):
    """The sum and the number of each cluster's points in each block of ``block`` points.

    ``sums`` (blocks, clusters, d) and ``counts`` (blocks, clusters).
    """
    for b in range(sums.shape[0]):
        for k in range(sums.shape[1]):
            counts[b, k] = 0
            for axis in range(sums.shape[2]):
                sums[b, k, axis] = 0.0
        for i in range(b * block, min((b + 1) * block, points.shape[0])):
            label = labels[i]
            counts[b, label] += 1
            for axis in range(points.shape[1]):
                sums[b, label, axis] += points[i, axis]


@tack.kernel
def add_blocks(sums, counts, centroids):
    """The mean of each cluster; a cluster without points keeps its centroid."""
    for k, axis in tack.ndrange(centroids.shape[0], centroids.shape[1]):
        total = 0.0
        count = 0
        for b in range(sums.shape[0]):
            total += sums[b, k, axis]
            count += counts[b, k]
        if count > 0:
            centroids[k, axis] = total / count


def step(points: NDArray[Any], centroids: NDArray[Any], labels: NDArray[np.int32]) -> None:
    """Labels the points, and moves each centroid into the middle of what is labelled so."""
    blocks = -(-len(points) // BLOCK)
    sums = np.empty((blocks, *centroids.shape), dtype=points.dtype)
    counts = np.empty((blocks, len(centroids)), dtype=np.int32)
    assign(points, centroids, labels)
    sum_blocks(points, labels, BLOCK, sums, counts)
    add_blocks(sums, counts, centroids)
