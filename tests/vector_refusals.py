"""Wrong uses of vectors and matrices, for `refusal_cases`."""

from __future__ import annotations

__all__ = ["VECTORS", "VECTORS_PRELUDE"]

VECTORS = {
    # statement -> (what the caret stands under, words), where v is a vector of 3, m a 2 by 3
    # matrix, n a number
    "out[0] = v": ("out[0]", "a vector of 3, and goes into a number"),
    "out[0] = 1 if v else 2": ("v", "any(...) or all(...)"),
    "if v > 0: out[0] = 1": ("v > 0", "any(...) or all(...)"),
    "while v < 1: pass": ("v < 1", "any(...) or all(...)"),
    "out[0] = not v": ("v", "any(...) or all(...)"),
    "out[0] = v.x and v": ("v", "any(...) or all(...)"),
    "out[0] = (0 < v < 1).x": ("v", "a number is needed"),
    "w = v + tack.f32x2(1)": ("v + tack.f32x2(1)", "a vector of 3 and a vector of 2"),
    "w = v * m": ("v * m", "'@' is the product"),
    "w = min(v, v.xy)": ("min(v, v.xy)", "go"),
    "w = v if i else v.xy": ("v if i else v.xy", "make them alike"),
    "w = v if i else 0": ("v if i else 0", "make them alike"),
    "out[0] = v.w": ("v.w", "has .x .y .z and their combinations of 2 to 4, no .w"),
    "out[0] = v.xq": ("v.xq", "no .xq"),
    "out[0] = m.x": ("m.x", "has elements m[i, j] and rows m[i]"),
    "out[0] = v[3]": ("v[3]", "out of range"),
    "out[0] = v[-1]": ("v[-1]", "out of range"),
    "out[0] = v[1.5]": ("v[1.5]", "an index is an integer, not 1.5"),
    "v[1.0] = 1": ("v[1.0]", "an index is an integer, not 1.0"),
    "m[0, 0.5] = 1": ("m[0, 0.5]", "an index is an integer, not 0.5"),
    "out[0] = v[n > 0]": ("n > 0", "an index is an integer, not a bool"),
    "v[True] = 1": ("True", "an index is an integer, not a bool; write int(...) for a number"),
    "out[0] = v[out[0]]": ("out[0]", "cast it"),
    "out[0] = v[0, 1]": ("v[0, 1]", "is given 2 indices"),
    "out[0] = m[2, 0]": ("m[2, 0]", "out of range"),
    "v[3] = 1": ("v[3]", "out of range"),
    "v.xx = v.yz": ("v.xx", "names a component twice"),
    "v.xy = v": ("v.xy", "a vector of 3, and goes into a vector of 2"),
    "v.x = v": ("v.x", "goes into a number"),
    "v = 1": ("v", "'v' is a vector of 3 elsewhere and a number here"),
    "n = v": ("n", "'n' is a number elsewhere and a vector of 3 here"),
    "n.x = 1": ("n", "'n' is a number here, which has no parts"),
    "(v + 1).x = 1": ("v + 1", "components of vectors can be assigned"),
    "w = numbered(1)": ("numbered(1)", "annotated f32x3, and this is a number"),
    "w = shaped(v)": ("shaped(v)", "'x' of shaped() is annotated tack.Array[tack.f32x3]"),
    "w = tack.f32x3(x=1)": ("tack.f32x3(x=1)", "no keyword arguments"),
    "w = 2 * m @ v.zz": ("2 * m @ v.zz", "columns"),
    "v = v.xy": ("v", "'v' is a vector of 3 elsewhere and a vector of 2 here"),
    "for v in range(3): pass": ("v", "'v' is a vector of 3 elsewhere"),
    "out[v] = 1": ("v", "a number is needed"),
    "for k in range(v): pass": ("v", "a number is needed"),
    "a, b = v": ("a, b = v", "3 values cannot be unpacked into 2 names"),
    "w = tack.f32x3(1, 2)": ("tack.f32x3(1, 2)", "2 in all"),
    "w = tack.f32x2(v)": ("tack.f32x2(v)", "a vector of 3"),
    "w = tack.f32x3()": ("tack.f32x3()", "nothing"),
    "w = tack.f32(v)": ("tack.f32(v)", "write tack.f32x3(...)"),
    "w = int(v)": ("int(v)", "write tack.i64x3(...)"),
    "w: tack.f32x2 = v": ("w: tack.f32x2 = v", "annotated f32x2, and this is a vector of 3"),
    "w: tack.f32 = v": ("w: tack.f32 = v", "annotated f32, and this is a vector of 3"),
    "w = tack.dot(v, v.xy)": ("tack.dot(v, v.xy)", "vectors of one size"),
    "w = tack.dot(v)": ("tack.dot(v)", "takes 2 vectors, not 1"),
    "w = tack.cross(v.xy, v.xy)": ("tack.cross(v.xy, v.xy)", "two vectors of 3"),
    "w = tack.length(m)": ("tack.length(m)", "a vector, not a 2 by 3 matrix"),
    "w = tack.determinant(m)": ("tack.determinant(m)", "a square matrix"),
    "w = tack.inverse(v)": ("tack.inverse(v)", "a square matrix"),
    "w = tack.transpose(2)": ("tack.transpose(2)", "a matrix, not a number"),
    "w = m @ v.xy": ("m @ v.xy", "the left one has 3 columns, the right one 2 rows"),
    "w = v @ 2": ("v @ 2", "not of a vector of 3 and a number"),
    "out[0] = any(n)": ("any(n)", "any takes one vector"),
    "w = v + 0.5 << 1": ("v + 0.5 << 1", "takes integers"),
    "w = ~v": ("~v", "takes integers"),
    "v.x = tack.i64(1) if i else tack.u64(1)": ("tack.i64(1) if i else tack.u64(1)", "cast one"),
    "w = VECTOR": ("VECTOR", "is a vector outside the kernel"),
    "w = tack.f32x3": ("tack.f32x3", "call it"),
}

VECTORS_PRELUDE = """
VECTOR = tack.f32x3(1)

@tack.func
def numbered(x: tack.f32x3):
    return x

@tack.func
def shaped(x: tack.Array[tack.f32x3]):
    return x[0]
"""
