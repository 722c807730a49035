"""What is wrong with a source kernel is one sentence, at the author's line."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from projects import Project

import tack
from tack.backends import cpu_cc, cpu_jit
from tack.compile import generate
from tack.errors import CompileError, ManifestError, NoVariantError, UnsupportedError
from tack.model.signature import Signature
from tack.model.targets import Target
from tack.model.variant import Variant
from tack.render.renderer import renderer_for

TEMPLATE = """
{{ tack.function }}
{
  {% call tack.iterations() %}
  out[i] = x[i];
  {% endcall %}
}
"""

CPU = Target("cpu", "x86-64-v3")


class Made:
    """A kernel ``copy`` of ``x`` and ``out`` with a template of that text."""

    def __init__(self, load: Callable[[str], ModuleType], folder: Path) -> None:
        self._load, self._folder = load, folder

    def write(self, name: str, text: str) -> None:
        (self._folder / name).write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")

    def kernel(self, template: str = TEMPLATE, **changed: str) -> Any:
        words = {
            "decorator": 'c="copy.c.j2", writes="out"',
            "parameters": "x: tack.Array, out: tack.Array",
            "loop": "i in range(x.shape[0])",
            "body": "...",
        } | changed
        self.write("copy.c.j2", template)
        text = (
            f"@tack.source_kernel({words['decorator']})\n"
            f"def copy({words['parameters']}):\n    for {words['loop']}:\n        {words['body']}\n"
        )
        return self._load(text).copy

    def refused(self, template: str = TEMPLATE, signature: str = "f32[:], f32[:]", **changed: str):
        """The error with which a variant is refused."""
        kernel = self.kernel(template, **changed)
        with pytest.raises(CompileError) as caught:
            generate(Variant(kernel.definition, Signature.parse(signature), CPU), renderer_for(CPU))
        return caught.value


@pytest.fixture
def made(load: Callable[[str], ModuleType], tmp_path: Path) -> Made:
    return Made(load, tmp_path)


def place(error: CompileError) -> tuple[str, int, str]:
    """The file, the line and what the carets stand under."""
    position = error.position
    assert position is not None
    under = position.text[position.column : position.end_column]
    return Path(position.file).name, position.line, under


# --- the declaration


@pytest.mark.parametrize(
    ("decorator", "error", "words"),
    [
        ('writes="out"', TypeError, "no template is named; write c='copy.c.j2' for the CPU"),
        ('c="a.j2", writes="output"', ValueError, "'output' is no parameter; did you mean 'out'?"),
        ('c="a.j2", writes=()', ValueError, "writes= names no array"),
        ('c="a.j2", writes=("out", "out")', ValueError, "names 'out' twice"),
        ('c=3, writes="out"', TypeError, "c=3 is no name of a file"),
        ('c="../a.j2", writes="out"', ValueError, "lies outside of the module's folder"),
        ('c="/etc/a.j2", writes="out"', ValueError, "lies outside of the module's folder"),
        ('c="a.j2", writes="out", group=0', ValueError, "group=0 is not the size of a workgroup"),
        ('c="a.j2", writes="out", group="8"', ValueError, "group='8' is not the size of a work"),
        ('c="a.j2", writes="out", opencl="a"', TypeError, "unexpected keyword argument 'opencl'"),
        ('c="a.j2"', TypeError, "missing 1 required keyword-only argument: 'writes'"),
    ],
)
def test_a_wrong_declaration_is_refused_where_it_stands(
    made: Made, decorator: str, error: type[Exception], words: str
) -> None:
    with pytest.raises(error) as caught:
        made.kernel(decorator=decorator)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("name", "inside"),
    [("b.j2", True), ("../b.j2", True), ("../../b.j2", False), ("../../other/b.j2", False)],
)
def test_a_template_lies_in_the_package(tmp_path: Path, name: str, inside: bool) -> None:
    text = f"""
        import tack

        @tack.source_kernel(c="{name}", writes="x")
        def kernel(x: tack.Array):
            for i in range(x.shape[0]):
                ...
    """
    project = Project(tmp_path, {"part/__init__": "", "part/kernels": text})
    path = (project.source / "part" / name).resolve()
    path.parent.mkdir(exist_ok=True)
    path.write_text(TEMPLATE.replace("out[i] = x[i]", "x[i] = 1"))
    project.write_manifest("""
        schema = 1
        package = "NAME"

        [targets]
        cpu = ["x86-64-v3"]

        [[kernel]]
        name = "NAME.part.kernels:kernel"
        signatures = ["f32[:]"]
    """)
    if inside:
        assert project.plan().units
        return
    with pytest.raises(ManifestError, match=f"lies outside of the package '{project.name}'"):
        project.plan()


@pytest.mark.parametrize(
    ("name", "language"), [("register", "C"), ("begin", "C"), ("größe", "C"), ("args", "C")]
)
def test_a_parameter_that_cannot_have_its_name_is_refused(
    made: Made, name: str, language: str
) -> None:
    error = made.refused(parameters=f"x: tack.Array, out: tack.Array, {name}: tack.i64",
                         signature="f32[:], f32[:], i64")  # fmt: skip
    assert f"{name!r} cannot be a name in a source kernel: it is no free name in C" in str(error)
    assert place(error)[2].startswith(name)
    error = made.refused(loop=f"{name} in range(x.shape[0])")
    assert "cannot be a name in a source kernel" in str(error)


@pytest.mark.parametrize("name", ["tack", "loop", "none"])
def test_a_parameter_with_a_name_of_the_templates_own_is_refused(made: Made, name: str) -> None:
    kernel = made.kernel(parameters=f"x, out, {name}")
    variant = Variant(kernel.definition, Signature.parse("f32[:], f32[:], i64"), CPU)
    with pytest.raises(CompileError, match=f"'{name}' cannot .* it means something else"):
        generate(variant, renderer_for(CPU))


def test_what_is_written_is_an_array(made: Made) -> None:
    kernel = made.kernel()
    with pytest.raises(ValueError, match="'out' is among what the kernel writes, so it is an arr"):
        kernel(np.ones(3), 1.0)


def test_objects_are_not_taken_apart(made: Made) -> None:
    @tack.device_class
    class Grid:
        n = 3

    with pytest.raises(ValueError, match=r"'x' is an object \(.*Grid\), and a source kernel takes"):
        made.kernel(loop="i in range(out.shape[0])")(Grid(), np.ones(3))


@pytest.mark.parametrize(
    ("target", "body", "words"),
    [
        (
            "cuda:sm_90",
            "...",
            "a group of 2048 along x is too large for cuda:sm_90, which has 1024",
        ),
        ("metal:metal3.1", "...", "too large for metal:metal3.1, which has 1024"),
        (
            "hip:gfx942",
            "tile = tack.shared(tack.f64, 10000); ...",
            "its shared arrays have 80000 bytes, too many for hip:gfx942, which has 65536",
        ),
    ],
)
def test_what_a_target_cannot_hold_is_refused_with_the_numbers(
    made: Made, target: str, body: str, words: str
) -> None:
    size = 2048 if body == "..." else 64
    decorator = f'cuda="a.j2", hip="a.j2", metal="a.j2", writes="out", group={size}'
    kernel = made.kernel(decorator=decorator, body=body)
    made.write("a.j2", TEMPLATE)
    chosen = Target.parse(target)
    variant = Variant(kernel.definition, Signature.parse("f32[:], f32[:]"), chosen)
    with pytest.raises(UnsupportedError) as caught:
        generate(variant, renderer_for(chosen))
    assert words in str(caught.value)


@pytest.mark.parametrize("asked", ["{% call tack.groups() %}{% endcall %}", "{{ tack.active }}"])
def test_groups_are_for_kernels_that_declare_one(made: Made, asked: str) -> None:
    error = made.refused(asked)
    assert "is for GPUs and kernels that declare a group; write group= in" in str(error)


# --- the template


def test_a_missing_template_is_named_with_its_place(made: Made, tmp_path: Path) -> None:
    error = made.refused(decorator='c="lost.c.j2", writes="out"')
    assert f"the template lost.c.j2 is not there ({tmp_path / 'lost.c.j2'})" in str(error)


@pytest.mark.parametrize(
    ("template", "line", "under", "words"),
    [
        ("\n{{ y }}\n", 2, "{{ y }}", "'y' is undefined; a template of this kernel has x, out, ta"),
        ("a\n\n  {{ x.size }}", 3, "{{ x.size }}", "there is no 'size' here; there is name, type,"),
        ("{{ tack.threads }}", 1, "{{ tack.threads }}", "there is no 'threads' here; there is fun"),
        ("{{ x.shape[1] }}", 1, "{{ x.shape[1] }}", "has no element 1"),
        ("\n\n{{ x.at() }}", 3, "{{ x.at() }}", "x has 1 axes, and at() was given 0 indices"),
        ("{{ x.strides }}", 1, "{{ x.strides }}", "x is contiguous and has no strides; ask x.str"),
        ("\n{{ 1 // 0 }}", 2, "{{ 1 // 0 }}", "the template raises ZeroDivisionError"),
        ("\n{% if x %}\n", 2, "{% if x %}", "Unexpected end of template"),
        ("{{ x + }}", 1, "{{ x + }}", "unexpected"),
        ("\n{{ x | lost }}", 2, "{{ x | lost }}", "No filter named 'lost'"),
        ('\n{% include "lost.j2" %}', 2, '{% include "lost.j2" %}', "there is no file lost.j2"),
        ('{% include "../a.j2" %}', 1, '{% include "../a.j2" %}', "there is no file ../a.j2 in"),
        ("\n{% include x.name %}", 2, "{% include x.name %}", "names its file by a text alone"),
    ],
)
def test_what_is_wrong_in_a_template_is_said_at_its_line(
    made: Made, template: str, line: int, under: str, words: str
) -> None:
    kernel = made.kernel()
    (Path(kernel.definition.root) / "copy.c.j2").write_text(template)
    variant = Variant(kernel.definition, Signature.parse("f32[:], f32[:]"), CPU)
    with pytest.raises(CompileError) as caught:
        generate(variant, renderer_for(CPU))
    assert place(caught.value) == ("copy.c.j2", line, under)
    assert words in str(caught.value)
    assert ":copy: " in str(caught.value)


def test_what_is_wrong_in_an_included_file_is_said_there(made: Made) -> None:
    made.write("part.j2", "\n\n/* */\n  {{ y }}\n")
    assert place(made.refused('{% include "part.j2" %}')) == ("part.j2", 2, "{{ y }}")
    made.write("part.j2", "{% macro m() %}\n{{ y }}\n{% endmacro %}\n")
    error = made.refused('{% from "part.j2" import m %}\n{{ m() }}')
    assert place(error) == ("part.j2", 2, "{{ y }}")


def test_a_template_that_defines_nothing_is_refused(made: Made) -> None:
    error = made.refused("static int nothing;\n")
    assert "copy.c.j2 never writes {{ tack.function }}" in str(error)


def test_a_template_that_takes_a_strided_array_for_a_contiguous_one_is_refused(made: Made) -> None:
    error = made.refused(signature="f32[:; strided], f32[:]")
    assert "copy.c.j2 takes x for a contiguous array" in str(error)
    assert "write elements as {{ x.at('i') }}" in str(error)
    kernel = made.kernel()
    with pytest.raises(CompileError, match="pass a contiguous copy"):
        kernel(np.ones(6)[::2], np.zeros(3))


def test_a_template_in_another_encoding_is_named(made: Made) -> None:
    kernel = made.kernel()
    (Path(kernel.definition.root) / "copy.c.j2").write_bytes(b"/* \xff */")
    with pytest.raises(CompileError, match=r"copy.c.j2 is not UTF-8"):
        kernel(np.ones(3), np.ones(3))


# --- the compiler


@pytest.mark.parametrize(
    ("old", "new", "line", "under", "words"),
    [
        ("out[i] = x[i];", "out[i] = x[i]", 4, "x", "expected"),
        ("out[i] = x[i];", "out[i] = y[i];", 4, "y", "y"),
        ("{{ tack", "#include <no/such.h>\n{{ tack", 1, "no", "No such file"),
        ("out[i] = x[i];", "x[i] = out[i];", 4, "x", "read-only"),
    ],
)
def test_an_error_of_the_compiler_is_said_at_the_line_of_the_template(
    made: Made, old: str, new: str, line: int, under: str, words: str
) -> None:
    kernel = made.kernel(TEMPLATE.replace(old, new))
    with pytest.raises(CompileError) as caught:
        kernel(np.ones(3), np.ones(3))
    found = place(caught.value)
    assert found[:2] == ("copy.c.j2", line)
    assert "the compiler says: " in str(caught.value)


def test_an_error_in_an_included_file_is_said_there(made: Made) -> None:
    made.write("part.j2", "int one;\nint two\n\n")
    kernel = made.kernel('{% include "part.j2" %}' + TEMPLATE)
    with pytest.raises(CompileError) as caught:
        kernel(np.ones(3), np.ones(3))
    assert place(caught.value)[0] in {"part.j2", "copy.c.j2"}


def test_without_a_c_compiler_the_error_says_what_to_install(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_cc, "find", lambda: None)
    cpu_jit.c_toolchain.cache_clear()
    kernel = made.kernel()
    words = "a source kernel that was not prebuilt is compiled by a C compiler, .*install gcc or cl"
    with pytest.raises(NoVariantError, match=words):
        kernel(np.ones(3), np.ones(3))
    assert "install gcc or clang" in str(tack.explain(kernel, np.ones(3), np.ones(3)))


def test_llvm_has_no_text_of_them(made: Made) -> None:
    with pytest.raises(UnsupportedError, match="nothing compiles such templates to LLVM"):
        made.kernel().source("llvm", "f32[:], f32[:]")


def test_a_kernel_for_gpus_alone_says_what_a_cpu_needs(made: Made) -> None:
    kernel = made.kernel(decorator='cuda="copy.c.j2", writes="out"')
    with pytest.raises(CompileError, match=r"has templates in cuda alone, and this needs one in c"):
        kernel(np.ones(3), np.ones(3))
    assert "write it, and c= in @tack" in str(tack.explain(kernel, np.ones(3), np.ones(3)))
