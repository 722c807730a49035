"""Packages with a bundle, made without the build system: for tests of what reads a bundle.

The bundle is written here field by field from what `tack.compile` gives, so that its form is
stated a second time.
"""

from __future__ import annotations

import hashlib
import importlib
import itertools
import json
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Mapping, Sequence
from importlib.resources import as_file, files
from pathlib import Path
from types import ModuleType
from typing import Any

from harness import FLAGS

from tack.compile import assemble, generate
from tack.model.signature import Signature
from tack.model.targets import Target
from tack.model.variant import Variant
from tack.render.renderer import renderer_for

__all__ = ["Package", "fresh_name"]

_numbers = itertools.count()


def fresh_name() -> str:
    """A module name that no earlier test had."""
    return f"tack_test_package_{next(_numbers)}"


class Package:
    """A package below ``root`` with modules, and a bundle for ``rows`` of its kernels."""

    def __init__(self, root: Path, modules: Mapping[str, str], name: str | None = None) -> None:
        self.root = root
        self.name = name or fresh_name()
        self.folder = root / self.name
        self.bundle = self.folder / "_tack"
        self.folder.mkdir()
        for module, text in {"__init__": "", **modules}.items():
            self.write(module, text)

    def copy_to(self, root: Path) -> Package:
        """The same package, bundle included, below another root."""
        copy: Package = object.__new__(type(self))
        copy.root, copy.name = root, self.name
        copy.folder, copy.bundle = root / self.name, root / self.name / "_tack"
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(self.folder, copy.folder, ignore=ignored)
        return copy

    def write(self, module: str, text: str) -> None:
        """Writes one module."""
        text = textwrap.dedent(text).replace("PACKAGE", self.name)
        (self.folder / f"{module}.py").write_text(text, encoding="utf-8")

    def edit(self, module: str, old: str, new: str) -> None:
        """Replaces text of one module."""
        path = self.folder / f"{module}.py"
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")

    def load(self, module: str = "kernels") -> ModuleType:
        """Imports a module afresh, as a new process would."""
        self.forget()
        importlib.invalidate_caches()
        if str(self.root) not in sys.path:
            sys.path.insert(0, str(self.root))
        return importlib.import_module(f"{self.name}.{module}")

    def forget(self) -> None:
        """Drops the package from the interpreter."""
        for name in [n for n in sys.modules if n.split(".")[0] == self.name]:
            del sys.modules[name]

    def build(self, rows: Sequence[tuple[str, str]], levels: Sequence[str]) -> dict[str, Any]:
        """Compiles the rows ``(kernel, signature)`` of module ``kernels`` and writes the bundle."""
        kernels = self.load()
        self.bundle.mkdir(exist_ok=True)
        artifacts, entries, modules = [], {}, set()
        for level in levels:
            target = Target("cpu", level)
            renderer = renderer_for(target)
            sources = []
            for kernel, text in rows:
                definition = getattr(kernels, kernel).definition
                signature = text.replace("PACKAGE", self.name)
                given = Signature.parse(signature)
                variant = Variant(definition, given, target, definition.options)
                source = generate(variant, renderer)
                print_, whole = definition.fingerprint(), definition.fingerprint(given)
                modules.update(whole.modules)
                sources.append(source)
                entry = entries.setdefault(
                    kernel,
                    {
                        "name": definition.name,
                        "parameters": list(definition.parameters),
                        "modules": list(print_.modules),
                        "captured": [
                            {"scope": c.scope, "name": c.name, "value": c.value}
                            for c in print_.captured
                        ],
                        "variants": [],
                    },
                )
                entry["variants"].append(
                    {
                        "targets": {f"cpu:{level}": []},
                        "signature": signature,
                        "options": definition.options.to_json(),
                        "source_key": source.source_key,
                        "launch": {
                            "slots": [list(s) for s in source.launch.slots],
                            "host": [list(h) for h in source.launch.host],
                            "loops": source.launch.loops,
                            "written": list(source.launch.written),
                            "aligned": list(source.launch.aligned),
                            "entries": dict(source.launch.entries),
                            "group": list(source.launch.group),
                            "shared": source.launch.shared,
                            "multiples": [],
                            "lanes": 1,
                            "prints": False,
                        },
                    }
                )
                if given.templates:
                    entry["variants"][-1] |= {
                        "modules": [m for m in whole.modules if m not in print_.modules],
                        "captured": [
                            {"scope": c.scope, "name": c.name, "value": c.value}
                            for c in whole.captured
                            if c not in print_.captured
                        ],
                    }
            library = self._compile(level, assemble("unit", sources, renderer))
            content = library.read_bytes()
            artifacts.append(
                {
                    "target": f"cpu:{level}",
                    "path": f"cpu/{level}.so",
                    "sha256": hashlib.sha256(content).hexdigest(),
                    "size": len(content),
                    "needs": level,
                }
            )
        document = {
            "schema": 1,
            "package": self.name,
            "tack": "0.1.0",
            "abi": 1,
            "toolchain": {"compiler": "gcc"},
            "modules": {m: self._digest(m) for m in sorted(modules)},
            "artifacts": artifacts,
            "kernels": list(entries.values()),
            "skipped": [],
        }
        self.write_manifest(document)
        return document

    def write_manifest(self, document: object) -> None:
        """Writes ``_tack/manifest.json``."""
        (self.bundle / "manifest.json").write_text(json.dumps(document), encoding="utf-8")

    def _digest(self, module: str) -> str:
        path = self.root.joinpath(*module.split(".")).with_suffix(".py")
        return hashlib.sha256(path.read_bytes()).hexdigest()

    def _compile(self, level: str, text: str) -> Path:
        folder = self.bundle / "cpu"
        folder.mkdir(exist_ok=True)
        source = self.root / f"{level}.c"
        source.write_text(text, encoding="utf-8")
        march = Target("cpu", level).level.march
        with as_file(files("tack.templates") / "c") as headers:
            command = ["gcc", *FLAGS, f"-march={march}", f"-I{headers}", "-o"]
            subprocess.run([*command, folder / f"{level}.so", source, "-lm"], check=True)
        return folder / f"{level}.so"
