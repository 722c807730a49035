"""The plan as the CMake module reads it: a file of ``set()`` commands."""

from __future__ import annotations

from collections.abc import Iterable

from tack.aot.inputs import checker_files
from tack.aot.plan import Plan
from tack.aot.units import library_path
from tack.render.c_flags import COMPILE_FLAGS, LINK_FLAGS, target_flags

__all__ = ["cmake_plan"]


def cmake_plan(plan: Plan) -> str:
    """The variables of a plan.

    ``tack_libraries`` lists libraries by their path below the bundle's folder; for each,
    ``tack_units_<path>`` are its units and ``tack_flags_<path>`` the flags of its target.
    """
    variables: dict[str, Iterable[str]] = {
        "package": [plan.manifest.package],
        "inputs": map(str, plan.inputs),
        "checkers": map(str, checker_files()),
        "compile_flags": COMPILE_FLAGS,
        "link_flags": LINK_FLAGS,
        "libraries": [library_path(target) for target in plan.targets],
    }
    for target in plan.targets:
        path = library_path(target)
        variables[f"units_{path}"] = sorted(u.path for u in plan.units if u.target == target)
        variables[f"flags_{path}"] = target_flags(target)
    return "".join(_set(f"tack_{name}", values) for name, values in variables.items())


def _set(name: str, values: Iterable[str]) -> str:
    items = "".join(f"\n  {_quote(value)}" for value in values)
    return f"set({name}{items})\n"


def _quote(text: str) -> str:
    """``text`` as one element of a CMake list, whatever is in it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$")
    return '"' + escaped.replace(";", "\\\\;") + '"'
