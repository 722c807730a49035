"""Device functions: early return, several results, defaults, calls of the ones before, stores.

Some are methods of a device class, some are held by an object, some are given one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from .scope import (
    DTYPES_OF,
    FAMILIES,
    NAMES,
    Array,
    Function,
    Object,
    Scope,
    Variable,
    VectorVariable,
    family_and_shape,
    kind_of,
)
from .statements import Place, Statements, indent
from .vectors import type_name

__all__ = ["Written", "write_function"]


@dataclass(frozen=True)
class Written:
    """The lines of a device function, and of which class it is a method, if of one."""

    function: Function
    lines: list[str]


@dataclass
class _Signature:
    """The parameters, as they are drawn."""

    text: list[str] = field(default_factory=list)
    given: list[tuple[str, str]] = field(default_factory=list)
    array: Array | None = None
    own: tuple[str, ...] = ()
    owner: str = ""
    """The class of an object that the function is given first."""


def write_function(name: str, statements: Statements, kernel: Scope) -> Written:
    """A new device function, which is added to those that can be called.

    It may take an array like one of those in the scope of the `kernel`, or an object of there.
    """
    pick, chance = statements.pick, statements.chance
    scope, signature = Scope(), _Signature()
    call = ""
    if kernel.objects and chance(60):
        thing = pick(kernel.objects)
        call = pick(["method", "method", "parameter"])
        _take_object(thing, call, kernel, scope, signature)
    elif kernel.all_arrays and chance(60):
        _take_array(statements, kernel, scope, signature)
    _take_values(statements, scope, signature)
    if not call and kernel.objects and chance(30):
        call, signature.owner = pick(["static", "held"]), pick(kernel.objects).cls
    defaults = _defaults(statements, signature.given)
    for at, (parameter, _) in enumerate(signature.given):
        if parameter in defaults:
            place = len(signature.text) - len(signature.given) + at
            signature.text[place] += f"={defaults[parameter]}"
    procedure = any(each.writable for each in scope.all_arrays) and chance(50)
    results = () if procedure else tuple(_kind(statements) for _ in range(pick([1, 1, 1, 1, 2, 3])))
    body = _body(statements, scope, Place(depth=1, results=results))
    function = Function(
        name,
        tuple(signature.given),
        len(defaults),
        results,
        signature.array,
        signature.own,
        signature.owner,
        call,
    )
    statements.expressions.functions.append(function)
    head = [f"def {name}({', '.join(signature.text)}):", *indent(body)]
    static = ["@staticmethod"] * (call == "static")
    return Written(function, [*static, "@tack.func", *head, ""])


def _kind(statements: Statements) -> str:
    """What a parameter or a result is."""
    family = statements.pick(FAMILIES)
    shape = statements.expressions.vectors.shape() if statements.chance(15) else ()
    return kind_of(family, shape)


def _take_object(
    thing: Object, call: str, kernel: Scope, scope: Scope, signature: _Signature
) -> None:
    """An object of the kernel, under another name, and all that it holds."""
    name = scope.fresh("it" if call == "parameter" else "self")
    signature.owner = thing.cls
    signature.own = tuple(scope.fresh(each) for each in ("at", "row", "page")[: len(thing.own)])
    signature.text = [name, *signature.own]
    scope.hold(kernel, thing.text, name, signature.own)
    scope.variables += [Variable(each, "I", writable=False) for each in signature.own]


def _take_array(statements: Statements, kernel: Scope, scope: Scope, signature: _Signature) -> None:
    """An array like one of the kernel, or like a local one."""
    pick = statements.pick
    local = Array("", pick(["I", "F"]), pick([1, 1, 2]), local=True)
    like = local if statements.chance(25) else pick(kernel.all_arrays)
    own = tuple(scope.fresh(each) for each in ("at", "row", "page")[: len(like.own)])
    array = replace(like, name=scope.fresh("array"), own=own)
    scope.add(array)
    scope.variables += [Variable(each, "I", writable=False) for each in own]
    signature.array, signature.own, signature.text = array, own, [array.name, *own]


def _take_values(statements: Statements, scope: Scope, signature: _Signature) -> None:
    """Numbers and vectors, some of which an annotation gives a type."""
    for _ in range(statements.number(0 if signature.text else 1, 3)):
        kind = _kind(statements)
        family, shape = family_and_shape(kind)
        parameter = scope.fresh(statements.pick(NAMES))
        annotation = ""
        if statements.chance(20):
            dtype = statements.pick(DTYPES_OF[family])
            spelled = "bool_" if dtype == "bool" and not shape else type_name(dtype, shape)
            annotation = f": tack.{spelled}"
        signature.given.append((parameter, kind))
        signature.text.append(parameter + annotation)
        writable = annotation != "" or family != "U"
        if shape:
            scope.vectors.append(VectorVariable(parameter, family, shape, writable))
        else:
            scope.variables.append(Variable(parameter, family, annotation == "", writable))


def _defaults(statements: Statements, parameters: list[tuple[str, str]]) -> dict[str, str]:
    """Literals for the last parameters, up to the first of the family `U` or a vector."""
    defaults: dict[str, str] = {}
    for name, kind in reversed(parameters):
        if kind not in ("I", "F", "B") or not statements.chance(35):
            break
        defaults[name] = statements.expressions.literal(kind).text.strip("()")
    return defaults


def _body(statements: Statements, scope: Scope, place: Place) -> list[str]:
    lines = statements.block(scope, place, 3)
    if any(each.writable for each in scope.arrays) and statements.chance(50):
        lines += statements.store(scope, place)
    if statements.chance(50):
        test = statements.expressions.condition(scope, 2)
        lines += [f"if {test}:", *indent(statements.returns(scope, place))]
        lines += statements.block(scope, place, 2)
    if statements.chance(15):  # both ends return
        test = statements.expressions.condition(scope, 2)
        first, second = statements.returns(scope, place), statements.returns(scope, place)
        return [*lines, f"if {test}:", *indent(first), "else:", *indent(second)]
    return lines + (statements.returns(scope, place) if place.results else [])
