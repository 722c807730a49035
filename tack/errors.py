"""Errors that tack raises; see `tack.model.errors`."""

from tack.model.errors import (
    BundleError,
    CompileError,
    IRVerificationError,
    JITWarning,
    ManifestError,
    NoVariantError,
    Position,
    TackError,
    TargetWarning,
    TemplateError,
    ToolchainError,
    UnsupportedError,
)

__all__ = [
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
    "UnsupportedError",
]
