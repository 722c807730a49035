"""Limits of GPUs: what makers publish, and grids that keep to them and run every iteration once."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tack.model.gpus import GPUS
from tack.model.limits import Axes, grid_of
from tack.model.targets import Target
from tack.render.renderer import renderer_for

# Written from the documents that tack.model.limits names, not from its code: KiB of a workgroup.
SHARED = {
    "cuda": {
        **dict.fromkeys(("75",), 64),
        **dict.fromkeys(("80", "87"), 163),
        **dict.fromkeys(("86", "89", "120", "121"), 99),
        **dict.fromkeys(("90", "100", "103", "110"), 227),
        "88": 48,
    },
    "hip": {"gfx950": 160},
    "metal": {},
}
OTHERS = {"hip": 64, "metal": 32}
WAVES = {"cuda": 32, "metal": 32}
TARGETS = [(backend, arch) for backend, gpus in GPUS.items() for arch in gpus]


@pytest.mark.parametrize(("backend", "arch"), TARGETS)
def test_limits_are_those_that_makers_publish(backend: str, arch: str) -> None:
    limits = GPUS[backend][arch].limits
    number = arch.partition("_")[2].rstrip("af") if backend == "cuda" else arch
    assert limits.shared_max == 1024 * SHARED[backend].get(number, OTHERS.get(backend, 0))
    assert limits.local_prod_max == 1024
    assert limits.local_max[:2] == (1024, 1024)
    assert limits.local_max[2] == (64 if backend == "cuda" else 1024)
    assert limits.lanes == WAVES.get(backend, 64 if arch.startswith("gfx9") else 32)
    assert (limits.global_max is None) == (backend == "metal")
    assert limits.global_max in (None, (2147483647, 65535, 65535))


@pytest.mark.parametrize("backend", GPUS)
def test_what_architectures_of_a_backend_differ_in_is_memory_and_registers(backend: str) -> None:
    """So they share a renderer, whose limits are the greatest."""
    every = [gpu.limits for gpu in GPUS[backend].values()]
    renderer = renderer_for(Target(backend, next(iter(GPUS[backend]))))
    for name in ("local_max", "local_prod_max", "global_max", "global_prod_max"):
        assert {getattr(each, name) for each in every} == {getattr(renderer, name)}
    assert renderer.shared_max == max(each.shared_max for each in every)
    assert all(each.shared_static <= each.shared_max for each in every)
    static = {each.shared_static for each in every}
    assert static == {renderer.shared_static} or all(e.shared_static == e.shared_max for e in every)


def test_a_generic_processor_has_what_each_of_its_processors_has() -> None:
    both = [GPUS["hip"][name].limits for name in ("gfx942", "gfx950")]
    generic = GPUS["hip"]["gfx9-4-generic"].limits
    assert generic.shared_max == min(each.shared_max for each in both) == 65536


SIZES = st.integers(1, 5)
LAUNCHES = st.integers(1, 3).flatmap(
    lambda axes: st.tuples(
        st.lists(st.integers(-2, 14), min_size=axes, max_size=axes),
        st.lists(SIZES, min_size=axes, max_size=axes),
    )
)


@given(
    LAUNCHES,
    st.none() | st.tuples(SIZES, SIZES, SIZES),
    st.none() | st.tuples(*[st.integers(5, 30)] * 3),
)
def test_a_grid_keeps_to_its_limits_and_runs_every_iteration_once(
    launch: tuple[list[int], list[int]], most: Axes | None, threads: Axes | None
) -> None:
    extents, local = launch
    grid = grid_of(extents, local, most, threads)
    if min(extents) <= 0:
        assert grid is None
        return
    assert grid is not None
    sizes = [*local[::-1], 1, 1][:3]
    for axis in range(3):
        assert 1 <= grid[axis] <= (most or grid)[axis]
        assert grid[axis] * sizes[axis] <= (threads or (1 << 40,) * 3)[axis]
        assert axis < len(extents) or grid[axis] == 1
    runs: Counter[tuple[int, ...]] = Counter()
    places = [range(grid[axis] * sizes[axis]) for axis in range(len(extents))][::-1]
    for first in itertools.product(*places):
        steps = [len(place) for place in places]
        runs.update(itertools.product(*map(range, first, extents, steps)))
    assert runs == Counter(itertools.product(*map(range, extents)))


@given(LAUNCHES)
def test_without_limits_each_group_has_a_workgroup(launch: tuple[list[int], list[int]]) -> None:
    extents, local = launch
    if min(extents) > 0:
        grid = grid_of(extents, local)
        assert grid is not None
        counts = [-(-extent // size) for extent, size in zip(extents, local, strict=True)]
        assert list(grid) == [*counts[::-1], 1, 1][:3]
