"""The one Jinja environment: files are laid out by the templates of `tack.templates`.

Python decides precedence, literals and names; a template only places what it is given. Jinja is
imported when the first file is laid out, for a prebuilt kernel needs none.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["fill", "jinja"]


def fill(template: str, **values: Any) -> str:
    """The text of ``template`` (such as ``"c/unit.c.j2"``) with ``values`` in their places.

    A name that the template uses and ``values`` lacks is an error (``jinja2.UndefinedError``).
    """
    return _environment().get_template(template).render(values)


def jinja() -> Any:
    """The module `jinja2`; `ToolchainError` where it is not installed."""
    try:
        import jinja2
    except ImportError:
        from tack.model.errors import ToolchainError

        raise ToolchainError(
            "rendering a kernel needs jinja2; install it with: pip install 'tack-aot[build]'"
        ) from None
    return jinja2


@cache
def _environment() -> Environment:
    jinja2 = jinja()
    environment: Environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_read),
        undefined=jinja2.StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment


def _read(template: str) -> str | None:
    path = files("tack.templates").joinpath(*template.split("/"))
    return path.read_text(encoding="utf-8") if path.is_file() else None
