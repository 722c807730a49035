"""A plan as intermediate form, for people who want to see what the renderer sees."""

from __future__ import annotations

from tack.aot.plan import Plan
from tack.ir.printer import print_ir
from tack.lang.lower import lower_kernel
from tack.passes.pipeline import prepare
from tack.render.renderer import renderer_for

__all__ = ["unit_ir"]


def unit_ir(plan: Plan) -> dict[str, str]:
    """The prepared form of every variant, by the path of its unit with the suffix ``.ir``."""
    texts: dict[str, str] = {}
    for kernel in plan.kernels:
        for unit in kernel.units:
            renderer = renderer_for(unit.target)
            parts = [
                f"# {source.title}\n"
                + print_ir(prepare(lower_kernel(kernel.definition, s.signature), renderer))
                for source in unit.sources
                for s in [source.variant]
            ]
            texts[unit.path.removesuffix(renderer.suffix) + ".ir"] = "\n\n".join(parts) + "\n"
    return texts
