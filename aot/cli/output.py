"""What subcommands print: documents, and tables that lose nothing when they are piped."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["console", "print_json", "print_table"]

_PIPED_WIDTH: Final = 200


def print_json(document: Any) -> None:
    """Prints ``document`` as JSON."""
    click.echo(json.dumps(document, indent=2))


def console() -> Console:
    """A console on stdout; wide where no terminal says how wide it is."""
    from rich.console import Console

    # Looked up now: stdout may have been exchanged since this module was imported.
    width = None if sys.stdout.isatty() else _PIPED_WIDTH
    return Console(file=sys.stdout, width=width, highlight=False, emoji=False, markup=False)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Prints a table; what does not fit is continued on the next line, never cut."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE, pad_edge=False)
    for column in columns:
        right = column.endswith(">")
        table.add_column(
            column.removesuffix(">"), overflow="fold", justify="right" if right else "left"
        )
    for row in rows:
        table.add_row(*row)
    console().print(table)
