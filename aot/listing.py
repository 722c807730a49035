"""A plan as intermediate form, for people who want to see what the renderer sees."""

from __future__ import annotations

from tack.aot.plan import Plan
from tack.compile import prepared
from tack.ir.printer import print_ir
from tack.render.renderer import renderer_for

__all__ = ["unit_ir"]


def unit_ir(plan: Plan) -> dict[str, str]:
    """The prepared form of every variant, by the path of its unit with the suffix ``.ir``."""
    texts: dict[str, str] = {}
    for kernel in plan.kernels:
        for unit in kernel.units:
            renderer = renderer_for(unit.target)
            parts = [
                f"# {s.title}\n{print_ir(prepared(s.variant, renderer))}" for s in unit.sources
            ]
            texts[unit.path.removesuffix(renderer.suffix) + ".ir"] = "\n\n".join(parts) + "\n"
    return texts
