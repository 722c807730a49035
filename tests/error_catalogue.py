"""The catalogue of what the language refuses, made from tack's code: `docs/errors.md`.

Every call in `tack.lang` and `tack.passes` that words a refusal is found in the syntax trees of
their files; what its message leaves open is a gap. `refusal_cases` has a program for each.

    python tests/error_catalogue.py > docs/errors.md
"""

from __future__ import annotations

import ast
import itertools
import re
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from generator import load_module
from refusal_cases import CASES, refused

import tack

__all__ = ["PAGE", "Entry", "entries", "page", "uncovered"]

PAGE = Path(__file__).parent.parent / "docs" / "errors.md"

_GAP = "\N{HORIZONTAL ELLIPSIS}"
_WORDING = ("refuse", "refuse_template", "Refusal")
_ROOT = Path(tack.__path__[0])

_INTRODUCTION = """# What the kernel language refuses

Made from the code by `tests/error_catalogue.py`; a test holds them together. Every refusal names
the function, the file, the line and the column, shows the line with a caret, and says what to write
instead. What a message fills in is written `…` here; below each is the error of a program.
"""

_CHAPTERS = {
    "lang/definition.py": "Annotations",
    "lang/lower.py": "The kernel and its parallel loop",
    "lang/lower_declaration.py": "Declarations of source kernels",
    "lang/lower_statements.py": "Statements",
    "lang/lower_print.py": "Prints",
    "lang/lower_expressions.py": "Expressions",
    "lang/lower_operators.py": "Literals and operators",
    "lang/lower_elements.py": "Elements of arrays",
    "lang/lower_calls.py": "Calls",
    "lang/lower_random.py": "Random numbers",
    "lang/lower_inlining.py": "Calls of device functions",
    "lang/lower_returns.py": "Returns of device functions",
    "lang/lower_templates.py": "Templates",
    "lang/lower_arrays.py": "Arrays",
    "lang/lower_groups.py": "Workgroups",
    "lang/lower_fragments.py": "Fragments",
    "passes/fragments.py": "Places of fragments",
    "passes/uniformity.py": "Barriers",
    "lang/lower_base.py": "Vectors where a number is needed",
    "lang/lower_vectors.py": "Vectors and matrices",
    "lang/lower_places.py": "Assigning vectors",
    "passes/infer.py": "Types of locals",
    "passes/lattice.py": "Types of operands",
    "passes/expressions.py": "Literals",
    "passes/host.py": "Bounds of the parallel loop",
}
"""File -> the heading of its entries; files without one stand under their own names."""


@dataclass(frozen=True)
class Entry:
    """One message: the file that words it, and its text with gaps."""

    file: str
    text: str

    def matches(self, message: str) -> bool:
        """Whether `message` is this one, perhaps after what a caller put before it."""
        pattern = ".*".join(map(re.escape, self.text.split(_GAP)))
        return re.search(rf"(\A|: ){pattern}\Z", message, re.DOTALL) is not None


def entries() -> list[Entry]:
    """Every message, in the order of the files and of their lines."""
    found: dict[Entry, None] = {}
    for folder in ("lang", "passes"):
        for path in sorted((_ROOT / folder).glob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            constants = _constants(tree)
            calls = [node for node in ast.walk(tree) if _words_a_refusal(node)]
            for call in sorted(calls, key=lambda call: call.lineno):
                for text in _texts(call.args[-1], constants):
                    if text.strip(_GAP):
                        found[Entry(path.relative_to(_ROOT).as_posix(), text)] = None
    return list(found)


def _words_a_refusal(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or not node.args:
        return False
    return getattr(node.func, "attr", getattr(node.func, "id", "")) in _WORDING


def _constants(tree: ast.Module) -> dict[str, ast.expr]:
    """The module's tables and texts by name."""
    found: dict[str, ast.expr] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                found[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                found[name] = value
    return found


def _texts(node: ast.expr, constants: Mapping[str, ast.expr]) -> Iterator[str]:
    """What a message may be; a gap for what only a program tells."""
    match node:
        case ast.Constant(value=str() as text):
            yield text
        case ast.JoinedStr(values=parts):
            pieces = [p.value if isinstance(p, ast.Constant) else _GAP for p in parts]
            yield "".join(map(str, pieces))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            both = itertools.product(_texts(left, constants), _texts(right, constants))
            yield from (one + other for one, other in both)
        case ast.IfExp(body=body, orelse=orelse):
            yield from _texts(body, constants)
            yield from _texts(orelse, constants)
        case ast.Dict(values=values):
            for value in values:
                yield from _texts(value, constants)
        case ast.DictComp(value=value):
            yield from _texts(value, constants)
        case ast.Name(id=name) if isinstance(constants.get(name), _SPELLED):
            yield from _texts(constants[name], constants)
        case ast.Subscript(value=ast.Name() as table):
            yield from _texts(table, constants)
        case ast.Call(func=ast.Attribute(value=ast.Name() as table, attr="get"), args=[_, other]):
            yield from _texts(table, constants)
            yield from _texts(other, constants)
        case _:
            yield _GAP


_SPELLED = (ast.Constant, ast.JoinedStr, ast.Dict, ast.BinOp, ast.IfExp)


def printed() -> dict[str, str]:
    """Message -> the whole error as printed, of every case; paths as in a package of one's own."""
    found: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            module = load_module(case.text, Path(folder))
            error = refused(module, case.signature)
            text = str(error).replace(str(module.__file__), "kernels.py")
            found[error.message] = text.replace(module.__name__, "kernels")
    return found


def uncovered(messages: Sequence[str]) -> list[Entry]:
    """The entries that none of `messages` is."""
    return [entry for entry in entries() if not any(map(entry.matches, messages))]


def page() -> str:
    """The text of `PAGE`."""
    errors = printed()
    chapters: dict[str, list[str]] = {}
    for entry in entries():
        shown = next(text for message, text in errors.items() if entry.matches(message))
        title = _CHAPTERS.get(entry.file, f"`{entry.file}`")
        block = textwrap.indent(shown, "    ")
        chapters.setdefault(title, []).append(f"**{_escaped(entry.text)}**\n\n{block}\n")
    parts = [f"## {title}\n\n" + "\n".join(blocks) for title, blocks in chapters.items()]
    return "\n".join([_INTRODUCTION, *parts])


def _escaped(text: str) -> str:
    return re.sub(r"([\\*_<>`])", r"\\\1", text)


if __name__ == "__main__":
    sys.stdout.write(page())
