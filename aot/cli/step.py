"""``tack-aot step``: what the CMake module runs. Not for people, and not listed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from tack.aot.cli.options import FILE, FOLDER, machine_option, manifest_option, targets_option

__all__ = ["command"]

RECORD = "variants.json"


@click.group("step", hidden=True)
def command() -> None:
    """The steps of a build, as the CMake module runs them."""


@command.command("plan")
@manifest_option
@targets_option
@machine_option
@click.option("--output", type=FILE, required=True)
@click.option("--compiler", "named", type=(str, str), multiple=True)
def plan_step(
    *,
    manifest: Path,
    targets: Sequence[str] | None,
    machine: str,
    output: Path,
    named: Sequence[tuple[str, str]],
) -> None:
    """Writes the plan as CMake reads it; ``--compiler cuda nvcc`` names a compiler of images."""
    from tack.aot.cmake_plan import cmake_plan
    from tack.aot.compilers import plan_compilers
    from tack.aot.emit import write_if_changed
    from tack.aot.manifest import read_manifest
    from tack.aot.plan import make_plan

    plan = make_plan(read_manifest(manifest), machine=machine, backends=targets)
    write_if_changed(output, cmake_plan(plan, plan_compilers(plan, dict(named))))


@command.command("render")
@manifest_option
@targets_option
@machine_option
@click.option("--folder", type=FOLDER, required=True)
def render_step(manifest: Path, targets: Sequence[str] | None, machine: str, folder: Path) -> None:
    """Writes the units, the record, the depfile and, last, the stamp."""
    from tack.aot.emit import depfile, dump, emit_units, record, write_if_changed
    from tack.aot.manifest import read_manifest
    from tack.aot.plan import open_plan

    stamp = folder / "render.stamp"
    with open_plan(read_manifest(manifest), machine=machine, backends=targets) as plan:
        emit_units(plan, folder / "units")
        write_if_changed(folder / RECORD, dump(record(plan).to_json()))
        write_if_changed(folder / "render.d", depfile(stamp, plan.inputs))
    stamp.write_bytes(b"")


@command.command("bundle")
@click.option("--folder", type=FOLDER, required=True)
@click.option("--toolchain", "toolchains", type=FILE, multiple=True)
def bundle_step(folder: Path, toolchains: Sequence[Path]) -> None:
    """Writes packs, checks them and the libraries, and writes the bundle's manifest beside them."""
    from tack.aot.bundle import write_bundle
    from tack.model.bundle import FOLDER as BUNDLE
    from tack.model.bundle import MANIFEST

    manifest = folder / BUNDLE / MANIFEST
    manifest.unlink(missing_ok=True)  # a failed check leaves no bundle that looks complete
    toolchain = {k: v for path in toolchains for k, v in _read_toolchain(path).items()}
    write_bundle(folder / RECORD, toolchain, manifest)


def _read_toolchain(path: Path) -> dict[str, str]:
    """What ``toolchain-cuda.txt`` says, each with the backend before it."""
    backend = path.stem.partition("-")[2]
    lines = path.read_text(encoding="utf-8").splitlines()
    pairs = (line.partition(" = ") for line in lines)
    return {f"{backend} {key}": value for key, _, value in pairs}
