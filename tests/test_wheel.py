"""A package of one's own: built by pip, installed where nothing can compile, and called."""

from __future__ import annotations

import json
import os
import re
import shutil
import zipfile
from pathlib import Path

import pytest
from harness import levels, needs_level
from projects import build_wheel, empty_environment, only, run_in

from tack.aot.report import inspect
from tack.aot.skeleton import write_package
from tack.aot.tools import find_tool

pytestmark = needs_level("x86-64-v2")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The package that ``tack-aot init`` writes, and its wheel."""
    root = tmp_path_factory.mktemp("wheel")
    write_package("wheeled", root / "wheeled")
    done = build_wheel(root / "wheeled", root / "out")
    assert done.returncode == 0, done.stdout
    return root / "wheeled", only(root / "out")


def test_one_wheel_serves_every_python_of_a_platform(built):
    _, wheel = built
    assert re.fullmatch(r"wheeled-0\.1\.0-py3-none-linux_\w+\.whl", wheel.name)
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        tags = archive.read("wheeled-0.1.0.dist-info/WHEEL").decode()
    assert "Root-Is-Purelib: false" in tags
    assert [name for name in names if ".dist-info/" not in name] == [
        "wheeled/__init__.py",
        "wheeled/_tack/cpu/x86-64-v2.so",
        "wheeled/_tack/cpu/x86-64-v3.so",
        "wheeled/_tack/cpu/x86-64-v4.so",
        "wheeled/_tack/manifest.json",
        "wheeled/kernels.py",
    ]


def test_the_wheel_is_what_its_bundle_says(built):
    (inspection,) = inspect(built[1])
    assert not inspection.problems
    assert [file.path for file in inspection.modules] == ["kernels.py"]
    bundle = inspection.bundle
    assert bundle.package == "wheeled"
    assert [(a.target.arch, a.needs) for a in bundle.artifacts] == [
        (level, level) for level in ("x86-64-v2", "x86-64-v3", "x86-64-v4")
    ]
    (kernel,) = bundle.kernels
    assert kernel.name == "wheeled.kernels:saxpy"
    assert [str(v.signature) for v in kernel.variants if v.target.arch == "x86-64-v3"] == [
        "f32, f32[:], f32[:], f32[:]",
        "f64, f64[:], f64[:], f64[:]",
    ]


@pytest.fixture(scope="module")
def environment(built, tmp_path_factory):
    """An environment with Python, NumPy, tack and the wheel: no pip, no jinja2, no compiler."""
    return empty_environment(tmp_path_factory.mktemp("environment") / "env", built[1])


CALL = """
import json, os, shutil, sys
import numpy as np
import tack, wheeled

assert not any(shutil.which(name) for name in ("cc", "gcc", "clang", "c++", "cmake", "ninja"))
x = np.arange(10, dtype=np.float32)
out = np.zeros_like(x)
wheeled.saxpy(2.0, x, np.ones_like(x), out)
assert (out == 2 * x + 1).all()
y = x.astype(np.float64)
double = np.zeros_like(y)
wheeled.saxpy(0.1, y, y, double)
assert (double == 0.1 * y + y).all()
tools = {"jinja2", "click", "rich", "capstone", "tack.compile", "tack.aot", "tack.render.c"}
print(json.dumps({
    "explain": str(tack.explain(wheeled.saxpy, 2.0, x, x, out)),
    "imported": sorted(tools & set(sys.modules)),
    "file": wheeled.__file__,
}))
"""


def test_an_installed_kernel_runs_where_nothing_can_compile(environment):
    done = run_in(environment, CALL)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["imported"] == []
    assert said["file"].startswith(str(environment))
    best = [level for level in levels() if level.startswith("x86-64-v")][-1]
    assert f"cpu:{best}" in said["explain"]


def test_what_was_not_built_is_an_error_that_lists_what_was(environment):
    done = run_in(
        environment,
        "import numpy as np, wheeled\nx = np.zeros(3, np.int32)\nwheeled.saxpy(1, x, x, x)",
    )
    assert done.returncode == 1
    assert "NoVariantError" in done.stderr
    assert "f32, f32[:], f32[:], f32[:]" in done.stderr


def test_two_builds_from_different_folders_are_the_same_bytes(built, tmp_path):
    package = tmp_path / "a (longer) folder" / "wheeled"
    write_package("wheeled", package)
    for path in package.rglob("*"):
        os.utime(path, (1e9, 1e9))
    done = build_wheel(package, tmp_path / "out", PYTHONHASHSEED="5", LC_ALL="C", TZ="Asia/Tokyo")
    assert done.returncode == 0, done.stdout
    again = only(tmp_path / "out")
    assert again.name == built[1].name
    assert again.read_bytes() == built[1].read_bytes()


def state(package: Path) -> dict[str, int]:
    """The time stamps of objects and of what tack makes."""
    (build,) = (package / "build").iterdir()
    files = [*build.glob("tack/**/*.*"), *build.glob("CMakeFiles/wheeled*/**/*.o")]
    return {str(path.relative_to(build)): path.stat().st_mtime_ns for path in files}


def test_a_second_build_compiles_nothing_and_an_edit_only_its_unit(built, tmp_path):
    package = Path(shutil.copytree(built[0], tmp_path / "wheeled"))
    shutil.rmtree(package / "build")
    kernels = package / "src" / "wheeled" / "kernels.py"
    kernels.write_text(
        kernels.read_text()
        + "\n\n@tack.kernel\ndef double(x):\n"
        + "    for i in range(x.shape[0]):\n        x[i] += x[i]\n"
    )
    manifest = package / "tack-aot.toml"
    manifest.write_text(
        manifest.read_text()
        + '\n[[kernel]]\nname = "wheeled.kernels:double"\nsignatures = ["f32[:]"]\n'
    )
    assert build_wheel(package, tmp_path / "one").returncode == 0
    before = state(package)
    assert len([path for path in before if path.endswith(".o")]) == 6
    assert build_wheel(package, tmp_path / "two").returncode == 0
    assert state(package) == before
    assert only(tmp_path / "one").read_bytes() == only(tmp_path / "two").read_bytes()

    kernels.write_text(kernels.read_text().replace("x[i] += x[i]", "x[i] += x[i] + x[i]"))
    assert build_wheel(package, tmp_path / "three").returncode == 0
    after = state(package)
    changed = {path for path in after if after[path] != before.get(path)}
    assert {Path(p).name for p in changed if p.endswith(".o")} == {"wheeled-kernels--double.c.o"}
    assert len([path for path in changed if path.endswith(".o")]) == 3


def test_no_compiler_is_one_sentence(tmp_path):
    write_package("wheeled", tmp_path / "wheeled")
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("cmake", "ninja"):
        if (found := find_tool(tool)) is not None:
            (tools / tool).symlink_to(found)
    done = build_wheel(tmp_path / "wheeled", tmp_path / "out", PATH=str(tools), CC="")
    assert done.returncode != 0
    assert (
        "tack needs a C compiler to build kernels, and CMake finds none: install gcc or clang, or "
        "name one in the environment variable CC" in " ".join(done.stdout.split())
    )


def test_a_mistake_in_the_manifest_reaches_the_user_of_pip(tmp_path):
    write_package("wheeled", tmp_path / "wheeled")
    manifest = tmp_path / "wheeled" / "tack-aot.toml"
    manifest.write_text(manifest.read_text().replace("signatures", "signature"))
    done = build_wheel(tmp_path / "wheeled", tmp_path / "out")
    assert done.returncode != 0
    assert "kernel[0]: unknown key 'signature'; did you mean 'signatures'?" in done.stdout
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())
