"""The errors a user can meet, each a sentence that says what to do.

Public as `tack.errors`. Wrong arguments of a call raise the built-in ``TypeError``, ``ValueError``
and ``OverflowError``, as NumPy's functions do; the classes here are for what only tack can say.
"""

from __future__ import annotations

from typing import Final

from tack.model.record import Record

__all__ = [
    "TOO_DEEP",
    "BundleError",
    "CompileError",
    "IRVerificationError",
    "JITWarning",
    "ManifestError",
    "NoVariantError",
    "Position",
    "TackError",
    "TargetWarning",
    "TemplateError",
    "ToolchainError",
    "UnpinnedError",
    "UnsupportedError",
]


TOO_DEEP: Final = (
    "{}: an expression or the nesting of its statements is too deep to compile; split it into "
    "several statements or functions"
)
"""What a kernel is told that is nested deeper than Python's stack."""


class TackError(Exception):
    """Base of every error of tack's own."""


class Position(Record):
    """A place in a source file: 1-based line, 0-based column, and the text of the line."""

    file: str
    line: int
    column: int
    end_column: int
    text: str
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column + 1}"

    def caret(self) -> str:
        """The source line with a caret line under it."""
        stripped = self.text.lstrip()
        lead = len(self.text) - len(stripped)
        start = max(self.column - lead, 0)
        width = max(1, min(self.end_column, len(self.text)) - self.column)
        return f"    {stripped.rstrip()}\n    {' ' * start}{'^' * width}"


class CompileError(TackError):
    """A kernel uses something that the language refuses or has not built yet."""

    def __init__(self, message: str, position: Position | None = None) -> None:
        self.message = message
        self.position = position
        super().__init__(message)

    def __str__(self) -> str:
        if self.position is None:
            return self.message
        place = self.position
        return f"{place}: in {place.function}: {self.message}\n{place.caret()}"


class TemplateError(CompileError, ValueError):
    """A kernel asks a template for an attribute or a method that it has not, or cannot read."""


class UnpinnedError(CompileError):
    """Something must be known while compiling that the signature leaves open.

    ``parameter`` is the name in the IR of the array whose extents it is.
    """

    def __init__(self, message: str, position: Position | None, parameter: str) -> None:
        self.parameter = parameter
        super().__init__(message, position)


class UnsupportedError(CompileError):
    """A kernel needs something that a target has not; another target may have it."""


class IRVerificationError(TackError):
    """The compiler broke one of its own rules; nothing was compiled, cached or written."""

    def __init__(self, kernel: str, stage: str, kind: str, path: str, message: str) -> None:
        self.kernel, self.stage, self.kind, self.path = kernel, stage, kind, path
        super().__init__(f"kernel {kernel}, stage {stage}: {kind} at {path}: {message}")


class ManifestError(TackError):
    """``tack-aot.toml`` says something that cannot be built."""


class BundleError(TackError):
    """A bundle is damaged, truncated, or was made for something else."""


class ToolchainError(TackError):
    """A compiler or tool that a build needs is missing or failed."""


class JITWarning(UserWarning):
    """A signature that a package did not prebuild was compiled at the call."""


class TargetWarning(UserWarning):
    """A target does without something that a kernel asks for."""


class NoVariantError(TackError, LookupError):
    """No prebuilt variant answers a call, and nothing may compile one.

    ``explanation`` holds every candidate with its reason (see `tack.explain`).
    """

    def __init__(self, message: str, explanation: object = None) -> None:
        self.explanation = explanation
        super().__init__(message)
