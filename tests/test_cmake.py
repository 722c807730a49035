"""The CMake module: exactly what changed is built again, and every failure is a sentence."""

from __future__ import annotations

import json
import os
import sys

import pytest
from harness import needs_level
from projects import MANIFEST, Project
from trees import GENERATORS, PROJECT, Tree

pytestmark = needs_level("x86-64-v2")


@pytest.fixture(params=GENERATORS)
def tree(request, tmp_path):
    """A tree that was configured and built."""
    tree = Tree(Project(tmp_path, name="treed"), request.param)
    done = tree.configure()
    assert done.returncode == 0, done.stdout
    tree.make()
    assert tree.starts() == ["plan", "render", "bundle"]
    return tree


def test_exactly_what_changed_is_built_again(tree):
    # One test, for a build is the dearest part of each of these.
    def built_by(old="", new="", module="kernels"):
        before = tree.objects()
        if old:
            tree.project.edit(module, old, new)
        tree.make()
        return tree.compiled_since(before), tree.starts()

    everything = ["plan", "render", "bundle"]
    assert built_by() == (set(), [])

    # One kernel; a function that another reaches; a constant that this one reads.
    saxpy = {"x86-64-v2 saxpy", "x86-64-v3 saxpy"}
    scale = {"x86-64-v2 scale", "x86-64-v3 scale"}
    assert built_by("a * x[i] + y[i]", "a * x[i] - y[i]") == (saxpy, everything)
    assert built_by("return x * HALF", "return HALF * x + x") == (scale, everything)
    assert built_by("constant(0.5", "constant(0.25") == (scale, everything)

    # The file's digest is in the bundle, but nothing is compiled.
    assert built_by("@tack.kernel", "# A comment.\n@tack.kernel") == (set(), everything)
    bundle = json.loads((tree.bundle / "manifest.json").read_text())
    assert len(bundle["kernels"]) == 2

    # A time stamp alone: the plan is known to be the same; rendering finds nothing to write.
    path = tree.project.source / "kernels.py"
    os.utime(path)
    assert built_by() == (set(), ["render"])
    assert built_by() == (set(), [])

    # Configuring without changes starts no Python.
    assert tree.configure().returncode == 0
    assert tree.starts() == []

    # The manifest: a level less, a signature more.
    tree.project.write_manifest(MANIFEST.replace('["f32", "f64"]', '["f32"]'))
    assert built_by() == (saxpy, everything)
    tree.project.write_manifest(MANIFEST.replace('"x86-64-v2", ', ""))
    assert built_by() == ({"x86-64-v3 saxpy"}, everything)
    document = json.loads((tree.bundle / "manifest.json").read_text())
    assert [a["path"] for a in document["artifacts"]] == ["cpu/x86-64-v3.so"]
    assert built_by() == (set(), [])


def test_another_compiler_compiles_everything_anew(tree):
    note = tree.build / "tack" / "kernels" / "toolchain-cpu.txt"
    assert "compiler = GNU" in note.read_text() or "compiler = Clang" in note.read_text()
    before = tree.objects()
    assert tree.configure("-DCMAKE_C_FLAGS=-O1").returncode == 0
    tree.make()
    assert len(tree.compiled_since(before)) == 4


@pytest.fixture
def plain(tmp_path):
    return Tree(Project(tmp_path / "plain", name="same"))


def test_the_bytes_depend_on_no_folder(plain, tmp_path):
    assert plain.configure().returncode == 0
    plain.make()
    other = Tree(Project(tmp_path / "another folder (with) $igns", name="same"), "Unix Makefiles")
    assert other.configure(PYTHONHASHSEED="3", LC_ALL="C").returncode == 0
    other.make()
    assert plain.libraries() == other.libraries()
    documents = [(t.bundle / "manifest.json").read_bytes() for t in (plain, other)]
    assert documents[0] == documents[1]
    for content in (*plain.libraries().values(), *documents):
        assert str(tmp_path).encode() not in content


def test_flags_of_the_environment_change_no_result(plain, tmp_path):
    assert plain.configure().returncode == 0
    plain.make()
    other = Tree(Project(tmp_path / "flags", name="same"))
    assert other.configure(CFLAGS="-Ofast -ffast-math -flto -g", LDFLAGS="-flto").returncode == 0
    other.make()
    assert plain.libraries() == other.libraries()


def test_a_flag_that_raises_the_level_fails_the_build(plain):
    assert plain.configure(CFLAGS="-mavx2").returncode == 0
    done = plain._cmake("--build", plain.build)
    assert done.returncode != 0
    assert "x86-64-v2.so: declared x86-64-v2, but the instruction '" in done.stdout
    assert "in tack_" in done.stdout
    assert "Traceback" not in done.stdout
    assert not (plain.bundle / "manifest.json").exists()


def test_installation_keeps_the_bytes(plain, tmp_path):
    plain.write_lists(PROJECT.replace("toml)", "toml TARGETS cpu DESTINATION lib/elsewhere)"))
    assert plain.configure("-DCMAKE_INSTALL_RPATH=/opt/lib").returncode == 0
    plain.make()
    done = plain._cmake("--install", plain.build, "--strip", "--prefix", tmp_path / "out")
    assert done.returncode == 0
    installed = tmp_path / "out" / "lib" / "elsewhere" / "_tack"
    built = {p.relative_to(plain.bundle): p.read_bytes() for p in plain.bundle.rglob("*.*")}
    assert {p.relative_to(installed): p.read_bytes() for p in installed.rglob("*.*")} == built
    assert len(built) == 3


# --- failing with a sentence ---------------------------------------------------------------------


def refusal(tree, *options, **environment):
    done = tree.configure(*options, **environment)
    assert done.returncode != 0
    assert "Traceback" not in done.stdout
    return " ".join(done.stdout.split())


def test_no_compiler(plain, tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    sentence = (
        "tack needs a C compiler to build kernels, and CMake finds none: install gcc or clang, or "
        "name one in the environment variable CC"
    )
    assert sentence in refusal(plain, PATH=str(tools), CC="")
    # With one, the same folder is configured.
    assert plain.configure().returncode == 0


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (
            "set(CMAKE_VERSION 3.24.1)",
            "tack needs CMake 3.25 or newer, and this is 3.24.1: python -m",
        ),
        ("set(CMAKE_SYSTEM_NAME Plan9)", "for Linux only so far, and this builds for Plan9"),
    ],
)
def test_what_tack_cannot_build_with(line, sentence, plain):
    plain.write_lists(PROJECT.replace("find_package", f"{line}\n    find_package"))
    assert sentence in refusal(plain)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            "kernels",
            "tack_add_kernels(kernels): write tack_add_kernels(<name> MANIFEST tack-aot.toml",
        ),
        ("kernels MANIFEST", "write tack_add_kernels(<name> MANIFEST"),
        ("kernels MANIFEST tack-aot.toml TARGET cpu", "write tack_add_kernels(<name> MANIFEST"),
        ("kernels MANIFEST nope.toml", "there is no manifest"),
        (
            "kernels MANIFEST tack-aot.toml TARGETS gpu",
            "TARGETS 'gpu' is no backend of this manifest",
        ),
    ],
)
def test_a_call_that_is_not_right(call, sentence, plain):
    plain.write_lists(PROJECT.replace("kernels MANIFEST tack-aot.toml", call))
    assert sentence in refusal(plain)


def test_a_python_without_tack(plain, tmp_path):
    bare = tmp_path / "bare"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -E "$@"\n')
    bare.chmod(0o755)
    message = refusal(plain, f"-DPython_EXECUTABLE={bare}")
    assert f"{bare} has no tack to build kernels with" in message
    assert "-m pip install 'tack-aot[build]'" in message


def test_a_mistake_in_a_kernel_is_shown_as_it_is_and_can_be_mended(plain):
    plain.project.edit("kernels", "a * x[i]", "b * x[i]")
    done = plain.configure()
    assert done.returncode != 0
    source = plain.project.source / "kernels.py"
    lines = [line.strip() for line in done.stdout.splitlines()]
    place = lines.index(f"{source}:13:18: in same.kernels:saxpy: the name 'b' is not defined")
    assert lines[place + 1] == "out[i] = b * x[i] + y[i]"
    assert lines[place + 2] == "^"
    assert (plain.build / "tack" / "refusal.txt").is_file()
    plain.project.edit("kernels", "b * x[i]", "a * x[i]")
    assert plain.configure().returncode == 0
    assert not (plain.build / "tack" / "refusal.txt").exists()
    plain.make()


def test_a_broken_edit_of_a_built_tree_can_be_mended(tree):
    tree.project.edit("kernels", "a * x[i]", "b * x[i]")
    assert tree._cmake("--build", tree.build).returncode != 0
    tree.project.edit("kernels", "b * x[i]", "a * x[i]")
    before = tree.objects()
    tree.make()
    assert tree.compiled_since(before) == set()


def test_a_build_that_was_killed_goes_on(tree):
    # A unit that was half written, and a library that was never finished.
    unit = (
        tree.build / "tack" / "kernels" / "units" / "cpu" / "x86-64-v2" / "treed-kernels--scale.c"
    )
    whole = unit.read_bytes()
    unit.write_bytes(whole[:100])
    (tree.build / "tack" / "kernels" / "render.stamp").unlink()
    for library in tree.bundle.rglob("*.so"):
        library.unlink()
    tree.make()
    assert unit.read_bytes() == whole
    assert len(tree.libraries()) == 2
