"""Each field of a renderer decides something: changing it changes what is generated."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from harness import levels

import tack
from tack.compile import assemble, generate
from tack.errors import ToolchainError, UnsupportedError
from tack.ir.nodes import IRBinOp, IRConstant, IRNode
from tack.ir.operations import ELEMENTARY, EMULATED
from tack.model.capabilities import capabilities_of
from tack.model.dtypes import DTYPES
from tack.model.errors import IRVerificationError
from tack.model.gpus import GPUS
from tack.model.limits import grid_of
from tack.model.signature import Signature
from tack.model.targets import Target
from tack.model.tensor_cores import TensorCore
from tack.model.variant import Variant
from tack.render import renderer as module
from tack.render.renderer import EVERY_OPERATION, Renderer, renderer_for
from tack.render.source import Source

CPU = Target("cpu", levels()[0])
METALS = [Target("metal", arch) for arch in GPUS["metal"]]
PAGE = Path(__file__).parents[1] / "docs" / "renderers.md"


@tack.kernel
def count(x: tack.Array, y: tack.Array) -> None:
    for i in range(x.shape[0]):
        tack.atomic_add(y, 0, x[i] % 3)


@tack.kernel(fp="fast")
def angles(x: tack.Array) -> None:
    for i in range(x.shape[0]):
        x[i] = tack.sin(x[i])


@tack.kernel
def double(x: tack.Array) -> None:
    for i in range(x.shape[0]):
        x[i] = x[i] * 2


def generated(signature: str = "f32[:], f32[:]", kernel: Any = count, **changed: Any) -> Source:
    """What is generated where fields of the C renderer are others."""
    definition = kernel.definition
    variant = Variant(definition, Signature.parse(signature), CPU, definition.options)
    return generate(variant, replace(renderer_for(CPU), **changed))


def of_count(signature: str, target: Target) -> Variant:
    return Variant(count.definition, Signature.parse(signature), target)


def test_render_writes_a_variant() -> None:
    assert generated(render=lambda function, launch, symbol: f"text of {symbol}").text.startswith(
        "text of tack_"
    )


def test_assemble_lays_out_a_file() -> None:
    renderer = replace(renderer_for(CPU), assemble=lambda unit, sources: f"{unit}: {len(sources)}")
    assert assemble("a unit", [generated()], renderer) == "a unit: 1"


def test_suffix_names_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from projects import Project

    from tack.aot import plan

    renamed = replace(renderer_for(CPU), suffix=".other")
    monkeypatch.setattr(plan, "renderer_for", lambda target: renamed)
    assert all(unit.path.endswith(".other") for unit in Project(tmp_path).plan().units)


def test_supported_ops_are_not_expanded() -> None:
    assert "fmod" in generated().text
    assert "fmod" not in generated(supported_ops=frozenset({"wrap", "private atomics"})).text


def test_conversions_among_supported_ops_are_instructions() -> None:
    target = Target("cuda", "sm_90")
    has = renderer_for(target)
    for renderer in (has, replace(has, supported_ops=has.supported_ops - {"f16"})):
        text = generate(of_count("f16[:], f32[:]", target), renderer).text
        assert ("tack_f32_of_f16(" in text) == ("f16" in renderer.supported_ops)


def test_code_for_op_says_what_is_not_expanded_where_supported_ops_is_not_given() -> None:
    def spelling(code_for_op: frozenset[str] | None, **given: Any) -> Renderer:
        plain = renderer_for(CPU)
        made = Renderer(
            plain.render,
            plain.assemble,
            plain.suffix,
            plain.needs,
            code_for_op=code_for_op,
            **given,
        )
        assert made.supported_ops == given.get(
            "supported_ops", EVERY_OPERATION if code_for_op is None else code_for_op
        )
        return made

    assert set(EMULATED) == EVERY_OPERATION
    variant = of_count("f32[:], f32[:]", CPU)
    assert "fmod" in generate(variant, spelling(None)).text
    assert "fmod" not in generate(variant, spelling(frozenset())).text
    assert "fmod" in generate(variant, spelling(frozenset({"fmod"}))).text
    final = spelling(frozenset({"fmod"}), supported_ops=frozenset())
    assert "fmod" not in generate(variant, final).text


@pytest.mark.parametrize(
    ("target", "lacks"),
    [
        (Target("cuda", "sm_90"), {"wrap"}),
        (Target("hip", "gfx942"), {"fmod"}),
        (Target("metal", "metal3.1"), {"fmod", "print", "wrap"}),
    ],
    ids=["cuda", "hip", "metal"],
)
def test_gpus_have_the_operations_that_their_languages_spell(
    target: Target, lacks: set[str]
) -> None:
    operations = renderer_for(target).supported_ops
    assert set(EMULATED) - operations == {*lacks, "private atomics", "recip", "regroup"}
    assert not operations & set(ELEMENTARY)


def test_native_math_is_called_by_fast_kernels() -> None:
    assert "__builtin_sinf" in generated(kernel=angles, signature="f32[:]").text
    assert (
        "__builtin_sinf"
        not in generated(kernel=angles, signature="f32[:]", native_math=frozenset()).text
    )


class Recorder:
    """A compiler that says what it was given."""

    def compile(self, text: str, target: Target) -> bytes:
        return f"{text} for {target}".encode()


@pytest.mark.parametrize(
    ("target", "dialect", "needs"),
    [
        (CPU, "c", "gcc or clang"),
        (CPU, "llvm", r"llvmlite \(pip install 'tack-aot\[jit\]'\)"),
        (Target("cuda", "sm_90"), None, "nvcc or NVRTC"),
        (Target("hip", "gfx942"), None, "hipcc"),
        (Target("metal", "metal3.1"), None, "the Metal compiler"),
    ],
)
def test_compiling_without_a_compiler_says_what_it_needs(
    target: Target, dialect: str | None, needs: str
) -> None:
    renderer = renderer_for(target, dialect)
    assert renderer.compiler is None
    with pytest.raises(ToolchainError, match=rf"compiling {renderer.suffix} .* needs {needs}"):
        renderer.compile("text", target)


def test_a_compiler_compiles_what_the_renderer_writes() -> None:
    plain = renderer_for(CPU)
    renderer = plain.with_compiler(Recorder())
    assert renderer.compile("text", CPU) == f"text for {CPU}".encode()
    assert plain.compiler is None
    assert generated(compiler=Recorder()).text == generated().text


def test_a_type_that_is_not_among_dtypes_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"has no f32, which .*:count needs"):
        generated(dtypes=frozenset(DTYPES) - {"f32"})


@pytest.mark.parametrize(
    "target", [CPU, Target("cuda", "sm_90"), Target("hip", "gfx942"), *METALS], ids=str
)
def test_the_types_of_a_renderer_are_the_capabilities_of_its_targets(target: Target) -> None:
    renderer = renderer_for(target)
    supported = {name for name, dtype in DTYPES.items() if renderer.supports_dtype(dtype)}
    assert supported == capabilities_of(target).dtypes


def one_for_three(node: IRNode) -> IRNode | None:
    is_three = isinstance(node, IRConstant) and node.value == 3
    return IRConstant(1, node.dtype) if is_three else None


def test_matchers_rewrite_nodes_before_and_after_the_passes() -> None:
    plain = generated("i32[:], i32[:]").text
    for name in ("pre_matcher", "extra_matcher"):
        seen: list[IRNode] = []

        def matcher(node: IRNode, seen: list[IRNode] = seen) -> IRNode | None:
            seen.append(node)
            return one_for_three(node)

        assert generated("i32[:], i32[:]", **{name: matcher}).text != plain
        operators = {node.op for node in seen if isinstance(node, IRBinOp)}
        assert ("%" in operators) == (name == "pre_matcher")
        assert ("cmod" in operators) == (name == "extra_matcher")


def test_extra_matcher_runs_until_nothing_changes() -> None:
    def down(node: IRNode) -> IRNode | None:
        if isinstance(node, IRConstant) and node.dtype is DTYPES["i32"] and node.value > 1:
            return IRConstant(node.value - 1, node.dtype)
        return None

    assert "% 3" in generated("i32[:], i32[:]").text
    assert "% 1" in generated("i32[:], i32[:]", extra_matcher=down).text
    assert "% 1" not in generated("i32[:], i32[:]", pre_matcher=down).text


def test_an_extra_matcher_that_never_settles_is_refused() -> None:
    def same(node: IRNode) -> IRNode | None:
        return IRConstant(node.value, node.dtype) if isinstance(node, IRConstant) else None

    with pytest.raises(IRVerificationError, match="extra_matcher never settles"):
        generated(extra_matcher=same)


def test_an_atomic_that_is_not_among_atomics_is_refused_with_its_place() -> None:
    with pytest.raises(UnsupportedError, match=r"has no atomic_add on f32, which .*:count needs"):
        generated(atomics=frozenset())
    assert generated("i32[:], i32[:]", atomics=frozenset({("add", "i32")}))


def test_has_local_packs_what_threads_count_to() -> None:
    assert ("loop", 0) not in generated().launch.slots
    assert ("loop", 0) in generated(has_local=True).launch.slots


@tack.kernel(group=(2, 64))
def grouped(x: tack.Array) -> None:
    for i, j in tack.ndrange(x.shape[0], x.shape[1]):
        tile = tack.shared(tack.f32, 100)
        tile[0] = x[i, j]
        tack.barrier()
        x[i, j] = tile[0]


def generated_for_cuda(**changed: Any) -> Source:
    """What is generated for a kernel with groups where fields of the CUDA renderer are others."""
    target = Target("cuda", "sm_90")
    variant = Variant(grouped.definition, Signature.parse("f32[:, :]"), target)
    return generate(variant, replace(renderer_for(target), **changed))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"has_shared": False}, "has no workgroups so far"),
        ({"local_max": (63, 64, 64)}, "a group of 64 along x is too large .* 63"),
        ({"local_max": (64, 1, 64)}, "a group of 2 along y is too large .* 1"),
        ({"local_prod_max": 127}, "a group of 128 is too large .* 127"),
        ({"shared_max": 399}, "its shared arrays have 400 bytes, too many .* 399"),
    ],
)
def test_limits_refuse_groups(changed: dict[str, Any], words: str) -> None:
    assert generated_for_cuda().launch.group == (2, 64)
    unlimited = dict.fromkeys(("local_max", "local_prod_max", "shared_max"))
    assert generated_for_cuda(**unlimited).launch.group == (2, 64)
    with pytest.raises(UnsupportedError, match=words):
        generated_for_cuda(**changed)


def test_the_grid_of_a_launch_keeps_to_its_limits() -> None:
    def grid(target: Target, **changed: Any) -> Any:
        limits = replace(renderer_for(target), **changed)
        return grid_of((9, 2**33), (1, 64), limits.global_max, limits.global_prod_max)

    assert grid(Target("cuda", "sm_90")) == (2**27, 9, 1)
    assert grid(Target("cuda", "sm_90"), global_max=(100, 4, 1)) == (100, 4, 1)
    assert grid(Target("hip", "gfx942")) == (2**26 - 1, 9, 1)
    assert grid(Target("hip", "gfx942"), global_prod_max=None) == (2**27, 9, 1)
    assert grid(Target("metal", "metal3.1")) == (2**26 - 1, 9, 1)


def test_shared_static_is_what_the_launcher_need_not_give() -> None:
    assert generated_for_cuda(shared_static=400).launch.shared == 0
    assert generated_for_cuda(shared_static=399).launch.shared == 400


def test_tensor_cores_are_what_products_are_made_of() -> None:
    @tack.kernel(group=32)
    def product(a: tack.Array, out: tack.Array) -> None:
        for _ in range(tack.warp_size()):
            left = tack.fragment_a(a, 0, 0)
            right = tack.fragment_b(a, 0, 0)
            total = tack.fragment_c(tack.f32)
            tack.mma(total, left, right)
            tack.store_fragment(total, out, 0, 0)

    target = Target("cuda", "sm_90")
    variant = Variant(product.definition, Signature.parse("f16[:, :], f32[:, :]"), target)
    renderer = renderer_for(target)
    (half, _) = renderer.tensor_cores
    renamed = TensorCore("f16", "f32", 16, a=half.b, b=half.a, c=half.c)
    first, second = (
        generate(variant, replace(renderer, tensor_cores=(core,))) for core in (half, renamed)
    )
    assert "tack_mma_f16_f32(" in first.text
    assert first.text != second.text
    assert first.launch.host != second.launch.host
    with pytest.raises(UnsupportedError, match="has no tensor cores"):
        generate(variant, replace(renderer, tensor_cores=()))


def test_unaligned_arrays_are_left_to_the_launcher_where_there_are_none() -> None:
    assert generated().launch.aligned == (1,)  # an atomic needs it
    assert generated(unaligned=False).launch.aligned == (0, 1)


def test_flavours_are_the_entry_points() -> None:
    assert [name for name, _ in generated().launch.entries] == ["general", "noalias"]
    only = generated(flavours=("general",), render=lambda *_: "").launch.entries
    assert [name for name, _ in only] == ["general"]


@tack.source_kernel(c="never read", writes="y")
def written(y: tack.Array) -> None:
    for _ in range(y.shape[0]):
        ...


def test_language_chooses_the_template_and_render_author_fills_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    variant = Variant(written.definition, Signature.parse("f32[:]"), CPU)
    with pytest.raises(UnsupportedError, match=r"has templates in c alone, .* needs one in other"):
        generate(variant, replace(renderer_for(CPU), language="other"))
    with pytest.raises(UnsupportedError, match="nothing compiles such templates"):
        generate(variant, replace(renderer_for(CPU), render_author=None))
    monkeypatch.setattr(written.definition, "template", lambda language: Path(__file__).name)
    monkeypatch.setattr(written.definition, "root", str(Path(__file__).parent))
    filled = replace(renderer_for(CPU), render_author=lambda *_: "text of the author")
    assert generate(variant, filled).text == "text of the author"


def test_supports_float4_gives_a_kernel_its_wide_form() -> None:
    variant = Variant(double.definition, Signature.parse("f32[:]"), Target("cuda", "sm_90"))
    renderer = renderer_for(variant.target)
    wide = generate(variant, renderer).launch
    plain = generate(variant, replace(renderer, supports_float4=False)).launch
    assert ([name for name, _ in wide.entries], wide.lanes) == (["general", "aligned"], 4)
    assert ([name for name, _ in plain.entries], plain.lanes) == (["general"], 1)


def test_the_docs_name_each_field() -> None:
    table = PAGE.read_text(encoding="utf-8").partition("## The record")[2].partition("\n## ")[0]
    rows = [line.split("`")[1] for line in table.splitlines() if line.startswith("| `")]
    assert rows == [field.name for field in fields(Renderer)]
    assert module.Renderer.__doc__ is not None
    assert all(f"``{name}``" in module.Renderer.__doc__ for name in rows)


@pytest.mark.parametrize("mode", ["strict", "contract", "fast"])
def test_fast_kernels_have_no_wide_form(mode: str) -> None:
    kernel = tack.kernel(fp=mode)(double.py_func)
    target, options = Target("cuda", "sm_90"), kernel.definition.options
    variant = Variant(kernel.definition, Signature.parse("f32[:]"), target, options)
    launch = generate(variant, renderer_for(target)).launch
    assert ("aligned" in dict(launch.entries), launch.lanes > 1) == (mode != "fast",) * 2
