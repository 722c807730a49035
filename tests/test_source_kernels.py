"""Source kernels: what an author wrote in C, CUDA, HIP and Metal runs as a kernel does."""

from __future__ import annotations

import copy
import pickle
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from gpu_twins import DIALECTS, Emulated, compile_image, compile_metal, compile_nvrtc
from harness import run_kernel

import tack
from tack.backends.cpu_cc import CCompiler
from tack.compile import assemble, generate
from tack.model.signature import Signature
from tack.model.targets import Target
from tack.model.variant import Variant
from tack.render.renderer import renderer_for

Load = Callable[..., ModuleType]

SAXPY = """
    @tack.source_kernel(c="saxpy.j2", cuda="saxpy.j2", hip="saxpy.j2", metal="saxpy.j2",
                        writes="out", noalias=True)
    def saxpy(a, x: tack.Array, y: tack.Array, out: tack.Array) -> None:
        for i in range(x.shape[0]):
            ...
"""

SAXPY_TEMPLATE = """
    {{ tack.function }}
    {
      {% call tack.iterations() %}
        {{ out.at("i") }} = a * {{ x.at("i") }} + {{ y.at("i") }};
      {% endcall %}
    }
"""

RNG = np.random.default_rng(7)


@pytest.fixture
def own(load: Callable[[str], ModuleType], tmp_path: Path) -> Load:
    """Imports a module from its text, with templates beside it."""

    def load_with(text: str, **templates: str) -> ModuleType:
        for name, template in templates.items():
            path = tmp_path / name.replace("__", ".")
            path.write_text(textwrap.dedent(template).lstrip("\n"), encoding="utf-8")
        return load(text)

    return load_with


def numbers(dtype: str, *shape: int) -> np.ndarray:
    return (RNG.standard_normal(shape) * 50).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8"])
@pytest.mark.parametrize("n", [0, 1, 1000])
def test_one_template_serves_every_type(own: Load, dtype: str, n: int) -> None:
    saxpy = own(SAXPY, saxpy__j2=SAXPY_TEMPLATE).saxpy
    x, y, out = numbers(dtype, n), numbers(dtype, n), numbers(dtype, n)
    a = 3 if out.dtype.kind in "iu" else 0.5
    saxpy(a, x, y, out)
    assert np.array_equal(out, (x.dtype.type(a) * x + y).astype(dtype))


def test_elements_are_found_however_an_array_lies_in_memory(own: Load) -> None:
    saxpy = own(SAXPY, saxpy__j2=SAXPY_TEMPLATE).saxpy
    x, y, out = numbers("float64", 20)[::-2], numbers("float64", 10, 3)[:, 1], np.zeros(30)[::3]
    unaligned = np.zeros(81, np.uint8)[1:].view(np.float64)
    unaligned[:] = y
    saxpy(2.0, x, unaligned, out)
    assert np.array_equal(out, 2.0 * x + y)


def test_arrays_may_overlap(own: Load) -> None:
    saxpy = own(SAXPY, saxpy__j2=SAXPY_TEMPLATE).saxpy
    source = saxpy.source("c", "f64, f64[:], f64[:], f64[:]")
    assert "_general(" in source
    assert "_noalias(" in source
    assert "double *restrict out" in source
    x = numbers("float64", 100)
    expected = 2.0 * x + x
    saxpy(2.0, x, x, x)
    assert np.array_equal(x, expected)


GRID = """
    @tack.source_kernel(c="grid.j2", cuda="grid.j2", hip="grid.j2", metal="grid.j2", writes="out")
    def grid(x: tack.Array, shift: tack.i32, out: tack.Array) -> None:
        height = x.shape[0] // 2
        for LOOP:
            ...
"""

GRID_TEMPLATE = """
    {{ tack.function }}
    {
      {% call tack.iterations() %}
        {% set first, others = "2 * " ~ tack.indices[0], tack.indices[1:] %}
        {{ out.at(*tack.indices) }} = {{ x.at(first, *others) }} + shift;
      {% endcall %}
    }
"""

LOOPS = {
    1: "i in range(height)",
    2: "i, j in tack.ndrange(height, x.shape[1])",
    3: "i, j, k in tack.ndrange(height, x.shape[1], x.shape[2])",
}


@pytest.mark.parametrize("rank", LOOPS)
def test_loops_of_one_to_three_dimensions_over_what_the_host_computes(own: Load, rank: int) -> None:
    grid = own(GRID.replace("LOOP", LOOPS[rank]), grid__j2=GRID_TEMPLATE).grid
    for shape in ((9, 5, 4)[:rank], (0, 5, 4)[:rank], (8, 1, 3)[:rank]):
        x, out = numbers("int32", *shape), np.zeros((shape[0] // 2, *shape[1:]), np.int32)
        grid(x, 5, out)
        assert np.array_equal(out, x[: shape[0] // 2 * 2 : 2] + 5)


def test_an_author_may_write_the_loop_over_the_given_iterations(own: Load) -> None:
    scan = own(
        """
        @tack.source_kernel(c="sums.c.j2", writes=("out", "total"))
        def sums(x: tack.Array, out: tack.Array, total: tack.Array) -> None:
            for row in range(x.shape[0]):
                ...
        """,
        sums__c__j2="""
        #include <math.h>
        {% set T = x.type %}
        {% set width = x.shape[1] %}
        static inline {{ T }} larger({{ T }} a, {{ T }} b) { return a > b ? a : b; }

        {{ tack.function }}
        {
          for (int64_t row = begin; row < end; ++row) {
            {{ T }} most = {{ x }}[row * {{ width }}];
            for (int64_t k = 1; k < {{ width }}; ++k)
              most = larger(most, x[row * {{ width }} + k]);
            out[row] = sqrt(most);
            tack_atomic_add_i64(&total[0], 1);
          }
        }
        """,
    ).sums
    x, out, total = np.abs(numbers("float64", 30, 7)), np.zeros(30), np.zeros(1, np.int64)
    scan(x, out, total)
    assert np.array_equal(out, np.sqrt(x.max(axis=1)))
    assert total[0] == 30
    assert "* 7" in scan.source("c", "f64[:, 7], f64[:], i64[:]")


def test_vectors_are_their_components_and_types_have_their_names(own: Load) -> None:
    facts = own(
        """
        @tack.source_kernel(c="facts.c.j2", writes="out")
        def facts(v: tack.f32x3, on: tack.bool_, flags: tack.Array, out: tack.Array) -> None:
            for i in range(flags.shape[0]):
                ...
        """,
        facts__c__j2="""
        /* {{ v.x.type }} {{ on.type }} {{ on.dtype }} {{ flags.dtype }} {{ flags.rank }}
           {{ out.written }} {{ x is defined }} {{ tack.target.backend }} {{ tack.extents[0] }} */
        {{ tack.function }}
        {
          for (int64_t i = begin; i < end; ++i)
            out[i] = on && flags[i] ? {{ v.x }} + 10 * {{ v.y }} + 100 * {{ v.z }} : 0;
        }
        """,
    ).facts
    flags, out = np.array([True, False, True]), np.zeros(3, np.float32)
    facts((1, 2, 3), True, flags, out)
    assert list(out) == [321, 0, 321]
    text = facts.source("c", "f32x3, bool, bool[:], f32[:]")
    assert "float bool bool bool 1" in text
    assert "True False cpu i_count" in text


def test_files_that_a_template_names_lie_beside_it(own: Load, tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "body.j2").write_text(
        '{% from "../macros.j2" import twice %}\n  {{ out.at("i") }} = {{ twice(x.at("i")) }};\n'
    )
    kernel = own(
        """
        @tack.source_kernel(c="twice.c.j2", writes="out")
        def twice(x: tack.Array, out: tack.Array) -> None:
            for i in range(x.shape[0]):
                ...
        """,
        macros__j2="{% macro twice(v) %}2 * ({{ v }}){% endmacro %}\n",
        twice__c__j2="""
        {{ tack.function }}
        {
          {% call tack.iterations() %}
          {% include "parts/body.j2" %}
          {% endcall %}
        }
        """,
    ).twice
    x, out = numbers("int16", 9), np.zeros(9, np.int16)
    kernel(x, out)
    assert np.array_equal(out, 2 * x)
    assert '"parts/body.j2"' in kernel.source("c", "i16[:], i16[:]")


def test_lines_of_a_template_are_numbered_as_they_are_in_it(own: Load) -> None:
    text = """
    {% set T = x.type %}
    #define LONG(a) \\
      {% if T == "float" %}
      ((a) + \\
      {% endif %}
       1)

    // {{ T }} stands in line 8 {# a comment
    of two lines #} and 9
    {{ tack.function }}
    {
      {% call tack.iterations() %}
      out[i] = LONG(x[i]);  // line 13
      {% endcall %}
    }  // line 15
    """
    kernel = own(
        """
        @tack.source_kernel(c="lines.c.j2", writes="out")
        def lines(x: tack.Array, out: tack.Array) -> None:
            for i in range(x.shape[0]):
                ...
        """,
        lines__c__j2=text,
    ).lines
    number, file, seen = 0, "", {}
    for line in kernel.source("c", "f32[:], f32[:]").splitlines():
        if line.startswith("#line"):
            _, digits, file = line.split(maxsplit=2)
            number = int(digits)
            continue
        if file == '"lines.c.j2"' and "line" in line and "//" in line:
            seen[number] = line.partition("// ")[2]
        number += 1
    assert seen == {8: "float stands in line 8  and 9", 13: "line 13", 15: "line 15"}
    out = np.zeros(3, np.float32)
    kernel(np.arange(3, dtype=np.float32), out)
    assert list(out) == [1, 2, 3]


def test_what_is_written_must_be_writeable(own: Load) -> None:
    saxpy = own(SAXPY, saxpy__j2=SAXPY_TEMPLATE).saxpy
    out = np.zeros(3)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="array 'out' is read-only, and the kernel writes it"):
        saxpy(1.0, np.ones(3), np.ones(3), out)


def test_source_kernels_pickle_and_copy_by_name(own: Load) -> None:
    saxpy = own(SAXPY, saxpy__j2=SAXPY_TEMPLATE).saxpy
    assert pickle.loads(pickle.dumps(saxpy)) is saxpy
    assert copy.copy(saxpy) is saxpy
    assert type(saxpy) is type(tack.kernel(lambda_free))


def lambda_free(x):
    for i in range(x.shape[0]):
        x[i] = 0


def test_a_call_is_explained_and_compiled_once(own: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    saxpy = own(SAXPY, saxpy__j2=SAXPY_TEMPLATE + "/* of this test */").saxpy
    x, out = np.ones(3), np.zeros(3)
    said = tack.explain(saxpy, 1.0, x, x, out)
    assert said.chosen is not None
    assert said.chosen.jit
    saxpy(1.0, x, x, out)

    def fails(*_: object) -> bytes:
        raise AssertionError("compiled again")

    monkeypatch.setattr(CCompiler, "compile", fails)
    again = own(SAXPY).saxpy  # from the disk cache, as another process would
    again(1.0, x, x, out)
    edited = own(SAXPY, saxpy__j2=SAXPY_TEMPLATE + "/* and another */").saxpy
    with pytest.raises(AssertionError, match="compiled again"):
        edited(1.0, x, x, out)


# --- keys


def key(kernel: object, target: str = "cpu:x86-64-v3") -> str:
    chosen = Target.parse(target)
    signature = Signature.parse("f32, f32[:], f32[:], f32[:]")
    variant = Variant(kernel.definition, signature, chosen, kernel.definition.options)
    return generate(variant, renderer_for(chosen)).source_key


def test_keys_cover_the_template_what_it_includes_and_the_declaration(
    own: Load, tmp_path: Path
) -> None:
    with_part = SAXPY_TEMPLATE.replace("{{ tack", '{% include "part.j2" %}\n    {{ tack', 1)
    files = {"saxpy__j2": with_part, "part__j2": "/* one */\n"}
    first = key(own(SAXPY, **files).saxpy)
    assert key(own("\n\n    # moved\n" + SAXPY, **files).saxpy) == first
    assert key(own(SAXPY, **files | {"part__j2": "/* two */\n"}).saxpy) != first
    assert key(own(SAXPY, **files | {"saxpy__j2": with_part + "\n"}).saxpy) != first
    for old, new in (
        ("noalias=True", "noalias=False"),
        ('writes="out"', 'writes=("out", "y")'),
        ("noalias=True", "noalias=True, group=64"),
        ("x.shape[0]", "x.shape[0] - 1"),
    ):
        assert old in SAXPY
        assert key(own(SAXPY.replace(old, new), **files).saxpy) != first


def test_a_template_of_another_language_is_not_in_the_key(own: Load) -> None:
    text = SAXPY.replace('cuda="saxpy.j2"', 'cuda="other.j2"')
    first = own(text, saxpy__j2=SAXPY_TEMPLATE, other__j2=SAXPY_TEMPLATE).saxpy
    cpu, cuda = key(first), key(first, "cuda:sm_90a")
    second = own(text, other__j2=SAXPY_TEMPLATE + "/* edited */").saxpy
    assert key(second) == cpu
    assert key(second, "cuda:sm_90a") != cuda


# --- GPUs


def gpu_source(kernel: object, dialect: str, signature: str):
    target = DIALECTS[dialect]
    definition = kernel.definition
    variant = Variant(definition, Signature.parse(signature), target, definition.options)
    return generate(variant, renderer_for(target))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_templates_of_gpu_languages_compute_what_numpy_does(
    own: Load, dialect: str, tmp_path: Path
) -> None:
    module = own(
        SAXPY + GRID.replace("LOOP", LOOPS[2]), saxpy__j2=SAXPY_TEMPLATE, grid__j2=GRID_TEMPLATE
    )
    saxpy = gpu_source(module.saxpy, dialect, "f32, f32[:], f32[:; strided], f32[:]")
    grid = gpu_source(module.grid, dialect, "i32[:, :], i32, i32[:, :]")
    x, y, out = numbers("float32", 100), numbers("float32", 200)[::2], np.zeros(100, np.float32)
    library = Emulated([saxpy], tmp_path / "saxpy")
    run_kernel(module.saxpy, saxpy, library, (np.float32(3), x, y, out), noalias=True)
    assert np.array_equal(out, np.float32(3) * x + y)
    image, half = numbers("int32", 9, 50), np.zeros((4, 50), np.int32)
    library = Emulated([grid], tmp_path / "grid")
    run_kernel(module.grid, grid, library, (image, 5, half), noalias=False)
    assert np.array_equal(half, image[:8:2] + 5)


SUMS = """
    @tack.source_kernel(cuda="sums.j2", hip="sums.j2", metal="sums.j2", c="sums.c.j2", group=16,
                        writes="out")
    def sums(x: tack.Array, out: tack.Array) -> None:
        for i in range(x.shape[0]):
            tile = tack.shared(tack.i64, 16)
            ...
"""

SUMS_TEMPLATE = """
    {{ tack.function }}
    {
      {% call tack.groups() %}
        {% set lane = tack.lanes[0] %}
        {{ tile }}[{{ lane }}] = {{ tack.active }} ? {{ x.at("i") }} : 0;
        tack_barrier();
        for (int reach = {{ tack.group[0] }} / 2; reach > 0; reach /= 2) {
          if ({{ lane }} < reach) tile[{{ lane }}] += tile[{{ lane }} + reach];
          tack_barrier();
        }
        if ({{ lane }} == 0) {{ out.at("i / %d" % tile.size) }} = tile[0];
      {% endcall %}
    }
"""

SUMS_IN_C = """
    {{ tack.function }}
    {
      {% call tack.iterations() %}
      out[i / 16] += x[i];
      {% endcall %}
    }
"""


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("n", [1, 16, 333])
def test_threads_of_a_group_share_arrays_and_meet_at_barriers(
    own: Load, dialect: str, n: int, tmp_path: Path
) -> None:
    kernel = own(SUMS, sums__j2=SUMS_TEMPLATE, sums__c__j2=SUMS_IN_C).sums
    source = gpu_source(kernel, dialect, "i64[:], i64[:]")
    assert source.launch.group == (16,)
    x, out = numbers("int64", n), np.zeros(-(-n // 16), np.int64)
    expected = np.add.reduceat(x, np.arange(0, n, 16))
    library = Emulated([source], tmp_path / dialect)
    run_kernel(kernel, source, library, (x, out), noalias=False)
    assert np.array_equal(out, expected)
    out[:] = 0
    kernel(x, out)  # a CPU has no groups
    assert np.array_equal(out, expected)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_iterations_of_a_kernel_with_groups_are_each_run_once(
    own: Load, dialect: str, tmp_path: Path
) -> None:
    text = GRID.replace("LOOP", LOOPS[2]).replace('writes="out"', 'writes="out", group=(2, 4)')
    kernel = own(text, grid__j2=GRID_TEMPLATE).grid
    source = gpu_source(kernel, dialect, "i32[:, :], i32, i32[:, :]")
    image, half = numbers("int32", 9, 50), np.zeros((4, 50), np.int32)
    library = Emulated([source], tmp_path / dialect)
    run_kernel(kernel, source, library, (image, 5, half), noalias=False)
    assert np.array_equal(half, image[:8:2] + 5)


def test_compilers_make_images_of_them(own: Load, tmp_path: Path) -> None:
    kernel = own(SAXPY.replace("noalias", "group=128, noalias"), saxpy__j2=SAXPY_TEMPLATE).saxpy
    made = {}
    for dialect, target in DIALECTS.items():
        source = gpu_source(kernel, dialect, "f32, f32[:], f32[:], f32[:]")
        renderer = renderer_for(target)
        made[dialect] = tmp_path / f"unit{renderer.suffix}"
        made[dialect].write_text(assemble("unit", [source], renderer), encoding="utf-8")
    assert "__launch_bounds__(128)" in made["cuda"].read_text()
    compile_image(made["cuda"], Target("cuda", "sm_90a"), tmp_path / "cubin")
    compile_nvrtc(made["cuda"], "sm_90a")
    compile_image(made["hip"], Target("hip", "gfx942"), tmp_path / "code")
    compile_metal(made["metal"], tmp_path / "metal")


# --- the example

MEDIAN = Path(__file__).parents[1] / "examples/imagekit/src/imagekit/handwritten.py"


@pytest.fixture
def median(load: Load, tmp_path: Path):
    template = MEDIAN.with_name("median.j2")
    (tmp_path / "median.j2").write_text(template.read_text(encoding="utf-8"), encoding="utf-8")
    return load(MEDIAN.read_text(encoding="utf-8")).median


def median_of(image: np.ndarray) -> np.ndarray:
    rows = np.lib.stride_tricks.sliding_window_view(np.pad(image, 1, mode="edge"), (3, 3))
    return np.median(rows, axis=(2, 3)).astype(image.dtype)


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_the_median_of_the_example_is_numpys(median, dtype: str) -> None:
    for shape in ((1, 1), (3, 1), (19, 36), (0, 4)):
        image, target = numbers(dtype, *shape), np.empty(shape, dtype)
        median(image, target)
        assert shape == (0, 4) or np.array_equal(target, median_of(image))
    tall = numbers(dtype, 30, 20).T
    target = np.empty(tall.shape, dtype)
    median(tall, target)
    assert np.array_equal(target, median_of(tall))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_median_of_the_example_is_numpys_on_gpus(median, dialect: str, tmp_path: Path) -> None:
    source = gpu_source(median, dialect, "u8[:, :], u8[:, :]")
    image, target = numbers("uint8", 19, 36), np.empty((19, 36), np.uint8)
    library = Emulated([source], tmp_path / dialect)
    run_kernel(median, source, library, (image, target), noalias=False)
    assert np.array_equal(target, median_of(image))
