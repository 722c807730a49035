"""Modules from source text: tack needs source that it can read, so they are files."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from pathlib import Path
from types import ModuleType

__all__ = ["load_module"]

_numbers = itertools.count()


def load_module(source: str, folder: Path) -> ModuleType:
    """Write `source` into `folder` under a fresh name and import it."""
    name = f"generated_{next(_numbers)}"
    path = folder / f"{name}.py"
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
