"""Prints what building a project needs: ``[build-system] requires``, one requirement a line."""

import sys
import tomllib
from pathlib import Path

__all__ = ["build_requirements"]


def build_requirements(project: Path) -> list[str]:
    """The build requirements that the pyproject.toml at ``project`` declares, sorted."""
    table = tomllib.loads(project.read_text(encoding="utf-8"))["build-system"]
    return sorted(str(requirement) for requirement in table["requires"])


if __name__ == "__main__":
    print("\n".join(build_requirements(Path(sys.argv[1]))))
