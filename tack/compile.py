"""The one road from a kernel to text: `generate` a source for each variant, `assemble` files.

The build and the JIT both take it; there is no second code generator.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast

from tack.ir.nodes import Expression, IRAtomic, IRFunction, IRNode, IRPrint
from tack.ir.traversal import kernel_loop, walk_ir
from tack.ir.verify import verify_ir
from tack.lang.source_kernel import SourceKernelDefinition
from tack.model.errors import TOO_DEEP, CompileError, UnsupportedError
from tack.model.keys import digest, source_key
from tack.model.launch import MAX_SLOTS, Launch
from tack.model.variant import Variant
from tack.passes.fragments import Warps
from tack.passes.host import host_program
from tack.passes.pack import Layout, pack, pack_all
from tack.passes.widen import Wide, widen
from tack.render.author_templates import AuthorTemplate
from tack.render.author_values import AuthorSource
from tack.render.names import ascii_identifier
from tack.render.renderer import Renderer
from tack.render.source import Source

if TYPE_CHECKING:
    from tack.lang.definition import KernelDefinition

__all__ = ["assemble", "author_template", "check_shared", "generate", "prepared", "symbol_of"]

_SHORT_NAME: Final = 32


def generate(variant: Variant, renderer: Renderer) -> Source:
    """The source of one variant.

    Raises `CompileError` with a place in the kernel for what the language refuses.
    """
    with _depth_refused(variant.kernel.name):
        return _generate(variant, renderer)


def prepared(variant: Variant, renderer: Renderer) -> IRFunction:
    """The IR of one variant after the passes, for a renderer.

    Raises as `generate` does.
    """
    with _depth_refused(variant.kernel.name):
        return _prepared(variant, renderer)


def _prepared(variant: Variant, renderer: Renderer) -> IRFunction:
    from tack.lang.lower import lower_kernel
    from tack.passes.pipeline import prepare

    definition = cast("KernelDefinition", variant.kernel)
    warps = Warps(str(variant.target), renderer.tensor_cores)
    function = lower_kernel(definition, variant.signature)
    return prepare(function, renderer, fp=variant.options.fp, warps=warps)


@contextmanager
def _depth_refused(kernel: str) -> Iterator[None]:
    """Words the error of a kernel that is nested deeper than Python's stack."""
    try:
        yield
    except RecursionError:
        raise CompileError(TOO_DEEP.format(kernel)) from None


def author_template(definition: SourceKernelDefinition, language: str) -> AuthorTemplate:
    """The template of a source kernel in a language.

    `UnsupportedError` where it has none, `tack.lang.source.SourceUnavailable` where it is missing.
    """
    return AuthorTemplate(definition.name, definition.root, definition.template(language))


def _generate(variant: Variant, renderer: Renderer) -> Source:
    definition = cast("KernelDefinition", variant.kernel)
    if isinstance(definition, SourceKernelDefinition):
        return _generate_author(definition, variant, renderer)
    function = _prepared(variant, renderer)
    _refuse_missing(function, variant, renderer)
    _check_workgroup(function, variant, renderer)
    shared = shared_bytes(function)
    check_shared(shared, variant, renderer)
    layout = pack(function, every_loop=renderer.has_local)
    verify_ir(function, "packed")
    symbol = symbol_of(variant)
    widens = renderer.supports_float4 and variant.options.fp != "fast"
    wide = widen(function, layout) if widens else None
    if wide is not None:
        function.wide = verify_ir(wide.function, "packed")
    launch = plan_launch(
        function, kernel_loop(function).extents, layout, symbol, renderer, wide=wide
    )
    text = renderer.render(function, launch, symbol)
    fingerprint = definition.fingerprint(variant.signature)
    key = source_key(fingerprint.digest, variant.signature, variant.options)
    own = definition.fingerprint()
    return Source(
        variant,
        text,
        launch,
        key,
        modules=tuple(name for name in fingerprint.modules if name not in own.modules),
        captured=tuple(item for item in fingerprint.captured if item not in own.captured),
        facts=function.facts,
        shared=shared,
    )


def _generate_author(
    definition: SourceKernelDefinition, variant: Variant, renderer: Renderer
) -> Source:
    if renderer.render_author is None:
        raise UnsupportedError(
            f"{definition.name} is a source kernel, and nothing compiles such templates to LLVM"
        )
    from tack.lang.lower import lower_kernel
    from tack.passes.pipeline import prepare

    function = lower_kernel(definition, variant.signature)
    shared = {name: array for name, array in function.local_arrays.items() if array.shared}
    function = prepare(function, renderer)
    if renderer.has_shared:
        function.local_arrays |= shared  # which no pass sees in use
    else:  # what a GPU's template has of workgroups, a CPU's has no use for
        function.workgroup = ()
    _check_workgroup(function, variant, renderer)
    bytes_shared = shared_bytes(function)
    check_shared(bytes_shared, variant, renderer)
    template = author_template(definition, renderer.language)
    layout = pack_all(function, definition.written)
    symbol = symbol_of(variant)
    flavours = renderer.flavours if definition.noalias else renderer.flavours[:1]
    extents = kernel_loop(function).extents
    launch = plan_launch(function, extents, layout, symbol, replace(renderer, flavours=flavours))
    author = AuthorSource(variant, template)
    text = renderer.render_author(function, launch, symbol, author)
    files = template.files()
    fingerprint = definition.fingerprint()
    key = source_key(fingerprint.digest, variant.signature, variant.options, files)
    modules = tuple(sorted(files))
    return Source(
        variant,
        text,
        launch,
        key,
        modules=modules,
        facts=frozenset({"target"}),
        shared=bytes_shared,
    )


def _refuse_missing(function: IRFunction, variant: Variant, renderer: Renderer) -> None:
    """`UnsupportedError` if the kernel needs a type or an atomic that the target has not."""
    arrays = function.arrays
    lacking: dict[str, list[IRNode]] = {}
    for node in walk_ir(function):
        if isinstance(node, Expression) and node.dtype and not renderer.supports_dtype(node.dtype):
            lacking.setdefault(str(node.dtype), []).append(node)
        elif isinstance(node, IRAtomic):
            dtype = arrays[node.array].dtype
            if dtype is not None and (node.op, dtype.name) not in renderer.atomics:
                lacking.setdefault(f"atomic_{node.op} on {dtype}", []).append(node)
    if lacking:
        nodes = [node for each in lacking.values() for node in each]
        placed = next((node for node in nodes if function.positions.has(node)), nodes[0])
        raise UnsupportedError(
            f"{variant.target} has no {', '.join(sorted(lacking))}, which {variant.kernel.name} "
            f"needs for ({variant.signature}); change the kernel, or leave out this target",
            function.positions.get(placed),
        )


def _check_workgroup(function: IRFunction, variant: Variant, renderer: Renderer) -> None:
    """`UnsupportedError` if a target cannot run workgroups, or none as great as the kernel's."""
    group, target, name = function.workgroup, variant.target, variant.kernel.name
    if not group:
        return
    if not renderer.has_shared:
        raise UnsupportedError(
            f"{target} has no workgroups so far, which {name} asks for by "
            f"group={group if len(group) > 1 else group[0]}; call it on a GPU, or leave out this "
            "target"
        )
    limits = renderer.local_max or group[::-1]
    threads = math.prod(group)
    for axis, size, limit in zip("xyz", reversed(group), limits, strict=False):
        if size > limit:
            raise UnsupportedError(
                f"{name}: a group of {size} along {axis} is too large for {target}, which has "
                f"{limit} there; make it smaller"
            )
    if threads > (renderer.local_prod_max or threads):
        raise UnsupportedError(
            f"{name}: a group of {threads} is too large for {target}, which has "
            f"{renderer.local_prod_max}; make it smaller"
        )


def check_shared(shared: int, variant: Variant, renderer: Renderer) -> None:
    """`UnsupportedError` if a workgroup of the target has not so many bytes for its arrays.

    Of all limits that one differs among the architectures that share a renderer.
    """
    target = variant.target
    limits = [renderer.shared_max, target.gpu.limits.shared_max if target.gpu is not None else None]
    limit = min((each for each in limits if each is not None), default=shared)
    if shared > limit:
        raise UnsupportedError(
            f"{variant.kernel.name}: its shared arrays have {shared} bytes, too many for {target}, "
            f"which has {limit} for a group; make them smaller"
        )


def shared_bytes(function: IRFunction) -> int:
    """How many bytes the shared arrays of a kernel have, each aligned as its elements are."""
    end = 0
    for array in function.local_arrays.values():
        if array.shared:
            size = array.dtype.itemsize
            end = -(-end // size) * size + array.size * size
    return end


def assemble(unit_name: str, sources: Sequence[Source], renderer: Renderer) -> str:
    """The text of the file that holds ``sources``, in their order."""
    return renderer.assemble(unit_name, sources)


def plan_launch(
    function: IRFunction,
    extents: Sequence[Expression],
    layout: Layout,
    symbol: str,
    renderer: Renderer,
    *,
    wide: Wide | None = None,
) -> Launch:
    """The launch plan of a packed kernel.

    A ``noalias`` entry exists where the kernel writes an array while it uses another one, if that
    is among the renderer's flavours; an ``aligned`` one where the kernel has a wide form.
    """
    if len(layout.slots) > MAX_SLOTS:
        raise function.positions.refuse(
            function,
            f"a launch passes {MAX_SLOTS} values at most, and the pointers, extents, strides and "
            f"scalars of this kernel are {len(layout.slots)}; make two kernels of it",
        )
    pointers = tuple(slot[1] for slot in layout.slots if slot[0] == "pointer")
    has_others = bool(layout.written) and len(pointers) > 1
    flavours = renderer.flavours if has_others else renderer.flavours[:1]
    shared = shared_bytes(function)
    if wide is not None:
        flavours = (*flavours, "aligned")
    return Launch(
        slots=layout.slots,
        host=host_program(function, extents, layout),
        loops=layout.loops,
        written=layout.written,
        aligned=layout.aligned if renderer.unaligned else pointers,
        entries=tuple((flavour, f"{symbol}_{flavour}") for flavour in flavours),
        group=function.workgroup,
        shared=0 if shared <= renderer.shared_static else -(-shared // 16) * 16,
        multiples=() if wide is None else wide.multiples,
        lanes=1 if wide is None else wide.lanes,
        prints=any(isinstance(node, IRPrint) for node in walk_ir(function)),
    )


def symbol_of(variant: Variant) -> str:
    """The stem of a variant's symbols: one for each kernel, signature and options.

    It does not change when the kernel's body does.
    """
    name = variant.kernel.name
    unique = digest("tack symbol", name, str(variant.signature), str(variant.options))[:16]
    short = ascii_identifier(name.rpartition(":")[2].rpartition(".")[2])[:_SHORT_NAME]
    return f"tack_{unique}_{short}"
