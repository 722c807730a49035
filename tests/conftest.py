"""Fixtures that many tests share."""

from __future__ import annotations

import importlib.util
import itertools
import os
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import settings

# `HYPOTHESIS_PROFILE=deep` looks longer, for something new; without it every run tries the same.
settings.register_profile("default", deadline=None, derandomize=True)
settings.register_profile("ci", settings.get_profile("default"))
settings.register_profile("deep", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# Tests edit modules within the second, to another text of the same length: Python, which looks at
# the time and the size, would run what it compiled before.
sys.dont_write_bytecode = True
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"

_numbers = itertools.count()


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Callable[[str], ModuleType]]:
    """Imports a module from its text; kernels need source that can be read."""
    names: list[str] = []

    def load_text(text: str) -> ModuleType:
        name = f"tack_test_module_{next(_numbers)}"
        path = tmp_path / f"{name}.py"
        path.write_text("import tack\n" + textwrap.dedent(text), encoding="utf-8")
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        names.append(name)
        spec.loader.exec_module(module)
        return module

    yield load_text
    for name in names:
        sys.modules.pop(name, None)


@pytest.fixture
def no_jit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A miss is an error: what is tested is what was prebuilt."""
    monkeypatch.setenv("TACK_JIT", "forbid")


@pytest.fixture(autouse=True, scope="session")
def own_cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test writes to the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TACK_CACHE_DIR", str(tmp_path_factory.mktemp("cache") / "tack"))
        yield
