"""Enumeration: which kernels and signatures a manifest means, by importing its modules.

No kernel runs, no device is asked, nothing is written.
"""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Iterator
from dataclasses import dataclass

from tack.aot.instances import template_misfits, with_instances
from tack.aot.manifest import ListedKernel, Manifest
from tack.aot.rows import Row, expand
from tack.aot.source_tree import SourceTree
from tack.lang.definition import FunctionDefinition, KernelDefinition
from tack.lang.lower import check_signature
from tack.model.dtypes import DType
from tack.model.errors import CompileError, ManifestError
from tack.model.signature import ScalarSpec, Signature, TemplateSpec
from tack.model.spelling import nearest

__all__ = ["Instantiation", "enumerate_kernels"]


@dataclass(frozen=True, slots=True)
class Instantiation:
    """One row of the manifest with the kernel that it names."""

    place: str
    kernel: KernelDefinition
    signature: Signature


def enumerate_kernels(
    manifest: Manifest, tree: SourceTree
) -> tuple[tuple[Instantiation, ...], ...]:
    """The instantiations of each kernel that ``manifest`` lists; ``tree`` is its source tree, open.

    `ManifestError` for a name that does not import, one that is no kernel, and a signature that
    does not fit its kernel or that no call could select.
    """
    expanded = [expand(manifest, kernel) for kernel in manifest.kernels]
    found = [_find(manifest, kernel, tree) for kernel in manifest.kernels]
    return tuple(
        tuple(
            _instantiate(manifest, row, kernel)
            for row in with_instances(manifest, listed, kernel, rows)
        )
        for listed, rows, kernel in zip(manifest.kernels, expanded, found, strict=True)
    )


def _instantiate(manifest: Manifest, row: Row, kernel: KernelDefinition) -> Instantiation:
    try:
        problem = next(_misfits(kernel, row.signature), None)
    except CompileError as error:
        raise manifest.refuse(row.place, f"{kernel.name!r} does not compile:\n{error}") from error
    if problem is not None:
        raise manifest.refuse(
            row.place, f"{str(row.signature)!r} does not fit {kernel.name!r}: {problem}"
        )
    return Instantiation(row.place, kernel, row.signature)


def _find(manifest: Manifest, kernel: ListedKernel, tree: SourceTree) -> KernelDefinition:
    """The kernel that an entry names."""
    place = f"{kernel.place}.name"
    value: object = _import(manifest, kernel, tree)
    walked = kernel.module
    for attribute in kernel.qualname.split("."):
        if not hasattr(value, attribute):
            near = nearest(attribute, _kernel_names(value))
            advice = (
                f"did you mean {kernel.module}:{near}?"
                if near
                else f"its kernels are {', '.join(_kernel_names(value)) or 'none'}"
            )
            raise manifest.refuse(
                place, f"{kernel.name!r}: {walked!r} has no {attribute!r}; {advice}"
            )
        value = getattr(value, attribute)
        walked = f"{walked}.{attribute}"
    definition = _definition(value)
    if definition is None:
        raise manifest.refuse(place, f"{kernel.name!r} is no kernel: {_what(value)}")
    if "<locals>" in definition.name:
        raise manifest.refuse(
            place,
            f"{kernel.name!r} was made inside a function ({definition.name.partition(':')[2]}), "
            "and such kernels are not built yet; define it at the level of its module",
        )
    if definition.name != kernel.name:
        raise manifest.refuse(
            place,
            f"{kernel.name!r} is another name of {definition.name!r}; write that one, which "
            "calls are looked up by",
        )
    return definition


def _import(manifest: Manifest, kernel: ListedKernel, tree: SourceTree) -> object:
    place = f"{kernel.place}.name"
    try:
        return importlib.import_module(kernel.module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{kernel.module}.".startswith(f"{error.name}."):
            raise _broken(manifest, place, kernel, tree, error) from error
        near = nearest(kernel.module, _module_names(tree))
        advice = f"did you mean {near}:{kernel.qualname}?" if near else "is it spelt right?"
        raise manifest.refuse(
            place, f"{kernel.name!r}: there is no module {error.name!r} in {tree.root}; {advice}"
        ) from None
    except (Exception, SystemExit) as error:
        raise _broken(manifest, place, kernel, tree, error) from error


def _broken(
    manifest: Manifest, place: str, kernel: ListedKernel, tree: SourceTree, error: BaseException
) -> ManifestError:
    """The error for a module that raises when it is imported, with its own place."""
    where = ""
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename.startswith(str(tree.root)):
            where = f" at {frame.filename}:{frame.lineno}"
    if isinstance(error, SyntaxError) and error.filename:
        where = f" at {error.filename}:{error.lineno}"
    what = error.msg if isinstance(error, SyntaxError) else str(error)
    advice = ""
    if manifest.build.package_init and isinstance(error, ImportError):
        advice = (
            "; if the package's __init__ needs what is not built yet, write [build] with "
            "package_init = false"
        )
    return manifest.refuse(
        place,
        f"{kernel.name!r}: importing {kernel.module!r} raised {type(error).__name__}{where}: "
        f"{what}{advice}",
    )


def _module_names(tree: SourceTree) -> Iterator[str]:
    """The modules of the package, by walking its folders; imports none."""
    folder = tree.root.joinpath(*tree.package.split("."))
    yield tree.package
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(tree.root).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _definition(value: object) -> KernelDefinition | None:
    definition = getattr(value, "definition", None)
    return definition if isinstance(definition, KernelDefinition) else None


def _kernel_names(value: object) -> list[str]:
    return sorted(name for name, item in vars(value).items() if _definition(item) is not None)


def _what(value: object) -> str:
    """What a value is instead of a kernel, and how to make it one."""
    if isinstance(value, FunctionDefinition):
        return "it is a device function (@tack.func), which kernels call; list the kernels"
    if callable(value) and not isinstance(value, type):
        return "it is a plain function; write @tack.kernel above it"
    return f"it is of type {type(value).__name__}; list functions under @tack.kernel"


def _misfits(kernel: KernelDefinition, signature: Signature) -> Iterator[str]:
    """Why no call of ``kernel`` could select ``signature``."""
    problem = check_signature(kernel, signature)
    if problem is not None:
        yield problem
        return
    for name, annotation, spec in zip(
        kernel.parameters, kernel.annotations, signature, strict=True
    ):
        if isinstance(spec, TemplateSpec):
            yield from template_misfits(name, spec, signature)
        elif annotation is None and isinstance(spec, ScalarSpec):
            yield from _unannotated(name, spec.dtype, signature)


def _unannotated(name: str, dtype: DType, signature: Signature) -> Iterator[str]:
    """Why no call gives a number of this type for a parameter without an annotation."""
    if dtype.is_bool or dtype.name == "i64" or dtype is signature.default_float:
        return
    if dtype.is_float:
        reason = "an f64 array is" if signature.has_f64_array else "no f64 array is"
        yield (
            f"{name!r} has no annotation, so a float there is {signature.default_float} where "
            f"{reason} among the arguments, and no call selects {dtype}; write "
            f"{signature.default_float}, or annotate it: {name}: tack.{dtype}"
        )
    else:
        yield (
            f"{name!r} has no annotation, so an integer there is i64, and no call selects {dtype}; "
            f"write i64, or annotate it: {name}: tack.{dtype}"
        )
