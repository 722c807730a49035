"""``tack-aot inspect``."""

from __future__ import annotations

from pathlib import Path

import click

from tack.aot.cli.options import json_option
from tack.aot.cli.output import console, print_json, print_table
from tack.aot.report import Inspection, inspect
from tack.model.errors import BundleError

__all__ = ["command"]


@click.command("inspect")
@click.argument("wheel", type=click.Path(path_type=Path))
@json_option
def command(wheel: Path, as_json: bool) -> None:
    """Say what WHEEL holds, and compare every digest with the bytes.

    WHEEL is a wheel, the folder of an installed package, or the folder of a bundle.

    \b
    Example:
      $ tack-aot inspect mykernels-1.0-py3-none-linux_x86_64.whl
    """
    inspections = inspect(wheel)
    if as_json:
        print_json([inspection.to_json() for inspection in inspections])
    else:
        for inspection in inspections:
            _show(inspection)
    problems = [
        f"{inspection.place}: {file.path}: {file.problem}"
        for inspection in inspections
        for file in inspection.problems
    ]
    if problems:
        raise BundleError("\n".join(problems))


def _show(inspection: Inspection) -> None:
    bundle = inspection.bundle
    variants = sum(len(kernel.variants) for kernel in bundle.kernels)
    out = console()
    out.print(
        f"{bundle.package}: {len(bundle.kernels)} kernels, {variants} variants, "
        f"built by tack {bundle.tack} (ABI {bundle.abi})"
    )
    for key, value in bundle.toolchain.items():
        out.print(f"  {key}: {value}")
    problems = {file.path: file.problem for file in inspection.libraries}
    print_table(
        ("file", "needs", "bytes>", "sha256", "checked"),
        [
            (a.path, a.needs, f"{a.size:,}", a.sha256[:16], problems[a.path] or "ok")
            for a in bundle.artifacts
        ],
    )
    print_table(
        ("kernel", "signature", "targets", "source key"),
        [
            (
                kernel.name,
                str(signature),
                " ".join(v.target.arch for v in kernel.variants if v.signature == signature),
                next(v.source_key for v in kernel.variants if v.signature == signature)[:16],
            )
            for kernel in bundle.kernels
            for signature in dict.fromkeys(v.signature for v in kernel.variants)
        ],
    )
    if bundle.skipped:
        print_table(
            ("skipped", "signature", "target", "reason"),
            [(s.kernel, s.signature, s.target, s.reason) for s in bundle.skipped],
        )
