"""The runner of the README's commands sees every command and every wrong output."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]

PAGE = """Text.

```console
$ printf 'one\\ntwo\\nthree\\n'
one
t...e
$ cat <<END
> a line
> END
a line
```
"""


@pytest.fixture(scope="module")
def console() -> ModuleType:
    spec = importlib.util.spec_from_file_location("console", ROOT / ".ci" / "console.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["console"] = module
    spec.loader.exec_module(module)
    return module


def test_commands_and_what_they_print_are_told_apart(console: ModuleType) -> None:
    first, second = console.commands(PAGE)
    assert first.text == "printf 'one\\ntwo\\nthree\\n'"
    assert first.shown == ["one", "t...e"]
    assert second.text == "cat <<END\na line\nEND"


def test_output_without_a_command_is_refused(console: ModuleType) -> None:
    with pytest.raises(ValueError, match="instead of a command"):
        console.commands("```console\nonly output\n```\n")


@pytest.mark.parametrize(
    ("output", "missing"),
    [
        ("one\ntwo\nthree\n", None),
        ("zero\none\nthe\n", None),
        ("three\none\n", "t...e"),
        ("", "one"),
    ],
)
def test_lines_must_occur_in_order(console: ModuleType, output: str, missing: str | None) -> None:
    assert console.disagreement(["one", "t...e"], output) == missing


@pytest.mark.parametrize(
    ("page", "status"),
    [
        (PAGE, 0),
        (PAGE.replace("two\\n", "").replace("t...e", "two"), 1),
        ("```console\n$ (exit 3)\n```\n", 1),
        ("```console\n$ export NAME=x\n```\n\n```console\n$ echo $NAME\nx\n```\n", 0),
    ],
    ids=["right", "wrong-output", "failing", "one-shell"],
)
def test_a_page_is_run(
    console: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    page: str,
    status: int,
) -> None:
    (tmp_path / "page.md").write_text(page, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(console, "copy_checkout", lambda target: None)
    assert console.main(["page.md"]) == status
