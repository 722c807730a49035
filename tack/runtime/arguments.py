"""What a call was given, as specs, and the errors for what no variant could take."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tack.lang.array import ArrayOf
from tack.lang.definition import Annotation, KernelDefinition
from tack.model.dtypes import ARRAY_DTYPES, DTYPES, DType, numpy_name
from tack.model.signature import MAX_RANK, ArraySpec, ScalarSpec, Signature, Spec
from tack.model.vectors import VectorType
from tack.runtime.components import annotations_of, numbers_of

if TYPE_CHECKING:
    import numpy as np

__all__ = ["call_signature", "fits"]


def call_signature(definition: KernelDefinition, args: Sequence[object]) -> Signature:
    """The signature of a call: dtypes, ranks and layouts, with the extents of each array pinned.

    Raises ``TypeError``, ``ValueError`` or ``OverflowError`` for arguments that no variant of any
    signature could take.
    """
    names = definition.parameters
    annotations = annotations_of(definition)
    arrays: dict[int, ArraySpec] = {}
    for position, (name, value) in enumerate(zip(names, args, strict=True)):
        if isinstance(annotations[position], VectorType):
            continue
        spec = _array_spec(definition, name, value)
        if spec is not None:
            arrays[position] = spec
    default_float = Signature(tuple(arrays.values())).default_float
    specs: list[Spec] = []
    for position, (name, value) in enumerate(zip(names, args, strict=True)):
        annotation = annotations[position]
        if position in arrays:
            specs.append(_annotated_array(definition, name, arrays[position], annotation))
        elif isinstance(annotation, ArrayOf):
            raise TypeError(
                f"{definition.name}: {name!r} is annotated {annotation} and was given "
                f"{_kind(value)}"
            )
        elif isinstance(annotation, VectorType):
            for number in numbers_of(definition, position, value):
                _scalar_dtype(definition, name, number, annotation.dtype, default_float)
            specs.append(ScalarSpec(annotation.dtype, annotation.shape))
        else:
            dtype = _scalar_dtype(definition, name, value, annotation, default_float)
            specs.append(ScalarSpec(dtype))
    return Signature(tuple(specs))


def fits(spec: Spec, given: Spec) -> bool:
    """Whether an argument of spec ``given`` can be one of ``spec``."""
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
    where = f"{definition.name}: array {name!r}"
    if _is_masked(value):
        raise TypeError(f"{where} is masked, and a kernel sees no mask; pass .filled(...) or .data")
    dtype = _array_dtype(value.dtype)
    if dtype is None:
        known = ", ".join(numpy_name(d) for d in ARRAY_DTYPES.values())
        raise TypeError(
            f"{where} has dtype {value.dtype}; a kernel takes {known}, in native byte order"
        )
    if value.ndim > MAX_RANK:
        raise TypeError(f"{where} has {value.ndim} dimensions; a kernel takes at most {MAX_RANK}")
    plain = value.flags.c_contiguous and value.flags.aligned
    return ArraySpec(dtype, value.shape, "contiguous" if plain else "strided")


def _is_masked(value: object) -> bool:
    """Whether ``value`` is a masked array; there is none before ``numpy.ma`` is imported."""
    masked = sys.modules.get("numpy.ma")
    return masked is not None and isinstance(value, masked.MaskedArray)


def _array_dtype(dtype: np.dtype[Any]) -> DType | None:
    if not dtype.isnative or dtype.kind not in "iuf":
        return None
    return ARRAY_DTYPES.get(f"{dtype.kind}{8 * dtype.itemsize}")


def _scalar_dtype(
    definition: KernelDefinition,
    name: str,
    value: object,
    annotation: DType | None,
    default_float: DType,
) -> DType:
    """The type of a scalar argument, after checking that it holds the value."""
    number = _plain(value)
    where = f"{definition.name}: scalar {name!r}"
    if number is None:
        raise TypeError(
            f"{definition.name}: {name!r} is {_kind(value)}; a kernel takes arrays and numbers"
        )
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

    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool | int | float):
        return value
    return float(value) if isinstance(value, numbers.Real) else None


def _kind(value: object) -> str:
    return "None" if value is None else f"a {type(value).__module__}.{type(value).__qualname__}"


def _short(number: float) -> str:
    try:
        text = str(number)
    except ValueError:
        return "an integer of thousands of digits"
    return text if len(text) <= 40 else f"{text[:20]}... ({len(text)} characters)"
