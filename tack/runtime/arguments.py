"""What a call was given, as specs, and the errors for what no variant could take."""

from __future__ import annotations

import array
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tack.lang.array import ArrayOf
from tack.lang.definition import Annotation, KernelDefinition
from tack.model.dtypes import DTYPES, DType, dtype_of_ml_dtypes, numpy_name, plain_number
from tack.model.record import replace
from tack.model.signature import (
    MAX_RANK,
    ArraySpec,
    ScalarSpec,
    Signature,
    Spec,
    TemplateSpec,
)
from tack.model.spelling import article
from tack.model.vectors import VectorType, component_names, components_of
from tack.runtime.components import annotations_of, numbers_of

if TYPE_CHECKING:
    import numpy as np

__all__ = ["call_signature", "fits", "free", "values_of"]


def call_signature(definition: KernelDefinition, args: Sequence[object]) -> Signature:
    """The signature of a call: dtypes, ranks and layouts, with the extents of each array pinned.

    Raises ``TypeError``, ``ValueError`` or ``OverflowError`` for arguments that no variant of any
    signature could take.
    """
    with _template_scope():
        return _call_signature(definition, args)


def _template_scope() -> AbstractContextManager[None]:
    """A scope in which each template is looked at once; no class is one before it is imported."""
    if "tack.lang.template" not in sys.modules:
        return nullcontext()
    from tack.lang.template_objects import template_scope

    return template_scope()


def _call_signature(definition: KernelDefinition, args: Sequence[object]) -> Signature:
    names = definition.parameters
    annotations = annotations_of(definition)
    arrays: dict[int, ArraySpec | TemplateSpec] = {}
    for position, (name, value) in enumerate(zip(names, args, strict=True)):
        if isinstance(annotations[position], VectorType):
            continue
        spec = _array_spec(definition, name, value) or _template_spec(definition, name, value)
        if spec is not None:
            arrays[position] = spec
    default_float = Signature(tuple(arrays.values())).default_float
    specs: list[Spec] = []
    for position, (name, value) in enumerate(zip(names, args, strict=True)):
        annotation = annotations[position]
        if position in arrays:
            spec = arrays[position]
            if isinstance(spec, TemplateSpec):
                if annotation is not None:
                    raise TypeError(
                        f"{definition.name}: {name!r} is annotated {annotation} and was given a "
                        "template"
                    )
                learned = _template_spec(definition, name, value, default_float)
                assert learned is not None
                specs.append(learned)
            else:
                specs.append(_annotated_array(definition, name, spec, annotation))
        elif isinstance(annotation, ArrayOf):
            raise TypeError(
                f"{definition.name}: {name!r} is annotated {annotation} and was given "
                f"{_kind(value)}"
            )
        elif isinstance(annotation, VectorType):
            labels = component_names(name, annotation.shape)
            for label, number in zip(labels, numbers_of(definition, position, value), strict=True):
                _scalar_dtype(definition, label, number, annotation.dtype, default_float)
            specs.append(ScalarSpec(annotation.dtype, annotation.shape))
        else:
            dtype = _scalar_dtype(definition, name, value, annotation, default_float)
            specs.append(ScalarSpec(dtype))
    return Signature(tuple(specs))


def fits(spec: Spec, given: Spec) -> bool:
    """Whether an argument of spec ``given`` can be one of ``spec``."""
    if isinstance(spec, TemplateSpec) or isinstance(given, TemplateSpec):
        return (
            isinstance(spec, TemplateSpec)
            and isinstance(given, TemplateSpec)
            and str(free(spec)) == str(free(given))
            and all(
                fits(own, other)
                for (_, own), (_, other) in zip(spec.passed(), given.passed(), strict=True)
            )
        )
    if isinstance(spec, ScalarSpec) or isinstance(given, ScalarSpec):
        return spec == given
    return (
        spec.dtype is given.dtype
        and len(spec.all_dims) == len(given.all_dims)
        and (spec.is_strided or not given.is_strided)
        and all(
            dim is None or dim == extent
            for dim, extent in zip(spec.all_dims, given.all_dims, strict=True)
        )
    )


_S = TypeVar("_S", bound=Spec)


def free(spec: _S) -> _S:
    """``spec`` with no dimension pinned."""
    if isinstance(spec, ArraySpec):
        return replace(spec, dims=(None,) * spec.rank)
    if isinstance(spec, TemplateSpec):
        return replace(
            spec,
            arrays=tuple((name, free(array)) for name, array in spec.arrays),
            children=tuple((name, free(child)) for name, child in spec.children),
        )
    return spec


def values_of(signature: Signature, args: Sequence[object]) -> list[Any]:
    """What a call with ``args`` passes to a compiled kernel: one value for each flat parameter."""
    values = []
    for flat in signature.flat():
        value: Any = args[flat.argument]
        for name in flat.path:
            value = getattr(value, name)
        values.append(value)
    return values


def _annotated_array(
    definition: KernelDefinition, name: str, given: ArraySpec, annotation: Annotation | None
) -> ArraySpec:
    """The spec of an array whose annotation may say that its last axes hold vectors."""
    if annotation is None:
        return given
    where = f"{definition.name}: {name!r} is annotated {annotation}"
    if not isinstance(annotation, ArrayOf):
        raise TypeError(f"{where} and was given an array")
    element = annotation.element
    if given.dtype is not element.dtype:
        raise TypeError(f"{where} and was given an array of {given.dtype}")
    rank = given.rank - len(element.shape)
    if rank < 0 or given.dims[rank:] != element.shape:
        last = " and ".join(map(str, element.shape))
        raise TypeError(
            f"{where}, whose last ax{'es are' if len(element.shape) > 1 else 'is'} {last}, and was "
            f"given the shape {given.dims}"
        )
    return ArraySpec(given.dtype, given.dims[:rank], given.layout, element.shape)


def _array_spec(definition: KernelDefinition, name: str, value: object) -> ArraySpec | None:
    """The spec of an array argument, None for what is no array."""
    import numpy as np

    if not isinstance(value, np.ndarray):
        return None
    misfit = _array_misfit(value)
    if misfit:
        raise TypeError(f"{definition.name}: array {name!r} {misfit}")
    value = np.asarray(value)  # whatever its class says of itself
    dtype = _array_dtype(value.dtype)
    assert dtype is not None
    plain = value.flags.c_contiguous and value.flags.aligned
    return ArraySpec(dtype, value.shape, "contiguous" if plain else "strided")


def _array_misfit(value: np.ndarray[Any, Any]) -> str:
    """What makes an array one that no kernel takes, and what works; "" for others."""
    import numpy as np

    if _is_masked(value):
        return "is masked, and a kernel sees no mask; pass .filled(...) or .data"
    value = np.asarray(value)
    if _array_dtype(value.dtype.newbyteorder("=")) is None:
        known = ", ".join(numpy_name(d) for d in DTYPES.values())
        return f"has dtype {value.dtype}; a kernel takes {known}"
    if not value.dtype.isnative:
        native = value.dtype.newbyteorder("=").name
        return f"has dtype {value.dtype}, in another byte order; pass .astype({native!r})"
    if value.ndim > MAX_RANK:
        return f"has {value.ndim} dimensions; a kernel takes at most {MAX_RANK}"
    return ""


def _template_spec(
    definition: KernelDefinition, name: str, value: object, default_float: DType | None = None
) -> TemplateSpec | None:
    """The spec of a template argument, None for what is none.

    Without ``default_float``, that of its scalars is only guessed: it follows from all arrays.
    """
    if "tack.lang.template" not in sys.modules:
        return None
    from tack.lang.template import is_template
    from tack.lang.template_spec import spec_of

    if not is_template(value):
        return None

    def array_spec(path: tuple[str, ...], array: Any, hint: Annotation | None) -> ArraySpec | str:
        label = ".".join((name, *path))
        misfit = _array_misfit(array)
        if misfit:
            return f"an array that {misfit}"
        found = _array_spec(definition, label, array)
        assert found is not None
        vector = components_of(array)
        if isinstance(hint, DType) or (isinstance(hint, VectorType) and vector is None):
            wanted = f"tack.{hint}(...)" if isinstance(hint, VectorType) else "a number"
            raise TypeError(
                f"{definition.name}: {label!r} is annotated {hint} and is an array ({found}); "
                f"give it {wanted}"
            )
        if vector is None or isinstance(hint, ArrayOf):
            return _annotated_array(definition, label, found, hint)
        if hint is not None and hint is not vector[0]:
            raise TypeError(
                f"{definition.name}: {label!r} is annotated {hint} and is {vector[0]}; write "
                f"tack.{hint}(...)"
            )
        return ArraySpec(found.dtype, (), found.layout, vector[0].shape)

    def scalar_spec(path: tuple[str, ...], number: object, hint: Annotation | None) -> ScalarSpec:
        label = ".".join((name, *path))
        if hint is not None and not isinstance(hint, DType):
            raise TypeError(f"{definition.name}: {label!r} is annotated {hint} and is a number")
        guess = default_float or DTYPES["f32"]
        return ScalarSpec(_scalar_dtype(definition, label, number, hint, guess))

    return spec_of(value, array_spec, scalar_spec)


def _is_masked(value: object) -> bool:
    """Whether ``value`` is a masked array; there is none before ``numpy.ma`` is imported."""
    masked = sys.modules.get("numpy.ma")
    return masked is not None and isinstance(value, masked.MaskedArray)


def _array_dtype(dtype: np.dtype[Any]) -> DType | None:
    if dtype.type.__module__ == "ml_dtypes":
        return dtype_of_ml_dtypes(dtype.type)
    if not dtype.isnative or dtype.kind not in "biuf":
        return None
    name = "bool" if dtype.kind == "b" else f"{dtype.kind}{8 * dtype.itemsize}"
    return DTYPES.get(name)


def _scalar_dtype(
    definition: KernelDefinition,
    name: str,
    value: object,
    annotation: DType | None,
    default_float: DType,
) -> DType:
    """The type of a scalar argument, after checking that it holds the value."""
    where = f"{definition.name}: scalar {name!r}"
    try:
        number = _plain(value)
    except OverflowError:
        raise OverflowError(f"{where} is {_kind(value)} beyond the range of f64") from None
    if number is None:
        raise TypeError(f"{definition.name}: {name!r} is {_kind(value)}; {_what_works(value)}")
    if annotation is None:
        if isinstance(number, float):
            return default_float
        annotation = DTYPES["bool" if isinstance(number, bool) else "i64"]
    elif annotation.is_integer and isinstance(number, float):
        raise TypeError(f"{where} is annotated {annotation} and was given the float {number!r}")
    elif annotation.is_bool and not isinstance(number, bool):
        raise TypeError(f"{where} is annotated bool and was given {number!r}; pass True or False")
    if annotation.is_integer and not annotation.holds(int(number)):
        raise OverflowError(
            f"{where} is {annotation}, which holds {annotation.minimum} to {annotation.maximum}, "
            f"and was given {_short(number)}"
        )
    if annotation.is_float and not isinstance(number, float):
        try:
            float(number)
        except OverflowError:
            raise OverflowError(
                f"{where} is {annotation}, and {_short(number)} is beyond its range"
            ) from None
    return annotation


def _plain(value: object) -> bool | int | float | None:
    """The Python number that a scalar argument holds, or None."""
    import numbers

    import numpy as np

    if isinstance(value, int | float | np.generic):
        return plain_number(value)
    return float(value) if isinstance(value, numbers.Real) else None


def _kind(value: object) -> str:
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__qualname__}"
    module, name = type(value).__module__, type(value).__qualname__
    return article(name if module == "builtins" else f"{module}.{name}")


_ARRAY_LIKE: Final = (list, tuple, range, memoryview, array.array)
"""What people pass where an array is meant."""


def _what_works(value: object) -> str:
    """What to pass in place of what no kernel takes."""
    if isinstance(value, _ARRAY_LIKE):
        return "pass a NumPy array: numpy.asarray(...)"
    if isinstance(value, type):
        return "pass an object of it"
    return "a kernel takes arrays and numbers, and objects of a @tack.device_class"


def _short(number: float) -> str:
    try:
        text = str(number)
    except ValueError:
        return "an integer of thousands of digits"
    return text if len(text) <= 40 else f"{text[:20]}... ({len(text)} characters)"
