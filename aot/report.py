"""Reading a shipped bundle back: from a wheel, an installed package, or the bundle's own folder.

Nothing in it is trusted: every library, every image and every Python file of the package is
digested again, and images are asked what they are for.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tack.aot.elf import parse_library
from tack.aot.images import read_images
from tack.model.bundle import FOLDER, MANIFEST, Artifact, Bundle, is_template
from tack.model.errors import BundleError, TackError

__all__ = ["Checked", "Inspection", "inspect"]

_Read = Callable[[str], bytes | None]
"""Path below some root -> its bytes, or None where there is no such file."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A file that a bundle speaks of, and what is wrong with it; empty if nothing is."""

    path: str
    problem: str


@dataclass(frozen=True, slots=True)
class Inspection:
    """A bundle, the place it was read from, and what its files turned out to be.

    ``libraries`` has an entry for each artifact, ``modules`` one for each module of the package.
    """

    place: str
    bundle: Bundle
    libraries: tuple[Checked, ...]
    modules: tuple[Checked, ...]

    @property
    def problems(self) -> tuple[Checked, ...]:
        """The files that are not what the bundle says."""
        return tuple(file for file in (*self.libraries, *self.modules) if file.problem)

    def to_json(self) -> dict[str, Any]:
        """The bundle's own document, with ``place`` and ``problems`` added."""
        return {
            "place": self.place,
            "problems": [{"path": file.path, "problem": file.problem} for file in self.problems],
            "bundle": self.bundle.to_json(),
        }


def inspect(place: Path) -> tuple[Inspection, ...]:
    """The bundles at ``place``: a wheel, a folder that holds a package, or a bundle's folder.

    `BundleError` where there is none, or one that is damaged, truncated or of another package.
    """
    if place.is_dir():
        found = [_inspect(str(folder), folder.name, _reader(folder)) for folder in _folders(place)]
    elif place.is_file():
        found = list(_inspect_wheel(place))
    else:
        raise BundleError(f"{place}: there is no such file or folder")
    if not found:
        raise BundleError(
            f"{place}: there is no {FOLDER}/{MANIFEST} in it; was it built with tack_add_kernels?"
        )
    return tuple(found)


def _folders(place: Path) -> Iterator[Path]:
    """The folders of bundles in ``place``."""
    if (place / MANIFEST).is_file():
        yield place.resolve()
        return
    for manifest in sorted(place.rglob(f"{FOLDER}/{MANIFEST}")):
        yield manifest.parent


def _reader(folder: Path) -> _Read:
    """Reads by paths below the folder that holds a bundle."""
    root = folder.parent

    def read(path: str) -> bytes | None:
        file = root / path
        return file.read_bytes() if file.is_file() else None

    return read


def _inspect_wheel(place: Path) -> Iterator[Inspection]:
    try:
        with zipfile.ZipFile(io.BytesIO(place.read_bytes())) as wheel:
            names = set(wheel.namelist())
            for name in sorted(names):
                *parents, last = name.split("/")
                if last == MANIFEST and parents[-1:] == [FOLDER]:
                    root = "/".join(parents[:-1])
                    yield _inspect(f"{place}:{name}", FOLDER, _zip_reader(wheel, names, root))
    except (zipfile.BadZipFile, EOFError, OSError) as error:
        raise BundleError(f"{place}: the wheel is damaged or truncated ({error})") from None


def _zip_reader(wheel: zipfile.ZipFile, names: set[str], root: str) -> _Read:
    def read(path: str) -> bytes | None:
        name = f"{root}/{path}" if root else path
        return wheel.read(name) if name in names else None

    return read


def _inspect(place: str, folder: str, read: _Read) -> Inspection:
    """The bundle in ``folder``; ``read`` takes paths below what holds it: the package's folder."""
    bundle = Bundle.read(read(f"{folder}/{MANIFEST}") or b"", place)
    libraries = tuple(_check_library(a, read(f"{folder}/{a.path}")) for a in bundle.artifacts)
    return Inspection(place, bundle, libraries, tuple(_check_modules(bundle, read)))


def _check_library(artifact: Artifact, content: bytes | None) -> Checked:
    return Checked(artifact.path, _library_problem(artifact, content))


def _library_problem(artifact: Artifact, content: bytes | None) -> str:
    if content is None:
        return "it is missing"
    if len(content) != artifact.size:
        return f"it has {len(content)} bytes, and {artifact.size} when it was built"
    if hashlib.sha256(content).hexdigest() != artifact.sha256:
        return "its bytes are not those that were built"
    try:
        if artifact.target.backend != "cpu":
            read_images(artifact.target, artifact.path, content)
            return ""
        library = parse_library(Path(artifact.path), content)
    except TackError as error:
        return str(error).partition(": ")[2]
    if library.family != artifact.target.level.family:
        return f"it is for {library.family}"
    return ""


def _check_modules(bundle: Bundle, read: _Read) -> Iterator[Checked]:
    """The package's Python files; a bundle that lies alone has none of them beside it.

    Templates of source kernels are looked at where they were shipped.
    """
    if read("__init__.py") is None:
        return
    folder = bundle.package.replace(".", "/") + "/"
    for module, digest in bundle.modules.items():
        if is_template(module):
            content = read(module.removeprefix(folder)) if module.startswith(folder) else None
            if content is not None:
                edited = hashlib.sha256(content).hexdigest() != digest
                problem = "it was edited since the build" if edited else ""
                yield Checked(module.removeprefix(folder), problem)
            continue
        if module != bundle.package and not module.startswith(f"{bundle.package}."):
            continue
        base = "/".join(module.removeprefix(bundle.package).strip(".").split("."))
        paths = [f"{base}.py", f"{base}/__init__.py"] if base else ["__init__.py"]
        content = next((text for text in map(read, paths) if text is not None), None)
        if content is None:
            yield Checked(paths[0], "it is missing, so the bundle is of another package")
        elif hashlib.sha256(content).hexdigest() != digest:
            yield Checked(paths[0], "it was edited since the build")
        else:
            yield Checked(paths[0], "")
