"""What the language refuses: one sentence, with function, file, line and a caret."""

from __future__ import annotations

from pathlib import Path

import pytest
from error_catalogue import PAGE, page, uncovered
from generator import load_module
from refusal_cases import CASES, refused

from tack.errors import CompileError
from tack.lang.lower import lower_kernel
from tack.model.signature import Signature


def check_form(error, module):
    """Function, file, line and column, the line itself and a caret under the place."""
    first, line, caret = str(error).splitlines()
    place = error.position
    assert first.startswith(
        f"{module.__file__}:{place.line}:{place.column + 1}: in {module.__name__}:"
    )
    lines = Path(module.__file__).read_text(encoding="utf-8").splitlines()
    assert line.strip() == lines[place.line - 1].strip()
    assert set(caret) == {" ", "^"}
    return line[caret.index("^") : len(caret)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_refused_is_named_and_pointed_at(case, tmp_path):
    module = load_module(case.text, tmp_path)
    error = refused(module, case.signature)
    pointed_at = check_form(error, module)
    if case.words is not None:
        assert case.words in error.message
    if case.under is not None and error.position.function.endswith(":kernel"):
        assert pointed_at == case.under.splitlines()[0]


def test_every_message_of_the_catalogue_is_that_of_a_program(tmp_path):
    messages = [refused(load_module(c.text, tmp_path), c.signature).message for c in CASES]
    assert uncovered(messages) == []


def test_the_catalogue_in_the_docs_is_that_of_the_code():
    assert PAGE.read_text(encoding="utf-8") == page(), "run tests/error_catalogue.py"


def test_a_signature_of_the_wrong_length_names_the_parameters(load):
    module = load("@tack.kernel\ndef kernel(a, x):\n    for i in range(3): x[i] = a")
    with pytest.raises(ValueError, match=r"1 entries and the kernel 2 parameters \(a, x\)"):
        lower_kernel(module.kernel.definition, Signature.parse("f32"))


def test_a_signature_against_an_annotation_is_named(load):
    module = load("@tack.kernel\ndef kernel(a: tack.u8, x):\n    for i in range(3): x[i] = a")
    with pytest.raises(ValueError, match=r"'a' is annotated tack\.u8, so no call has f32"):
        lower_kernel(module.kernel.definition, Signature.parse("f32, f32[:]"))
    with pytest.raises(ValueError, match=r"so no call has u8\[:\] there; write u8"):
        lower_kernel(module.kernel.definition, Signature.parse("u8[:], f32[:]"))


def test_a_file_edited_after_import_is_refused(load):
    module = load("@tack.kernel\ndef kernel(x):\n    for i in range(3): x[i] = 1.0")
    path = Path(module.__file__)
    path.write_text(path.read_text("utf-8").replace("1.0", "2.5"), "utf-8")
    with pytest.raises(CompileError, match=r"edited after it was imported.*reload"):
        lower_kernel(module.kernel.definition, Signature.parse("f32[:]"))


def test_a_file_edited_elsewhere_after_import_still_works(load):
    module = load("@tack.kernel\ndef kernel(x):\n    for i in range(3): x[i] = 1.0")
    path = Path(module.__file__)
    path.write_text("# a comment\n\n" + path.read_text("utf-8"), "utf-8")
    lowered = lower_kernel(module.kernel.definition, Signature.parse("f32[:]"))
    assert lowered.name.endswith(":kernel")


def test_no_source_is_refused_with_the_reason():
    scope = {}
    exec("import tack\n@tack.kernel\ndef kernel(x):\n  for i in range(3): x[i] = 1.0\n", scope)
    with pytest.raises(CompileError, match="cannot be read"):
        lower_kernel(scope["kernel"].definition, Signature.parse("f32[:]"))


@pytest.mark.parametrize(
    ("value", "dtype", "error"),
    [
        ("a", None, TypeError),
        (1, int, TypeError),
        (300, "u8", OverflowError),
        (-1, "u64", OverflowError),
        (1.5, "i32", ValueError),
        (2**64, None, OverflowError),
        (1e300, "f32", OverflowError),
        (10**400, "f64", OverflowError),
    ],
)
def test_a_constant_that_is_none_is_refused(value, dtype, error):
    import tack

    with pytest.raises(error, match=r"tack\.constant"):
        tack.constant(value, getattr(tack, dtype) if isinstance(dtype, str) else dtype)


def test_what_is_no_plain_function_is_refused_by_the_decorators():
    import tack

    async def coroutine(x): ...

    def generator(x):
        yield x

    for decorator in (tack.kernel, tack.func):
        for wrong in (lambda x: x, coroutine, generator, print, 3):
            with pytest.raises(TypeError, match="tack decorates"):
                decorator(wrong)
