"""The manifest ``tack-aot.toml``: which instantiations of which kernels a package ships.

Reading is strict: what is unknown, of the wrong type, or not built yet is a `ManifestError` that
names the file, the place, the value and what to write. Nothing is imported here; whether the
names exist is a matter of `tack.aot.enumerate`.
"""

from __future__ import annotations

import keyword
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tack.aot.form import (
    EXAMPLES,
    MANIFEST_SCHEMA,
    check_keys,
    is_kind,
    need,
    refuse,
    show,
)
from tack.aot.wanted import wanted_targets
from tack.model.errors import ManifestError
from tack.model.targets import Target

__all__ = [
    "MANIFEST_NAME",
    "MANIFEST_SCHEMA",
    "BuildSettings",
    "ListedKernel",
    "Manifest",
    "read_manifest",
]

MANIFEST_NAME: Final = "tack-aot.toml"

_DOTTED: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


Where = tuple[tuple[str, tuple[str, ...]], ...]
"""Names with the values that each stands for in turn."""


@dataclass(frozen=True, slots=True)
class ListedKernel:
    """One ``[[kernel]]``: a kernel, its signatures and the names that they are a product over.

    ``place`` is where it stands in the manifest, such as ``kernel[2]``. ``instances`` name
    functions that give further signatures, with specs of templates in them.
    """

    place: str
    name: str
    signatures: tuple[str, ...]
    where: Where = ()
    instances: tuple[str, ...] = ()

    @property
    def module(self) -> str:
        """The module part of ``name``."""
        return self.name.partition(":")[0]

    @property
    def qualname(self) -> str:
        """The part of ``name`` after the colon."""
        return self.name.partition(":")[2]


@dataclass(frozen=True, slots=True)
class BuildSettings:
    """``[build]``: where the package's source is, and whether its ``__init__`` may run.

    ``source`` is the folder that holds the package, relative to the manifest; None looks in
    ``src`` and beside the manifest. With ``package_init`` false, kernel modules are imported
    below a bare package, for an ``__init__`` that needs what is not built yet.
    """

    source: str | None = None
    package_init: bool = True


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest that was read and is well-formed."""

    path: Path
    package: str
    targets: tuple[Target, ...]
    kernels: tuple[ListedKernel, ...]
    build: BuildSettings = field(default_factory=BuildSettings)

    def refuse(self, place: str, message: str) -> ManifestError:
        """The error that refuses what stands at ``place``, for the caller to raise."""
        return refuse(self.path, place, message)

    @property
    def gpu_targets(self) -> tuple[Target, ...]:
        """The targets that are no CPU's."""
        return tuple(target for target in self.targets if target.backend != "cpu")

    @property
    def source(self) -> Path:
        """The folder that holds the package; `ManifestError` if there is none."""
        inside = Path(*self.package.split("."))
        base = self.path.parent
        tried = ["src", "."] if self.build.source is None else [self.build.source]
        for folder in tried:
            if (base / folder / inside).is_dir():
                return (base / folder).resolve()
        place = "package" if self.build.source is None else "build.source"
        for folder in tried:
            module = base / folder / inside.with_suffix(".py")
            if module.is_file():
                raise self.refuse(
                    place,
                    f"{self.package!r} is the module {module.name}, and a bundle needs a folder; "
                    f"make it the package {inside.as_posix()}/__init__.py",
                )
        looked = " and ".join(str(base / folder / inside) for folder in tried)
        raise self.refuse(
            place,
            f"there is no package {self.package!r} (looked for {looked}); write "
            f"{EXAMPLES['build']}, the folder that holds it",
        )


def read_manifest(path: Path) -> Manifest:
    """The manifest at ``path``; `ManifestError` for whatever is wrong with it."""
    data = _load(path)
    check_keys(path, data, "", "")
    if need(path, data, "", "", "schema") != MANIFEST_SCHEMA:
        raise refuse(
            path,
            "schema",
            f"schema {data['schema']} is not one that this tack reads; write {EXAMPLES['schema']}",
        )
    package = need(path, data, "", "", "package")
    if not _is_dotted(package):
        raise refuse(path, "package", f"{package!r} is no package; write {EXAMPLES['package']}")
    targets = wanted_targets(path, need(path, data, "", "", "targets"))
    rows = need(path, data, "", "", "kernel")
    if not rows:
        raise refuse(path, "kernel", f"no kernel is listed; write {EXAMPLES['kernel']}")
    kernels = tuple(_kernel(path, package, f"kernel[{k}]", row) for k, row in enumerate(rows))
    seen: dict[str, ListedKernel] = {}
    for kernel in kernels:
        first = seen.setdefault(kernel.name, kernel)
        if first is not kernel:
            raise refuse(
                path,
                f"{kernel.place}.name",
                f"{kernel.name!r} is listed by {first.place} too; put both lists of signatures "
                "into one [[kernel]]",
            )
    return Manifest(path, package, targets, kernels, _build(path, data.get("build", {})))


def _load(path: Path) -> dict[str, Any]:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise ManifestError(
            f"{path}: there is no manifest; write one, or let `tack-aot init` write a package"
        ) from None
    except OSError as error:
        raise ManifestError(f"{path}: the manifest cannot be read: {error.strerror}") from None
    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ManifestError(f"{path}: the manifest is not UTF-8: {error}") from None
    except ValueError as error:  # also of a number with thousands of digits
        raise ManifestError(f"{path}: this is not TOML: {error}") from None


def _is_dotted(name: str) -> bool:
    return bool(_DOTTED.fullmatch(name)) and not any(map(keyword.iskeyword, name.split(".")))


def _kernel(path: Path, package: str, place: str, data: Mapping[str, Any]) -> ListedKernel:
    check_keys(path, data, "kernel", place)
    name = need(path, data, "kernel", place, "name")
    module, colon, qualname = name.partition(":")
    if not (colon and _is_dotted(module) and _is_dotted(qualname)):
        raise refuse(
            path,
            f"{place}.name",
            f"{name!r} is not module:kernel; write {_nearest_name(name, package)}",
        )
    if module != package and not module.startswith(f"{package}."):
        raise refuse(
            path,
            f"{place}.name",
            f"{name!r} is outside the package {package!r}, whose wheel would carry it; list "
            "kernels of the package itself",
        )
    instances = tuple(data.get("instances", ()))
    for index, text in enumerate(instances):
        _check_instance(path, package, f"{place}.instances[{index}]", text)
    signatures = data.get("signatures", ()) if instances else None
    if signatures is None:
        signatures = need(path, data, "kernel", place, "signatures")
    if not signatures and not instances:
        raise refuse(
            path,
            f"{place}.signatures",
            f"no variant of {name!r} would be built; write {EXAMPLES['kernel.signatures']}",
        )
    where = _where(path, f"{place}.where", data.get("where", {}))
    return ListedKernel(place, name, tuple(signatures), where, instances)


def _check_instance(path: Path, package: str, place: str, text: str) -> None:
    module, colon, qualname = text.partition(":")
    inside = module == package or module.startswith(f"{package}.")
    if not (colon and inside and _is_dotted(module) and _is_dotted(qualname)):
        raise refuse(
            path,
            place,
            f"{text!r} is no module:function of the package {package!r}; write "
            f'instances = ["{package}.cells:prebuilt"]',
        )


def _nearest_name(name: str, package: str) -> str:
    """What to write instead of a name that is not ``module:kernel``."""
    head, dot, tail = name.rpartition(".")
    if dot and ":" not in name and _is_dotted(name):
        return f'name = "{head}:{tail}"'
    return f'name = "{package}.kernels:saxpy"'


def _where(path: Path, place: str, data: Mapping[str, Any]) -> Where:
    names: list[tuple[str, tuple[str, ...]]] = []
    for name, values in data.items():
        here = f"{place}.{name}"
        if not name.isidentifier() or name in _reserved():
            raise refuse(path, here, f"{name!r} cannot stand for a type; write a name such as T")
        if not is_kind(values, "a list of texts"):
            raise refuse(
                path, here, f'{show(values)} is not a list of texts; write {name} = ["f32", "f64"]'
            )
        if not values:
            raise refuse(path, here, f'no value is listed; write {name} = ["f32", "f64"]')
        names.append((name, tuple(values)))
    return tuple(names)


def _reserved() -> Mapping[str, object]:
    """Names that a signature already gives a meaning to."""
    from tack.model.dtypes import DTYPES

    return DTYPES


def _build(path: Path, data: Mapping[str, Any]) -> BuildSettings:
    check_keys(path, data, "build", "build")
    source = data.get("source")
    if source is not None and (Path(source).is_absolute() or not source):
        raise refuse(
            path,
            "build.source",
            f"{source!r} is no folder relative to the manifest; write {EXAMPLES['build.source']}",
        )
    return BuildSettings(source, data.get("package_init", True))
