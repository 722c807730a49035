"""Rendering writes what changed and nothing else, the same bytes from any folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from projects import Project

from tack.aot.emit import depfile, dump, emit_units, record, write_if_changed
from tack.aot.plan import open_plan
from tack.model.bundle import Bundle


def emit(project, folder):
    with open_plan(project.read(), machine="x86_64") as plan:
        return emit_units(plan, folder), record(plan)


def snapshot(folder):
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def age(folder):
    """Gives every file a time of long ago."""
    for path in folder.rglob("*"):
        os.utime(path, (1e9, 1e9))


def test_the_first_emission_writes_every_unit_and_the_header(tmp_path):
    project = Project(tmp_path / "p", name="emitted")
    emitted, _ = emit(project, tmp_path / "out")
    assert emitted.files == emitted.changed
    assert set(emitted.files) == {
        "tack_abi.h",
        *(
            f"cpu/x86-64-{level}/emitted-kernels--{kernel}.c"
            for level in ("v2", "v3")
            for kernel in ("saxpy", "scale")
        ),
    }
    assert set(snapshot(tmp_path / "out")) == set(emitted.files)


def test_what_has_not_changed_is_left_alone(tmp_path):
    project = Project(tmp_path / "p")
    out = tmp_path / "out"
    emit(project, out)
    age(out)
    before = snapshot(out)
    assert emit(project, out)[0].changed == ()
    assert snapshot(out) == before


def test_an_edit_of_one_kernel_changes_its_unit_only(tmp_path):
    project = Project(tmp_path / "p", name="edited")
    out = tmp_path / "out"
    emit(project, out)
    age(out)
    before = snapshot(out)
    project.edit("kernels", "a * x[i] + y[i]", "a * x[i] - y[i]")
    emitted, _ = emit(project, out)
    assert set(emitted.changed) == {
        f"cpu/x86-64-{level}/edited-kernels--saxpy.c" for level in ("v2", "v3")
    }
    after = snapshot(out)
    assert {path for path in after if after[path] != before[path]} == set(emitted.changed)


def test_comments_and_line_numbers_change_no_unit(tmp_path):
    project = Project(tmp_path / "p")
    out = tmp_path / "out"
    _, first = emit(project, out)
    project.edit("kernels", "@tack.kernel", "# A comment\n\n\n@tack.kernel")
    emitted, second = emit(project, out)
    assert emitted.changed == ()
    assert first.modules != second.modules
    assert first.kernels == second.kernels


def test_an_edit_of_a_helper_or_constant_changes_the_units_that_read_it(tmp_path):
    project = Project(tmp_path / "p", name="reached")
    out = tmp_path / "out"
    emit(project, out)
    for old, new in (("x * HALF", "HALF * x + x"), ("constant(0.5", "constant(0.25")):
        project.edit("kernels", old, new)
        assert set(emit(project, out)[0].changed) == {
            f"cpu/x86-64-{level}/reached-kernels--scale.c" for level in ("v2", "v3")
        }


def test_the_record_is_a_bundle_without_libraries(tmp_path):
    project = Project(tmp_path / "p", name="recorded")
    _, bundle = emit(project, tmp_path / "out")
    assert Bundle.from_json(json.loads(dump(bundle.to_json())), "here") == bundle
    assert [a.path for a in bundle.artifacts] == ["cpu/x86-64-v2.so", "cpu/x86-64-v3.so"]
    assert {a.sha256 for a in bundle.artifacts} == {""}
    (scale,) = (k for k in bundle.kernels if k.name == "recorded.kernels:scale")
    assert scale.modules == ("recorded.kernels",)
    assert {(c.scope, c.name) for c in scale.captured} >= {("", "halved"), (">halved", "HALF")}


SCRIPT = """
import sys
from pathlib import Path
from tack.aot.emit import dump, emit_units, record
from tack.aot.manifest import read_manifest
from tack.aot.plan import open_plan
with open_plan(read_manifest(Path("tack-aot.toml")), machine="x86_64") as plan:
    out = Path("out")
    emit_units(plan, out)
    (out / "variants.json").write_text(dump(record(plan).to_json()))
"""


def emitted_elsewhere(root: Path, seed: str) -> dict[str, bytes]:
    project = Project(root, name="same")
    subprocess.run(
        [sys.executable, "-c", SCRIPT],
        check=True,
        cwd=project.root,
        env={**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": "C", "TZ": f"UTC+{seed}"},
    )
    return {path: content for path, (_, content) in snapshot(project.root / "out").items()}


def test_the_bytes_depend_on_no_folder_hash_seed_or_locale(tmp_path):
    one = emitted_elsewhere(tmp_path / "one", "1")
    two = emitted_elsewhere(tmp_path / "a longer folder" / "with (more) in it", "7")
    assert one == two
    for content in one.values():
        assert str(tmp_path).encode() not in content


def test_a_depfile_escapes_what_make_would_read(tmp_path):
    text = depfile(Path("/b d/render.stamp"), [Path("/a b/c#d$e.py"), Path("/x.py")])
    assert text == "/b\\ d/render.stamp: \\\n  /a\\ b/c\\#d$$e.py \\\n  /x.py\n"


def test_a_file_is_written_once(tmp_path):
    path = tmp_path / "a" / "b.txt"
    assert write_if_changed(path, "x")
    assert not write_if_changed(path, "x")
    assert write_if_changed(path, "y")
