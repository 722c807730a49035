"""Wrong uses of templates, for `refusal_cases`."""

from __future__ import annotations

__all__ = ["TEMPLATE", "TEMPLATES", "TEMPLATE_LOOPS"]

TEMPLATE = """
@tack.device_class
class Grid:
    tack_extents = ("nx", "ny")
    nx = ny = 2
    _hidden = 3

    def __init__(self):
        self.n, self.name, self.data = 1, "grid", np.zeros(3)

    @tack.func
    def size(self):
        return self.nx * self.ny

    @tack.func
    def lost():
        return 1

@tack.device_class
class Holder:
    pass

@tack.device_class
class Sized:
    tack_extents = ("n",)
    n = 2.0

@tack.func
def typed(m: tack.i64):
    return m

def given():
    grid = Grid()
    grid.inner = Holder()
    grid.inner.sized = Sized()
    return grid, np.zeros(3)
"""

# Statement of a kernel over (grid, x), where the grid is as above: (under the caret, words).
TEMPLATES: dict[str, tuple[str, str]] = {
    "x[i] = grid": ("grid", "the template 'grid' has no value of its own; read an attribute"),
    "x[i] = grid[0]": ("grid[0]", "a template cannot be indexed"),
    "grid = 1": ("grid", "'grid' is a template; it cannot be assigned"),
    "for c in grid:\n    pass": ("grid", "only the outermost loop runs over a template"),
    "x[i] = typed(grid)": ("grid", "'m' of typed() is annotated i64, and this is a template"),
    "x[i] = grid.lost()": ("grid.lost()", "lost() takes no self; write @staticmethod"),
    "x[i] = grid._hidden": ("grid._hidden", "names that start with '_' are invisible"),
    "x[i] = grid.size": ("grid.size", "grid.size is a method; call it: grid.size(...)"),
    "x[i] = grid.name": ("grid.name", "grid.name is a str, which a kernel cannot read; what works"),
    "x[i] = grid.name()": ("grid.name", "grid.name is a str, which a kernel cannot call"),
    "x[i] = grid.nz": (
        "grid.nz",
        "grid (Grid) has no attribute 'nz'; it has data, inner, n, nx, ny",
    ),
    "x[i] = grid.inner.nz": ("grid.inner.nz", "(Holder) has no attribute 'nz'; it has sized"),
    "x[i] = grid.volume()": ("grid.volume", "has no method 'volume'; it has lost, size"),
    "Holder.n = 1": ("Holder", "only names, elements of arrays, and components of vectors"),
    "grid.n = 1": ("grid", "attributes of 'grid' are read only; store results in an array"),
    "grid.nx += 1": ("grid", "attributes of 'grid' are read only"),
    "grid[0] = 1": ("grid", "attributes of 'grid' are read only"),
    "x[i] = grid.n()": ("grid.n", "grid.n is a number, no method"),
    "x[i] = grid.n.real": ("grid.n.real", "grid.n is a number, so it has no 'real'; grid has data"),
}

# Head of the parallel loop over such a grid: (under the caret, words).
TEMPLATE_LOOPS: dict[str, tuple[str, str]] = {
    "for i, j, k in grid:": ("i, j, k", "grid has 2 extents, so its loop gives 2 indices"),
    "for i in grid.inner.sized:": (
        "grid.inner.sized",
        "is an i64, and this is a float; make",
    ),
    "for i in grid.inner:": ("grid.inner", "grid.inner (Holder) declares no extents"),
}
