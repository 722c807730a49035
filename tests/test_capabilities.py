"""What a target lacks is a skipped row with the reason, never a build that fails."""

from __future__ import annotations

from harness import levels
from projects import Project

from tack.aot import plan
from tack.aot.plan import open_plan
from tack.compile import generate
from tack.model.capabilities import lacking
from tack.model.dtypes import DTYPES
from tack.model.record import replace
from tack.model.signature import Signature
from tack.model.targets import Target
from tack.render.renderer import renderer_for

CPU = Target("cpu", levels()[0])
CUDA, METAL = Target("cuda", "sm_80"), Target("metal", "metal3.1")


def plan_for(project, *targets):
    return open_plan(project.read(), machine="x86_64", targets=targets)


def test_a_cpu_has_every_type():
    signature = Signature.parse(", ".join(f"{n}[:]" for n in DTYPES if n != "bool"))
    assert lacking(CPU, signature) is None


def test_what_is_missing_is_named():
    assert lacking(METAL, Signature.parse("f32, f64[:], u8[:]")) == f"{METAL} has no f64"
    assert lacking(METAL, Signature.parse("f32, f32[:]")) is None


def test_a_row_that_a_target_cannot_hold_is_skipped_with_the_reason(tmp_path):
    with plan_for(Project(tmp_path), METAL) as plan:
        built = {str(s.variant.signature) for k in plan.kernels for u in k.units for s in u.sources}
    assert built == {"f32, f32[:], f32[:], f32[:]", "i32, f32[:]"}
    assert [(s.signature, s.reason) for s in plan.skipped] == [
        ("f64, f64[:], f64[:], f64[:]", f"{METAL} has no f64")
    ]


def test_a_kernel_that_computes_with_such_a_type_is_skipped_too(tmp_path):
    project = Project(tmp_path)
    project.edit("kernels", "a * x[i]", "tack.f64(a) * x[i]")
    with plan_for(project, CUDA, METAL) as plan:
        sources = [s for k in plan.kernels for u in k.units for s in u.sources]
    built = {str(s.variant.signature) for s in sources if s.variant.target is METAL}
    assert built == {"i32, f32[:]"}
    (reason,) = {s.reason for s in plan.skipped if s.signature.startswith("f32")}
    assert reason.startswith(f"{METAL} has no f64, which {project.name}.kernels:saxpy needs")


def test_a_variant_is_generated_once_for_targets_that_convert_alike_what_it_uses(
    tmp_path, monkeypatch
):
    project = Project(tmp_path)
    project.edit("kernels", "a * x[i]", "tack.f32(tack.bf16(a * x[i]))")
    made = []

    def counted(variant, renderer):
        made.append(f"{variant.kernel.name.partition(':')[2]} {variant.target.arch}")
        return generate(variant, renderer)

    monkeypatch.setattr(plan, "generate", counted)
    targets = [Target("cuda", arch) for arch in ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90a")]
    with plan_for(project, *targets) as found:
        sources = [s for k in found.kernels for u in k.units for s in u.sources]
    assert {arch for each in made for name, arch in [each.split()] if name == "saxpy"} == {
        "sm_75",  # has no conversions of bf16
        "sm_80",
    }
    assert {arch for each in made for name, arch in [each.split()] if name != "saxpy"} == {"sm_75"}
    for target in targets:
        alone = {s.title: s.text for s in sources if s.variant.target == target}
        for title, text in alone.items():
            variant = next(s.variant for s in sources if s.title == title)
            fresh = generate(replace(variant, target=target), renderer_for(target))
            assert fresh.text == text
