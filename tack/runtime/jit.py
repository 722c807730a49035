"""Answering a miss: the variant is compiled now, or found where it was compiled before.

The road is the build's: the same IR, through the same passes, gives the same bits. What is
compiled is kept for the process, and in the disk cache under its build key.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tack import _core
from tack.backends import cpu
from tack.lang.definition import KernelDefinition
from tack.model.errors import BundleError, CompileError, ToolchainError
from tack.model.keys import build_key, digest, source_key
from tack.model.launch import Launch
from tack.model.locks import fork_safe_lock
from tack.model.record import Record
from tack.model.signature import Signature
from tack.model.targets import Target
from tack.model.variant import Variant
from tack.runtime.cache import Cache, default_cache
from tack.runtime.launching import launchable
from tack.runtime.settings import log

if TYPE_CHECKING:
    from tack.backends.cpu_jit import Toolchain

__all__ = ["Compiled", "answer", "forget_collected", "obstacle", "target"]


class Compiled(Record):
    """A variant that was compiled here: what can be launched, its plan, and where it came from."""

    launchable: _core.Launchable
    launch: Launch
    origin: str


class _Pending:
    """A compile that one thread does and others wait for."""

    def __init__(self) -> None:
        self.owner = threading.get_ident()
        self.done = threading.Event()
        self.compiled: Compiled | None = None
        self.error: BaseException | None = None

    def result(self) -> Compiled:
        """What was compiled, when it is; raises what the compile raised."""
        self.done.wait()
        if self.compiled is None:
            assert self.error is not None
            raise self.error
        return self.compiled


_Key = tuple[Signature, Target]
_pending: weakref.WeakKeyDictionary[KernelDefinition, dict[_Key, _Pending]]
_pending = weakref.WeakKeyDictionary()
_lock = fork_safe_lock()
if hasattr(os, "register_at_fork"):
    # A thread that compiles is not there in a forked child, and nobody may wait for it.
    os.register_at_fork(after_in_child=_pending.clear)


def target() -> Target:
    """What a variant is compiled for: the highest level that tack knows and this CPU runs.

    Raises `ToolchainError` where there is none.
    """
    level = cpu.best_level()
    if not level:
        raise ToolchainError("this CPU has no level that tack knows")
    return Target("cpu", level)


def obstacle(definition: KernelDefinition, signature: Signature) -> str | None:
    """Why ``definition`` cannot be compiled for ``signature``, or None. Compiles nothing."""
    try:
        definition.fingerprint(signature)
        toolchain = _toolchain(definition)
        _files(definition, toolchain)
        target()
    except (CompileError, ToolchainError) as error:
        return str(error)
    return None


def answer(
    definition: KernelDefinition, signature: Signature, after: Callable[[], None]
) -> Compiled:
    """The variant of ``definition`` for ``signature`` on this machine, compiled if need be.

    Of threads that ask at once one compiles and the others wait; if it fails, all of them get the
    error, and the next to ask tries again. The one calls ``after`` when it is done; should that
    raise, the next to ask has to as well.
    Raises `CompileError` and `ToolchainError`.
    """
    key = signature, target()
    with _lock:
        compiles = _pending.setdefault(definition, {})
        pending = compiles.get(key)
        mine = pending is None
        if pending is None:
            pending = compiles[key] = _Pending()
    if not mine and pending.owner == threading.get_ident() and not pending.done.is_set():
        # Whoever is told of the compile, a log handler perhaps, calls the same kernel.
        return _compile(Variant(definition, *key, definition.options))
    if not mine:
        return pending.result()
    try:
        pending.compiled = _compile(Variant(definition, *key, definition.options))
    except BaseException as error:
        pending.error = error
        with _lock:
            del compiles[key]
        raise
    finally:
        pending.done.set()
    try:
        after()
    except BaseException:
        with _lock:
            compiles.pop(key, None)
        raise
    return pending.compiled


def forget_collected(definition: KernelDefinition) -> None:
    """Forgets what was compiled for templates whose classes were collected.

    Takes no lock: the garbage collector calls it, perhaps while this thread holds the lock.
    """
    from tack.lang.template_spec import is_gone

    compiles = _pending.get(definition, {})
    for key in list(compiles):
        if any(is_gone(template) for _, template in key[0].templates):
            compiles.pop(key, None)


def _toolchain(definition: KernelDefinition) -> Toolchain:
    from tack.backends.cpu_jit import c_toolchain, toolchain

    return c_toolchain() if definition.declared else toolchain()


def _files(definition: KernelDefinition, toolchain: Toolchain) -> dict[str, str]:
    """The files of a source kernel's template, by content; none of another kernel."""
    if not definition.declared:
        return {}
    from tack.compile import author_template
    from tack.lang.source_kernel import SourceKernelDefinition

    assert isinstance(definition, SourceKernelDefinition)
    return author_template(definition, toolchain.dialect).files()


def _compile(variant: Variant) -> Compiled:
    definition = variant.kernel
    assert isinstance(definition, KernelDefinition)
    toolchain = _toolchain(definition)
    cache = default_cache()
    fingerprint = definition.fingerprint(variant.signature)
    files = _files(definition, toolchain)
    source = source_key(fingerprint.digest, variant.signature, variant.options, files)
    key = build_key(source, variant.target, _generator(cache), toolchain.identity())
    log("info", "%s(%s) is not prebuilt", definition.name, variant.signature)
    if cache is not None and cache.reason is not None:
        log("debug", "the disk cache is off: %s", cache.reason)
    found = cache.get(key) if cache is not None else None
    if found is not None:
        compiled = _load_entry(variant, toolchain, *found)
        if compiled is not None:
            return compiled
    return _compile_anew(variant, toolchain, key)


def _placed(variant: Variant, toolchain: Toolchain, error: ToolchainError) -> Exception:
    """The error of a compiler at its place in the author's template, or as it is."""
    from tack.compile import author_template
    from tack.lang.source_kernel import SourceKernelDefinition

    definition = variant.kernel
    if not isinstance(definition, SourceKernelDefinition):
        return error
    return author_template(definition, toolchain.dialect).refused(str(error)) or error


def _generator(cache: Cache | None) -> str:
    """The identity of the code generator, remembered for as long as nobody touches its files."""
    from tack.identity import generator_identity, generator_state

    if cache is None:
        return generator_identity()
    key = digest("tack generator", generator_state())
    found = cache.get(key)
    if found is not None and isinstance(found[0].get("identity"), str):
        identity: str = found[0]["identity"]
        return identity
    cache.put(key, {"identity": generator_identity()}, b"")
    return generator_identity()


def _load_entry(
    variant: Variant, toolchain: Toolchain, facts: dict[str, Any], code: bytes
) -> Compiled | None:
    """A variant out of the disk cache; None if the entry is not what it should be."""
    try:
        launch = Launch.from_json(facts.get("launch"), "the cache entry")
        library = toolchain.load(code)
        ready = launchable(variant, launch, library)
    except (BundleError, cpu.LoadError) as error:
        log("debug", "%s: the cached code does not load: %s", variant, error)
        return None
    log("debug", "%s: found in the disk cache", variant)
    return Compiled(ready, launch, f"found in the disk cache, compiled by {toolchain}")


def _compile_anew(variant: Variant, toolchain: Toolchain, key: str) -> Compiled:
    from time import perf_counter

    from tack.compile import assemble, generate
    from tack.render.renderer import renderer_for

    start = perf_counter()
    renderer = renderer_for(variant.target, toolchain.dialect).with_compiler(toolchain)
    source = generate(variant, renderer)
    generated = perf_counter()
    try:
        code = renderer.compile(assemble("jit", [source], renderer), variant.target)
    except ToolchainError as error:
        raise _placed(variant, toolchain, error) from error
    ready = launchable(variant, source.launch, toolchain.load(code))
    log(
        "debug",
        "%s: generated in %.1f ms, compiled by %s in %.1f ms",
        variant,
        (generated - start) * 1e3,
        toolchain,
        (perf_counter() - generated) * 1e3,
    )
    cache = default_cache()
    if cache is not None:
        cache.put(key, {"launch": source.launch.to_json(), "variant": str(variant)}, code)
    return Compiled(ready, source.launch, f"compiled now by {toolchain}")
