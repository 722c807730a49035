"""Templates: one kernel over several data structures, by the rules of how it takes them apart."""

from __future__ import annotations

import numpy as np
import pytest

import tack

CELLS = """
    @tack.device_class
    class Structured:
        points_per_cell = 8

        def __init__(self, nx, ny, nz):
            self.nx, self.ny, self.nz = nx, ny, nz

        @tack.func
        def get_point_id(self, c, v):
            wide, deep = self.nx - 1, self.ny - 1
            i = c % wide + v % 2
            j = c // wide % deep + v // 2 % 2
            k = c // (wide * deep) + v // 4
            return i + self.nx * (j + self.ny * k)


    @tack.device_class
    class Explicit:
        points_per_cell = 8

        def __init__(self, connectivity):
            self.connectivity = connectivity

        @tack.func
        def get_point_id(self, c, v):
            return self.connectivity[c * self.points_per_cell + v]


    @tack.kernel
    def avg(cs, data, out, n):
        for c in range(n):
            total = 0.0
            for v in range(cs.points_per_cell):
                total = total + data[cs.get_point_id(c, v)]
            out[c] = total / float(cs.points_per_cell)
"""


def explicit_of(module, structured, count):
    rows = [[structured.get_point_id(c, v) for v in range(8)] for c in range(count)]
    return module.Explicit(np.array(rows, np.int32).ravel())


def test_one_kernel_runs_over_a_computed_and_a_stored_structure(load) -> None:
    module = load(CELLS)
    structured, count = module.Structured(4, 5, 6), 3 * 4 * 5
    data = np.arange(4 * 5 * 6, dtype=np.float32)
    expected = np.zeros(count, np.float32)
    module.avg.py_func(structured, data, expected, count)
    for cells in (structured, explicit_of(module, structured, count)):
        for _ in range(2):
            out = np.zeros(count, np.float32)
            module.avg(cells, data, out, count)
            assert np.array_equal(out, expected)


def read(load, body, **attributes):
    """What ``out[0]`` becomes in a kernel that has an object with these attributes."""
    module = load(
        f"""
        @tack.device_class
        class Holder:
            pass

        @tack.kernel
        def kernel(obj, out):
            for i in range(1):
                {body}
        """
    )
    holder = module.Holder()
    for name, value in attributes.items():
        setattr(holder, name, value)
    out = np.zeros(4, np.float64)
    module.kernel(holder, out)
    return out


def test_numbers_of_the_object_are_passed_at_each_call(load) -> None:
    assert read(load, "out[0] = obj.n + obj.x", n=3, x=np.float32(0.5))[0] == 3.5
    assert read(load, "out[0] = obj.flag", flag=np.bool_(True))[0] == 1


def test_an_attribute_of_another_kind_is_refused_where_a_kernel_reads_it(load) -> None:
    with pytest.raises(tack.errors.TemplateError, match=r"obj\.name is a str.*int, float, bool"):
        read(load, "out[0] = obj.name", name="grid")
    assert read(load, "out[0] = obj.n", n=1, name="grid")[0] == 1
