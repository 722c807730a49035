"""Source kernels in wheels: built, shipped with and without their templates, never stale."""

from __future__ import annotations

import importlib
import json
import shutil
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from harness import needs_level
from projects import Project, build_wheel, empty_environment, only, run_in

import tack
from tack.aot.cli import main
from tack.aot.emit import unit_texts
from tack.aot.plan import open_plan
from tack.aot.project import build_bundle
from tack.aot.report import inspect
from tack.aot.skeleton import write_package
from tack.errors import NoVariantError, ToolchainError
from tack.model.targets import Target

pytestmark = needs_level("x86-64-v2")

KERNELS = """
    import tack

    @tack.source_kernel(c="native/axpy.c.j2", cuda="native/axpy.gpu.j2", writes="out")
    def axpy(a, x: tack.Array, out: tack.Array) -> None:
        for i in range(x.shape[0]):
            ...

    @tack.source_kernel(c="native/order.c.j2", writes="out")
    def order(x: tack.Array, out: tack.Array) -> None:
        for i, j in tack.ndrange(x.shape[0], x.shape[1]):
            ...
"""

MANIFEST = """
    schema = 1
    package = "NAME"

    [targets]
    cpu = ["x86-64-v2", "x86-64-v3"]

    [[kernel]]
    name = "NAME.kernels:axpy"
    signatures = ["T, T[:], T[:]"]
    where.T = ["f32", "f64"]

    [[kernel]]
    name = "NAME.kernels:order"
    signatures = ["i64[:, :], i64[:, :]"]
"""

AXPY = """{% include "helper.j2" %}
#define TWICE(v) (2 * (v))
{{ tack.function }}
{
  {% call tack.iterations() %}
    out[i] += a * helper(x[i]);
  {% endcall %}
}
"""

ORDER = """{{ tack.function }}
{
  {% call tack.iterations() %}
    {% set rank = tack.target.level.rank %}
    {{ out.at("i", "j") }} = {{ x.at("i", "j") }} * 1000 + i * 10 + j + {{ rank }};
  {% endcall %}
}
"""

HELPER = "static {{ x.type }} helper({{ x.type }} v) { return v + 1; }\n"


def add_templates(package: Path) -> None:
    folder = package / "native"
    folder.mkdir()
    (folder / "axpy.c.j2").write_text(AXPY)
    (folder / "axpy.gpu.j2").write_text(AXPY.replace("helper(", "1 + (").partition("\n")[2])
    (folder / "order.c.j2").write_text(ORDER)
    (folder / "helper.j2").write_text(HELPER)


def project(root: Path) -> Project:
    made = Project(root, {"kernels": KERNELS}, MANIFEST)
    add_templates(made.source)
    return made


def test_a_plan_has_them_as_units_of_one_variant(tmp_path: Path) -> None:
    plan = project(tmp_path).plan()
    assert [(len(u.sources), Path(u.path).name) for u in plan.kernels[0].units] == [
        (1, f"{plan.manifest.package}-kernels--axpy.c"),
        (1, f"{plan.manifest.package}-kernels--axpy.2.c"),
    ] * 2
    package = plan.manifest.package
    assert [name for name in plan.modules if "/" in name] == [
        f"{package}/native/axpy.c.j2",
        f"{package}/native/helper.j2",
        f"{package}/native/order.c.j2",
    ]
    assert {"axpy.c.j2", "helper.j2", "order.c.j2"} < {path.name for path in plan.inputs}
    texts = unit_texts(plan)
    by_level = [text for path, text in texts.items() if path.endswith("order.c")]
    assert "+ j + 2;" in by_level[0]
    assert "+ j + 3;" in by_level[1]
    assert str(tmp_path) not in "".join(texts.values())


def test_render_writes_gpu_text_and_lists_what_has_no_template(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = project(tmp_path)
    render = ["render", "--manifest", str(made.manifest_path), "--target", "cuda:sm_90a"]
    assert main(render) == 1
    said = capsys.readouterr().err
    assert "order' would be built: every row is skipped" in said
    assert "has templates in c alone, and this needs one in cuda" in said
    made.write_manifest(MANIFEST.partition('    [[kernel]]\n    name = "NAME.kernels:order"')[0])
    assert main(render) == 0
    text = capsys.readouterr().out
    assert "__global__" in text
    assert f'#line 1 "{made.name}/native/axpy.gpu.j2"' in text


def test_a_mixed_manifest_skips_the_rows_without_a_template(tmp_path: Path) -> None:
    made = project(tmp_path)
    targets = (Target("cpu", "x86-64-v3"), Target("cuda", "sm_90"))
    with open_plan(made.read(), machine="x86_64", targets=targets) as plan:
        (skipped,) = plan.skipped
        assert skipped.target == "cuda:sm_90"
        assert "write it, and cuda= in @tack.source_kernel" in skipped.reason
        assert any(unit.target == targets[1] for unit in plan.units)


# --- in a wheel


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A package's wheel, and one that leaves the templates out."""
    root = tmp_path_factory.mktemp("wheel")
    made: list[Path] = []
    for name, excluded in (("with", ""), ("without", '\nwheel.exclude = ["**/*.j2"]')):
        package = root / name
        write_package("sourced", package)
        source = package / "src" / "sourced"
        text = KERNELS.replace("\n    ", "\n")
        (source / "kernels.py").write_text(text)
        (source / "__init__.py").write_text("")
        add_templates(source)
        manifest = MANIFEST.replace("\n    ", "\n").replace("NAME", "sourced")
        (package / "tack-aot.toml").write_text(manifest)
        settings = package / "pyproject.toml"
        settings.write_text(
            settings.read_text().replace("[tool.scikit-build]", f"[tool.scikit-build]{excluded}")
        )
        done = build_wheel(package, root / f"{name}-out")
        assert done.returncode == 0, done.stdout
        made.append(only(root / f"{name}-out"))
    return made[0], made[1]


CALL = """
import json, sys
import numpy as np
import tack
from sourced.kernels import axpy, order

for dtype in (np.float32, np.float64):
    x, out = np.arange(10, dtype=dtype), np.ones(10, dtype)
    axpy(0.5, x, out)
    assert (out == 1 + dtype(0.5) * (x + 1)).all(), out
n = np.arange(6).reshape(2, 3)
out = np.zeros((2, 3), np.int64)
order(n, out)
rank = 3 if "x86-64-v3" in tack._core.cpu_levels() else 2
assert (out == n * 1000 + np.array([[0, 1, 2], [10, 11, 12]]) + rank).all(), out
order(n[:0], out[:0])
tools = {"jinja2", "tack.compile", "tack.render.c", "tack.render.author_templates"}
tools &= set(sys.modules)
missed = ""
try:
    axpy(1, n[0], out[0])
except tack.errors.NoVariantError as error:
    missed = str(error)
print(json.dumps({"imported": sorted(tools), "missed": missed}))
"""


@pytest.mark.parametrize("shipped", [True, False])
def test_a_wheel_runs_where_nothing_can_compile(
    wheels: tuple[Path, Path], shipped: bool, tmp_path: Path
) -> None:
    wheel = wheels[0 if shipped else 1]
    with zipfile.ZipFile(wheel) as archive:
        assert any(name.endswith("axpy.c.j2") for name in archive.namelist()) == shipped
    (inspection,) = inspect(wheel)
    assert not inspection.problems
    files = {file.path for file in inspection.modules}
    assert ("native/helper.j2" in files) == shipped
    done = run_in(empty_environment(tmp_path / "env", wheel), CALL)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["imported"] == []
    assert "f64, f64[:], f64[:]" in said["missed"]
    wanted = "install gcc or clang, or ship a prebuilt variant"
    assert wanted in said["missed"], said["missed"]


# --- freshness


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> Project:
    root = tmp_path_factory.mktemp("bundled")
    made = project(root)
    build_bundle(made.read(), root / "src", root / "work")
    return made


@pytest.fixture
def package(bundled: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The folder of a copy of the built package, which can be imported."""
    folder = tmp_path / "site" / bundled.name
    shutil.copytree(bundled.source, folder, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.syspath_prepend(tmp_path / "site")
    yield folder
    for name in [name for name in sys.modules if name.split(".")[0] == bundled.name]:
        del sys.modules[name]


def answer(package: Path, *args: object):
    """How the package's axpy answers a call."""
    importlib.invalidate_caches()
    kernel = importlib.import_module(f"{package.name}.kernels").axpy
    x, out = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    return kernel, tack.explain(kernel, 0.5, x, out), (0.5, x, out)


@pytest.mark.usefixtures("no_jit")
def test_a_prebuilt_variant_answers(package: Path) -> None:
    kernel, said, args = answer(package)
    assert not said.chosen.jit
    kernel(*args)
    assert list(args[2]) == [0.5, 1, 1.5, 2]


@pytest.mark.parametrize("file", ["axpy.c.j2", "helper.j2"])
def test_an_edited_template_is_never_answered_by_the_old_binary(package: Path, file: str) -> None:
    path = package / "native" / file
    path.write_text(path.read_text().replace("x[i]", "x[i] + 10").replace("v + 1", "v + 11"))
    kernel, said, args = answer(package)
    assert said.chosen.jit
    refused = said.candidates[0].reason
    assert refused == (
        f"the template {package.name}/native/{file} was edited since the build; rebuild the package"
    )
    with pytest.warns(tack.errors.JITWarning):
        kernel(*args)
    assert list(args[2]) == [5.5, 6, 6.5, 7]


def test_an_edited_declaration_is_another_kernel(package: Path) -> None:
    path = package / "kernels.py"
    path.write_text(path.read_text().replace('.gpu.j2", writes="out"', '.c.j2", writes="out"'))
    _, said, _ = answer(package)
    assert said.chosen.jit
    assert "is declared c='native/axpy.c.j2', cuda='native/axpy.c.j2'" in said.candidates[0].reason


@pytest.mark.usefixtures("no_jit")
def test_edits_elsewhere_and_templates_of_other_languages_do_not_matter(package: Path) -> None:
    path = package / "kernels.py"
    path.write_text("# a comment\n" + path.read_text() + "\nother = 1\n")
    gpu = package / "native" / "axpy.gpu.j2"
    gpu.write_text("edited")
    kernel, said, args = answer(package)
    assert not said.chosen.jit, said
    kernel(*args)


@pytest.mark.usefixtures("no_jit")
def test_a_missing_template_leaves_what_was_prebuilt(package: Path) -> None:
    shutil.rmtree(package / "native")
    kernel, said, args = answer(package)
    assert not said.chosen.jit
    kernel(*args)
    x = np.arange(4)
    with pytest.raises(NoVariantError):
        kernel(1, x, x.copy())


def test_a_missing_template_is_what_a_compile_at_the_call_names(package: Path) -> None:
    shutil.rmtree(package / "native")
    kernel, _, _ = answer(package)
    x = np.arange(4)
    with pytest.raises(NoVariantError, match=r"native/axpy.c.j2 is not there .*let the package"):
        kernel(1, x, x.copy())
    assert "is not there" in tack.explain(kernel, 1, x, x.copy()).candidates[-1].reason


# --- the build


def test_an_edit_of_an_included_file_rebuilds_what_includes_it(
    bundled: Project, tmp_path: Path
) -> None:
    root = tmp_path / "copy"
    shutil.copytree(bundled.root, root, ignore=shutil.ignore_patterns("work", "_tack"))
    copy = object.__new__(Project)
    copy.root, copy.name, copy.source = root, bundled.name, root / "src" / bundled.name
    first = build_bundle(copy.read(), tmp_path / "one", tmp_path / "work")
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "work").rglob("*.o")}
    manifest = json.loads((first.bundle / "manifest.json").read_text())
    helper = copy.source / "native" / "helper.j2"
    helper.write_text(helper.read_text().replace("v + 1", "v + 2"))
    second = build_bundle(copy.read(), tmp_path / "one", tmp_path / "work")
    after = {p: p.stat().st_mtime_ns for p in (tmp_path / "work").rglob("*.o")}
    changed = {p.name.partition("--")[2] for p in after if before.get(p) != after[p]}
    assert changed == {"axpy.c.o", "axpy.2.c.o"}
    again = json.loads((second.bundle / "manifest.json").read_text())
    assert again["modules"] != manifest["modules"]


def test_an_error_in_the_authors_c_names_the_line_of_the_template(tmp_path: Path) -> None:
    made = project(tmp_path)
    path = made.source / "native" / "axpy.c.j2"
    path.write_text(AXPY.replace("helper(x[i])", "helpr(x[i])"))
    with pytest.raises(ToolchainError) as caught:
        build_bundle(made.read(), tmp_path / "out", tmp_path / "work")
    assert f"{made.name}/native/axpy.c.j2:6:" in str(caught.value)
    assert "helpr" in str(caught.value)
