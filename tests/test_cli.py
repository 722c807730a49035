"""The command: each subcommand, its --json, its help, and how it fails."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from harness import needs_level
from projects import MANIFEST, Project

from tack.aot.cli import main
from tack.aot.cli.app import COMMANDS
from tack.aot.tools import find_tool

needs_build = needs_level("x86-64-v2")


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Runs the command in a fresh folder; exit status, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object):
        status = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_an_example_and_json(command, run):
    status, out, err = run(command, "--help")
    assert (status, err) == (0, "")
    example = out.partition("  Example:\n")[2]
    assert f"$ tack-aot {command}" in example or "$(tack-aot cmake-dir)" in example
    assert "--json" in out


def test_the_group_lists_its_commands(run):
    status, out, _ = run("--help")
    assert status == 0
    for command, purpose in COMMANDS.items():
        assert f"{command} " in out
        assert purpose in out
    assert "step" not in out


def test_usage_errors_have_status_2(run):
    for arguments in (
        ["frobnicate"],
        ["plan", "--frob"],
        ["inspect"],
        ["render", "--emit", "cuda"],
    ):
        status, out, err = run(*arguments)
        assert (status, out) == (2, "")
        assert err.startswith("Usage: tack-aot")


def test_a_manifest_that_is_not_there(run):
    for command in ("plan", "render", "build"):
        status, out, err = run(command)
        assert (status, out) == (1, "")
        assert err.startswith("tack-aot: tack-aot.toml: there is no manifest; write one")
        assert err.count("\n") == 1


def test_plan(run, tmp_path):
    Project(tmp_path, name="planned_cli")
    status, out, err = run("plan", "--machine", "x86_64")
    assert (status, err) == (0, "")
    assert "planned_cli: 2 kernels, 6 variants in 4 units for cpu:x86-64-v2, cpu:x86-64-v3" in out
    assert "f32, f32[:], f32[:], f32[:]" in out
    assert max(map(len, out.splitlines())) <= 200


def test_plan_as_json(run, tmp_path):
    manifest = MANIFEST.replace('"x86-64-v2", "x86-64-v3"', '"x86-64-v3", "aarch64"')
    Project(tmp_path, manifest=manifest, name="planned_json")
    status, out, _ = run("plan", "--json", "--machine", "x86_64")
    assert status == 0
    document = json.loads(out)
    assert document["package"] == "planned_json"
    assert document["targets"] == ["cpu:x86-64-v3"]
    assert [unit["path"] for unit in document["units"]] == [
        f"cpu/x86-64-v3/planned_json-kernels--{kernel}.c" for kernel in ("saxpy", "scale")
    ]
    assert {len(v["source_key"]) for unit in document["units"] for v in unit["variants"]} == {64}
    assert {row["target"] for row in document["skipped"]} == {"cpu:aarch64"}


def test_skipped_rows_are_shown_with_the_reason(run, tmp_path):
    manifest = MANIFEST.replace('"x86-64-v2", "x86-64-v3"', '"x86-64-v3", "aarch64"')
    Project(tmp_path, manifest=manifest)
    _, out, _ = run("plan", "--machine", "x86_64")
    assert "aarch64 is a level of aarch64 and this builds for x86_64" in out


def test_what_a_module_prints_stays_out_of_the_answer(run, tmp_path):
    project = Project(tmp_path)
    project.write("__init__", "print('hello from the package')")
    status, out, err = run("plan", "--json", "--machine", "x86_64")
    assert status == 0
    assert json.loads(out)
    assert err == "hello from the package\n"


def test_render_to_stdout_and_to_a_folder(run, tmp_path):
    Project(tmp_path, name="rendered")
    status, out, _ = run("render", "--machine", "x86_64", "--kernel", "rendered.kernels:scale")
    assert status == 0
    assert "/* ---- cpu/x86-64-v2/rendered-kernels--scale.c ---- */" in out
    assert "tack_entry" not in out
    assert "saxpy" not in out
    status, out, _ = run("render", "--machine", "x86_64", "-o", "out")
    assert (status, out) == (0, "5 files in out, 5 of them changed\n")
    assert (tmp_path / "out" / "tack_abi.h").is_file()
    _, out, _ = run("render", "--machine", "x86_64", "-o", "out", "--json")
    assert json.loads(out)["changed"] == []
    status, out, _ = run("render", "--machine", "x86_64", "--json")
    assert len(json.loads(out)["files"]) == 5


def test_render_for_targets_that_the_manifest_does_not_name(run, tmp_path):
    Project(tmp_path, name="elsewhere")
    command = ["render", "--kernel", "elsewhere.kernels:scale"]
    targets = ("cuda:sm_90a", "cuda:compute_90", "hip:gfx11-generic", "metal:metal3.1")
    status, out, _ = run(*command, *(word for each in targets for word in ("--target", each)))
    assert status == 0
    assert "/* ---- cuda/sm_90a/elsewhere-kernels--scale.cu ---- */" in out
    assert "/* ---- cuda/compute_90/elsewhere-kernels--scale.cu ---- */" in out
    assert "/* ---- hip/gfx11-generic/elsewhere-kernels--scale.hip ---- */" in out
    assert "/* ---- metal/metal3.1/elsewhere-kernels--scale.metal ---- */" in out
    assert "__launch_bounds__(256)" in out
    status, _, err = run(*command, "--target", "cuda:sm90")
    assert status == 1
    assert "unknown cuda architecture 'sm90'; did you mean 'cuda:sm_90'?" in err


def test_render_of_the_intermediate_form(run, tmp_path):
    Project(tmp_path, name="shown")
    status, out, _ = run("render", "--machine", "x86_64", "--emit", "ir")
    assert status == 0
    assert "kernel shown.kernels:saxpy(a: f64, x: f64[:], y: f64[:], out: f64[:])" in out
    status, out, _ = run("render", "--machine", "x86_64", "--emit", "ir", "-o", "out")
    assert (tmp_path / "out" / "cpu" / "x86-64-v3" / "shown-kernels--scale.ir").is_file()


def test_render_of_a_kernel_that_is_not_listed(run, tmp_path):
    Project(tmp_path, name="near")
    status, _, err = run("render", "--machine", "x86_64", "--kernel", "near.kernels:scal")
    assert status == 1
    assert err == (
        "tack-aot: tack-aot.toml: no kernel 'near.kernels:scal' is listed; did you mean "
        "'near.kernels:scale'?\n"
    )


def test_cmake_dir(run):
    status, out, _ = run("cmake-dir")
    assert status == 0
    assert (Path(out.strip()) / "tackConfig.cmake").is_file()
    _, out_json, _ = run("cmake-dir", "--json")
    assert json.loads(out_json) == {"tack_DIR": out.strip()}


def test_init_writes_a_package_that_plans(run, tmp_path):
    status, out, _ = run("init", "fresh")
    assert status == 0
    assert out.splitlines() == [
        f"fresh/{path}"
        for path in (
            "pyproject.toml",
            "CMakeLists.txt",
            "tack-aot.toml",
            "src/fresh/__init__.py",
            "src/fresh/kernels.py",
        )
    ]
    assert "@" not in (tmp_path / "fresh" / "tack-aot.toml").read_text()
    status, out, _ = run("plan", "-m", "fresh/tack-aot.toml")
    assert status == 0
    assert "fresh.kernels:saxpy" in out
    _, out, _ = run("init", "again", "--into", "elsewhere", "--json")
    assert json.loads(out)["folder"] == "elsewhere"


def test_init_overwrites_nothing(run, tmp_path):
    run("init", "kept")
    (tmp_path / "kept" / "pyproject.toml").write_text("mine")
    status, _, err = run("init", "kept")
    assert (status, err) == (1, "tack-aot: kept/pyproject.toml exists; nothing was written\n")
    assert (tmp_path / "kept" / "pyproject.toml").read_text() == "mine"


@pytest.mark.parametrize(
    "name", ["my-kernels", "Kernels", "1st", "class", "json", "tack", "a.b", ""]
)
def test_init_refuses_a_name_that_cannot_be_imported(name, run, tmp_path):
    status, _, err = run("init", name)
    assert status == 1
    assert err.startswith(f"tack-aot: {name!r} ")
    assert not list(tmp_path.iterdir())


@needs_build
def test_build_inspect_and_rebuild(run, tmp_path):
    Project(tmp_path, name="built_cli")
    status, out, err = run("build", "-o", "src")
    assert (status, err) == (0, "")
    assert out == f"{tmp_path}/src/built_cli/_tack\n"
    status, out, err = run("inspect", "src/built_cli")
    assert (status, err) == (0, "")
    assert "built_cli: 2 kernels, 6 variants, built by tack" in out
    assert "built_cli.kernels:scale" in out
    status, out, _ = run("inspect", "src/built_cli", "--json")
    (document,) = json.loads(out)
    assert document["problems"] == []
    assert len(document["bundle"]["artifacts"]) == 2
    status, out, _ = run("build", "-o", "src", "--json", "--targets", "cpu")
    assert json.loads(out)["bundle"] == document["bundle"]

    library = tmp_path / "src" / "built_cli" / "_tack" / "cpu" / "x86-64-v3.so"
    library.write_bytes(library.read_bytes()[:-1])
    status, _, err = run("inspect", "src/built_cli")
    assert status == 1
    assert err.startswith("tack-aot: ")
    assert "cpu/x86-64-v3.so: it has " in err


@needs_build
def test_build_says_what_is_wrong_with_a_kernel(run, tmp_path):
    project = Project(tmp_path)
    project.edit("kernels", "a * x[i]", "b * x[i]")
    status, out, err = run("build")
    assert (status, out) == (1, "")
    assert "the name 'b' is not defined" in err
    assert "CMake" not in err
    project.edit("kernels", "b * x[i]", "a * x[i]")
    assert run("build")[0] == 0


@needs_build
def test_build_without_a_compiler(run, tmp_path, monkeypatch):
    Project(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.delenv("CC", raising=False)
    if find_tool("cmake") is None:
        pytest.skip("CMake is not beside this Python")
    status, _, err = run("build")
    assert status == 1
    assert err == (
        "tack-aot: tack needs a C compiler to build kernels, and CMake finds none: install gcc or "
        "clang, or name one in the environment variable CC\n"
    )


def test_doctor(run):
    status, out, _ = run("doctor", "--json")
    checks = {check["name"]: check for check in json.loads(out)}
    assert {"Python", "NumPy", "tack._core", "CPU", "C compiler", "CMake"} <= set(checks)
    assert status == int(any(not check["passed"] for check in checks.values()))
    assert checks["Python"]["passed"]
    assert run("doctor")[0] == status


def test_doctor_without_a_compiler_fails(run, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CC", "no-such-compiler")
    status, out, err = run("doctor")
    assert status == 1
    assert "no no-such-compiler, gcc or clang; install gcc" in out
    assert "C compiler" in err


def test_a_missing_dependency_is_a_sentence(tmp_path):
    code = (
        "import sys; sys.modules['click'] = None\n"
        "from tack.aot.cli import main; sys.exit(main(['plan']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 1
    assert done.stderr.startswith("tack-aot: click is not installed; install what builds need: ")


def test_output_that_nobody_reads_is_no_traceback(tmp_path):
    Project(tmp_path)
    done = subprocess.run(
        f"{sys.executable} -m tack.aot render --machine x86_64 | head -c 1",
        shell=True,
        check=False,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert "Traceback" not in done.stderr


def test_an_unwritable_folder_is_a_sentence(run, tmp_path):
    Project(tmp_path)
    (tmp_path / "out").write_text("a file")
    status, _, err = run("render", "--machine", "x86_64", "-o", "out/deeper")
    assert status == 1
    assert "Traceback" not in err
    assert err.startswith("tack-aot: ")


def test_the_command_runs_as_a_module(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "tack.aot", "--version"],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.stdout.startswith("tack-aot, version ")
