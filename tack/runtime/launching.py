"""From a variant and a loaded library to what the kernel's table holds."""

from __future__ import annotations

from tack import _core
from tack.backends.cpu import LoadedLibrary, LoadError
from tack.lang.definition import KernelDefinition
from tack.model.launch import Launch
from tack.model.signature import ArraySpec, Path, Signature, Spec, TemplateSpec
from tack.model.variant import Variant
from tack.runtime.components import annotations_of

__all__ = ["launchable"]


def launchable(
    variant: Variant, launch: Launch, library: LoadedLibrary, given: Signature | None = None
) -> _core.Launchable:
    """``variant`` with its entries found; raises `LoadError` where plan and library disagree.

    It takes arrays of the layouts in ``given`` alone, by default those of the variant. What answers
    a strided array is so never asked about a contiguous one, for which a better one may exist.
    """
    definition = variant.kernel
    assert isinstance(definition, KernelDefinition)
    params = _params(definition, variant.signature, given or variant.signature)
    try:
        entries = {flavour: library.symbol(symbol) for flavour, symbol in launch.entries}
        return _core.Launchable(
            params=params,
            slots=launch.slots,
            host=launch.host,
            written=launch.written,
            aligned=launch.aligned,
            general=entries["general"],
            noalias=entries.get("noalias", 0),
            label=str(variant),
            keepalive=library,
            wide=entries.get("aligned", 0),
            multiples=launch.multiples,
            prints=launch.prints,
        )
    except (AttributeError, ValueError, OverflowError, TypeError) as error:
        raise LoadError(f"its launch plan does not fit its library: {error}") from None


def _params(
    definition: KernelDefinition, signature: Signature, given: Signature
) -> list[tuple[object, ...]]:
    """The parameters as the launcher checks them."""
    rows: list[tuple[object, ...]] = []
    annotations = annotations_of(definition)
    typed = [_annotated(spec) for spec in signature]
    for flat, other in zip(signature.flat(), given.flat(), strict=True):
        spec, passed = flat.spec, other.spec
        if isinstance(spec, ArraySpec) and isinstance(passed, ArraySpec):
            pins = tuple(-1 if dim is None else dim for dim in spec.all_dims)
            rows.append(("array", spec.dtype.name, len(pins), pins, passed.layout))
        else:
            annotated = annotations[flat.argument] is not None or flat.path in typed[flat.argument]
            rows.append(("scalar", spec.dtype.name, annotated))
    return rows


def _annotated(spec: Spec) -> set[Path]:
    """The numbers of a template whose classes annotate them."""
    if not isinstance(spec, TemplateSpec):
        return set()
    from tack.lang.template import annotation_of
    from tack.lang.template_spec import class_of

    return {
        (*path, name)
        for path, node in spec.nodes()
        for name, _ in node.scalars
        if annotation_of(class_of(node), name) is not None
    }
