"""The plan: which units a build renders, which rows it skips and why, what all that depends on.

Every variant is generated here, so that a kernel that does not compile is known before anything
is built. Nothing is written.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tack.aot.enumerate import Instantiation, enumerate_kernels
from tack.aot.inputs import generator_files
from tack.aot.manifest import Manifest
from tack.aot.source_tree import SourceTree, open_source_tree
from tack.aot.units import UNIT_SIZE, chunks, unit_name, unit_path
from tack.compile import check_shared, generate
from tack.lang.definition import KernelDefinition
from tack.lang.source_kernel import SourceKernelDefinition
from tack.model.bundle import Skipped, is_template
from tack.model.capabilities import capabilities_of, lacking
from tack.model.errors import CompileError, ManifestError, UnsupportedError
from tack.model.keys import sha256
from tack.model.signature import Signature
from tack.model.spelling import advice
from tack.model.targets import CPU_LEVELS, Target, best_first, cpu_family
from tack.model.variant import Variant
from tack.render.renderer import Renderer, renderer_for
from tack.render.source import Source

__all__ = ["KernelPlan", "Plan", "Unit", "make_plan", "open_plan"]


@dataclass(frozen=True, slots=True)
class Unit:
    """The variants of one file: its path below the folder of rendered files, and their sources.

    ``name`` is that of the image that a unit for a GPU becomes.
    """

    name: str
    path: str
    kernel: str
    target: Target
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class KernelPlan:
    """One kernel of the plan, with its units."""

    definition: KernelDefinition
    units: tuple[Unit, ...]

    @property
    def name(self) -> str:
        """``package.module:qualified.name``."""
        return self.definition.name


@dataclass(frozen=True, slots=True)
class Plan:
    """What a build of one manifest does.

    ``targets`` are those that have a unit. ``modules`` maps each module that contributed to a
    kernel to the SHA-256 of its file. ``inputs`` are the files that the plan depends on: a build
    whose inputs are the same has the same plan.
    """

    manifest: Manifest
    targets: tuple[Target, ...]
    kernels: tuple[KernelPlan, ...]
    skipped: tuple[Skipped, ...]
    modules: Mapping[str, str]
    inputs: tuple[Path, ...]

    @property
    def units(self) -> tuple[Unit, ...]:
        """Every unit, by kernel."""
        return tuple(unit for kernel in self.kernels for unit in kernel.units)

    def select(self, kernel: str) -> Plan | None:
        """This plan with that kernel alone; None if it has no such kernel."""
        chosen = tuple(k for k in self.kernels if k.name == kernel)
        return replace(self, kernels=chosen) if chosen else None


def make_plan(manifest: Manifest, *, machine: str, backends: Sequence[str] | None = None) -> Plan:
    """The plan for ``manifest`` on ``machine`` (as `platform.machine` names it).

    ``backends`` restricts it to some backends: one row of a wheel matrix. `ManifestError` for
    what the manifest gets wrong, with the place in the kernel where one does not compile.
    """
    with open_plan(manifest, machine=machine, backends=backends) as plan:
        return plan


@contextlib.contextmanager
def open_plan(
    manifest: Manifest,
    *,
    machine: str,
    backends: Sequence[str] | None = None,
    targets: Sequence[Target] = (),
) -> Iterator[Plan]:
    """As `make_plan`; inside this context the kernels' modules stay imported.

    ``targets``, if there are any, stand in for those of the manifest.
    """
    chosen, foreign = tuple(targets), dict[Target, str]()
    if not chosen:
        chosen, foreign = _choose_targets(manifest, machine, backends)
    with open_source_tree(
        manifest.source, manifest.package, package_init=manifest.build.package_init
    ) as tree:
        yield _plan(manifest, tree, chosen, foreign)


def _plan(
    manifest: Manifest,
    tree: SourceTree,
    targets: tuple[Target, ...],
    foreign: Mapping[Target, str],
) -> Plan:
    generator = _Generator(manifest)
    kernels: list[KernelPlan] = []
    skipped: list[Skipped] = []
    for rows in enumerate_kernels(manifest, tree):
        units, without = _plan_kernel(rows, targets, foreign, generator)
        if not units:
            raise manifest.refuse(
                rows[0].place,
                f"no variant of {rows[0].kernel.name!r} would be built: every row is skipped "
                f"({without[-1].reason})",
            )
        kernels.append(KernelPlan(rows[0].kernel, units))
        skipped += without
    built = {unit.target for kernel in kernels for unit in kernel.units}
    modules = _modules(tree, kernels)
    files = {path for path, _ in modules.values()} | set(tree.files.values())
    return Plan(
        manifest=manifest,
        targets=tuple(target for target in targets if target in built),
        kernels=tuple(kernels),
        skipped=tuple(skipped),
        modules={name: digest for name, (_, digest) in modules.items()},
        inputs=(manifest.path.resolve(), *sorted(files), *generator_files()),
    )


def _plan_kernel(
    rows: Sequence[Instantiation],
    targets: Sequence[Target],
    foreign: Mapping[Target, str],
    generator: _Generator,
) -> tuple[tuple[Unit, ...], list[Skipped]]:
    """The units of one kernel's rows, and what is skipped."""
    units: list[Unit] = []
    skipped = [_skip(row, target, reason) for row in rows for target, reason in foreign.items()]
    for target in targets:
        sources: list[Source] = []
        for row in rows:
            try:
                reason = lacking(target, row.signature)
                if not reason:
                    sources.append(generator.source(row, target))
            except UnsupportedError as error:
                reason = error.message
            if reason:
                skipped.append(_skip(row, target, reason))
        units += _units(target, sources)
    return tuple(units), skipped


def _choose_targets(
    manifest: Manifest, machine: str, backends: Sequence[str] | None
) -> tuple[tuple[Target, ...], dict[Target, str]]:
    """The targets to build for, and those to skip with the reason.

    Levels of CPUs come first, from the lowest up, then GPUs in the order of the manifest.
    """
    known = {target.backend for target in manifest.targets}
    for backend in backends or ():
        if backend not in known:
            raise ManifestError(
                f"{manifest.path}: TARGETS {backend!r} is no backend of this manifest; "
                f"{advice(backend, sorted(known))}"
            )
    chosen = [t for t in manifest.targets if backends is None or t.backend in backends]
    levels = [target for target in chosen if target.backend == "cpu"]
    family = cpu_family(machine)
    foreign = {
        target: f"{target.arch} is a level of {target.level.family} and this builds for {machine}"
        for target in levels
        if target.level.family != family
    }
    here = [target for target in levels if target not in foreign]
    if levels and not here:
        raise manifest.refuse(
            "targets.cpu",
            f"none of {', '.join(t.arch for t in levels)} is a level of this machine ({machine}); "
            f"add {_levels_of(family)}",
        )
    gpus = (target for target in chosen if target.backend != "cpu")
    return (*reversed(best_first(here)), *gpus), foreign


def _levels_of(family: str | None) -> str:
    return ", ".join(n for n, level in CPU_LEVELS.items() if level.family == family) or "none"


def _skip(row: Instantiation, target: Target, reason: str) -> Skipped:
    return Skipped(row.kernel.name, str(row.signature), str(target), reason)


def _units(target: Target, sources: Sequence[Source]) -> Iterator[Unit]:
    suffix = renderer_for(target).suffix
    for index, chunk in enumerate(chunks(sources, _unit_size(sources))):
        kernel = chunk[0].variant.kernel.name
        name = unit_name(kernel, index)
        yield Unit(name, unit_path(target, name, suffix), kernel, target, tuple(chunk))


def _unit_size(sources: Sequence[Source]) -> int:
    """How many variants share a unit.

    Of what an author wrote each has its own: helpers, macros and includes are in nobody's way.
    """
    own = any(isinstance(source.variant.kernel, SourceKernelDefinition) for source in sources)
    return 1 if own else UNIT_SIZE


class _Generator:
    """Generates each variant; targets whose renderers write the same share the text.

    These are the same but for conversions and tensor cores, and agree in those that the variant
    was made for. Templates of authors are made for one target, which they are told.
    """

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._done: dict[tuple[str, Signature, Renderer], list[tuple[dict[str, Any], Source]]] = {}

    def source(self, row: Instantiation, target: Target) -> Source:
        renderer, converts = renderer_for(target), capabilities_of(target).converts
        variant = Variant(row.kernel, row.signature, target, row.kernel.options)
        common = replace(renderer, supported_ops=renderer.supported_ops - converts, tensor_cores=())
        facts: dict[str, Any] = dict.fromkeys(converts, True) | {"warps": renderer.tensor_cores}
        facts["target"] = target
        done = self._done.setdefault((row.kernel.name, row.signature, common), [])
        for others, source in done:
            if all(facts.get(name) == others.get(name) for name in source.facts):
                check_shared(source.shared, variant, renderer)
                return replace(source, variant=variant)
        try:
            made = generate(variant, renderer)
        except UnsupportedError:
            raise
        except CompileError as error:
            raise self._manifest.refuse(
                row.place,
                f"{row.kernel.name!r} does not compile for {str(row.signature)!r}:\n{error}",
            ) from error
        done.append((facts, made))
        return made


def _modules(tree: SourceTree, kernels: Sequence[KernelPlan]) -> dict[str, tuple[Path, str]]:
    """File and digest of each module that contributed to a kernel, by name."""
    names = {name for kernel in kernels for name in kernel.definition.fingerprint().modules}
    sources = (source for kernel in kernels for unit in kernel.units for source in unit.sources)
    names.update(name for source in sources for name in source.modules)
    found: dict[str, tuple[Path, str]] = {}
    for name in sorted(names):
        described = _describe_template(kernels, name) or tree.describe(name)
        if described is None:
            raise ManifestError(f"the module {name!r} has no file, so a wheel cannot carry it")
        found[name] = described
    return found


def _describe_template(kernels: Sequence[KernelPlan], name: str) -> tuple[Path, str] | None:
    """File and digest of a template of a source kernel; None for the name of a module."""
    if not is_template(name):
        return None
    for kernel in kernels:
        definition = kernel.definition
        if isinstance(definition, SourceKernelDefinition):
            used = (name in source.modules for unit in kernel.units for source in unit.sources)
            if any(used):
                path = Path(definition.path(name))
                return path, sha256(path.read_bytes())
    return None
