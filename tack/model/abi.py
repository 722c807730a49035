"""The ABI between a kernel library and the runtime, and its history.

The number answers one question: may this runtime load that library? The fields themselves are in
``templates/c/tack_abi.h``, which generated code and the launcher both include.
"""

from typing import Final

__all__ = ["ABI", "ABI_HISTORY"]

ABI_HISTORY: Final[dict[int, str]] = {
    1: "context, 64-bit slots, linear [begin, end) over one to three loop extents",
}

ABI: Final = max(ABI_HISTORY)
"""The ABI of this tack."""
