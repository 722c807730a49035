"""The compiled part of tack: kernels that can be called, and their launch."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Final, TypeAlias, final

__all__ = [
    "ABI",
    "HOST_OPS",
    "Kernel",
    "Launchable",
    "Library",
    "cpu_levels",
    "evaluate_host",
    "install",
    "make_kernel",
    "retire",
    "templated_count",
    "uninstall",
]

ABI: Final[int]
HOST_OPS: Final[tuple[str, ...]]

# Lists or tuples, as JSON or Python code gives them.
_Entry: TypeAlias = Sequence[Any]

# How a call takes its template arguments apart; tack.runtime.expansion makes it.
Expansion: TypeAlias = Sequence[Any]

@final
class Kernel:
    """A function that runs compiled variants of itself."""

    __name__: str
    __qualname__: str
    __module__: str
    __wrapped__: Callable[..., None]
    @property
    def py_func(self) -> Callable[..., None]: ...
    @property
    def definition(self) -> Any: ...
    def __call__(self, *args: Any, **kwargs: Any) -> None: ...
    def source(self, dialect: str, signature: str, /) -> str: ...
    def ir(self, signature: str, /) -> str: ...
    def __get__(self, instance: object, owner: type | None = None, /) -> Any: ...

@final
class Launchable:
    """A variant that can be launched. Immutable."""

    def __init__(
        self,
        params: Sequence[_Entry],
        slots: Sequence[_Entry],
        host: Sequence[_Entry],
        written: Sequence[int],
        general: int,
        noalias: int,
        label: str,
        keepalive: object,
        aligned: Sequence[int] = ...,
        wide: int = ...,
        multiples: Sequence[_Entry] = ...,
        prints: bool = ...,
    ) -> None: ...
    @property
    def label(self) -> str: ...
    @property
    def general(self) -> int: ...
    @property
    def noalias(self) -> int: ...

class Library:
    """A kernel library. It stays loaded.

    Raises ``OSError`` in the words of the system's loader. Compare its bytes with their digest
    first: a truncated library takes the process down.
    """

    def __init__(self, path: str | PathLike[str]) -> None: ...
    @property
    def path(self) -> str: ...
    def symbol(self, name: str) -> int: ...

def make_kernel(
    function: Callable[..., None],
    definition: object,
    parameters: tuple[str, ...],
    annotated: tuple[bool, ...],
    on_miss: Callable[[Kernel, tuple[Any, ...]], Launchable | tuple[Launchable, Expansion]],
    components: tuple[int, ...] = (),
) -> Kernel: ...
def install(kernel: Kernel, launchable: Launchable, expansion: Expansion | None = None) -> None: ...
def uninstall(kernel: Kernel) -> None: ...
def retire(kernel: Kernel) -> None: ...
def templated_count(kernel: Kernel) -> int: ...
def cpu_levels() -> list[str]: ...
def evaluate_host(host: Sequence[_Entry], slots: Sequence[int], loops: int) -> list[int]: ...
