"""Options that several subcommands have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from tack.aot.manifest import MANIFEST_NAME

__all__ = ["FILE", "FOLDER", "json_option", "machine_option", "manifest_option", "targets_option"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

FILE: Final = click.Path(path_type=Path, dir_okay=False)
FOLDER: Final = click.Path(path_type=Path, file_okay=False)


def manifest_option(function: _Function) -> _Function:
    """``--manifest``: the manifest, by default the one in the working folder."""
    return click.option(
        "-m",
        "--manifest",
        type=click.Path(path_type=Path),
        default=MANIFEST_NAME,
        show_default=True,
        help="The manifest.",
    )(function)


def targets_option(function: _Function) -> _Function:
    """``--targets``: some of the manifest's backends."""

    def split(_ctx: click.Context, _param: click.Parameter, value: str | None) -> Any:
        return None if value is None else [name.strip() for name in value.split(",")]

    return click.option(
        "--targets",
        metavar="BACKENDS",
        callback=split,
        help="Build for these backends only, such as cpu,cuda.",
    )(function)


def machine_option(function: _Function) -> _Function:
    """``--machine``: what to build for."""
    return click.option(
        "--machine",
        default=_machine,
        metavar="NAME",
        help="Build for this machine, such as x86_64; by default for this one.",
    )(function)


def _machine() -> str:
    import platform

    return platform.machine()


def json_option(function: _Function) -> _Function:
    """``--json``: the answer as a document instead of a table."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(function)
