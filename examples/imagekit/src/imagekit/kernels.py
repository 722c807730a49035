"""The kernels of imagekit, each written once; tack-aot.toml says which instantiations ship.

Images are C-contiguous. A float32 image runs from 0 to 1, a uint8 image from 0 to 255; uint8
results are rounded to the nearest integer, halves up, and limited to 0 and 255. Outside an image
its edge pixel repeats (``mode="nearest"`` in SciPy).
"""

import tack

__all__ = [
    "blur_columns",
    "blur_rows",
    "luminance",
    "luminance_u8",
    "quantize",
    "row_sums",
    "sobel",
    "sobel_u8",
    "tone",
    "tone_u8",
    "unsharp",
    "unsharp_u8",
]

# ITU-R BT.709: how much each primary contributes to luminance.
RED = tack.constant(0.2126, tack.f32)
GREEN = tack.constant(0.7152, tack.f32)
BLUE = tack.constant(0.0722, tack.f32)

WHITE = tack.constant(255.0, tack.f32)


@tack.func
def clamped(index, count):
    """The index inside ``0 .. count - 1`` that is nearest to ``index``."""
    if index < 0:
        return 0
    if index >= count:
        return count - 1
    return index


@tack.func
def rounded(value):
    """``value`` as uint8: halves go up, and the cast limits what does not fit."""
    return tack.u8(tack.floor(value + 0.5))


@tack.func
def gradient(image, y, x):
    """Sobel's horizontal and vertical differences at (y, x)."""
    up = clamped(y - 1, image.shape[0])
    down = clamped(y + 1, image.shape[0])
    left = clamped(x - 1, image.shape[1])
    right = clamped(x + 1, image.shape[1])
    # Differences of uint8 values are negative half of the time, so they are taken in float32.
    top_left = tack.f32(image[up, left])
    top_right = tack.f32(image[up, right])
    bottom_left = tack.f32(image[down, left])
    bottom_right = tack.f32(image[down, right])
    across = tack.f32(image[y, right]) - tack.f32(image[y, left])
    along = tack.f32(image[down, x]) - tack.f32(image[up, x])
    horizontal = (top_right - top_left) + 2.0 * across + (bottom_right - bottom_left)
    vertical = (bottom_left - top_left) + 2.0 * along + (bottom_right - top_right)
    return horizontal, vertical


@tack.func
def magnitude(image, y, x):
    """The length of the gradient at (y, x)."""
    horizontal, vertical = gradient(image, y, x)
    return tack.sqrt(horizontal * horizontal + vertical * vertical)


@tack.func
def sharpened(value, blurred, amount):
    """``value`` moved away from its blurred neighbourhood by ``amount`` times their difference."""
    return value + amount * (value - blurred)


@tack.func
def weighted(rgb, i):
    """The luminance of pixel ``i`` of an array of RGB rows."""
    return RED * rgb[i, 0] + GREEN * rgb[i, 1] + BLUE * rgb[i, 2]


@tack.kernel
def blur_rows(source, weights, channels, target):
    """First pass of a separable blur, along each row of pixels of ``channels`` values."""
    for y in range(source.shape[0]):
        count = source.shape[1]
        for x in range(count):
            target[y, x] = 0.0
        for k in range(weights.shape[0]):
            shift = (k - weights.shape[0] // 2) * channels
            # What lies before the row, in it and behind it: the middle part reads memory in order.
            first = min(max(-shift, 0), count)
            last = max(min(count - shift, count), 0)
            for x in range(first):
                target[y, x] += weights[k] * source[y, x % channels]
            for x in range(first, last):
                target[y, x] += weights[k] * source[y, x + shift]
            for x in range(last, count):
                target[y, x] += weights[k] * source[y, count - channels + x % channels]


@tack.kernel
def blur_columns(source, weights, target):
    """Second pass, along each column, a row of the target at a time."""
    for y in range(source.shape[0]):
        for x in range(source.shape[1]):
            target[y, x] = 0.0
        for k in range(weights.shape[0]):
            row = clamped(y + k - weights.shape[0] // 2, source.shape[0])
            for x in range(source.shape[1]):
                target[y, x] += weights[k] * source[row, x]


@tack.kernel
def quantize(source, target):
    """Float32 values as uint8."""
    for i in range(source.shape[0]):
        target[i] = rounded(source[i])


@tack.kernel
def sobel(image, target):
    """Gradient magnitude of a float32 image (h, w)."""
    for y, x in tack.ndrange(image.shape[0], image.shape[1]):
        target[y, x] = magnitude(image, y, x)


@tack.kernel
def sobel_u8(image, target):
    """Gradient magnitude of a uint8 image (h, w), limited to 255."""
    for y, x in tack.ndrange(image.shape[0], image.shape[1]):
        target[y, x] = rounded(magnitude(image, y, x))


@tack.kernel
def unsharp(image, blurred, amount: tack.f32, target):
    """Unsharp mask of float32 values, limited to 0 and 1."""
    for i in range(image.shape[0]):
        target[i] = min(max(sharpened(image[i], blurred[i], amount), 0.0), 1.0)


@tack.kernel
def unsharp_u8(image, blurred, amount: tack.f32, target):
    """Unsharp mask of uint8 values against a float32 blur on the same scale."""
    for i in range(image.shape[0]):
        target[i] = rounded(sharpened(tack.f32(image[i]), blurred[i], amount))


@tack.kernel
def luminance(rgb, target):
    """Luminance of float32 RGB rows (n, 3)."""
    for i in range(rgb.shape[0]):
        target[i] = weighted(rgb, i)


@tack.kernel
def luminance_u8(rgb, target):
    """Luminance of uint8 RGB rows (n, 3)."""
    for i in range(rgb.shape[0]):
        target[i] = rounded(weighted(rgb, i))


@tack.kernel
def tone(image, target):
    """Square-root tone curve of float32 values; what is below 0 counts as 0."""
    for i in range(image.shape[0]):
        target[i] = tack.sqrt(max(image[i], 0.0))


@tack.kernel
def tone_u8(image, target):
    """Square-root tone curve of uint8 values: 255 times the root of value / 255."""
    for i in range(image.shape[0]):
        target[i] = rounded(tack.sqrt(WHITE * image[i]))


@tack.kernel
def row_sums(image, sums):
    """The sum of each row of (h, w), added up in the type of ``sums``."""
    for y in range(image.shape[0]):
        sums[y] = 0
        for x in range(image.shape[1]):
            sums[y] += image[y, x]
