"""The templates of source kernels, which their authors wrote: files, places, errors.

Every line that comes from a template is preceded by a ``#line`` where the compiler would number it
otherwise, so that an error in the author's C names the author's file. For that each line of a
template carries a mark through Jinja, which is taken out of the text afterwards.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tack.model.errors import CompileError, Position
from tack.model.keys import sha256
from tack.model.record import Record
from tack.render.templates import jinja

if TYPE_CHECKING:
    from jinja2 import Environment
    from jinja2.lexer import Token, TokenStream

__all__ = ["AuthorTemplate", "TemplateMisuse"]

_MARK: Final = re.compile("\x01([^\x01\x02]*):([0-9]+)\x02")
_SAID: Final = (
    r"(?:^|\s)(?P<name>{})[:(](?P<line>\d+)(?::(?P<column>\d+))?\)?:\s*"
    r"(?:fatal )?error:\s*(?P<words>.*)$"
)
"""How gcc, clang and nvcc name the place of an error."""

_NAMING: Final = ("include", "import", "extends", "from")
"""The statements of Jinja that name a file."""


class TemplateMisuse(Exception):
    """A template asks for something that cannot be; its words are those of the error."""


class AuthorTemplate(Record):
    """A template of a kernel: its ``name``, such as ``package/saxpy.c.j2``, below the ``root``.

    An ``include``, ``import`` or ``extends`` names a file relative to the one that it stands in.
    """

    kernel: str
    root: str
    name: str

    def files(self) -> dict[str, str]:
        """The template and every file that it names, directly or not: name -> SHA-256.

        `CompileError` for one that is missing or outside of the package, and for what is no Jinja.
        """
        jinja2, contents = jinja(), dict[str, str]()
        queue = [(self.name, self.name, 1)]
        for name, parent, line in queue:
            if name in contents:
                continue
            text = self._read(name)
            if text is None:
                raise self._error(
                    f"there is no file {name} in the package; a template names others relative to "
                    "its own folder",
                    parent,
                    line,
                )
            contents[name] = sha256(text.encode())
            try:
                named = _references(self.root, name, text)
            except jinja2.TemplateSyntaxError as error:
                raise self._error(f"{error.message}", name, error.lineno) from None
            for other in named:
                if other is None:
                    raise self._error(
                        "an include, import or extends names its file by a text alone, so that it "
                        "is known what the kernel is made of",
                        name,
                        _first_line(text, _NAMING),
                    )
                queue.append((_beside(other, name), name, _first_line(text, (other,))))
        return contents

    def fill(self, values: Mapping[str, Any]) -> str:
        """The text with ``values`` in their places, and ``#line`` where lines have their origin.

        `CompileError` with the file and the line of what is undefined or raises.
        """
        files = self.files()
        try:
            text = _environment(self.root).get_template(self.name).render(values)
        except Exception as error:
            words = str(error)
            if re.fullmatch(r"'\w+' is undefined", words):
                words += f"; a template of this kernel has {', '.join(values)}"
            elif not isinstance(error, jinja().UndefinedError | TemplateMisuse):
                words = f"the template raises {type(error).__name__}: {words}"
            raise self._error(words, *self._raised_at(error, files)) from error
        return "".join(_numbered(text))

    def refused(self, said: str) -> CompileError | None:
        """The first error of a compiler that stands in the author's files, at its place there."""
        names = "|".join(map(re.escape, self.files()))
        found = re.search(_SAID.format(names), said, re.MULTILINE)
        if found is None:
            return None
        column = int(found["column"] or 1) - 1
        words = f"the compiler says: {found['words']}"
        return self._error(words, found["name"], int(found["line"]), column)

    def _read(self, name: str) -> str | None:
        """The text of a file; None where there is none in the package."""
        package, slash, _ = self.name.partition("/")
        if name.startswith(("/", "../")) or (slash and not name.startswith(f"{package}/")):
            return None
        return _text(self.root, name)

    def _raised_at(self, error: BaseException, files: Mapping[str, str]) -> tuple[str, int]:
        """The file and the line of the template that raised, as Jinja writes them in the trace."""
        found, trace = (self.name, 1), error.__traceback__
        while trace is not None:
            name = trace.tb_frame.f_code.co_filename
            if name in files:
                found = name, trace.tb_lineno
            trace = trace.tb_next
        return found

    def _error(self, message: str, name: str, line: int, column: int = 0) -> CompileError:
        """An error at a place of a file; without a column, at the line's text."""
        lines = (self._read(name) or "").splitlines()
        text = lines[line - 1] if 0 < line <= len(lines) else ""
        start = column or len(text) - len(text.lstrip())
        word = re.compile(r"\w+|").match(text, start) if column else None
        end = max(word.end(), start + 1) if word else len(text)
        place = Position(str(_path(self.root, name)), line, start, end, text, self.kernel)
        return CompileError(message, place)


def _path(root: str, name: str) -> Path:
    return Path(root, *name.split("/"))


def _text(root: str, name: str) -> str | None:
    """The text of a file below ``root``, byte for byte; None where there is none."""
    try:
        return _path(root, name).read_bytes().decode()
    except OSError:
        return None
    except UnicodeDecodeError as error:
        raise CompileError(f"{_path(root, name)} is not UTF-8: {error}") from None


def _beside(name: str, parent: str) -> str:
    """What a file means by the name of another one."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(parent), name))


@lru_cache(maxsize=64)
def _references(root: str, name: str, text: str) -> tuple[str | None, ...]:
    """The files that a text names; None for one that only a call would tell."""
    from jinja2 import meta

    tree = _environment(root).parse(text, name, name)
    return tuple(meta.find_referenced_templates(tree))


def _first_line(text: str, words: tuple[str, ...]) -> int:
    """The number of the first line that has one of ``words``."""
    lines = enumerate(text.splitlines(), start=1)
    return next((number for number, line in lines if any(word in line for word in words)), 1)


@cache
def _environment(root: str) -> Environment:
    """Jinja for the templates below ``root``: an edited file is read again."""
    jinja()
    import jinja2
    from jinja2.ext import Extension

    class Marks(Extension):
        def filter_stream(self, stream: TokenStream) -> Iterable[Token]:
            return _marked(stream)

    class Relative(jinja2.Environment):
        def join_path(self, template: str, parent: str) -> str:
            return _beside(template, parent)

    class Undefined(jinja2.StrictUndefined):
        @property
        def _undefined_message(self) -> str:
            offers = getattr(type(self._undefined_obj), "offers", None)
            if offers is None:
                return str(super()._undefined_message)
            return f"there is no {self._undefined_name!r} here; there is {', '.join(offers)}"

    def load(name: str) -> tuple[str, str, Any] | None:
        text = _text(root, name)
        return None if text is None else (text, name, lambda: _text(root, name) == text)

    environment: Environment = Relative(
        loader=jinja2.FunctionLoader(load),
        extensions=[Marks],
        undefined=Undefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment


def _marked(stream: TokenStream) -> Iterator[Token]:
    """The tokens of a template, with a mark at the beginning of every line of its text."""
    from jinja2.lexer import Token

    marked = 0
    for token in stream:
        if token.type == "variable_begin" and token.lineno > marked:
            marked = token.lineno
            yield Token(marked, "data", _mark(stream.name, marked))
        if token.type != "data":
            yield token
            continue
        *lines, last = token.value.split("\n")
        pieces: list[str] = []
        for number, text in enumerate(lines, start=token.lineno):
            pieces.append(_mark(stream.name, number) * (number > marked) + text)
            marked = max(marked, number)
        number = token.lineno + len(lines)
        if last and number > marked:  # else a statement may follow, which leaves no line
            marked = number
            last = _mark(stream.name, number) + last
        yield Token(token.lineno, "data", "\n".join([*pieces, last]))


def _mark(name: str | None, line: int) -> str:
    return f"\x01{name}:{line}\x02"


def _numbered(text: str) -> Iterator[str]:
    """The lines of a filled template without their marks, with ``#line`` where one is needed.

    None stands inside of what a backslash at the end of a line continues.
    """
    file, number, continued = "", 0, False
    for line in text.removesuffix("\n").split("\n"):
        found = _MARK.match(line)
        plain = _MARK.sub("", line)
        if found and (found[1], int(found[2])) != (file, number) and not continued:
            file, number = found[1], int(found[2])
            yield f'#line {number} "{file}"\n'
        yield plain + "\n"
        number += 1
        continued = plain.endswith("\\")
