"""The plan: units with stable names, skipped rows with their reasons, and nothing written."""

from __future__ import annotations

import os
import py_compile
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from projects import MANIFEST, Project

from tack.aot.units import UNIT_SIZE, slug, unit_name, unit_path
from tack.errors import ManifestError
from tack.model.targets import Target

IDENTIFIER = st.from_regex(r"[^\W\d]\w{0,8}", fullmatch=True)
NAME = st.tuples(
    st.lists(IDENTIFIER, min_size=1, max_size=3), st.lists(IDENTIFIER, min_size=1, max_size=2)
).map(lambda parts: ".".join(parts[0]) + ":" + ".".join(parts[1]))


@given(st.lists(NAME, max_size=20, unique=True))
def test_units_of_two_kernels_never_share_a_file(names):
    slugs = [slug(name) for name in names]
    assert len({s.lower() for s in slugs}) == len(names)
    for text in slugs:
        assert text.isascii()
        assert len(text) <= 100
        assert not set(text) - set("abcdefghijklmnopqrstuvwxyz0123456789_-")


def test_a_plain_name_is_readable_and_fixed():
    assert slug("imagekit.kernels:blur_rows") == "imagekit-kernels--blur_rows"
    assert slug("a.b:C.d") == "a_b_c_d---" + slug("a.b:C.d")[-12:]
    target = Target("cpu", "x86-64-v3")
    assert (unit_name("a.b:c", 0), unit_name("a.b:c", 2)) == ("a-b--c", "a-b--c.3")
    assert unit_path(target, "a-b--c.3", ".c") == "cpu/x86-64-v3/a-b--c.3.c"


def test_a_unit_holds_one_kernel_for_one_target(tmp_path):
    plan = Project(tmp_path, name="planned").plan()
    assert [unit.path for unit in plan.units] == [
        "cpu/x86-64-v2/planned-kernels--saxpy.c",
        "cpu/x86-64-v3/planned-kernels--saxpy.c",
        "cpu/x86-64-v2/planned-kernels--scale.c",
        "cpu/x86-64-v3/planned-kernels--scale.c",
    ]
    for unit in plan.units:
        assert {source.variant.kernel.name for source in unit.sources} == {unit.kernel}
        assert {source.variant.target for source in unit.sources} == {unit.target}
    assert [len(unit.sources) for unit in plan.units] == [2, 2, 1, 1]


def test_a_large_unit_is_split(tmp_path):
    project = Project(tmp_path, name="split")
    dtypes = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64"]
    project.write(
        "kernels",
        "import tack\n\n@tack.kernel\ndef scale(x, y):\n"
        "    for i in range(x.shape[0]):\n        y[i] = x[i]\n",
    )
    floats = ", ".join(f'"{dtype}[:], f64[:]"' for dtype in dtypes)
    project.write_manifest(
        f"""
        schema = 1
        package = "NAME"
        targets.cpu = ["x86-64-v3"]
        [[kernel]]
        name = "NAME.kernels:scale"
        signatures = [{floats}]
        """
    )
    units = project.plan().units
    assert [len(unit.sources) for unit in units] == [UNIT_SIZE, len(dtypes) - UNIT_SIZE]
    assert [unit.path.rpartition("/")[2] for unit in units] == [
        "split-kernels--scale.c",
        "split-kernels--scale.2.c",
    ]


def test_levels_of_another_machine_are_skipped_with_the_reason(tmp_path):
    manifest = MANIFEST.replace('["x86-64-v2", "x86-64-v3"]', '["x86-64-v3", "aarch64"]')
    project = Project(tmp_path, manifest=manifest)
    plan = project.plan()
    assert [str(target) for target in plan.targets] == ["cpu:x86-64-v3"]
    assert {(s.target, s.reason) for s in plan.skipped} == {
        ("cpu:aarch64", "aarch64 is a level of aarch64 and this builds for x86_64")
    }
    assert len(plan.skipped) == 3
    other = project.plan(machine="aarch64")
    assert [str(target) for target in other.targets] == ["cpu:aarch64"]


def test_a_machine_without_any_level_is_an_error(tmp_path):
    with pytest.raises(
        ManifestError, match=r"targets.cpu: none of x86-64-v2, x86-64-v3 is a level"
    ):
        Project(tmp_path).plan(machine="aarch64")


def test_a_backend_that_is_not_listed_is_an_error(tmp_path):
    with pytest.raises(
        ManifestError, match=r"TARGETS 'gpu' is no backend of this manifest; did you mean 'cpu'"
    ):
        Project(tmp_path).plan(backends=["gpu"])
    assert Project(tmp_path / "other").plan(backends=["cpu"]).units


def test_a_kernel_that_does_not_compile_is_shown_in_its_source(tmp_path):
    project = Project(tmp_path)
    project.edit("kernels", "out[i] = a * x[i] + y[i]", "out[i] = a * x[i, 0] + y[i]")
    with pytest.raises(ManifestError) as caught:
        project.plan()
    message = str(caught.value).replace(project.name, "NAME")
    first, second, third, fourth = message.splitlines()
    assert first.endswith(
        "kernel[0].signatures[0] with T = f32: 'NAME.kernels:saxpy' does not compile for "
        "'f32, f32[:], f32[:], f32[:]':"
    )
    assert second.startswith(
        str(project.source / "kernels.py").replace(project.name, "NAME") + ":13:"
    )
    assert third.strip() == "out[i] = a * x[i, 0] + y[i]"
    assert fourth.strip(" ^") == ""


def test_what_a_plan_depends_on(tmp_path):
    project = Project(tmp_path)
    project.write("helpers", "import tack\n\n@tack.func\ndef third(x):\n    return x / 3.0\n")
    project.edit(
        "kernels", "import tack\n", f"import tack\nfrom {project.name}.helpers import third\n"
    )
    project.edit("kernels", "halved(x[i]) + n", "third(x[i]) + n")
    project.write("unused", "raise ImportError")
    plan = project.plan()
    assert set(plan.modules) == {f"{project.name}.kernels", f"{project.name}.helpers"}
    inputs = set(plan.inputs)
    assert project.manifest_path in inputs
    assert {project.source / f"{m}.py" for m in ("__init__", "kernels", "helpers")} <= inputs
    assert project.source / "unused.py" not in inputs
    assert any(path.name == "unit.c.j2" for path in inputs)
    assert any(path.name == "plan.py" for path in inputs)
    assert all(path.is_file() for path in inputs)


def test_planning_writes_nothing_and_forgets_the_package(tmp_path):
    project = Project(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    project.plan()
    assert sorted(tmp_path.rglob("*")) == before
    assert not [name for name in sys.modules if name.startswith(project.name)]


def test_an_edit_within_a_second_is_seen(tmp_path):
    # Byte code is compared by whole seconds and size, so a cache of it would hide this edit.
    project = Project(tmp_path)
    path = project.source / "kernels.py"
    second = int(time.time()) * 10**9
    os.utime(path, ns=(second, second))
    py_compile.compile(str(path))
    first = project.plan()
    project.edit("kernels", "a * x[i]", "a + x[i]")
    os.utime(path, ns=(second + 1000, second + 1000))
    keys = [[s.source_key for u in p.units for s in u.sources] for p in (first, project.plan())]
    assert keys[0][0] != keys[1][0]


def test_the_source_tree_goes_before_an_installed_package(tmp_path, monkeypatch):
    project = Project(tmp_path)
    installed = tmp_path / "site" / project.name
    installed.mkdir(parents=True)
    (installed / "__init__.py").write_text("raise ImportError('the installed one')")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert project.plan().units


def test_package_init_can_be_left_out(tmp_path):
    project = Project(tmp_path, manifest=MANIFEST)
    project.write("__init__", "from NAME import _not_built_yet\n")
    with pytest.raises(ManifestError, match="package_init = false"):
        project.plan()
    project.write_manifest(MANIFEST + "\n    [build]\n    package_init = false\n")
    assert project.plan().units


def test_source_elsewhere(tmp_path):
    project = Project(tmp_path)
    (tmp_path / "src").rename(tmp_path / "python")
    project.write_manifest(MANIFEST + '\n    [build]\n    source = "python"\n')
    assert project.plan().units
    project.write_manifest(MANIFEST + '\n    [build]\n    source = "pyton"\n')
    with pytest.raises(ManifestError, match=r"build.source: there is no package"):
        project.plan()


def test_planning_needs_no_compiler_and_no_runtime(tmp_path):
    project = Project(tmp_path)
    code = (
        "import sys; from pathlib import Path\n"
        "from tack.aot.manifest import read_manifest; from tack.aot.plan import make_plan\n"
        f"make_plan(read_manifest(Path({str(project.manifest_path)!r})), machine='x86_64')\n"
        "unneeded = {'tack.runtime', 'tack.backends', 'capstone', 'click', 'rich'}\n"
        "assert not unneeded & set(sys.modules)"
    )
    environment = {"PATH": "/nonexistent"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, cwd=tmp_path)


def test_every_file_of_the_generator_is_an_input(tmp_path):
    import tack.compile
    import tack.render.c

    inputs = set(Project(tmp_path).plan().inputs)
    for module in list(sys.modules.values()):
        name = getattr(module, "__name__", "")
        if name.startswith(("tack.passes", "tack.render", "tack.lang", "tack.ir", "tack.model")):
            assert Path(module.__file__) in inputs
    assert Path(tack.compile.__file__) in inputs
