"""The command ``tack-aot``; each subcommand is a module of its own, imported when it is used."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs ``tack-aot`` with ``arguments`` (those of the process by default); its exit status.

    0: done. 1: an error, said in one sentence on stderr. 2: the command was not written as it has
    to be.
    """
    try:
        from tack.aot.cli.app import run
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("click", "rich"):
            raise
        sys.stderr.write(
            f"tack-aot: {error.name} is not installed; install what builds need: "
            f'"{sys.executable}" -m pip install "tack-aot[build]"\n'
        )
        return 1
    return run(arguments)
