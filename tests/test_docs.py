"""The code in the README and the docs is the code of the examples, which CI builds and runs."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])

# A fenced block, with the comment before it that names the file it is copied from.
BLOCK = re.compile(
    r"(?:^<!-- file: (?P<file>\S+) -->\n)?^```(?P<language>\w+)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
# Commands are run by .ci/console.py.
RUN_ELSEWHERE = {"console"}

LINK = re.compile(r"\]\((?P<target>[^)#\s]+)(?:#[^)\s]*)?\)")


def blocks() -> list[tuple[str, str, str]]:
    return [
        (str(page.relative_to(ROOT)), block["file"], block["body"])
        for page in PAGES
        for block in BLOCK.finditer(page.read_text(encoding="utf-8"))
        if block["language"] not in RUN_ELSEWHERE
    ]


@pytest.mark.parametrize(("page", "file", "body"), blocks())
def test_a_code_block_is_copied_from_a_file(page: str, file: str | None, body: str) -> None:
    assert file is not None, f"{page}: no <!-- file: ... --> above the block:\n{body}"
    assert body in (ROOT / file).read_text(encoding="utf-8"), f"{page} and {file} differ"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_link_leads_to_a_file(page: Path) -> None:
    for link in LINK.finditer(page.read_text(encoding="utf-8")):
        if "://" not in link["target"]:
            assert (page.parent / link["target"]).exists(), f"{page.name}: {link['target']}"


def test_every_decision_is_listed() -> None:
    listed = (ROOT / "docs" / "decisions" / "README.md").read_text(encoding="utf-8")
    for page in (ROOT / "docs" / "decisions").glob("[0-9]*.md"):
        assert f"]({page.name})" in listed
