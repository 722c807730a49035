"""The canonical form and the keys: what counts, what does not, and that they never move."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
import textwrap
from importlib.resources import as_file, files
from pathlib import Path

import pytest

import tack.model.canonical
from tack.model.canonical import canonical
from tack.model.keys import build_key, digest, sha256, source_key
from tack.model.signature import Signature
from tack.model.targets import Target
from tack.model.variant import Options

EXAMPLE = '''
def kernel(a: tack.f32, x, out, *, k=-1):
    """Text that does not count."""
    for i, j in tack.ndrange(x.shape[0], 0x10):  # nor this
        if not (0 <= i < 3.5 and a != 1e-300) or True:
            out[i, j] += x[i, j] ** 2 // ~k
        elif x[i, 0]:
            continue
        else:
            y, z = f(b=a), (1 if a else 2)
            while y > 0:
                y -= 1
                break
'''

GOLDEN = "4bcafea90df361e2d76d269b7165c80e36b1c9ade4d06511897d323a2d884432"
"""Digest of the example's canonical form. If it changes, every installed wheel becomes a miss."""


def form(text: str) -> bytes:
    return canonical(ast.parse(textwrap.dedent(text)))


def test_the_golden_digest_holds():
    assert digest(form(EXAMPLE)) == GOLDEN


def test_the_golden_source_key_holds():
    key = source_key(GOLDEN, Signature.parse("f32, f32[:, 3]"), Options())
    assert key == "32b2ad86017490419c524f53ae2c7a90ea7d54b4b3887afcd39a60e86e01904e"


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_every_python_gives_the_golden_digest(version):
    """Where that Python is on this machine; CI's matrix runs the suite under each."""
    python = shutil.which(f"python{version}")
    if f"{sys.version_info.major}.{sys.version_info.minor}" == version:
        python = sys.executable
    if python is None or subprocess.run([python, "-c", ""], check=False).returncode:
        pytest.skip(f"no Python {version} on this machine")
    program = (
        "import ast, importlib.util, sys\n"
        "spec = importlib.util.spec_from_file_location('canonical', sys.argv[1])\n"
        "module = importlib.util.module_from_spec(spec); spec.loader.exec_module(module)\n"
        "sys.stdout.buffer.write(module.canonical(ast.parse(sys.stdin.read())))\n"
    )
    path = Path(tack.model.canonical.__file__)
    found = subprocess.run(
        [python, "-c", program, str(path)], input=EXAMPLE.encode(), capture_output=True, check=True
    )
    assert digest(found.stdout) == GOLDEN


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("x = 1", "x  =  0x1  # one"),
        ("x = 'a'", 'x = "a"'),
        ("x = (a + b) * c", "x = ((a + b)) * (c)"),
        ("def f():\n  'text'\n  return 1", "def f():\n\n  return 1"),
        ("@one\ndef f(): pass", "@two(3)\ndef f(): pass"),
        ("x = 1_000", "x = 1000"),
    ],
)
def test_what_does_not_count(left, right):
    assert form(left) == form(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("x = 1", "x = 1.0"),
        ("x = 1", "x = True"),
        ("x = 0.0", "x = -0.0"),
        ("x = a + b", "x = b + a"),
        ("x = a + b", "x = a - b"),
        ("x = a < b", "x = a <= b"),
        ("x = a and b", "x = a or b"),
        ("f(a, b)", "f(a, k=b)"),
        ("f(k=b)", "f(j=b)"),
        ("x = a.b", "x = a.c"),
        ("x: i32 = 1", "x: i64 = 1"),
        ("def f(a: i32): pass", "def f(a): pass"),
        ("def f(a=1): pass", "def f(a=2): pass"),
        ("if a: b()\nelse: c()", "if a: b(); c()"),
        ("for i in x: f()\ng()", "for i in x:\n  f()\n  g()"),
        ("x = 'ab', 'c'", "x = 'a', 'bc'"),
        ("é = 1", "e = 1"),
    ],
)
def test_what_counts(left, right):
    assert form(left) != form(right)


def test_parts_cannot_run_into_each_other():
    assert digest("ab", "c") != digest("a", "bc")
    assert digest("a", "") != digest("a")


def test_everything_that_reaches_the_compiler_is_in_the_build_key():
    base = ["source", Target.parse("cpu:x86-64-v2"), "generator", "compiler"]
    other = ["source2", Target.parse("cpu:x86-64-v3"), "generator2", "compiler2"]
    keys = {build_key(*base)}
    for position, value in enumerate(other):
        keys.add(build_key(*base[:position], value, *base[position + 1 :]))
    assert len(keys) == 5


FUNCTIONS = """
    SCALE = tack.constant(2.0, tack.f32)

    @tack.func
    def helper(x, k=1):
        return x * SCALE + k

    @tack.func
    def outer(x):
        return helper(x)

    @tack.kernel
    def kernel(x, out):
        for i in range(x.shape[0]):
            out[i] = outer(x[i])
"""


def fingerprint(load, text):
    return load(text).kernel.definition.fingerprint()


def test_the_same_text_in_another_module_has_the_same_digest(load):
    moved = "# moved\n\n" + textwrap.dedent(FUNCTIONS).replace(
        "return helper(x)", "return helper(x)  # !"
    )
    assert fingerprint(load, FUNCTIONS).digest == fingerprint(load, moved).digest


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x * SCALE", "SCALE * x"),
        ("2.0, tack.f32", "3.0, tack.f32"),
        ("2.0, tack.f32", "2.0, tack.f64"),
        ("2.0, tack.f32", "2.0"),
        ("k=1", "k=2"),
        ("return helper(x)", "return helper(x, 2)"),
        ("out[i] = outer(x[i])", "out[i] = helper(x[i])"),
    ],
)
def test_an_edit_anywhere_that_the_kernel_reaches_changes_the_digest(load, old, new):
    assert old in FUNCTIONS
    assert (
        fingerprint(load, FUNCTIONS).digest != fingerprint(load, FUNCTIONS.replace(old, new)).digest
    )


def test_captured_values_and_modules_are_listed(load):
    module = load(FUNCTIONS)
    print_ = module.kernel.definition.fingerprint()
    assert print_.modules == (module.__name__,)
    seen = {(c.scope, c.name): c.value for c in print_.captured}
    assert seen["", "outer"] == f"func {module.__name__}:outer"
    assert seen[">outer>helper", "SCALE"] == "constant f32 float 0x1.0000000000000p+1"
    assert seen[">outer>helper", "=k"] == "number int 1"
    assert seen["", "range"] == "object builtins:range"


def test_closures_differ_by_what_they_captured(load):
    module = load(
        """
        def make(value):
            scale = tack.constant(value, tack.f32)

            @tack.kernel
            def kernel(x):
                for i in range(x.shape[0]):
                    x[i] = scale

            return kernel
        """
    )
    one, two, again = (module.make(v).definition.fingerprint().digest for v in (1.0, 2.0, 1.0))
    assert one == again != two


IDENTITY_PROGRAM = """
import sys, importlib.util
sys.path.insert(0, sys.argv[1])
spec = importlib.util.spec_from_file_location("module", sys.argv[2])
module = importlib.util.module_from_spec(spec)
sys.modules["module"] = module
spec.loader.exec_module(module)
from tack.identity import generator_identity
print(module.definition.fingerprint().digest, generator_identity())
"""


@pytest.mark.parametrize("version", ["3.12", "3.13", "3.14"])
def test_two_pythons_share_one_cache(version, tmp_path):
    """Compiled code holds no Python, so what is left is that both work out the same key."""
    python = shutil.which(f"python{version}")
    if python is None or subprocess.run([python, "-c", ""], check=False).returncode:
        pytest.skip(f"no Python {version} on this machine")
    text = textwrap.dedent(FUNCTIONS).replace("@tack.kernel\n", "").replace("tack.func", "func")
    text = text.replace("tack.constant", "constant").replace("tack.f32", "f32")
    path = tmp_path / "module.py"
    path.write_text(
        "from tack.lang.definition import KernelDefinition, constant, func\n"
        f"from tack.model.dtypes import f32\n{text}\ndefinition = KernelDefinition(kernel)\n"
    )
    # A copy without what was compiled for one Python; `python` has no NumPy and needs none.
    ignored = shutil.ignore_patterns("_core*.so", "templates", "__pycache__")
    shutil.copytree(
        Path(tack.model.canonical.__file__).parents[1], tmp_path / "tack", ignore=ignored
    )
    with as_file(files("tack.templates")) as templates:
        shutil.copytree(templates, tmp_path / "tack" / "templates")
    found = {
        subprocess.run(
            [interpreter, "-c", IDENTITY_PROGRAM, str(tmp_path), str(path)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for interpreter in (sys.executable, python)
    }
    assert len(found) == 1


@pytest.mark.parametrize("size", [0, 1, 63, 64, 1 << 20, (1 << 20) + 1])
def test_sha256_is_that_of_hashlib(size):
    import hashlib

    content = bytes(k & 255 for k in range(size))
    assert sha256(content) == hashlib.sha256(content).hexdigest()


def test_what_renders_is_what_builds_depend_on(tmp_path):
    """A module that the generator imports, and neither list has, would leave stale text behind."""
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, tack\n"
        "@tack.kernel\n"
        "def k(x):\n"
        "    for i in range(x.shape[0]):\n"
        "        x[i] = tack.sin(x[i])\n"
        "before = set(sys.modules)\n"
        "k.source('c', 'f32[:]'), k.source('llvm', 'f32[:]')\n"
        "from tack.aot.inputs import generator_files\n"
        "from tack.identity import _files\n"
        "own = [m for n, m in sys.modules.items() if n.startswith('tack.') and n not in before]\n"
        "apart = 'tack.runtime', 'tack.aot', 'tack.backends', 'tack.identity', 'tack._core'\n"
        "used = {m.__file__ for m in own if not m.__name__.startswith(apart)}\n"
        "print(sorted(used - set(map(str, generator_files()))))\n"
        "print(sorted(used - {path for _, path, _ in _files()}))\n",
        encoding="utf-8",
    )
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n[]\n"
