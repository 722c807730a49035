"""What becomes of a kernel: its IR, and its text in a dialect. Compiles nothing."""

from __future__ import annotations

from tack.lang.definition import KernelDefinition
from tack.model.signature import Signature
from tack.model.variant import Variant
from tack.runtime import jit

__all__ = ["ir_of", "source_of"]


def source_of(definition: KernelDefinition, dialect: str, signature: str) -> str:
    """The text of one variant in ``dialect``, such as ``"c"``, for this machine.

    Raises `CompileError` for what the language refuses, ``ValueError`` for an unknown dialect or
    a signature that does not fit.
    """
    from tack.compile import assemble, generate
    from tack.render.renderer import renderer_for

    renderer = renderer_for(jit.target(), dialect)
    variant = _variant(definition, signature)
    return assemble(definition.name, [generate(variant, renderer)], renderer)


def ir_of(definition: KernelDefinition, signature: str) -> str:
    """The IR of one variant after the passes, as text."""
    from tack.compile import prepared
    from tack.render.renderer import renderer_for

    variant = _variant(definition, signature)
    return str(prepared(variant, renderer_for(variant.target)))


def _variant(definition: KernelDefinition, signature: str) -> Variant:
    return Variant(definition, Signature.parse(signature), jit.target(), definition.options)
