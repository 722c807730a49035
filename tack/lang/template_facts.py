"""What the code of a template follows from, apart from its spec: for fingerprints."""

from __future__ import annotations

from collections.abc import Sequence

from tack.lang.bindings import describe
from tack.lang.definition import FunctionDefinition
from tack.lang.template import extents_of, methods_of
from tack.lang.template_spec import class_of, functions_of
from tack.model.record import Record
from tack.model.signature import Signature, TemplateSpec

__all__ = ["Fact", "template_facts"]


class Fact(Record):
    """One fact: as bundles hold it, as keys hold it, the modules that it comes from.

    ``definition`` is the device function that it names, if it names one.
    """

    text: str
    content: str
    modules: tuple[str, ...] = ()
    definition: FunctionDefinition | None = None


def template_facts(parameters: Sequence[str], signature: Signature) -> dict[str, dict[str, Fact]]:
    """The facts of each template of a signature, by the scope that captured values have for it.

    That is ``@grid.inner``: a parameter and the attributes that lead to it. ``=mro`` and
    ``=extents`` are facts of its class; the rest are methods by name, those of the object included.
    """
    return {
        "@" + ".".join((parameters[position], *path)): _facts(node)
        for position, template in signature.templates
        for path, node in template.nodes()
    }


def _facts(template: TemplateSpec) -> dict[str, Fact]:
    cls = class_of(template)
    owners = cls.__mro__[:-1]
    mro = " ".join(owner.__qualname__ for owner in owners)
    extents = " ".join(extents_of(cls))
    facts = {
        "=mro": Fact(mro, mro, tuple(owner.__module__ for owner in owners)),
        "=extents": Fact(extents, extents),
    }
    for name, method in methods_of(cls).items():
        facts[name] = _function("static " * method.static, method.definition)
    for name, function in functions_of(template).items():
        facts[name] = _function("own ", function)
    return facts


def _function(kind: str, definition: FunctionDefinition) -> Fact:
    return Fact(f"{kind}{describe(definition)}", f"{kind}func", definition=definition)
