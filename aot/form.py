"""The form of a manifest: its tables, their keys and types, and the words of a refusal."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tack.model.errors import ManifestError
from tack.model.spelling import advice

__all__ = ["EXAMPLES", "MANIFEST_SCHEMA", "check_keys", "is_kind", "need", "refuse", "show"]

MANIFEST_SCHEMA: Final = 1

_KEYS: Final[dict[str, dict[str, str]]] = {
    "": {
        "schema": "an integer",
        "package": "a text",
        "targets": "a table",
        "kernel": "a list of tables",
        "build": "a table",
    },
    "targets": {
        "cpu": "a list of texts",
        "cuda": "a table",
        "hip": "a list of texts",
        "metal": "a list of texts",
    },
    "targets.cuda": {"sass": "a list of texts", "ptx": "a text or a list of texts"},
    "kernel": {
        "name": "a text",
        "signatures": "a list of texts",
        "instances": "a list of texts",
        "where": "a table",
    },
    "build": {"source": "a text", "package_init": "a boolean"},
}
"""Table -> its keys and the type of each."""

_LATER: Final[dict[str, dict[str, str]]] = {
    "": {"operator": "operators", "budget": "size budgets", "providers": "provider wheels"},
    "targets": {"opencl": "OpenCL targets"},
    "targets.cuda": {},
    "kernel": {},
    "build": {},
}
"""Keys that the manifest's full form has and this tack does not read yet."""

EXAMPLES: Final[dict[str, str]] = {
    "schema": f"schema = {MANIFEST_SCHEMA}",
    "package": 'package = "mykernels"',
    "targets": '[targets] with cpu = ["x86-64-v2", "x86-64-v3"]',
    "kernel": '[[kernel]] with name = "mykernels.kernels:saxpy" and signatures = [...]',
    "build": '[build] with source = "src"',
    "targets.cpu": 'cpu = ["x86-64-v2", "x86-64-v3"]',
    "targets.cuda": 'cuda = { sass = ["sm_80", "sm_90a"], ptx = "compute_90" }',
    "targets.cuda.sass": 'sass = ["sm_80", "sm_90a"]',
    "targets.cuda.ptx": 'ptx = "compute_90"',
    "targets.hip": 'hip = ["gfx90a", "gfx942"]',
    "targets.metal": 'metal = ["metal3.1"]',
    "kernel.name": 'name = "mykernels.kernels:saxpy"',
    "kernel.signatures": 'signatures = ["f32, f32[:], f32[:]"]',
    "kernel.instances": 'instances = ["mykernels.cells:prebuilt"]',
    "kernel.where": 'where.T = ["f32", "f64"]',
    "build.source": 'source = "src"',
    "build.package_init": "package_init = false",
}
"""Key -> what to write for it."""


def refuse(path: Path, place: str, message: str) -> ManifestError:
    """The error that refuses what stands at ``place`` of a manifest, for the caller to raise."""
    return ManifestError(f"{path}: {place}: {message}" if place else f"{path}: {message}")


def _join(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key


def check_keys(path: Path, data: Mapping[str, Any], table: str, place: str) -> None:
    """Every key of ``data`` is one of ``table`` and of its type."""
    known = _KEYS[table]
    for key, value in data.items():
        if key in _LATER[table]:
            raise refuse(
                path,
                _join(place, key),
                f"{_LATER[table][key]} are not built yet in this version of tack; remove it",
            )
        if key not in known:
            raise refuse(path, place, f"unknown key {key!r}; {advice(key, known)}")
        if not is_kind(value, known[key]):
            example = EXAMPLES[_join(table, key)]
            raise refuse(
                path,
                _join(place, key),
                f"{show(value)} is not {known[key]}; write {example}",
            )


def need(path: Path, data: Mapping[str, Any], table: str, place: str, key: str) -> Any:
    """The value of a key that has to be there."""
    if key not in data:
        raise refuse(path, place, f"{key!r} is missing; write {EXAMPLES[_join(table, key)]}")
    return data[key]


def is_kind(value: object, kind: str) -> bool:
    """Whether ``value`` is of a type as the tables name it."""
    match kind:
        case "an integer":
            return type(value) is int
        case "a boolean":
            return isinstance(value, bool)
        case "a text":
            return isinstance(value, str)
        case "a table":
            return isinstance(value, dict)
        case "a list of texts":
            return isinstance(value, list) and all(isinstance(item, str) for item in value)
        case "a text or a list of texts":
            return is_kind(value, "a text") or is_kind(value, "a list of texts")
        case _:
            return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def show(value: object) -> str:
    """A value as a user wrote it, near enough."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value)
