"""The resolver: from the arguments of a call to a loaded variant, every refusal with a reason."""

from __future__ import annotations

import weakref
from collections.abc import Sequence

from tack import _core
from tack.backends import cpu
from tack.lang.definition import KernelDefinition
from tack.model.bundle import KernelEntry, VariantEntry
from tack.model.errors import BundleError
from tack.model.launch import Launch
from tack.model.locks import fork_safe_lock
from tack.model.record import Record, replace
from tack.model.signature import ArraySpec, Signature
from tack.model.variant import Candidate, Variant
from tack.runtime import launching
from tack.runtime.arguments import call_signature, fits, free
from tack.runtime.explain import Explanation
from tack.runtime.freshness import Freshness
from tack.runtime.index import PackageIndex, index_for

__all__ = ["Resolution", "resolve"]


class Resolution(Record):
    """What the bundle of a kernel's package has for a call, and what can be launched if it has it.

    ``given`` is the call's signature, with its extents; ``signature`` has every dimension free but
    those that a variant compiled for the call must know. ``bundled`` says whether the package ships
    prebuilt variants at all.
    """

    explanation: Explanation
    signature: Signature
    given: Signature
    bundled: bool
    launch: Launch | None = None
    launchable: _core.Launchable | None = None


_freshness: weakref.WeakKeyDictionary[KernelDefinition, Freshness] = weakref.WeakKeyDictionary()
_lock = fork_safe_lock()


def resolve(definition: KernelDefinition, args: Sequence[object]) -> Resolution:
    """Chooses a prebuilt variant for ``args``.

    Raises ``TypeError``, ``ValueError`` or ``OverflowError`` for arguments that no variant could
    take; everything else is a candidate refused with a reason.
    """
    given = call_signature(definition, args)
    open_ended = _free(given)
    shown = Explanation(definition.name, str(open_ended), ())
    try:
        index = index_for(definition)
    except BundleError as error:
        return Resolution(replace(shown, notes=(str(error),)), open_ended, given, bundled=True)
    if index is None:
        package = definition.module.partition(".")[0]
        note = f"the package {package!r} ships no bundle (no _tack/manifest.json); build its wheel"
        return Resolution(replace(shown, notes=(note,)), open_ended, given, bundled=False)
    entry = index.entry
    if entry is None or entry.parameters != definition.parameters:
        what = "has other parameters" if entry else "is not among the kernels"
        note = f"{definition.name} {what} of the bundle in {index.folder}"
        return Resolution(replace(shown, notes=(note,)), open_ended, given, bundled=True)
    return _choose(definition, given, shown, index, entry)


def _choose(
    definition: KernelDefinition,
    given: Signature,
    shown: Explanation,
    index: PackageIndex,
    entry: KernelEntry,
) -> Resolution:
    if index.elsewhere:
        targets = ", ".join(index.elsewhere)
        note = f"variants for {targets} were not looked at: the arrays are in this machine's memory"
        shown = replace(shown, notes=(note,))
    candidates: list[Candidate] = []
    chosen: VariantEntry | None = None
    launchable: _core.Launchable | None = None
    for variant in sorted(entry.variants, key=_preference):
        if chosen is not None:
            reason: str | None = "another variant comes first"
        else:
            reason = _misfit(definition, entry, index, variant, given)
        if reason is None:
            try:
                launchable = _load(definition, index, variant, given)
                chosen = variant
            except cpu.LoadError as error:
                reason = str(error)
        candidates.append(
            Candidate(
                kernel=entry.name,
                signature=str(variant.signature),
                target=str(variant.target),
                accepted=variant is chosen,
                reason=reason or "it fits the arguments, this CPU and the running code",
            )
        )
    shown = replace(shown, candidates=tuple(candidates))
    launch = None if chosen is None else chosen.launch
    free = _free(given)
    return Resolution(shown, free, given, bundled=True, launch=launch, launchable=launchable)


def _preference(variant: VariantEntry) -> tuple[int, int, int, str]:
    """More pinned dimensions first, then fewer strided arrays, then the higher CPU level."""
    arrays = [f.spec for f in variant.signature.flat() if isinstance(f.spec, ArraySpec)]
    pinned = sum(dim is not None for spec in arrays for dim in spec.all_dims)
    strided = sum(spec.is_strided for spec in arrays)
    return -pinned, strided, -variant.target.level.rank, str(variant.signature)


def _misfit(
    definition: KernelDefinition,
    entry: KernelEntry,
    index: PackageIndex,
    variant: VariantEntry,
    given: Signature,
) -> str | None:
    """Why ``variant`` cannot answer, or None."""
    for name, spec, argument in zip(entry.parameters, variant.signature, given, strict=True):
        if not fits(spec, argument):
            return f"{name!r} is {argument}, and it takes {spec}"
    return cpu.unfit(variant.target) or _fresh(definition, entry, index).refusal(variant, given)


def _fresh(definition: KernelDefinition, entry: KernelEntry, index: PackageIndex) -> Freshness:
    with _lock:
        freshness = _freshness.get(definition)
        if freshness is None:
            freshness = Freshness(definition, entry, index.bundle.modules)
            _freshness[definition] = freshness
        return freshness


def _free(signature: Signature) -> Signature:
    """``signature`` with no dimension pinned."""
    return Signature(tuple(map(free, signature)))


def _load(
    definition: KernelDefinition, index: PackageIndex, entry: VariantEntry, given: Signature
) -> _core.Launchable:
    """The variant of ``entry``, loaded. Raises `cpu.LoadError`."""
    artifact = index.bundle.artifact(entry.target)
    assert artifact is not None  # the bundle's reader checked it
    variant = Variant(definition, entry.signature, entry.target, entry.options)
    library = cpu.load(index.folder, artifact)
    return launching.launchable(variant, entry.launch, library, given)
