"""Makes a failing program smaller: statements go, and expressions give way to their parts."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import replace

from .program import Program

__all__ = ["reduced"]

_BLOCKS = ("body", "orelse")


def reduced(program: Program, fails: Callable[[Program], bool], tries: int = 600) -> Program:
    """A smaller program that still `fails`, asked about at most `tries` candidates.

    Candidates need not be sensible: whoever is asked says False of a program that has become
    meaningless.
    """
    left = tries
    smaller = True
    while smaller:
        smaller = False
        for candidate in _candidates(program):
            left -= 1
            if left < 0:
                return program
            if fails(candidate):
                program, smaller = candidate, True
                break
    return program


def _candidates(program: Program) -> Iterator[Program]:
    """Every program that is one step smaller, the largest steps first."""
    tree = ast.parse(program.source)
    for edit in [*_statement_edits(tree), *_expression_edits(tree)]:
        changed = copy.deepcopy(tree)
        edit(changed)
        text = ast.unparse(ast.fix_missing_locations(changed)) + "\n"
        if len(text) < len(program.source) and text != program.source:
            yield replace(program, source=text)


Edit = Callable[[ast.Module], None]


def _nodes(tree: ast.Module) -> list[ast.AST]:
    """Nodes in an order that is the same in a copy."""
    return list(ast.walk(tree))


def _statement_edits(tree: ast.Module) -> Iterator[Edit]:
    """Without one statement, or with what it holds in its place."""
    for at, node in enumerate(_nodes(tree)):
        for block in _BLOCKS:
            for position, statement in enumerate(_statements(node, block)):
                if _needed(statement):
                    continue
                yield _splice(at, block, position, "")
                for inner in _BLOCKS:
                    if _statements(statement, inner) and not isinstance(statement, ast.FunctionDef):
                        yield _splice(at, block, position, inner)


def _statements(node: ast.AST, block: str) -> list[ast.stmt]:
    """The statements of a block of `node`, if it has that block."""
    found = getattr(node, block, None)
    return found if isinstance(found, list) else []


def _needed(statement: ast.stmt) -> bool:
    """The import and the kernel stay."""
    return isinstance(statement, ast.Import) or (
        isinstance(statement, ast.FunctionDef) and statement.name == "kernel"
    )


def _splice(at: int, block: str, position: int, inner: str) -> Edit:
    def edit(tree: ast.Module) -> None:
        statements = getattr(_nodes(tree)[at], block)
        kept = getattr(statements[position], inner) if inner else []
        statements[position : position + 1] = kept
        if not statements and block == "body":
            statements.append(ast.Pass())

    return edit


def _expression_edits(tree: ast.Module) -> Iterator[Edit]:
    """With one expression replaced by a part of it, or by a literal."""
    for at, node in enumerate(_nodes(tree)):
        for name, value in ast.iter_fields(node):
            if name in ("func", "iter"):
                continue
            if isinstance(value, list):
                for position, each in enumerate(value):
                    yield from _replacements(at, name, position, each)
            else:
                yield from _replacements(at, name, None, value)


def _replacements(at: int, name: str, position: int | None, old: object) -> Iterator[Edit]:
    if not isinstance(old, ast.expr) or isinstance(getattr(old, "ctx", None), ast.Store):
        return
    parts = [each for each in ast.iter_child_nodes(old) if isinstance(each, ast.expr)]
    for part in range(len(parts)):
        yield _replace(at, name, position, part)
    if len(ast.unparse(old)) > 1:
        yield _replace(at, name, position, None)


def _replace(at: int, name: str, position: int | None, part: int | None) -> Edit:
    def edit(tree: ast.Module) -> None:
        node = _nodes(tree)[at]
        field = getattr(node, name)
        old = field if position is None else field[position]
        parts = [each for each in ast.iter_child_nodes(old) if isinstance(each, ast.expr)]
        new = ast.Constant(1) if part is None else parts[part]
        if position is None:
            setattr(node, name, new)
        else:
            field[position] = new

    return edit
