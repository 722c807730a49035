"""``tack-aot doctor``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

import click

from tack.aot.cli.options import json_option
from tack.aot.cli.output import print_json, print_table
from tack.aot.diagnosis import Check, buildable_backends, diagnose
from tack.model.errors import ToolchainError

__all__ = ["command"]


@click.command("doctor")
@click.option("--backends", is_flag=True, help="Print only the backends that it can build for.")
@json_option
def command(backends: bool, as_json: bool) -> None:
    """Say what this machine can build and run; exit status 1 if something is missing.

    \b
    Example:
      $ tack-aot doctor
      $ tack-aot doctor --backends
      cpu cuda metal
    """
    if backends:
        found = buildable_backends()
        print_json(list(found)) if as_json else click.echo(" ".join(found))
        return
    checks = (*diagnose(), *_jit())
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


def _jit() -> Iterator[Check]:
    """What compiles at a call and what keeps it. Neither has to be there."""
    from tack.backends.cpu_jit import toolchain
    from tack.runtime.cache import default_cache

    try:
        found = str(toolchain())
    except ToolchainError as error:
        found = f"none: {error}"
    yield Check("compiler at a call", "jit", True, found)
    cache = default_cache()
    if cache is None:
        kept = "none: install platformdirs (pip install 'tack-aot[jit]') or set TACK_CACHE_DIR"
    else:
        kept = f"off: {cache.reason}" if cache.reason else cache.folder
    yield Check("disk cache", "jit", True, kept)
