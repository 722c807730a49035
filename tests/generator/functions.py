"""Device functions: early return, several results, defaults, calls of the ones before, stores."""

from __future__ import annotations

from dataclasses import replace

from .scope import DTYPES_OF, FAMILIES, NAMES, Array, Function, Scope, Variable
from .statements import Place, Statements, indent

__all__ = ["write_function"]


def write_function(name: str, statements: Statements, arrays: list[Array]) -> list[str]:
    """The lines of a new device function, which is added to those that can be called.

    `arrays` are the kernel's: a function may take one like them.
    """
    pick, number, chance = statements.pick, statements.number, statements.chance
    scope = Scope()
    signature: list[str] = []
    array: Array | None = None
    indices: tuple[str, ...] = ()
    if arrays and chance(60):
        local = Array("", pick(["I", "F"]), pick([1, 1, 2]), local=True)
        like = local if chance(25) else pick(arrays)
        own = tuple(scope.fresh(each) for each in ("at", "row", "page")[: len(like.own)])
        indices = own
        array = replace(like, name=scope.fresh("array"), own=own)
        scope.arrays.append(array)
        scope.variables += [Variable(each, "I", writable=False) for each in own]
        signature = [array.name, *own]
    parameters: list[tuple[str, str]] = []
    annotations: dict[str, str] = {}
    for _ in range(number(0 if array else 1, 3)):
        family = pick(FAMILIES)
        parameter = scope.fresh(pick(NAMES))
        parameters.append((parameter, family))
        annotated = chance(20)
        if annotated:
            dtype = pick(DTYPES_OF[family])
            annotations[parameter] = f": tack.{'bool_' if dtype == 'bool' else dtype}"
        writable = annotated or family != "U"
        scope.variables.append(Variable(parameter, family, not annotated, writable))
    defaults = _defaults(statements, parameters)
    for parameter, _ in parameters:
        default = defaults.get(parameter)
        spelled = parameter + annotations.get(parameter, "")
        signature.append(spelled if default is None else f"{spelled}={default}")
    procedure = array is not None and array.writable and chance(50)
    results = () if procedure else tuple(pick(FAMILIES) for _ in range(pick([1, 1, 1, 1, 2, 3])))
    place = Place(depth=1, results=results)
    body = _body(statements, scope, place)
    function = Function(name, tuple(parameters), len(defaults), results, array, indices)
    statements.expressions.functions.append(function)
    return ["@tack.func", f"def {name}({', '.join(signature)}):", *indent(body), "", ""]


def _defaults(statements: Statements, parameters: list[tuple[str, str]]) -> dict[str, str]:
    """Literals for the last parameters, up to the first of the family `U`."""
    defaults: dict[str, str] = {}
    for name, family in reversed(parameters):
        if family == "U" or not statements.chance(35):
            break
        defaults[name] = statements.expressions.literal(family).text.strip("()")
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
