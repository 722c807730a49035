"""Kernels whose iterations work together in groups: sums, a histogram, and a product by tiles.

Prints one of them as CUDA C++, which needs neither a GPU nor a compiler:

    python tiles.py
"""

import tack

TILE = tack.constant(16)


@tack.kernel(group=256)
def group_sums(x, out):
    for i in range(x.shape[0]):
        total = tack.block_sum(x[i])
        if tack.thread_id() == 0:
            out[tack.group_id()] = total


@tack.kernel(group=256)
def histogram(pixels, counts):
    for i in range(-(-pixels.shape[0] // 256) * 256):
        bins = tack.shared(tack.i32, 256)
        t = tack.thread_id()
        bins[t] = 0
        tack.barrier()
        if i < pixels.shape[0]:
            tack.atomic_add(bins, int(pixels[i]), 1)
        tack.barrier()
        tack.atomic_add(counts, t, bins[t])


@tack.kernel(group=(16, 16))
def product(a, b, out):
    n, m, depth = a.shape[0], b.shape[1], a.shape[1]
    for i, j in tack.ndrange(-(-n // 16) * 16, -(-m // 16) * 16):
        left = tack.shared(tack.f32, (TILE, TILE))
        right = tack.shared(tack.f32, (TILE, TILE))
        y, x = tack.thread_id(0), tack.thread_id(1)
        total = tack.f32(0)
        for k in range(0, depth, TILE):
            left[y, x] = a[i, k + x] if i < n and k + x < depth else tack.f32(0)
            right[y, x] = b[k + y, j] if k + y < depth and j < m else tack.f32(0)
            tack.barrier()
            for q in range(TILE):
                total += left[y, q] * right[q, x]
            tack.barrier()
        if i < n and j < m:
            out[i, j] = total


if __name__ == "__main__":
    print(product.source("cuda:sm_90", "f32[:, :], f32[:, :], f32[:, :]"))
