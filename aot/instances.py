"""Instances: the signatures that a function of the package gives, with templates among the specs.

``instances = ["mykernels.cells:prebuilt"]`` names a function without parameters. It yields one
tuple for each variant, with one entry for each parameter of the kernel: a text such as
``"f32[:]"``, or what `tack.spec` gives.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Sequence

from tack.aot.manifest import ListedKernel, Manifest
from tack.aot.rows import Row
from tack.lang.definition import KernelDefinition
from tack.lang.template import annotation_of, constants_of_class
from tack.lang.template_spec import class_of
from tack.model.signature import Signature, Spec, TemplateSpec

__all__ = ["template_misfits", "with_instances"]


def with_instances(
    manifest: Manifest, listed: ListedKernel, kernel: KernelDefinition, rows: Sequence[Row]
) -> Iterator[Row]:
    """``rows``, and those that the functions of ``listed.instances`` give.

    `ManifestError` for a function that is not to be had or raises, for what is no signature, and
    for one that was asked for before.
    """
    seen: dict[str, str] = {}
    for row in rows:
        seen[str(row.signature)] = row.place
        yield row
    for index, name in enumerate(listed.instances):
        place = f"{listed.place}.instances[{index}]"
        found = _results(manifest, place, name)
        if not found:
            raise manifest.refuse(place, f"{name!r} gives nothing; no variant would be built")
        for number, entries in enumerate(found):
            here = f"{place}, number {number + 1}"
            signature = _signature(manifest, here, name, entries, kernel.parameters)
            text = str(signature)
            if text in seen:
                raise manifest.refuse(
                    here, f"{text!r} of {listed.name!r} was asked for by {seen[text]}; remove one"
                )
            seen[text] = here
            yield Row(here, signature)


def _results(manifest: Manifest, place: str, name: str) -> list[object]:
    """What the function ``name`` gives."""
    module, _, qualname = name.partition(":")
    try:
        value: object = importlib.import_module(module)
        for attribute in qualname.split("."):
            value = getattr(value, attribute)
    except (ImportError, AttributeError) as error:
        raise manifest.refuse(place, f"{name!r} is not to be had: {error}") from None
    if not callable(value):
        raise manifest.refuse(place, f"{name!r} is no function; write def {qualname}(): yield ...")
    try:
        given = value()
        return list(given) if isinstance(given, Iterable) else [given]
    except Exception as error:
        raise manifest.refuse(
            place, f"calling {name!r} raised {type(error).__name__}: {error}"
        ) from error


def _signature(
    manifest: Manifest, place: str, name: str, entries: object, parameters: Sequence[str]
) -> Signature:
    """The signature of one tuple."""
    if not isinstance(entries, tuple | list) or len(entries) != len(parameters):
        raise manifest.refuse(
            place,
            f"{name!r} gives {entries!r}; a tuple with one entry for each of "
            f"{', '.join(parameters)} was expected",
        )
    specs: list[Spec] = []
    for parameter, entry in zip(parameters, entries, strict=True):
        problem = f"{name!r} gives {entry!r} for {parameter!r}"
        if isinstance(entry, TemplateSpec):
            specs.append(entry)
        elif isinstance(entry, str):
            specs.append(_parsed(manifest, place, problem, entry))
        else:
            raise manifest.refuse(
                place, f"{problem}; write a text such as 'f32[:]', or tack.spec(...)"
            )
    return Signature(tuple(specs))


def _parsed(manifest: Manifest, place: str, problem: str, text: str) -> Spec:
    try:
        specs = Signature.parse(text).specs
    except ValueError as error:
        raise manifest.refuse(place, f"{problem}: {error}") from None
    if len(specs) != 1:
        raise manifest.refuse(place, f"{problem}, which is {len(specs)} specs; write one")
    return specs[0]


def template_misfits(name: str, spec: TemplateSpec, signature: Signature) -> Iterator[str]:
    """Why no call could give a template of this spec for the parameter ``name``."""
    for path, node in spec.nodes():
        label = ".".join((name, *path))
        try:
            constants = constants_of_class(class_of(node))
        except ValueError as error:
            yield f"{label!r}: {error}"
            return
        own = {each for each, _ in (*node.constants, *node.arrays, *node.scalars)}
        own |= {each for each, _ in (*node.children, *node.functions)}
        for constant in sorted(constants.keys() - own):
            yield (
                f"{label!r} lacks {constant!r}, a number of the class {node.type}; write "
                f"{constant}={constants[constant]!r}"
            )
        for scalar, dtype in ((n, s.dtype) for n, s in node.scalars):
            hint = annotation_of(class_of(node), scalar)
            if hint is not None:
                if hint is not dtype:
                    yield (
                        f"'{label}.{scalar}' is annotated {hint}, so no call selects {dtype}; "
                        f"write {hint}"
                    )
                continue
            wanted = signature.default_float if dtype.is_float else None
            if dtype.is_bool or dtype.name == "i64" or dtype is wanted:
                continue
            kind = "a float" if dtype.is_float else "an integer"
            yield (
                f"'{label}.{scalar}' is {kind} that an object passes, which is "
                f"{wanted or 'i64'} here, so no call selects {dtype}; write {wanted or 'i64'}"
            )
