"""``tack-aot build``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from tack.aot.cli.options import FOLDER, json_option, manifest_option, targets_option
from tack.aot.cli.output import print_json
from tack.aot.manifest import read_manifest
from tack.aot.project import build_bundle
from tack.aot.report import inspect

__all__ = ["command"]


@click.command("build")
@manifest_option
@targets_option
@click.option(
    "-o",
    "--output",
    type=FOLDER,
    help="Put <package>/_tack below this folder; by default below the build folder.",
)
@click.option(
    "--build-dir",
    type=FOLDER,
    help="Where compiled units are kept for the next build; build/tack-aot beside the manifest.",
)
@click.option(
    "-j",
    "--jobs",
    type=click.IntRange(min=1),
    help="Run so many compilers at once; by default one a core, for GPUs as memory allows.",
)
@click.option("-v", "--verbose", is_flag=True, help="Show what CMake prints.")
@json_option
def command(
    *,
    manifest: Path,
    targets: Sequence[str] | None,
    output: Path | None,
    build_dir: Path | None,
    jobs: int | None,
    verbose: bool,
    as_json: bool,
) -> None:
    """Build a bundle without a project of one's own, and print its folder.

    It writes and runs the CMake project that tack_add_kernels is made for.

    \b
    Example:
      $ tack-aot build --output src
      src/mykernels/_tack
    """
    read = read_manifest(manifest)
    work = build_dir or manifest.parent / "build" / "tack-aot"
    build = build_bundle(
        read, output or work / "bundle", work, backends=targets, jobs=jobs, verbose=verbose
    )
    if as_json:
        (inspection,) = inspect(build.bundle)
        print_json({"folder": str(build.bundle), "bundle": inspection.bundle.to_json()})
    else:
        click.echo(build.bundle)
