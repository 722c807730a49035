"""``tack-aot init``."""

from __future__ import annotations

from pathlib import Path

import click

from tack.aot.cli.options import FOLDER, json_option
from tack.aot.cli.output import print_json
from tack.aot.skeleton import write_package

__all__ = ["command"]


@click.command("init")
@click.argument("name")
@click.option("--into", type=FOLDER, help="The folder to write; by default one called NAME.")
@json_option
def command(name: str, into: Path | None, as_json: bool) -> None:
    """Write the package NAME: one kernel, its manifest, and the build that ships it.

    No file that is there is overwritten.

    \b
    Example:
      $ tack-aot init mykernels
      $ pip wheel --no-deps ./mykernels
    """
    folder = into or Path(name)
    files = write_package(name, folder)
    if as_json:
        print_json({"folder": str(folder), "files": list(files)})
    else:
        for file in files:
            click.echo(folder / file)
