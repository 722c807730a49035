"""The bundle step checks what was compiled; inspecting trusts nothing that it reads."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
from harness import levels
from projects import Project

from tack.aot.bundle import make_bundle, read_bundle, write_bundle
from tack.aot.emit import dump, emit_units, record
from tack.aot.plan import open_plan
from tack.aot.report import inspect
from tack.errors import BundleError, ToolchainError
from tack.model.bundle import Bundle
from tack.model.targets import Target
from tack.render.c_flags import COMPILE_FLAGS, LINK_FLAGS, target_flags

pytestmark = pytest.mark.skipif(
    "x86-64-v2" not in levels(), reason="the libraries are compiled for x86-64"
)

TOOLCHAIN = {"version": "gcc", "compiler": "GNU 12"}


def compile_units(work: Path, target: str, *, march: str = "", flags: tuple[str, ...] = ()) -> Path:
    library = work / "_tack" / "cpu" / f"{target}.so"
    library.parent.mkdir(parents=True, exist_ok=True)
    units = sorted((work / "units" / "cpu" / target).glob("*.c"))
    command = ["gcc", *COMPILE_FLAGS, *target_flags(Target("cpu", march or target)), "-fPIC"]
    command += ["-shared", *LINK_FLAGS, f"-I{work / 'units'}", *map(str, units), *flags]
    subprocess.run([*command, "-o", library, "-lm"], check=True, capture_output=True)
    return library


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A project whose units are compiled and whose bundle is written, in ``project.work``."""
    root = tmp_path_factory.mktemp("built")
    project = Project(root, name="bundled")
    project.work = root / "work"
    with open_plan(project.read(), machine="x86_64") as plan:
        emit_units(plan, project.work / "units")
        project.work.joinpath("variants.json").write_text(dump(record(plan).to_json()))
    for target in ("x86-64-v2", "x86-64-v3"):
        compile_units(project.work, target)
    write_bundle(
        project.work / "variants.json", TOOLCHAIN, project.work / "_tack" / "manifest.json"
    )
    return project


@pytest.fixture
def work(built, tmp_path):
    """A copy of the build folder, to be damaged."""
    return Path(shutil.copytree(built.work, tmp_path / "work"))


def rebuild(work):
    return make_bundle(read_bundle(work / "variants.json"), TOOLCHAIN, work / "_tack")


def test_the_bundle_says_what_the_libraries_are(work):
    bundle = read_bundle(work / "_tack" / "manifest.json")
    assert bundle == rebuild(work)
    assert dict(bundle.toolchain) == TOOLCHAIN
    for artifact in bundle.artifacts:
        content = (work / "_tack" / artifact.path).read_bytes()
        assert artifact.sha256 == hashlib.sha256(content).hexdigest()
        assert artifact.size == len(content)
        assert artifact.needs == artifact.target.arch
    assert {v.target.arch for k in bundle.kernels for v in k.variants} == {"x86-64-v2", "x86-64-v3"}


def test_the_same_libraries_give_the_same_bytes(work):
    manifest = work / "_tack" / "manifest.json"
    before = manifest.read_bytes()
    manifest.unlink()
    write_bundle(work / "variants.json", dict(reversed(TOOLCHAIN.items())), manifest)
    assert manifest.read_bytes() == before
    assert str(work).encode() not in before


def test_a_library_above_its_level_fails_the_build(work):
    compile_units(work, "x86-64-v2", march="x86-64-v3")
    with pytest.raises(
        ToolchainError, match=r"x86-64-v2\.so: declared x86-64-v2, but the instr"
    ) as caught:
        rebuild(work)
    assert "in tack_" in str(caught.value)
    assert "needs x86-64-v3" in str(caught.value)


def test_a_library_without_its_symbols_fails_the_build(work):
    units = work / "units" / "cpu" / "x86-64-v2"
    (units / "bundled-kernels--scale.c").unlink()
    compile_units(work, "x86-64-v2")
    with pytest.raises(
        ToolchainError, match=r"it does not export tack_\w+_scale_general, an entry"
    ) as caught:
        rebuild(work)
    assert "bundled.kernels:scale(i32, f32[:])" in str(caught.value)


def test_a_library_that_needs_another_fails_the_build(work, tmp_path):
    other = tmp_path / "libother.so"
    source = tmp_path / "other.c"
    source.write_text("int other(void) { return 1; }")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", other, source], check=True)
    user = work / "units" / "cpu" / "x86-64-v2" / "user.c"
    user.write_text("int other(void); int user(void) { return other(); }")
    compile_units(work, "x86-64-v2", flags=(str(other),))
    with pytest.raises(
        ToolchainError, match=r"it needs the shared library .*libother.so, and a ker"
    ):
        rebuild(work)


def test_a_library_that_runs_code_when_it_is_loaded_fails_the_build(work):
    user = work / "units" / "cpu" / "x86-64-v2" / "user.c"
    user.write_text("volatile int n; __attribute__((constructor)) static void f(void) { n = 1; }")
    compile_units(work, "x86-64-v2")
    with pytest.raises(ToolchainError, match="loading it would run code"):
        rebuild(work)


def test_a_missing_or_truncated_library_fails_the_build(work):
    library = work / "_tack" / "cpu" / "x86-64-v3.so"
    library.write_bytes(library.read_bytes()[:1000])
    with pytest.raises(ToolchainError, match="damaged or truncated"):
        rebuild(work)
    library.unlink()
    with pytest.raises(ToolchainError, match="cannot be read: No such file"):
        rebuild(work)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "damaged or truncated: it is not JSON"),
        ('{"schema": 1', "damaged or truncated: it is not JSON"),
        ("[]", "the bundle is damaged: the document is not an object"),
        ("{}", "bundle schema None, this tack reads 1"),
        ('{"schema": 99}', "bundle schema 99, this tack reads 1"),
    ],
)
def test_a_record_that_is_none(work, content, sentence):
    (work / "variants.json").write_text(content)
    with pytest.raises(BundleError) as caught:
        rebuild(work)
    assert sentence in str(caught.value)


# --- inspecting ----------------------------------------------------------------------------------


def wheel(built, work, path: Path) -> Path:
    """A wheel, as far as inspecting one goes."""
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted((work / "_tack").rglob("*")):
            if file.is_file():
                archive.write(file, f"{built.name}/_tack/{file.relative_to(work / '_tack')}")
        for file in sorted(built.source.glob("*.py")):
            archive.write(file, f"{built.name}/{file.name}")
    return path


def test_a_wheel_and_a_folder_are_inspected_alike(built, work, tmp_path):
    (from_wheel,) = inspect(wheel(built, work, tmp_path / "bundled.whl"))
    package = Path(shutil.copytree(built.source, tmp_path / "site" / built.name))
    shutil.copytree(work / "_tack", package / "_tack")
    (from_package,) = inspect(package)
    (from_site,) = inspect(tmp_path / "site")
    (from_bundle,) = inspect(package / "_tack")
    assert from_wheel.bundle == from_package.bundle == from_site.bundle == from_bundle.bundle
    for inspection in (from_wheel, from_package, from_site, from_bundle):
        assert not inspection.problems
        assert [m.path for m in inspection.modules] == ["kernels.py"]
    (alone,) = inspect(work / "_tack")
    assert (alone.modules, alone.problems) == ((), ())


def damage_byte(work, _built):
    library = work / "_tack" / "cpu" / "x86-64-v2.so"
    content = bytearray(library.read_bytes())
    content[-1] ^= 1
    library.write_bytes(content)


def truncate(work, _built):
    library = work / "_tack" / "cpu" / "x86-64-v2.so"
    library.write_bytes(library.read_bytes()[:-1])


def remove(work, _built):
    (work / "_tack" / "cpu" / "x86-64-v2.so").unlink()


def swap(work, _built):
    shutil.copy(work / "_tack" / "cpu" / "x86-64-v3.so", work / "_tack" / "cpu" / "x86-64-v2.so")


def forge(work, _built):
    """Another file altogether, with the right digest."""
    (work / "_tack" / "cpu" / "x86-64-v2.so").write_bytes(b"no library")
    manifest = work / "_tack" / "manifest.json"
    document = json.loads(manifest.read_text())
    document["artifacts"][0]["size"] = len(b"no library")
    document["artifacts"][0]["sha256"] = hashlib.sha256(b"no library").hexdigest()
    manifest.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("harm", "problem"),
    [
        (damage_byte, "its bytes are not those that were built"),
        (truncate, "when it was built"),
        (remove, "it is missing"),
        (swap, "built"),
        (forge, "this is not an ELF library"),
    ],
)
def test_a_damaged_library_is_found(harm, problem, built, work, tmp_path):
    harm(work, built)
    for place in (work / "_tack", wheel(built, work, tmp_path / "w.whl")):
        (inspection,) = inspect(place)
        (found,) = inspection.problems
        assert found.path == "cpu/x86-64-v2.so"
        assert problem in found.problem


def test_an_edited_or_missing_module_is_found(built, work, tmp_path):
    package = Path(shutil.copytree(built.source, tmp_path / built.name))
    shutil.copytree(work / "_tack", package / "_tack")
    (package / "kernels.py").write_text("import tack\n")
    (inspection,) = inspect(package)
    assert [str(p.problem) for p in inspection.problems] == ["it was edited since the build"]
    (package / "kernels.py").unlink()
    (inspection,) = inspect(package)
    assert [p.problem for p in inspection.problems] == [
        "it is missing, so the bundle is of another package"
    ]


def test_a_place_without_a_bundle(built, work, tmp_path):
    with pytest.raises(BundleError, match="there is no such file or folder"):
        inspect(tmp_path / "nowhere.whl")
    with pytest.raises(BundleError, match=r"there is no _tack/manifest\.json in it"):
        inspect(built.source)
    (tmp_path / "text.whl").write_text("no zip")
    with pytest.raises(BundleError, match="the wheel is damaged or truncated"):
        inspect(tmp_path / "text.whl")
    full = wheel(built, work, tmp_path / "full.whl").read_bytes()
    (tmp_path / "half.whl").write_bytes(full[: len(full) // 2])
    with pytest.raises(BundleError, match="the wheel is damaged or truncated"):
        inspect(tmp_path / "half.whl")


def test_a_truncated_manifest_in_a_wheel(built, work, tmp_path):
    manifest = work / "_tack" / "manifest.json"
    manifest.write_bytes(manifest.read_bytes()[:-20])
    with pytest.raises(BundleError, match="not JSON"):
        inspect(wheel(built, work, tmp_path / "w.whl"))


def test_a_bundle_reads_back_what_it_writes(work):
    bundle = read_bundle(work / "_tack" / "manifest.json")
    assert Bundle.from_json(json.loads(dump(bundle.to_json())), "here") == bundle
