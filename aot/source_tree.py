"""Importing a package from its source tree, whatever else is installed under its name.

Modules are compiled from their text each time: byte code of an earlier edit is neither read nor
written, so what is planned is what is in the files.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.machinery
import importlib.util
import linecache
import sys
import types
from collections.abc import Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Final

__all__ = ["SourceTree", "open_source_tree"]


class SourceTree(MetaPathFinder):
    """The modules of one package, found below ``root`` and nowhere else.

    ``files`` and ``digests`` tell for each module that was imported where its text is and the
    SHA-256 of the text that was compiled.
    """

    def __init__(self, root: Path, package: str, *, package_init: bool = True) -> None:
        self.root: Final = root
        self.package: Final = package
        self.files: dict[str, Path] = {}
        self.digests: dict[str, str] = {}
        self._top = package.partition(".")[0]
        self._package_init = package_init

    def owns(self, name: str) -> bool:
        """Whether module ``name`` belongs to the package's tree."""
        return name == self._top or name.startswith(f"{self._top}.")

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: types.ModuleType | None = None,
    ) -> ModuleSpec | None:
        """The module of that name below ``root``; None for names of other packages."""
        if not self.owns(fullname):
            return None
        if fullname == self.package and not self._package_init:
            bare = ModuleSpec(fullname, None, is_package=True)
            bare.submodule_search_locations = [str(self.root.joinpath(*fullname.split(".")))]
            return bare
        spec = importlib.machinery.PathFinder.find_spec(fullname, path or [str(self.root)])
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _TextLoader(fullname, spec.loader.path, self)
        return spec

    def note(self, name: str, path: str, content: bytes) -> None:
        """Notes that module ``name`` was compiled from ``content``."""
        self.files[name] = Path(path)
        self.digests[name] = hashlib.sha256(content).hexdigest()

    def describe(self, name: str) -> tuple[Path, str] | None:
        """File and digest of any imported module, of this package or another; None without one."""
        if name in self.files:
            return self.files[name], self.digests[name]
        file = getattr(sys.modules.get(name), "__file__", None)
        if file is None:
            return None
        return Path(file), hashlib.sha256(Path(file).read_bytes()).hexdigest()


class _TextLoader(importlib.machinery.SourceFileLoader):
    """Compiles a module from its text and notes what it read."""

    def __init__(self, name: str, path: str, tree: SourceTree) -> None:
        super().__init__(name, path)
        self._tree = tree

    def get_code(self, fullname: str) -> types.CodeType:
        path = self.get_filename(fullname)
        content = self.get_data(path)
        self._tree.note(fullname, path, content)
        code = self.source_to_code(content, path)
        assert isinstance(code, types.CodeType)
        return code


@contextlib.contextmanager
def open_source_tree(
    root: Path, package: str, *, package_init: bool = True
) -> Iterator[SourceTree]:
    """Modules of ``package`` come from ``root`` inside this context, and are forgotten after it.

    What they print goes to stderr, so that a command's output stays its own.
    """
    tree = SourceTree(root, package, package_init=package_init)
    before = {name: sys.modules.pop(name) for name in list(sys.modules) if tree.owns(name)}
    dont_write_bytecode = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    sys.meta_path.insert(0, tree)
    importlib.invalidate_caches()
    linecache.checkcache()
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield tree
    finally:
        sys.meta_path.remove(tree)
        sys.dont_write_bytecode = dont_write_bytecode
        for name in [name for name in sys.modules if tree.owns(name)]:
            del sys.modules[name]
        sys.modules.update(before)
