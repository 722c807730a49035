"""The fingerprint: a digest of a kernel's code and of everything that it reaches, by content.

Line numbers, paths, comments and module names do not count, so that the same text in a moved file
has the same fingerprint. Beside the digest stand the modules that contributed and the values that
were captured, from which a call can tell cheaply that nothing changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tack.lang.bindings import MISSING, describe, resolve, static_names
from tack.model.bundle import Captured
from tack.model.canonical import canonical
from tack.model.keys import digest

if TYPE_CHECKING:
    from tack.lang.definition import FunctionDefinition, KernelDefinition
    from tack.lang.template_facts import Fact
    from tack.model.signature import Signature

from tack.model.record import Record

__all__ = ["CapturedState", "Fingerprint", "captured_state", "defaults_of", "fingerprint"]


class Fingerprint(Record):
    """The digest, the modules whose files contributed, and the captured values."""

    digest: str
    modules: tuple[str, ...]
    captured: tuple[Captured, ...]


class _Reached(Record):
    """One function and the names that lead to it from the kernel, joined by ``>``."""

    path: str
    definition: KernelDefinition | FunctionDefinition


def fingerprint(kernel: KernelDefinition, signature: Signature | None = None) -> Fingerprint:
    """The fingerprint of ``kernel``; raises `CompileError` where source is missing.

    With the templates of ``signature``: the classes that their methods come from, each by the
    names along its MRO, and the methods and functions with all that these reach.
    """
    parts: list[str | bytes] = ["fingerprint 1"]
    modules: set[str] = set()
    captured: list[Captured] = []
    roots = [_Reached("", kernel)]
    for scope, facts in _template_facts(kernel, signature).items():
        for name, fact in sorted(facts.items()):
            captured.append(Captured(scope, name, fact.text))
            parts += [scope, name, fact.content]
            modules.update(fact.modules)
            if fact.definition is not None:
                roots.append(_Reached(f"{scope}>{name}", fact.definition))
    for reached in _reach(roots):
        definition = reached.definition
        modules.add(definition.module)
        parts += [reached.path, canonical(definition.source.node)]
        for name, value in _captures(definition):
            captured.append(Captured(reached.path, name, describe(value)))
            parts += [name, _content(value)]
    return Fingerprint(digest(*parts), tuple(sorted(modules)), tuple(captured))


def _template_facts(
    kernel: KernelDefinition, signature: Signature | None
) -> dict[str, dict[str, Fact]]:
    """What the code of each template of a call follows from, by scope."""
    if signature is None or not signature.templates:
        return {}
    from tack.lang.template_facts import template_facts

    return template_facts(kernel.parameters, signature)


def _content(value: Any) -> str:
    """A captured value by content; a function's name does not count, its code follows."""
    text = describe(value)
    return "func" if text.startswith("func ") else text


def _captures(definition: KernelDefinition | FunctionDefinition) -> Iterator[tuple[str, Any]]:
    """Static names and default values of one function, with what they are bound to."""
    for name in sorted(static_names(definition.source.node, definition.function)):
        yield name, resolve(definition.function, name)
    for name, value in sorted(defaults_of(definition).items()):
        yield f"={name}", value


def defaults_of(definition: KernelDefinition | FunctionDefinition) -> dict[str, Any]:
    """Parameter -> default value, as the running function has them.

    A source kernel's declaration stands among them.
    """
    function = definition.function
    positional = function.__code__.co_varnames[: function.__code__.co_argcount]
    values = function.__defaults__ or ()
    named = dict(zip(positional[len(positional) - len(values) :], values, strict=True))
    return {**named, **definition.declared, **(function.__kwdefaults__ or {})}


def _reach(roots: list[_Reached]) -> Iterator[_Reached]:
    """The roots and the device functions that they reach, breadth first, each once."""
    from tack.lang.definition import FunctionDefinition

    queue = list(roots)
    seen: set[int] = set()
    for reached in queue:
        if id(reached.definition) in seen:
            continue
        seen.add(id(reached.definition))
        yield reached
        for name, value in _captures(reached.definition):
            if isinstance(value, FunctionDefinition):
                queue.append(_Reached(f"{reached.path}>{name}", value))


class CapturedState(Record):
    """How captured values stand now: what differs first, and the functions that were reached."""

    difference: tuple[Captured, str] | None
    """The first value that is bound to something else, and what that is."""
    definitions: tuple[KernelDefinition | FunctionDefinition, ...]


def captured_state(
    kernel: KernelDefinition, captured: tuple[Captured, ...], signature: Signature | None = None
) -> CapturedState:
    """Compares captured values with what the names are bound to now.

    Reads no source: a function is known by the names that lead to it, a template by its place in
    ``signature``.
    """
    functions: dict[str, Any] = {"": kernel}
    facts = _template_facts(kernel, signature)
    difference = None
    for item in captured:
        if item.scope in facts:
            fact = facts[item.scope].get(item.name)
            now = "nothing" if fact is None else fact.text
            if fact is None or now != item.value:
                difference = item, now
                break
            if fact.definition is not None:
                functions.setdefault(f"{item.scope}>{item.name}", fact.definition)
            continue
        definition = functions.get(item.scope)
        value: Any = MISSING
        if definition is not None and item.name.startswith("="):
            value = defaults_of(definition).get(item.name[1:], MISSING)
        elif definition is not None:
            value = resolve(definition.function, item.name)
        now = describe(value)
        if now != item.value:
            difference = item, now
            break
        if now.startswith("func "):
            functions.setdefault(f"{item.scope}>{item.name}", value)
    return CapturedState(difference, tuple(functions.values()))
