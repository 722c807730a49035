"""The group of subcommands, and how errors reach the user."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

import click

from tack.aot.inputs import tack_version
from tack.model.errors import TackError

__all__ = ["COMMANDS", "run"]

COMMANDS: Final[dict[str, str]] = {
    "init": "Write a package that ships a kernel.",
    "plan": "List the variants that a manifest asks for.",
    "render": "Write the sources that a build would compile.",
    "build": "Build a bundle without a project of one's own.",
    "inspect": "Say what a wheel or bundle holds, and check it.",
    "record": "Turn the notes of TACK_RECORD into manifest lines.",
    "cmake-dir": "Print the folder for tack_DIR in a plain CMake project.",
    "doctor": "Say what this machine can build and run.",
}
"""Subcommand -> what it does, so that ``--help`` need not import them."""

_HIDDEN: Final = "step"
"""The subcommand that the CMake module runs."""


class _Group(click.Group):
    """Finds a subcommand in the module of its name, when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS and cmd_name != _HIDDEN:
            return None
        module = import_module(f"tack.aot.cli.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(tack_version(), prog_name="tack-aot")
def tack_aot() -> None:
    """Ship numeric kernels prebuilt: plan, render, build and inspect them.

    \b
    Example:
      $ tack-aot init mykernels
      $ cd mykernels && tack-aot plan
    """


def run(arguments: Sequence[str] | None) -> int:
    """Runs the command; its exit status."""
    try:
        status = tack_aot.main(arguments, prog_name="tack-aot", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except TackError as error:
        return _fail(str(error))
    except (click.Abort, KeyboardInterrupt):
        return _fail("interrupted", 130)
    except BrokenPipeError:
        # Whoever read our output has had enough; nothing is left to flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        return _fail(f"{error.filename or 'a file'}: {error.strerror or error}")
    return status if isinstance(status, int) else 0


def _fail(message: str, status: int = 1) -> int:
    click.echo(f"tack-aot: {message}", err=True)
    return status
