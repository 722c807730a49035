"""``TACK_RECORD`` notes become manifest rows."""

from __future__ import annotations

import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tack.aot.cli import main
from tack.aot.recording import manifest_rows, read_notes
from tack.errors import ManifestError

NOTES = [
    '{"kernel": "p.k:b", "signature": "f32, f32[:]"}',
    "",
    '{"kernel": "p.k:a", "signature": "i64,u8[:,3]"}',
    '{"kernel": "p.k:b", "signature": "f32, f32[:]"}',
    '{"kernel": "p.k:b", "signature": "f32, f64[:]"}',
]


def test_notes_become_rows_sorted_and_each_once(tmp_path, capsys):
    path = tmp_path / "notes.txt"
    path.write_text("\n".join(NOTES))
    assert main(["record", str(path)]) == 0
    assert tomllib.loads(capsys.readouterr().out) == {
        "kernel": [
            {"name": "p.k:a", "signatures": ["i64, u8[:, 3]"]},
            {"name": "p.k:b", "signatures": ["f32, f32[:]", "f32, f64[:]"]},
        ]
    }
    assert main(["record", str(path), "--json"]) == 0
    assert [row["name"] for row in json.loads(capsys.readouterr().out)] == ["p.k:a", "p.k:b"]


@given(st.dictionaries(st.text(), st.lists(st.text(), min_size=1), min_size=1))
def test_any_names_are_written_as_toml_that_reads_back(notes):
    rows = tomllib.loads(manifest_rows(notes))["kernel"]
    assert {row["name"]: row["signatures"] for row in rows} == notes


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"kernel": "a"}', '{"kernel": "a", "signature": "f33"}', "3"]
)
def test_a_line_that_is_no_note_is_named(line):
    with pytest.raises(ManifestError, match=r"^here:2: this is no note that TACK_RECORD writes"):
        read_notes([NOTES[0], line], "here")


def test_a_missing_file_is_named(tmp_path, capsys):
    assert main(["record", str(tmp_path / "missing")]) == 1
    assert "missing" in capsys.readouterr().err
