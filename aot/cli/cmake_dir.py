"""``tack-aot cmake-dir``."""

from __future__ import annotations

import click

from tack.aot.cli.options import json_option
from tack.aot.cli.output import print_json
from tack.aot.cmake import cmake_dir

__all__ = ["command"]


@click.command("cmake-dir")
@json_option
def command(as_json: bool) -> None:
    """Print the folder for tack_DIR in a plain CMake project.

    scikit-build-core finds it by itself.

    \b
    Example:
      $ cmake -S . -B build -Dtack_DIR="$(tack-aot cmake-dir)"
    """
    folder = str(cmake_dir())
    if as_json:
        print_json({"tack_DIR": folder})
    else:
        click.echo(folder)
