"""The plan as the CMake module reads it: a file of ``set()`` commands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from tack.aot.emit import INCLUDE, headers
from tack.aot.inputs import checker_files
from tack.aot.jobs import image_jobs
from tack.aot.plan import Plan
from tack.aot.units import artifact_path, image_path
from tack.model.targets import Target
from tack.render.c_flags import COMPILE_FLAGS, LINK_FLAGS, target_flags
from tack.render.gpu_flags import HIP_FLAGS, NVCC_FLAGS, Compiler
from tack.render.renderer import renderer_for

__all__ = ["cmake_plan"]

_SOURCE: Final = "<SOURCE>"
_IMAGE: Final = "<IMAGE>"
_FLAGS: Final = "<FLAGS>"
"""What stands for a unit's paths and the user's flags in the commands of a target."""

_INCLUDE: Final = f"units/{INCLUDE}"

_STRICT: Final = {"cuda": NVCC_FLAGS, "hip": HIP_FLAGS}


def cmake_plan(plan: Plan, compilers: Mapping[str, Compiler]) -> str:
    """The variables of a plan.

    ``tack_libraries`` lists libraries by their path below the bundle's folder; for each,
    ``tack_units_<path>`` are its units and ``tack_flags_<path>`` the flags of its target.
    ``tack_packs`` lists packs of images likewise: ``tack_images_<path>`` are the images of its
    units and ``tack_commands_<path>`` the names of variables with a command each, which one after
    the other make an image. ``tack_compiler_<backend>`` is the program that they start,
    ``tack_version_<backend>`` the command by which it says its version.
    """
    libraries = {t: artifact_path(t) for t in plan.targets if t.backend == "cpu"}
    packs = {t: artifact_path(t) for t in plan.targets if t.backend != "cpu"}
    variables: dict[str, Iterable[str]] = {
        "package": [plan.manifest.package],
        "inputs": map(str, plan.inputs),
        "checkers": map(str, checker_files()),
        "compile_flags": COMPILE_FLAGS,
        "link_flags": LINK_FLAGS,
        "libraries": libraries.values(),
        "packs": packs.values(),
        "compilers": compilers,
        "jobs": [str(image_jobs())],
        "headers": headers(plan),
    }
    for backend, compiler in compilers.items():
        variables[f"compiler_{backend}"] = [compiler.program]
        variables[f"version_{backend}"] = compiler.version_command
        variables[f"flags_{backend}"] = _STRICT[backend]
    for target, path in (libraries | packs).items():
        variables[f"units_{path}"] = sorted(u.path for u in plan.units if u.target == target)
    for target, path in libraries.items():
        variables[f"flags_{path}"] = target_flags(target)
    for target, path in packs.items():
        variables |= _pack(plan, target, path, compilers.get(target.backend))
    return "".join(_set(f"tack_{name}", values) for name, values in variables.items())


def _pack(
    plan: Plan, target: Target, path: str, compiler: Compiler | None
) -> dict[str, Iterable[str]]:
    suffix = renderer_for(target).suffix
    units = sorted((u.path, u.name) for u in plan.units if u.target == target)
    found: dict[str, Iterable[str]] = {
        f"images_{path}": [image_path(target, name, suffix) for _, name in units],
        f"backend_{path}": [target.backend],
        f"commands_{path}": [],
    }
    if compiler is not None:
        commands = compiler.commands(target.arch, _SOURCE, _IMAGE, include=_INCLUDE, flags=[_FLAGS])
        steps = {f"command_{number}_{path}": words for number, words in enumerate(commands)}
        found |= {f"commands_{path}": [f"tack_{name}" for name in steps], **steps}
    return found


def _set(name: str, values: Iterable[str]) -> str:
    items = "".join(f"\n  {_quote(value)}" for value in values)
    return f"set({name}{items})\n"


def _quote(text: str) -> str:
    """``text`` as one element of a CMake list, whatever is in it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$")
    return '"' + escaped.replace(";", "\\\\;") + '"'
