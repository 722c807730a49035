"""``tack-aot render``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import click

from tack.aot.cli.options import (
    FOLDER,
    json_option,
    machine_option,
    manifest_option,
    targets_option,
)
from tack.aot.cli.output import print_json
from tack.aot.emit import headers, unit_texts, write_if_changed
from tack.aot.listing import unit_ir
from tack.aot.manifest import read_manifest
from tack.aot.plan import Plan, open_plan
from tack.model.errors import ManifestError
from tack.model.spelling import advice
from tack.model.targets import Target

__all__ = ["command"]

_FORMS: Final[dict[str, Callable[[Plan], dict[str, str]]]] = {"text": unit_texts, "ir": unit_ir}


def _parsed(
    _ctx: click.Context, _param: click.Parameter, names: Sequence[str]
) -> tuple[Target, ...]:
    try:
        return tuple(map(Target.parse, names))
    except ValueError as error:
        raise ManifestError(str(error)) from None


@click.command("render")
@manifest_option
@targets_option
@machine_option
@click.option(
    "--target",
    "only",
    metavar="TARGET",
    multiple=True,
    callback=_parsed,
    help="Render for this target, such as cuda:sm_90a, whatever the manifest builds for.",
)
@click.option("--kernel", metavar="NAME", help="Render this kernel only, such as pkg.mod:saxpy.")
@click.option(
    "--emit",
    type=click.Choice(list(_FORMS)),
    default="text",
    show_default=True,
    help="What to write.",
)
@click.option("-o", "--output", type=FOLDER, help="Write files below this folder, not to stdout.")
@json_option
def command(
    *,
    manifest: Path,
    targets: Sequence[str] | None,
    machine: str,
    only: tuple[Target, ...],
    kernel: str | None,
    emit: str,
    output: Path | None,
    as_json: bool,
) -> None:
    """Write the sources that a build would compile, or the intermediate form before them.

    \b
    Example:
      $ tack-aot render --kernel mykernels.kernels:saxpy
      $ tack-aot render --output rendered
      $ tack-aot render --target cuda:sm_90a --target metal:metal3.1
    """
    with open_plan(
        read_manifest(manifest), machine=machine, backends=targets, targets=only
    ) as plan:
        chosen = _only(plan, kernel)
        texts, included = _FORMS[emit](chosen), headers(chosen)
    if output is not None:
        changed = [path for path, text in texts.items() if write_if_changed(output / path, text)]
        _report(output, texts, changed, as_json)
    elif as_json:
        print_json({"files": texts})
    else:
        for path, text in ((p, t) for p, t in texts.items() if p not in included):
            click.echo(f"/* ---- {path} ---- */\n{text}", nl=False)


def _only(plan: Plan, kernel: str | None) -> Plan:
    """The plan with one kernel, or all of it."""
    if kernel is None:
        return plan
    chosen = plan.select(kernel)
    if chosen is None:
        names = [k.name for k in plan.kernels]
        raise ManifestError(
            f"{plan.manifest.path}: no kernel {kernel!r} is listed; {advice(kernel, names)}"
        )
    return chosen


def _report(output: Path, texts: Any, changed: Sequence[str], as_json: bool) -> None:
    if as_json:
        print_json({"folder": str(output), "files": list(texts), "changed": list(changed)})
    else:
        click.echo(f"{len(texts)} files in {output}, {len(changed)} of them changed")
