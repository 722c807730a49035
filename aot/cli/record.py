"""``tack-aot record``."""

from __future__ import annotations

from pathlib import Path

import click

from tack.aot.cli.options import FILE, json_option
from tack.aot.cli.output import print_json
from tack.aot.recording import manifest_rows, read_notes

__all__ = ["command"]


@click.command("record")
@click.argument("notes", type=FILE)
@json_option
def command(notes: Path, as_json: bool) -> None:
    """Turn NOTES, the file of TACK_RECORD, into lines for the manifest.

    \b
    Example:
      $ TACK_RECORD=notes.txt python -m pytest
      $ tack-aot record notes.txt
    """
    with notes.open(encoding="utf-8", errors="replace") as file:
        found = read_notes(file, str(notes))
    if as_json:
        print_json([{"name": kernel, "signatures": found[kernel]} for kernel in found])
    else:
        click.echo(manifest_rows(found), nl=False)
