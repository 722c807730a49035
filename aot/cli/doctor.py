"""``tack-aot doctor``."""

from __future__ import annotations

from dataclasses import asdict

import click

from tack.aot.cli.options import json_option
from tack.aot.cli.output import print_json, print_table
from tack.aot.diagnosis import diagnose
from tack.model.errors import ToolchainError

__all__ = ["command"]


@click.command("doctor")
@json_option
def command(as_json: bool) -> None:
    r"""Say what this machine can build and run; exit status 1 if something is missing.

    \b
    Example:
      $ tack-aot doctor
    """
    checks = diagnose()
    if as_json:
        print_json([asdict(check) for check in checks])
    else:
        print_table(
            ("check", "", "found", "needed to"),
            [(c.name, "ok" if c.passed else "missing", c.detail, c.purpose) for c in checks],
        )
    missing = [check.name for check in checks if not check.passed]
    if missing:
        raise ToolchainError(f"missing or not as needed: {', '.join(missing)}")
