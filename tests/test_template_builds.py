"""Kernels for templates, prebuilt: what a manifest asks for, and what a call then finds."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from harness import levels, needs_level
from packages import Package
from projects import Project

import tack
from tack.aot.manifest import read_manifest
from tack.aot.project import build_bundle
from tack.aot.recording import manifest_rows, read_notes
from tack.errors import ManifestError, NoVariantError
from tack.lang.template_spec import class_of

ROOT = Path(__file__).parents[1]

# --- tack.spec


@tack.device_class
class Grid:
    corners = 8
    size = 0.5
    dtype = tack.constant(3, tack.u8)


@tack.func
def step(x):
    return x


def test_a_spec_has_the_numbers_of_the_class_and_what_a_call_passes() -> None:
    inner = tack.spec(Grid)
    spec = tack.spec(Grid, connectivity="i32[:]", n="i64", inner=inner, f=step, size=2.0)
    name = f"{__name__}:Grid"
    assert str(inner) == f"{name}(corners=8, dtype=u8(3), size=0.5)"
    assert str(spec) == (
        f"{name}(connectivity: i32[:], inner: {inner}, n: i64, corners=8, dtype=u8(3), "
        f"f=@{__name__}:step, size=2.0)"
    )
    assert class_of(spec) is Grid


def test_a_spec_takes_no_live_objects_but_the_spec_of_a_call_equals_it() -> None:
    from tack.runtime.arguments import call_signature, fits

    @tack.kernel
    def kernel(obj, out):
        for i in range(1):
            out[i] = obj.n

    grid = Grid()
    grid.n, grid.data = 3, np.zeros(4)
    given, _ = call_signature(kernel.definition, (grid, np.zeros(1)))
    assert fits(tack.spec(Grid, n="i64", data="f64[:]"), given)
    assert fits(tack.spec(Grid, n="i64", data="f64[4]"), given)
    for other in ({"n": "i32", "data": "f64[:]"}, {"n": "i64", "data": "f64[5]"}, {"n": "i64"}):
        assert not fits(tack.spec(Grid, **other), given)
    with pytest.raises(TypeError, match="an attribute is a text such as"):
        tack.spec(Grid, data=np.zeros(3))


@pytest.mark.parametrize(
    ("attributes", "error", "said"),
    [
        ({"_n": "i64"}, TypeError, "invisible to kernels"),
        ({"n": "i65"}, ValueError, "unknown type 'i65'"),
        ({"n": "i64, i64"}, ValueError, "is not one scalar or array"),
        ({"corners": "i64"}, TypeError, "is a number of the class, which is compiled in; write"),
        ({"n": 3}, TypeError, "a call passes it; write its type, as in n='i64'"),
        ({"n": tack.constant((1, 2), tack.u8x2)}, TypeError, "type, as in n='u8x2'"),
        ({"corners": tack.f32x2(1, 2)}, TypeError, "type, as in corners='f32x2'"),
        ({"n": None}, TypeError, "an attribute is a text"),
        ({"a__corners": 1.0, "a": tack.spec(Grid)}, TypeError, "no number 'a__corners'"),
        ({"a__corners": "i64", "a": tack.spec(Grid)}, TypeError, "both flatten to 'a__corners'"),
    ],
)
def test_what_cannot_be_an_attribute_is_refused(attributes, error, said) -> None:
    with pytest.raises(error, match=said):
        tack.spec(Grid, **attributes)


def test_a_spec_is_of_a_device_class() -> None:
    with pytest.raises(TypeError, match=r"takes a @tack\.device_class, not <class 'int'>"):
        tack.spec(int)


# --- instances

KERNELS = """
    import tack
    from NAME.grids import Explicit, Structured

    @tack.kernel
    def total(grid, out):
        for i in range(out.shape[0]):
            out[i] = grid.value(i) * grid.k

    def prebuilt():
        yield tack.spec(Structured, n="i64"), "f32[:]"
        yield [tack.spec(Explicit, data="f32[:]"), "f32[:]"]

    def as_list():
        return [(tack.spec(Structured, n="i64"), "f64[:]")]

    def wrong_count():
        yield (tack.spec(Structured, n="i64"),)

    def wrong_entry():
        yield 3, "f32[:]"

    def wrong_text():
        yield "f33", "f32[:]"

    def two_texts():
        yield "f32, f32", "f32[:]"

    def nothing():
        return ()

    def fails():
        raise RuntimeError("no luck")

    def unreachable():
        yield tack.spec(Structured, n="i32"), "f32[:]"

    def lacks_an_attribute():
        yield tack.spec(Structured), "f32[:]"

    other = 3
"""
GRIDS = """
    import tack
    from NAME.helpers import halved

    @tack.device_class
    class Structured:
        k = 3

        @tack.func
        def value(self, i):
            return halved(i) + self.n

    @tack.device_class
    class Explicit:
        k = 4

        @tack.func
        def value(self, i):
            return self.data[i]
"""
HELPERS = """
    import tack

    HALF = tack.constant(0.5, tack.f32)

    @tack.func
    def halved(x):
        return x * HALF
"""
MANIFEST = """
    schema = 1
    package = "NAME"

    [targets]
    cpu = ["x86-64-v2"]

    [[kernel]]
    name = "NAME.kernels:total"
    instances = ["NAME.kernels:prebuilt"]
"""
MODULES = {"kernels": KERNELS, "grids": GRIDS, "helpers": HELPERS}


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path, MODULES, MANIFEST)


def test_a_function_gives_the_instances(project) -> None:
    plan = project.plan()
    name = project.name
    assert [str(s.variant.signature) for unit in plan.units for s in unit.sources] == [
        f"{name}.grids:Structured(n: i64, k=3), f32[:]",
        f"{name}.grids:Explicit(data: f32[:], k=4), f32[:]",
    ]
    assert sorted(plan.modules) == [f"{name}.grids", f"{name}.helpers", f"{name}.kernels"]


def test_signatures_and_several_functions_add_up(project) -> None:
    project.write_manifest(
        MANIFEST.replace("prebuilt", 'prebuilt", "NAME.kernels:as_list')
        + '    signatures = ["NAME.grids:Explicit(data: T[:], k=5), T[:]"]\n    where.T = ["f64"]\n'
    )
    plan = project.plan()
    signatures = [str(s.variant.signature) for unit in plan.units for s in unit.sources]
    assert len(signatures) == 4
    assert signatures[0] == f"{project.name}.grids:Explicit(data: f64[:], k=5), f64[:]"


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("wrong_count", "a tuple with one entry for each of grid, out was expected"),
        ("wrong_entry", "gives 3 for 'grid'; write a text such as 'f32[:]', or tack.spec(...)"),
        ("wrong_text", "unknown type 'f33'"),
        ("two_texts", "which is 2 specs; write one"),
        ("nothing", "gives nothing; no variant would be built"),
        ("fails", "raised RuntimeError: no luck"),
        ("missing", "is not to be had"),
        ("other", "is no function"),
        ("unreachable", "'grid.n' is an integer that an object passes, which is i64"),
        ("lacks_an_attribute", "grid (Structured) has no attribute 'n'; it has k"),
        ("prebuilt\", \"NAME.kernels:prebuilt", "asked for by kernel[0].instances[0], number 1"),
    ],
)  # fmt: skip
def test_a_function_that_gives_no_instances_is_named_with_the_place(project, function, said):
    project.write_manifest(MANIFEST.replace("prebuilt", function))
    with pytest.raises(ManifestError) as caught:
        project.plan()
    assert said in str(caught.value)
    assert "kernel[0].instances[" in str(caught.value)


@pytest.mark.parametrize("name", ["prebuilt", "elsewhere.kernels:prebuilt", "NAME.kernels"])
def test_an_instance_is_a_function_of_the_package(project, name) -> None:
    project.write_manifest(MANIFEST.replace("NAME.kernels:prebuilt", name))
    with pytest.raises(ManifestError, match="no module:function of the package"):
        project.read()


def test_a_written_template_has_every_number_of_its_class(project) -> None:
    row = 'signatures = ["NAME.grids:Explicit(data: f32[:]), f32[:]"]'
    project.write_manifest(MANIFEST.replace('instances = ["NAME.kernels:prebuilt"]', row))
    with pytest.raises(ManifestError, match=r"'grid' lacks 'k', a number of the class .*write k=4"):
        project.plan()


# --- calls

FIRST = "PACKAGE.grids:Structured(n: i64, k=3), f32[:]"
ROWS = [("total", FIRST), ("total", "PACKAGE.grids:Explicit(data: f32[:], k=4), f32[:]")]


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    texts = {name: text.replace("NAME", "PACKAGE") for name, text in MODULES.items()}
    package = Package(tmp_path_factory.mktemp("templates"), texts)
    package.build(ROWS, levels()[:1])
    package.forget()
    return package


@pytest.fixture
def package(original, tmp_path, monkeypatch):
    monkeypatch.setenv("TACK_JIT", "forbid")
    copy = original.copy_to(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield copy
    copy.forget()


def structured(kernels, n=5):
    grid = kernels.Structured()
    grid.n = n
    return grid


def test_prebuilt_variants_answer_for_both_structures(package) -> None:
    kernels = package.load()
    out = np.zeros(4, np.float32)
    for _ in range(2):
        kernels.total(structured(kernels), out)
        assert list(out) == [15, 16.5, 18, 19.5]
        explicit = kernels.Explicit()
        explicit.data = np.arange(4, dtype=np.float32)
        kernels.total(explicit, out)
        assert list(out) == [0, 4, 8, 12]


def test_prebuilt_and_compiled_give_the_same_bits(package, monkeypatch) -> None:
    kernels = package.load()
    grid, out, compiled = structured(kernels), np.zeros(9, np.float32), np.zeros(9, np.float32)
    kernels.total(grid, out)
    shutil.rmtree(package.bundle)
    monkeypatch.setenv("TACK_JIT", "allow")
    again = package.load()
    again.total(structured(again), compiled)
    assert np.array_equal(out.view(np.int32), compiled.view(np.int32))


DERIVED = "class B:\n    pass\n\n@tack.device_class\nclass Structured(B)"
VALUE = "    @tack.func\n    def value(self, i):\n        return halved"
ANOTHER = "    @tack.func\n    def other(self, i):\n        return 1\n\n"


@pytest.mark.parametrize(
    ("module", "old", "new", "reason"),
    [
        ("grids", "+ self.n", "- self.n", r"edited since the build \(in .*grids"),
        ("helpers", "x * HALF", "x / HALF", "the source was edited since the build"),
        ("helpers", "0.5", "0.25", "'HALF' in halved is constant f32 .*, and it was"),
        ("grids", "k = 3", "k = 5", r"'grid' is .*Structured\(n: i64, k=5\)"),
        ("grids", "k = 3", "k = 3\n    tack_extents = 'n'", "'extents' in grid is n"),
        ("grids", "class Structured", DERIVED, "'mro' in grid is Structured B, and it was built"),
        ("grids", VALUE, ANOTHER + VALUE, "edited since the build"),
    ],
)  # fmt: skip
def test_an_edit_that_counts_is_a_miss_with_its_reason(package, module, old, new, reason) -> None:
    package.edit(module, old, new)
    kernels = package.load()
    with pytest.raises(NoVariantError, match=reason):
        kernels.total(structured(kernels), np.zeros(4, np.float32))


def test_an_edited_comment_is_a_hit(package) -> None:
    package.edit("grids", "k = 3", "k = 3  # three\n\n    # more")
    kernels = package.load()
    out = np.zeros(4, np.float32)
    kernels.total(structured(kernels), out)
    assert out[0] == 15


def test_a_method_that_was_replaced_is_a_miss(package) -> None:
    kernels = package.load()
    kernels.Structured.value = kernels.Explicit.value
    with pytest.raises(NoVariantError, match=r"'value' in grid is func .*Explicit\.value"):
        kernels.total(structured(kernels), np.zeros(4, np.float32))


def test_an_object_with_other_attributes_is_a_miss_that_tells_which(package) -> None:
    kernels = package.load()
    grid = structured(kernels)
    grid.extra = 1.5
    with pytest.raises(NoVariantError) as caught:
        kernels.total(grid, np.zeros(4, np.float32))
    assert "'grid' is " in str(caught.value)
    assert "Structured(extra: f32, n: i64, k=3), and it takes" in str(caught.value)


def test_explain_shows_every_candidate(package) -> None:
    kernels = package.load()
    shown = tack.explain(kernels.total, structured(kernels), np.zeros(4, np.float32))
    assert shown.chosen is not None
    assert shown.chosen.signature == FIRST.replace("PACKAGE", package.name)
    assert len(shown.candidates) == 3


def test_a_recorded_signature_becomes_a_manifest_row(package, tmp_path, monkeypatch) -> None:
    notes = tmp_path / "notes"
    monkeypatch.setenv("TACK_RECORD", str(notes))
    kernels = package.load()
    grid = structured(kernels)
    with pytest.raises(NoVariantError):
        kernels.total(grid, np.zeros(4, np.float64))
    rows = manifest_rows(read_notes(notes.read_text().splitlines(), "notes"))
    assert f'"{package.name}.grids:Structured(n: i64, k=3), f64[:]"' in rows


def test_without_source_the_package_is_trusted(package) -> None:
    import compileall

    compileall.compile_dir(package.folder, legacy=True, quiet=1)
    for path in package.folder.glob("*.py"):
        path.unlink()
    kernels = package.load()
    out = np.zeros(4, np.float32)
    kernels.total(structured(kernels), out)
    assert out[0] == 15


def test_a_prebuilt_call_with_a_template_imports_no_compiler(package) -> None:
    program = f"""
        import sys
        import numpy as np
        from {package.name}.kernels import total, Structured

        grid = Structured()
        grid.n = 5
        out = np.zeros(4, np.float32)
        total(grid, out)
        assert out[0] == 15
        compilers = ["jinja2", "llvmlite", "tack.compile", "tack.lang.lower", "tack.render"]
        others = ["tack.ir", "tack.lang.source_kernel", "tack.model.gpus"]
        assert not [name for name in (*compilers, *others) if name in sys.modules]
    """
    path = os.pathsep.join([str(package.root), *sys.path])
    subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        check=True,
        env={**os.environ, "PYTHONPATH": path},
    )


@needs_level("x86-64-v2")
def test_the_example_is_built_and_runs(tmp_path) -> None:
    """Both structures of ``examples/cells`` are answered by what was prebuilt."""
    example = ROOT / "examples" / "cells"
    shutil.copytree(example, tmp_path / "cells", ignore=shutil.ignore_patterns("build"))
    manifest = read_manifest(tmp_path / "cells" / "tack-aot.toml")
    build_bundle(manifest, tmp_path / "cells" / "src", tmp_path / "build")
    path = os.pathsep.join([str(tmp_path / "cells" / "src"), *sys.path])
    done = subprocess.run(
        [sys.executable, tmp_path / "cells" / "demo.py"],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "TACK_JIT": "forbid", "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "StructuredCells, float32",
        "ExplicitCells, float32",
        "StructuredCells, float64",
        "ExplicitCells, float64",
    ]


CLOUDS = """
    import tack

    @tack.device_class
    class Cloud:
        points: tack.Array[tack.f32x3]
        weight: tack.f64
        tint = tack.constant((1, 2, 3), tack.u8x3)
        gain = 1

    class Dim(Cloud):
        pass

    @tack.kernel
    def shade(cloud, /, out, *, at: tack.f32x2):
        for i in range(out.shape[0]):
            turned = cloud.turn @ cloud.eye.xy
            shade = tack.dot(cloud.eye, cloud.points[i]) * tack.f32(cloud.weight)
            out[i] = shade + turned.x + cloud.tint.y * cloud.gain + at[i % 2]

    def prebuilt():
        shape = dict(eye="f32x3", turn="f32x2x2", points="f32x3[:]", weight="f64")
        yield tack.spec(Cloud, **shape), "f32[:]", "f32x2"
        dim = tack.spec(Dim, **shape, tint="u8x3", gain=tack.constant(2, tack.u8))
        yield dim, "f32[:]", "f32x2"
"""


def test_specs_of_vectors_are_prebuilt_and_answer_calls(tmp_path, monkeypatch) -> None:
    manifest = MANIFEST.replace("kernels:total", "clouds:shade").replace("kernels:", "clouds:")
    project = Project(tmp_path, {"clouds": CLOUDS}, manifest)
    build_bundle(project.read(), tmp_path / "src", tmp_path / "build")
    program = f"""
        import os, warnings
        import numpy as np, tack
        from {project.name} import clouds

        results = []
        for policy in ("forbid", "allow"):
            os.environ["TACK_JIT"] = policy
            for cls in (clouds.Cloud, clouds.Dim):
                cloud, out = cls(), np.zeros(3, np.float32)
                cloud.eye, cloud.turn = tack.f32x3(1, 2, 0.1), tack.f32x2x2(0, -1, 1, 0)
                cloud.points = np.arange(9, dtype=np.float32).reshape(3, 3)
                cloud.weight = 0.3
                if cls is clouds.Dim:
                    cloud.tint, cloud.gain = tack.u8x3(7, 8, 9), tack.constant(2, tack.u8)
                # Every other element is of a layout that nobody prebuilt.
                given = out if policy == "forbid" else np.zeros(6, np.float32)[::2]
                clouds.shade(cloud, given, at=(0.5, 0.25))
                results.append(given.tolist())
        assert results[:2] == results[2:] and results[0] != results[1], results
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path / "src"), *sys.path])},
    )
    assert done.returncode == 0, done.stderr
