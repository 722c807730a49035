"""Compiling for the CPU with LLVM: textual IR to object code, and object code into memory.

llvmlite carries LLVM and is imported when something is compiled or loaded. The object code of a
text depends on the CPU level it is for, not on the machine that compiles it.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any, Final

from tack.backends.cpu import LoadError
from tack.model.errors import ToolchainError
from tack.model.locks import fork_safe_lock
from tack.model.record import Record
from tack.model.targets import Target, cpu_family

__all__ = ["LlvmCompiler", "LlvmLibrary", "find"]

_SPEED: Final = 2
"""LLVM's -O2. -O3 takes up to twice as long for what it unrolls and unswitches."""

_OLDEST: Final = 20
"""The first LLVM that is known to take what tack writes; llvmlite 0.45 has it."""

_CPU_NAMES: Final = {"aarch64": "generic"}
"""LLVM's names for CPU levels, where they are not those of C compilers."""


def find() -> LlvmCompiler | None:
    """LLVM as llvmlite has it, or None without llvmlite, or with one that is too old."""
    try:
        import llvmlite
        from llvmlite import binding
    except (ImportError, OSError):  # OSError: it is there, and its library does not load
        return None
    if binding.llvm_version_info[0] < _OLDEST:
        return None
    version = ".".join(map(str, binding.llvm_version_info))
    return LlvmCompiler(f"llvmlite {llvmlite.__version__}, LLVM {version}")


class LlvmCompiler(Record):
    """LLVM, of one ``version``. Any thread may use it."""

    version: str

    dialect = "llvm"

    def __str__(self) -> str:
        return self.version

    def identity(self) -> str:
        """What the bytes of an object depend on besides its text and its target."""
        return f"{self.version}, O{_SPEED}, {_triple()}"

    def compile(self, text: str, target: Target) -> bytes:
        """The object code of a module of LLVM IR; the same bytes every time.

        `ToolchainError` if this LLVM does not compile for the target's architecture.
        """
        from llvmlite import binding

        machine = _machine(target)
        # A context of its own: what LLVM keeps for a module goes away with it.
        module = binding.parse_assembly(text, binding.create_context())
        module.verify()
        module.triple = machine.triple
        module.data_layout = str(machine.target_data)
        options = binding.create_pipeline_tuning_options(_SPEED)
        options.loop_interleaving = options.loop_unrolling = True
        options.loop_vectorization = options.slp_vectorization = True
        builder = binding.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
        code: bytes = machine.emit_object(module)
        return code

    def load(self, image: bytes) -> LlvmLibrary:
        """The functions of an object, in memory until the process ends. Raises `LoadError`."""
        return LlvmLibrary(image)


class LlvmLibrary:
    """Object code in executable memory. It stays there: a kernel may be running at any time."""

    def __init__(self, image: bytes) -> None:
        from llvmlite import binding

        self._name = f"tack_{next(_numbers)}"
        try:
            builder = binding.JITLibraryBuilder().add_object_img(image)
            builder.add_current_process()  # libm, and the memset and memcpy that LLVM recognizes
            builder.link(_session(), self._name).detach()
        except RuntimeError as error:
            raise LoadError(f"LLVM cannot link the object: {error}") from None

    def symbol(self, name: str) -> int:
        """The address of a function; ``AttributeError`` if there is none of that name."""
        try:
            found = _session().lookup(self._name, name)
        except RuntimeError as error:
            raise AttributeError(f"LLVM finds no {name}: {error}") from None
        found.detach()
        address: int = found[name]
        return address


_numbers = itertools.count()
_lock = fork_safe_lock()


def _triple() -> str:
    from llvmlite import binding

    triple: str = binding.get_process_triple()
    return triple


def _initialize() -> None:
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()


def _machine(target: Target) -> Any:
    """LLVM's code generator for a target: of the level and of nothing that this CPU has besides."""
    from llvmlite import binding

    triple = _triple()
    if cpu_family(triple.partition("-")[0]) != target.level.family:
        raise ToolchainError(f"this LLVM compiles for {triple}, and not for {target}")
    _initialize()
    return binding.Target.from_triple(triple).create_target_machine(
        cpu=_CPU_NAMES.get(target.arch, target.level.march),
        opt=_SPEED,
        reloc="pic",
        codemodel="small",
    )


def _session() -> Any:
    """The one linker of the process; llvmlite leaves it alone when Python ends."""
    with _lock:
        return _make_session()


@functools.cache
def _make_session() -> Any:
    from llvmlite import binding

    _initialize()
    return binding.create_lljit_compiler(use_jit_link=True)
