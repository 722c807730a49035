"""The source text of a function, and whether it is the text of the code that is running.

`inspect.getsource` answers with whatever is in the file now. Here a function's text is used only
if it belongs to the running code: compiled anew, it gives the same code object.
"""

from __future__ import annotations

import ast
import functools
import linecache
import os
import types
from collections.abc import Iterator
from typing import Final

from tack.model.errors import CompileError, Position
from tack.model.record import Record

__all__ = ["FileStamp", "SourceFunction", "SourceUnavailable", "read_function", "stamp_file"]

FileStamp = tuple[int, int, int]
"""Modification time in ns, size in bytes, inode."""


_FLAGS: Final = 0xFFF
"""The flags of a code object that say what it does; those above are of ``from __future__``."""


class SourceUnavailable(CompileError):
    """The text of a function cannot be had, or is not the text of the code that is running."""


def stamp_file(path: str) -> FileStamp | None:
    """What tells a file from its edited self, or None where there is no file."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


class SourceFunction(Record):
    """The syntax tree of one function and the lines of its file."""

    node: ast.FunctionDef
    file: str
    lines: tuple[str, ...]
    name: str

    def position(self, node: ast.AST) -> Position:
        """Where ``node``, a node of this function, stands."""
        line = getattr(node, "lineno", self.node.lineno)
        text = self.lines[line - 1].rstrip("\n") if line <= len(self.lines) else ""
        start = _column(text, getattr(node, "col_offset", 0))
        same_line = getattr(node, "end_lineno", line) == line
        end_offset = getattr(node, "end_col_offset", None) if same_line else None
        end = len(text) if end_offset is None else _column(text, end_offset)
        return Position(self.file, line, start, end, text, self.name)

    def refuse(self, node: ast.AST, message: str) -> CompileError:
        """The error that refuses ``node``, for the caller to raise."""
        return CompileError(message, self.position(node))


def _column(text: str, offset: int) -> int:
    """The column of a line that a number of bytes in UTF-8 leads to."""
    if text.isascii():
        return min(offset, len(text))
    return len(text.encode()[:offset].decode(errors="replace"))


def read_function(function: types.FunctionType, stamp: FileStamp | None) -> SourceFunction:
    """The source of ``function``, whose file had ``stamp`` when it was decorated.

    Raises `SourceUnavailable` where there is no text, or the text was edited since and is not
    that of the running code.
    """
    code = function.__code__
    name = f"{function.__module__ or '__main__'}:{function.__qualname__}"
    now = stamp_file(code.co_filename)
    lines = _file_lines(code.co_filename, now) if now else _cached_lines(function)
    if not lines:
        raise SourceUnavailable(
            f"{name}: the source {code.co_filename!r} cannot be read, so nothing can be compiled "
            f"from it; {_remedy(code.co_filename)}"
        )
    try:
        text = _parse(code.co_filename, lines)
    except (SyntaxError, ValueError) as error:
        raise SourceUnavailable(
            f"{name}: {code.co_filename} no longer parses ({error}); mend it and reload the module"
        ) from None
    found = text.functions.get(code.co_name, [])
    if now is not None and now == stamp and any(n.startswith("@py") for n in code.co_names):
        # pytest rewrites asserts, so that the code is not that of the text, which did not change.
        here = [node for node in found if _first_line(node) == code.co_firstlineno]
        if len(here) == 1:
            return SourceFunction(here[0], code.co_filename, lines, name)
    same = [other for other in text.codes if _same_code(other, code)]
    first_lines = {other.co_firstlineno for other in same}
    here = [node for node in found if _first_line(node) in first_lines]
    if not here:
        raise SourceUnavailable(
            f"{name}: {code.co_filename} was edited after it was imported, or its code was made "
            "from another text, so its text is not the running code's; reload the module"
        )
    best = min(here, key=lambda node: abs(_first_line(node) - code.co_firstlineno))
    return SourceFunction(best, code.co_filename, lines, name)


def _remedy(file: str) -> str:
    """What to do where a file cannot be read; code that was typed or executed never had one."""
    if file.startswith("<"):
        return "write the function in a .py file, or in a notebook"
    return "ship a prebuilt variant, or keep the .py file beside the package"


def _first_line(node: ast.FunctionDef) -> int:
    """The line that `co_firstlineno` names: that of the first decorator."""
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


@functools.lru_cache(maxsize=64)
def _file_lines(path: str, _stamp: FileStamp) -> tuple[str, ...]:
    import tokenize

    try:
        with tokenize.open(path) as file:
            return tuple(file.readlines())
    except (OSError, SyntaxError, UnicodeError):
        return ()


def _cached_lines(function: types.FunctionType) -> tuple[str, ...]:
    """The lines of a notebook cell or of a module in an archive."""
    return tuple(linecache.getlines(function.__code__.co_filename, function.__globals__))


@functools.lru_cache(maxsize=64)
def _parse(path: str, lines: tuple[str, ...]) -> _Text:
    return _Text("".join(lines), path)


class _Text:
    """The functions of a text by name, and its code objects, compiled when first asked for."""

    def __init__(self, text: str, path: str) -> None:
        self._text, self._path = text, path
        self.functions: dict[str, list[ast.FunctionDef]] = {}
        tree = ast.parse(text, path)
        for owner in reversed([n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)]):
            _mangle(owner)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                self.functions.setdefault(node.name, []).append(node)

    @functools.cached_property
    def codes(self) -> list[types.CodeType]:
        """Every code object of the text."""
        return list(_nested(compile(self._text, self._path, "exec", dont_inherit=True)))


def _mangle(node: ast.ClassDef) -> None:
    """Renames private names below a class as Python does: ``__x`` in ``C`` is ``_C__x``.

    Of nested classes the inner one comes first, after which its names are private no more.
    """
    prefix = node.name.lstrip("_")
    for inner in (i for statement in node.body for i in ast.walk(statement)):
        for field in ("id", "arg", "attr"):
            name = getattr(inner, field, None)
            private = isinstance(name, str) and name.startswith("__") and not name.endswith("__")
            if private and prefix:
                setattr(inner, field, f"_{prefix}{name}")


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _nested(constant)


def _same_code(left: types.CodeType, right: types.CodeType) -> bool:
    """Whether two code objects do the same, wherever they stand."""
    return _facts(left) == _facts(right)


def _facts(code: types.CodeType) -> tuple[object, ...]:
    constants = tuple(
        _facts(constant)
        if isinstance(constant, types.CodeType)
        else (type(constant), repr(constant))
        for constant in code.co_consts
    )
    return (
        code.co_name,
        code.co_code,
        constants,
        code.co_names,
        code.co_varnames,
        code.co_freevars,
        code.co_cellvars,
        code.co_argcount,
        code.co_kwonlyargcount,
        code.co_flags & _FLAGS,
    )
