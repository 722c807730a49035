"""The type that annotates array parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tack.model.record import Record
from tack.model.vectors import VectorType

__all__ = ["Array", "ArrayOf"]


class ArrayOf(Record):
    """``tack.Array[tack.f32x3]``: an array whose last axes hold vectors or matrices."""

    element: VectorType

    def __str__(self) -> str:
        return f"tack.Array[tack.{self.element}]"


if TYPE_CHECKING:
    from typing import Generic

    from typing_extensions import TypeVar

    _Element = TypeVar("_Element", default=float)

    class Array(Generic[_Element]):
        """What a kernel may do with an array."""

        shape: tuple[int, ...]

        def __getitem__(self, index: object) -> Any: ...

        def __setitem__(self, index: object, value: Any) -> None: ...

else:

    class Array:
        """Annotation of an array parameter; the call decides its dtype and rank.

        ``tack.Array[tack.f32x3]`` is an array whose last axis, of 3, holds the components of
        vectors.
        To a type checker it is what a kernel may do with an array: index it, and ask its shape.
        """

        def __class_getitem__(cls, element: VectorType) -> ArrayOf:
            if not isinstance(element, VectorType):
                raise TypeError(
                    f"tack.Array[...] names a vector or matrix type such as tack.f32x3, not "
                    f"{element!r}; tack.Array alone takes numbers of every type"
                )
            return ArrayOf(element)
