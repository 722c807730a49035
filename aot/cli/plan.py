"""``tack-aot plan``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from tack.aot.cli.options import json_option, machine_option, manifest_option, targets_option
from tack.aot.cli.output import console, print_json, print_table
from tack.aot.manifest import read_manifest
from tack.aot.plan import Plan, make_plan

__all__ = ["command"]


@click.command("plan")
@manifest_option
@targets_option
@machine_option
@json_option
def command(manifest: Path, targets: Sequence[str] | None, machine: str, as_json: bool) -> None:
    """List the variants that a manifest asks for, and the rows that are skipped, with the reason.

    Every kernel is compiled as far as C, so what does not compile is said here, with file, line
    and column. Nothing is written.

    \b
    Example:
      $ tack-aot plan --manifest tack-aot.toml
    """
    plan = make_plan(read_manifest(manifest), machine=machine, backends=targets)
    if as_json:
        print_json(_document(plan))
    else:
        _show(plan)


def _document(plan: Plan) -> dict[str, Any]:
    return {
        "package": plan.manifest.package,
        "targets": [str(target) for target in plan.targets],
        "units": [
            {
                "path": unit.path,
                "kernel": unit.kernel,
                "target": str(unit.target),
                "variants": [
                    {"signature": str(s.variant.signature), "source_key": s.source_key}
                    for s in unit.sources
                ],
            }
            for unit in plan.units
        ],
        "skipped": [{name: getattr(s, name) for name in s.field_names} for s in plan.skipped],
        "modules": dict(plan.modules),
    }


def _show(plan: Plan) -> None:
    units = plan.units
    variants = sum(len(unit.sources) for unit in units)
    console().print(
        f"{plan.manifest.package}: {len(plan.kernels)} kernels, {variants} variants in "
        f"{len(units)} units for {', '.join(map(str, plan.targets))}"
    )
    rows: dict[tuple[str, str], list[str]] = {}
    for unit in units:
        for source in unit.sources:
            rows.setdefault((unit.kernel, str(source.variant.signature)), []).append(
                unit.target.arch
            )
    print_table(
        ("kernel", "signature", "targets"), [(*row, " ".join(arch)) for row, arch in rows.items()]
    )
    if plan.skipped:
        print_table(
            ("skipped", "signature", "target", "reason"),
            [(s.kernel, s.signature, s.target, s.reason) for s in plan.skipped],
        )
