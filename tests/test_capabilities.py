"""What a target lacks is a skipped row with the reason, never a build that fails."""

from __future__ import annotations

from harness import levels
from projects import Project

from tack.model import capabilities
from tack.model.capabilities import Capabilities, lacking
from tack.model.dtypes import DTYPES
from tack.model.signature import Signature
from tack.model.targets import Target

TARGET = Target("cpu", levels()[0])


def without_f64(monkeypatch):
    dtypes = frozenset(DTYPES) - {"f64"}
    monkeypatch.setattr(capabilities, "_BY_BACKEND", {"cpu": Capabilities(dtypes)})


def test_a_cpu_has_every_type():
    signature = Signature.parse(", ".join(f"{n}[:]" for n in DTYPES if n != "bool"))
    assert lacking(TARGET, signature) is None


def test_what_is_missing_is_named(monkeypatch):
    without_f64(monkeypatch)
    assert lacking(TARGET, Signature.parse("f32, f64[:], u8[:]")) == f"{TARGET} has no f64"
    assert lacking(TARGET, Signature.parse("f32, f32[:]")) is None


def test_a_row_that_a_target_cannot_hold_is_skipped_with_the_reason(monkeypatch, tmp_path):
    without_f64(monkeypatch)
    plan = Project(tmp_path).plan()
    built = {str(s.variant.signature) for k in plan.kernels for u in k.units for s in u.sources}
    assert built == {"f32, f32[:], f32[:], f32[:]", "i32, f32[:]"}
    assert {(s.signature, s.reason) for s in plan.skipped} == {
        ("f64, f64[:], f64[:], f64[:]", f"cpu:{level} has no f64")
        for level in ("x86-64-v2", "x86-64-v3")
    }
