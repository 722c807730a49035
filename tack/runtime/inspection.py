"""What becomes of a kernel: its IR, and its text in a dialect. Compiles nothing."""

from __future__ import annotations

from tack.lang.definition import KernelDefinition
from tack.model.signature import Signature
from tack.model.targets import Target
from tack.model.variant import Variant
from tack.runtime import jit

__all__ = ["ir_of", "source_of"]


def source_of(definition: KernelDefinition, dialect: str, signature: str) -> str:
    """The text of one variant: in a dialect of this machine, or for a target elsewhere.

    ``"c"`` and ``"llvm"`` are dialects, ``"cuda:sm_90a"`` is a target. Raises `CompileError` for
    what the language refuses, ``ValueError`` for an unknown dialect or target or a signature that
    does not fit.
    """
    from tack.compile import assemble, generate
    from tack.render.renderer import renderer_for

    elsewhere = ":" in dialect
    target = Target.parse(dialect) if elsewhere else jit.target()
    renderer = renderer_for(target, None if elsewhere else dialect)
    variant = _variant(definition, signature, target)
    return assemble(definition.name, [generate(variant, renderer)], renderer)


def ir_of(definition: KernelDefinition, signature: str) -> str:
    """The IR of one variant after the passes, as text."""
    from tack.compile import prepared
    from tack.render.renderer import renderer_for

    variant = _variant(definition, signature, jit.target())
    return str(prepared(variant, renderer_for(variant.target)))


def _variant(definition: KernelDefinition, signature: str, target: Target) -> Variant:
    return Variant(definition, Signature.parse(signature), target, definition.options)
