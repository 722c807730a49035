"""The bundle: what ``<package>/_tack/manifest.json`` says.

The build writes it, the runtime and ``tack-aot inspect`` read it. Reading trusts nothing: what is
missing, of the wrong type or of another schema is a `BundleError` that names the place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from tack.model.errors import BundleError
from tack.model.launch import Launch
from tack.model.record import Record, replace
from tack.model.signature import Signature
from tack.model.targets import Target
from tack.model.variant import Options

__all__ = [
    "BUNDLE_SCHEMA",
    "FOLDER",
    "MANIFEST",
    "Artifact",
    "Bundle",
    "Captured",
    "KernelEntry",
    "Resources",
    "Skipped",
    "VariantEntry",
    "document",
    "grouped",
    "is_template",
]

BUNDLE_SCHEMA: Final = 1
"""The schema of this tack; a bundle of another one is not read."""

FOLDER: Final = "_tack"
MANIFEST: Final = "manifest.json"


class Artifact(Record):
    """What is shipped for one target: a library, or a pack of images (`tack.model.pack`).

    ``path`` is below the bundle's folder. ``needs`` is what its bytes say that it needs: the least
    CPU level that runs every instruction, found by disassembly, the architecture that a GPU's
    images are for with the features that they insist on, the version of PTX, the first system
    that takes a version of Metal.
    """

    target: Target
    path: str
    sha256: str
    size: int
    needs: str


class Captured(Record):
    """A value outside a kernel that it was built with.

    ``scope`` is the function that reads it: empty for the kernel, else the names that lead to a
    device function, each after a ``>``. ``name`` is the dotted name that it reads, or ``=name``
    for a parameter's default. A scope ``@grid.inner`` is the template at that place, whose names
    are its methods, ``=mro`` and ``=extents``. ``value`` is the value by content
    (`tack.lang.bindings.describe`).
    """

    scope: str
    name: str
    value: str


class Resources(Record):
    """What an entry point of a GPU's image takes, as the image says.

    ``block`` is the greatest number of threads in a block, ``registers`` how many each of them has
    and ``shared`` the bytes of static shared memory of a block; None where it does not say.
    """

    symbol: str
    block: int | None = None
    registers: int | None = None
    shared: int | None = None


class VariantEntry(Record):
    """One variant for one target: its key and how to launch it.

    ``modules`` and ``captured`` are what its templates add to those of the kernel; of a source
    kernel ``modules`` are the files of its template. ``unit`` is the name of the image that holds a
    GPU's variant, ``resources`` what its entry points take.
    """

    signature: Signature
    target: Target
    options: Options
    source_key: str
    launch: Launch
    modules: tuple[str, ...] = ()
    captured: tuple[Captured, ...] = ()
    unit: str = ""
    resources: tuple[Resources, ...] = ()


class KernelEntry(Record):
    """One kernel: its parameters, the modules it came from, what it captured, its variants.

    ``modules`` names the modules whose files contributed; their digests are in the bundle.
    """

    name: str
    parameters: tuple[str, ...]
    modules: tuple[str, ...]
    captured: tuple[Captured, ...]
    variants: tuple[VariantEntry, ...]


class Skipped(Record):
    """A row of the manifest that cannot exist for a target, and why."""

    kernel: str
    signature: str
    target: str
    reason: str


class Bundle(Record):
    """Everything that one package ships.

    ``modules`` maps the name of each Python module that contributed, and of each file of a source
    kernel's template (`is_template`), to the SHA-256 of its file; ``toolchain`` identifies the
    compiler by content.
    """

    package: str
    tack: str
    abi: int
    toolchain: Mapping[str, str]
    modules: Mapping[str, str]
    artifacts: tuple[Artifact, ...]
    kernels: tuple[KernelEntry, ...]
    skipped: tuple[Skipped, ...] = ()

    def artifact(self, target: Target) -> Artifact | None:
        """The library for ``target``, or None."""
        return next((a for a in self.artifacts if a.target == target), None)

    def to_json(self) -> dict[str, Any]:
        """The document that `from_json` reads back."""
        return {"schema": BUNDLE_SCHEMA} | {
            name: _dump(getattr(self, name)) for name in self.field_names
        }

    @classmethod
    def read(cls, content: bytes, place: str) -> Bundle:
        """The bundle whose manifest, at ``place``, has ``content``; `BundleError` if it is none."""
        return cls.from_json(document(content, place), place)

    @classmethod
    def from_json(cls, data: object, place: str) -> Bundle:
        """The bundle in ``data``, which was read from ``place``; `BundleError` if it is none."""
        reader = _Reader(place)
        top = reader.table(data, "the document")
        schema = top.get("schema")
        if schema != BUNDLE_SCHEMA:
            raise BundleError(
                f"{place}: bundle schema {schema!r}, this tack reads {BUNDLE_SCHEMA}; rebuild the "
                "package with this tack or install the tack that built it"
            )
        bundle = cls(
            package=reader.text(top, "package"),
            tack=reader.text(top, "tack"),
            abi=reader.integer(top, "abi"),
            toolchain=reader.texts(top, "toolchain"),
            modules=reader.texts(top, "modules"),
            artifacts=reader.rows(top, "artifacts", reader.artifact),
            kernels=reader.rows(top, "kernels", reader.kernel),
            skipped=reader.rows(top, "skipped", reader.skip),
        )
        reader.check_references(bundle)
        return bundle


def is_template(name: str) -> bool:
    """Whether what contributed to a variant is a template of a source kernel, and no module.

    It is named by its path from the folder above the package on, and no module has slashes.
    """
    return "/" in name


def document(content: bytes, place: str) -> dict[str, Any]:
    """The JSON object in a manifest; `BundleError` where ``content`` is none.

    For `Bundle.from_json`; whoever needs only some of its kernels drops the others between.
    """
    import json

    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BundleError(
            f"{place}: the bundle is damaged or truncated: it is not JSON ({error}); reinstall or "
            "rebuild the package"
        ) from None
    if not isinstance(data, dict):
        raise BundleError(f"{place}: the bundle is damaged: the document is not an object")
    return data


def _dump(value: Any) -> Any:
    if isinstance(value, Launch | Options):
        return value.to_json()
    if isinstance(value, Target | Signature):
        return str(value)
    if isinstance(value, tuple):
        return [_dump(item) for item in value]
    if isinstance(value, Mapping):
        return dict(sorted(value.items()))
    if isinstance(value, KernelEntry):
        fields = {name: _dump(getattr(value, name)) for name in value.field_names}
        return fields | {"variants": [_dump_group(group) for group in grouped(value.variants)]}
    if isinstance(value, Record):
        # What a class gives a default is left out where it has it.
        fields = {name: getattr(value, name) for name in value.field_names}
        return {n: _dump(v) for n, v in fields.items() if v != getattr(type(value), n, ...)}
    return value


def grouped(variants: Iterable[VariantEntry]) -> list[list[VariantEntry]]:
    """Variants that differ in nothing but their target, and what they take there, together.

    The manifest has one row for them: most architectures of a backend share all else.
    """
    groups: dict[tuple[Any, ...], list[VariantEntry]] = {}
    for variant in variants:
        shared = (getattr(variant, n) for n in variant.field_names if n not in _OF_TARGET)
        groups.setdefault(tuple(shared), []).append(variant)
    return list(groups.values())


_OF_TARGET: Final = ("target", "resources")


def _dump_group(group: Sequence[VariantEntry]) -> dict[str, Any]:
    row = _dump(group[0])
    targets = {str(variant.target): _dump(variant.resources) for variant in group}
    return {"targets": targets} | {n: value for n, value in row.items() if n not in _OF_TARGET}


_T = TypeVar("_T")
_SAFE_PATH = re.compile(r"[\w.+-]+(/[\w.+-]+)*", re.ASCII)


class _Reader:
    """Reads fields out of parsed JSON, naming the place of whatever is wrong."""

    def __init__(self, place: str) -> None:
        self.place = place

    def fail(self, what: str) -> BundleError:
        return BundleError(f"{self.place}: the bundle is damaged: {what}")

    def table(self, value: object, what: str) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise self.fail(f"{what} is not an object")
        return value

    def text(self, table: Mapping[str, Any], key: str) -> str:
        value = table.get(key)
        if not isinstance(value, str):
            raise self.fail(f"{key!r} is {value!r}, not a text")
        return value

    def integer(self, table: Mapping[str, Any], key: str) -> int:
        value = table.get(key)
        if type(value) is not int:
            raise self.fail(f"{key!r} is {value!r}, not an integer")
        return value

    def texts(self, table: Mapping[str, Any], key: str) -> dict[str, str]:
        inner = self.table(table.get(key), repr(key))
        return {name: self.text(inner, name) for name in inner}

    def rows(
        self, table: Mapping[str, Any], key: str, read: Callable[[Mapping[str, Any]], _T]
    ) -> tuple[_T, ...]:
        rows = table.get(key)
        if not isinstance(rows, list):
            raise self.fail(f"{key!r} is not a list")
        return tuple(read(self.table(row, f"an entry of {key!r}")) for row in rows)

    def strings(self, table: Mapping[str, Any], key: str) -> tuple[str, ...]:
        rows = table.get(key)
        if not isinstance(rows, list) or not all(isinstance(row, str) for row in rows):
            raise self.fail(f"{key!r} is not a list of texts")
        return tuple(rows)

    def parsed(self, parse: Callable[[Any], _T], value: object) -> _T:
        try:
            return parse(value)
        except (TypeError, ValueError) as error:
            raise self.fail(str(error)) from None

    def artifact(self, row: Mapping[str, Any]) -> Artifact:
        path = self.text(row, "path")
        if not _SAFE_PATH.fullmatch(path) or ".." in path.split("/"):
            raise self.fail(f"the path {path!r} leaves the bundle's folder")
        return Artifact(
            target=self.parsed(Target.parse, self.text(row, "target")),
            path=path,
            sha256=self.text(row, "sha256"),
            size=self.integer(row, "size"),
            needs=self.text(row, "needs"),
        )

    def kernel(self, row: Mapping[str, Any]) -> KernelEntry:
        return KernelEntry(
            name=self.text(row, "name"),
            parameters=self.strings(row, "parameters"),
            modules=self.strings(row, "modules"),
            captured=self.rows(row, "captured", self.capture),
            variants=tuple(v for group in self.rows(row, "variants", self.group) for v in group),
        )

    def capture(self, row: Mapping[str, Any]) -> Captured:
        return Captured(self.text(row, "scope"), self.text(row, "name"), self.text(row, "value"))

    def group(self, row: Mapping[str, Any]) -> list[VariantEntry]:
        targets = self.table(row.get("targets"), "'targets'")
        parsed = [self.parsed(Target.parse, text) for text in targets]
        resources = [self.rows(targets, text, self.taken) for text in targets]
        if not parsed:
            raise self.fail("a variant has no target")
        first = VariantEntry(
            signature=self.parsed(Signature.parse, self.text(row, "signature")),
            target=parsed[0],
            options=self.parsed(Options.from_json, self.table(row.get("options"), "'options'")),
            source_key=self.text(row, "source_key"),
            launch=Launch.from_json(row.get("launch"), self.place),
            modules=self.strings(row, "modules") if "modules" in row else (),
            captured=self.rows(row, "captured", self.capture) if "captured" in row else (),
            unit=self.text(row, "unit") if "unit" in row else "",
        )
        rows = zip(parsed, resources, strict=True)
        return [replace(first, target=target, resources=taken) for target, taken in rows]

    def taken(self, row: Mapping[str, Any]) -> Resources:
        numbers = [name for name in Resources.field_names if name != "symbol"]
        found = {name: self.integer(row, name) for name in numbers if name in row}
        return Resources(self.text(row, "symbol"), **found)

    def skip(self, row: Mapping[str, Any]) -> Skipped:
        return Skipped(*(self.text(row, name) for name in Skipped.field_names))

    def check_references(self, bundle: Bundle) -> None:
        """Every variant has its artifact, and every module its digest."""
        targets = {artifact.target for artifact in bundle.artifacts}
        for kernel in bundle.kernels:
            of_templates = (m for variant in kernel.variants for m in variant.modules)
            for module in (*kernel.modules, *of_templates):
                if module not in bundle.modules:
                    raise self.fail(f"{kernel.name} names module {module!r}, which has no digest")
            for variant in kernel.variants:
                if variant.target not in targets:
                    raise self.fail(f"{kernel.name} has a variant for {variant.target}, no library")
                if (variant.target.gpu is not None) != bool(variant.unit):
                    raise self.fail(f"{kernel.name} has a variant for {variant.target}, no image")
                if len(variant.signature) != len(kernel.parameters):
                    raise self.fail(f"{kernel.name} has a variant with another parameter count")
