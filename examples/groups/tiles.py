"""Kernels whose iterations work together in groups: sums, a histogram, and products.

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


@tack.kernel(group=128)
def tensor_product(a, b, out):
    """The product of matrices of f16 or bf16, whose extents are multiples of 32."""
    columns = out.shape[1] // 32
    for _ in range(out.shape[0] // 32 * columns * tack.warp_size()):
        tile = tack.group_id() * (tack.group_size() // tack.warp_size()) + tack.warp_id()
        row, column = tile // columns * 32, tile % columns * 32
        c00 = tack.fragment_c(tack.f32)
        c01 = tack.fragment_c(tack.f32)
        c10 = tack.fragment_c(tack.f32)
        c11 = tack.fragment_c(tack.f32)
        for k in range(0, a.shape[1], 16):
            a0 = tack.fragment_a(a, row, k)
            a1 = tack.fragment_a(a, row + 16, k)
            b0 = tack.fragment_b(b, k, column)
            b1 = tack.fragment_b(b, k, column + 16)
            tack.mma(c00, a0, b0)
            tack.mma(c01, a0, b1)
            tack.mma(c10, a1, b0)
            tack.mma(c11, a1, b1)
        tack.store_fragment(c00, out, row, column)
        tack.store_fragment(c01, out, row, column + 16)
        tack.store_fragment(c10, out, row + 16, column)
        tack.store_fragment(c11, out, row + 16, column + 16)


if __name__ == "__main__":
    print(product.source("cuda:sm_90", "f32[:, :], f32[:, :], f32[:, :]"))
