"""What happens when a call finds no variant in the kernel's table: resolve, compile or refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tack.backends import cpu
from tack.lang.definition import KernelDefinition
from tack.lang.source import SourceUnavailable
from tack.model.errors import IRVerificationError, JITWarning, NoVariantError, ToolchainError
from tack.model.launch import Launch
from tack.model.record import replace
from tack.model.signature import Signature
from tack.model.targets import Target
from tack.model.variant import Candidate
from tack.runtime.arguments import values_of
from tack.runtime.components import grouped
from tack.runtime.explain import Explanation
from tack.runtime.resolver import Resolution, resolve
from tack.runtime.settings import callers_level, jit_policy, log, note_for_record

if TYPE_CHECKING:
    from tack import _core
    from tack.runtime.jit import Compiled

__all__ = ["decide", "on_miss"]

_FORBIDDEN: Final = "TACK_JIT=forbid"


def on_miss(
    kernel: _core.Kernel, args: tuple[object, ...]
) -> _core.Launchable | tuple[_core.Launchable, _core.Expansion]:
    """The variant for ``args``, a vector's components apart, to be kept in the kernel's table.

    With templates among them it comes with how a call takes these apart.

    Raises ``TypeError``, ``ValueError`` or ``OverflowError`` for arguments that no variant could
    take, ``ValueError`` for a read-only array that the kernel writes and an unaligned one that
    it changes by atomics, `CompileError` for a kernel
    that the language refuses, and `NoVariantError`, in the words of `tack.explain`, where no
    variant answers and none can or may be compiled.
    """
    definition: KernelDefinition = kernel.definition
    args = grouped(definition, args)
    resolution = resolve(definition, args)
    launch, launchable = resolution.launch, resolution.launchable
    if launch is None or launchable is None:
        compiled = _compile(definition, _specialized(definition, resolution))
        launch, launchable = compiled.launch, compiled.launchable
        origin = compiled.origin
    else:
        origin = "prebuilt"
    log("debug", "%s: %s", launchable.label, origin)
    _check_arrays(definition, resolution.signature, launch, args)
    if not resolution.signature.templates:
        return launchable
    from tack.runtime.expansion import expansion_of

    return launchable, expansion_of(kernel, resolution.signature, args)


def decide(definition: KernelDefinition, args: tuple[object, ...]) -> Explanation:
    """What a call with ``args`` would do; compiles and runs nothing."""
    from tack.runtime import jit

    resolution = resolve(definition, args)
    if resolution.launchable is not None:
        return _with_jit(resolution, False, "a prebuilt variant answers")
    resolution = _specialized(definition, resolution)
    if jit_policy() == "forbid":
        return _with_jit(resolution, False, _FORBIDDEN)
    obstacle = jit.obstacle(definition, resolution.signature)
    reason = obstacle or "nothing prebuilt answers"
    return _with_jit(resolution, obstacle is None, reason)


def _specialized(definition: KernelDefinition, resolution: Resolution) -> Resolution:
    """``resolution`` with the signature that is compiled, should nothing prebuilt answer."""
    from tack.runtime.pinning import pinned

    signature = pinned(definition, resolution.signature, resolution.given)
    return replace(resolution, signature=signature)


def _with_jit(resolution: Resolution, accepted: bool, reason: str) -> Explanation:
    """The explanation with the variant that the call compiles, or does not, as last candidate."""
    shown = resolution.explanation
    candidate = Candidate(
        kernel=shown.kernel,
        signature=str(resolution.signature),
        target=str(Target("cpu", cpu.best_level())),
        accepted=accepted,
        reason=reason,
        jit=True,
    )
    return replace(shown, candidates=(*shown.candidates, candidate))


def _compile(definition: KernelDefinition, resolution: Resolution) -> Compiled:
    from tack.runtime import jit

    policy = jit_policy()
    note_for_record(definition.name, str(resolution.signature))
    if policy == "forbid":
        raise _refused(_with_jit(resolution, False, _FORBIDDEN))
    try:
        return jit.answer(definition, resolution.signature, after=lambda: _warn(resolution, policy))
    except (ToolchainError, SourceUnavailable) as error:
        raise _refused(_with_jit(resolution, False, str(error))) from error
    except IRVerificationError as error:
        raise RuntimeError(
            f"{definition.name}({resolution.signature}) was not compiled, through a fault of "
            "tack's own; please report it"
        ) from error


def _refused(explanation: Explanation) -> NoVariantError:
    return NoVariantError(str(explanation), explanation)


def _warn(resolution: Resolution, policy: str) -> None:
    """Says that a variant was compiled, where its package ships prebuilt ones."""
    kernel, signature = resolution.explanation.kernel, resolution.signature
    if policy == "warn" and resolution.bundled:
        import warnings

        warnings.warn(
            f"{kernel}({signature}) is not prebuilt, so this call compiled it; to "
            f'prebuild it, add "{signature}" to the signatures of "{kernel}" in '
            "tack-aot.toml (TACK_JIT=allow compiles in silence, tack.explain tells more)",
            JITWarning,
            stacklevel=callers_level(),
        )


def _check_arrays(
    definition: KernelDefinition, signature: Signature, launch: Launch, args: tuple[object, ...]
) -> None:
    """Refuses arrays that the kernel cannot change."""
    import numpy as np

    flat, values = signature.flat(), values_of(signature, args)

    def refused(position: int, why: str) -> ValueError:
        label = flat[position].label(definition.parameters)
        return ValueError(f"{definition.name}: array {label!r} is {why}")

    for position in launch.written:
        if not np.asarray(values[position]).flags.writeable:
            why = "read-only, and the kernel writes it; pass a writeable copy"
            raise refused(position, why)
    for position in launch.aligned:
        if not np.asarray(values[position]).flags.aligned:
            why = "unaligned, and its elements are changed by atomics; pass an aligned copy"
            raise refused(position, why)
