"""A damaged, truncated or foreign bundle: a miss that says why, never a crash or a wrong answer."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
from harness import levels
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from packages import Package

from tack.errors import BundleError, NoVariantError
from tack.model.bundle import Bundle

pytestmark = pytest.mark.usefixtures("no_jit")

KERNELS = """
    import tack

    @tack.kernel
    def kernel(x):
        for i in range(x.shape[0]):
            x[i] = x[i] + 1.0
"""


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    package = Package(tmp_path_factory.mktemp("original"), {"kernels": KERNELS})
    package.document = package.build([("kernel", "f32[:]")], levels()[:1])
    package.forget()
    return package


@pytest.fixture
def package(original, tmp_path):
    copy = original.copy_to(tmp_path)
    copy.document = original.document
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        yield copy
        copy.forget()


def refusal(package):
    kernels = package.load()
    x = np.zeros(3, np.float32)
    with pytest.raises(NoVariantError) as caught:
        kernels.kernel(x)
    assert not x.any()
    return str(caught.value)


def library(package):
    return package.bundle / "cpu" / f"{levels()[0]}.so"


def test_the_bundle_answers_as_it_was_built(package):
    x = np.zeros(3, np.float32)
    package.load().kernel(x)
    assert (x == 1).all()


@pytest.mark.parametrize("length", [0, 1, 100, 5000])
def test_a_truncated_library_is_refused(package, length):
    content = library(package).read_bytes()
    library(package).write_bytes(content[:length])
    assert "is not the library that the bundle was made with" in refusal(package)


@pytest.mark.parametrize("place", [0, 0x40, 0x1000, -1])
def test_a_library_with_one_wrong_bit_is_refused(package, place):
    content = bytearray(library(package).read_bytes())
    content[place] ^= 1
    library(package).write_bytes(content)
    assert "is not the library that the bundle was made with" in refusal(package)


def test_a_missing_library_is_refused(package):
    library(package).unlink()
    assert "cannot be read: No such file" in refusal(package)


def test_a_library_for_another_machine_is_refused(package):
    """The bytes are those of the bundle, but the loader of this system does not take them."""
    import hashlib

    content = bytearray(library(package).read_bytes())
    content[18] = 0xB7 if content[18] != 0xB7 else 0x3E  # e_machine: aarch64 or x86-64
    library(package).write_bytes(content)
    document = json.loads(json.dumps(package.document))
    document["artifacts"][0]["sha256"] = hashlib.sha256(content).hexdigest()
    package.write_manifest(document)
    assert "does not load" in refusal(package)


@pytest.mark.parametrize("length", [0, 1, 10, 300])
def test_a_truncated_manifest_is_refused(package, length):
    path = package.bundle / "manifest.json"
    path.write_bytes(path.read_bytes()[:length])
    assert "the bundle is damaged or truncated: it is not JSON" in refusal(package)


@pytest.mark.parametrize("text", ["[]", "null", "{}", "[" * 100000, '{"schema": 1}', "\xff", "NaN"])
def test_a_manifest_that_is_something_else_is_refused(package, text):
    (package.bundle / "manifest.json").write_text(text, encoding="latin-1")
    assert "manifest.json: " in refusal(package)


def test_a_manifest_that_is_no_file_is_refused(package):
    (package.bundle / "manifest.json").unlink()
    (package.bundle / "manifest.json").mkdir()
    assert "the bundle cannot be read" in refusal(package)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema": 2}, "bundle schema 2, this tack reads 1"),
        ({"abi": 99}, "the bundle has ABI 99 and this tack speaks 1"),
        ({"package": "other"}, "the bundle is of 'other', not of"),
        ({"kernels": []}, "is not among the kernels of the bundle"),
        ({"artifacts": []}, "no library"),
        ({"modules": {}}, "which has no digest"),
        ({"abi": "1"}, "'abi' is '1', not an integer"),
        ({"abi": True}, "'abi' is True, not an integer"),
        ({"kernels": {}}, "'kernels' is not a list"),
        ({"kernels": [3]}, "an entry of 'kernels' is not an object"),
    ],
)
def test_a_foreign_manifest_is_refused(package, change, words):
    package.write_manifest(package.document | change)
    assert words in refusal(package)


def changed(document, path, value):
    """A copy of a JSON document with another value at one place."""
    copy = json.loads(json.dumps(document))
    place = copy
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return copy


VARIANT = ("kernels", 0, "variants", 0)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ((*VARIANT, "launch", "slots"), [["pointer", 7]], "launch plan does not fit its library"),
        ((*VARIANT, "launch", "slots"), [["pointer"]], "launch plan is damaged"),
        ((*VARIANT, "launch", "slots"), [["what", 1]], "launch plan is damaged"),
        ((*VARIANT, "launch", "slots"), [["extent", 0, 9]], "launch plan does not fit its library"),
        (
            (*VARIANT, "launch", "host"),
            [["add", "i64"], ["loop", 0]],
            "launch plan does not fit its library",
        ),
        ((*VARIANT, "launch", "host"), [["slot", 99, "i64"], ["loop", 0]], "does not fit"),
        ((*VARIANT, "launch", "host"), [["add", "f99"]], "launch plan is damaged"),
        ((*VARIANT, "launch", "loops"), 9, "sets loops [0] of 9"),
        ((*VARIANT, "launch", "written"), [5], "launch plan does not fit its library"),
        (
            (*VARIANT, "launch", "entries"),
            {"general": "missing"},
            "launch plan does not fit its library",
        ),
        ((*VARIANT, "launch", "entries"), {"noalias": "missing"}, "are not among"),
        ((*VARIANT, "launch"), None, "launch plan is damaged"),
        ((*VARIANT, "signature"), "f33[:]", "unknown type 'f33'"),
        ((*VARIANT, "signature"), "f32[:], f32", "another parameter count"),
        ((*VARIANT, "targets"), {"cpu:z80": []}, "unknown cpu architecture"),
        ((*VARIANT, "targets"), {}, "a variant has no target"),
        ((*VARIANT, "targets"), ["cpu:x86-64"], "'targets' is not an object"),
        ((*VARIANT, "targets"), {"cpu:x86-64-v2": {}}, "'cpu:x86-64-v2' is not a list"),
        ((*VARIANT, "unit"), "a--b", "no image"),
        ((*VARIANT, "options"), {"fp": "loose"}, "fp='loose'"),
        ((*VARIANT, "options"), {"pf": "strict"}, "damaged"),
        (("artifacts", 0, "path"), "../../../etc/passwd", "leaves the bundle's folder"),
        (("artifacts", 0, "path"), "/etc/passwd", "leaves the bundle's folder"),
        (("kernels", 0, "parameters"), ["y"], "has other parameters"),
    ],
)
def test_a_manifest_with_one_wrong_value_is_refused(package, path, value, words):
    package.write_manifest(changed(package.document, path, value))
    assert words in refusal(package)


def places(document, path=()):
    """Every place in a JSON document."""
    if isinstance(document, dict | list):
        keys = document if isinstance(document, dict) else range(len(document))
        for key in keys:
            yield (*path, key)
            yield from places(document[key], (*path, key))


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.sampled_from(["", "x", "f32[:]", "cpu:x86-64-v2", "general", "pointer", "i64", "\x00"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=4,
)


@given(st.data())
@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_value_anywhere_is_read_or_refused(original, data):
    """Reading never fails in another way; what is read can be written and read again."""
    path = data.draw(st.sampled_from(list(places(original.document))))
    document = changed(original.document, path, data.draw(values))
    try:
        bundle = Bundle.from_json(document, "here")
    except BundleError as error:
        assert str(error).startswith("here: ")  # noqa: PT017
    else:
        assert Bundle.from_json(bundle.to_json(), "there") == bundle


def test_damaged_manifests_never_take_the_process_down(original, tmp_path):
    """A process of its own calls through a hundred damaged launch plans."""
    program = """
import sys, json, random, itertools, numpy as np
sys.path[:0] = [sys.argv[1]]
import importlib
name = sys.argv[2]
path = f"{sys.argv[1]}/{name}/_tack/manifest.json"
document = json.load(open(path))
random.seed(1)
kernel = importlib.import_module(name + ".kernels").kernel
from tack import _core
from tack.runtime import index
for _ in range(200):
    changed = json.loads(json.dumps(document))
    launch = changed["kernels"][0]["variants"][0]["launch"]
    part = random.choice(["slots", "host", "written"])
    rows = launch[part]
    if rows and random.random() < 0.5:
        del rows[random.randrange(len(rows))]
    elif part == "host":
        rows.insert(random.randrange(len(rows) + 1), random.choice(
            [["const", random.choice([-5, 0, 3])], ["neg", "i64"], ["select"], ["loop", 0],
             ["range"]]))
    elif part == "slots":
        rows.insert(random.randrange(len(rows) + 1), random.choice(
            [["pointer", 0], ["extent", 0, 0], ["loop", 0], ["loop", 2], ["scalar", 0, "f32"]]))
    else:
        rows.append(random.choice([0, 1, -1]))
    try:
        plan = index.Bundle.from_json(changed, "here").kernels[0].variants[0].launch
        _core.Launchable(params=[("array", "f32", 1, (-1,), "contiguous")], slots=plan.slots,
            host=plan.host, written=plan.written, general=1, noalias=0, label="", keepalive=None)
    except (ValueError, TypeError, OverflowError, index.BundleError):
        pass
print("alive")
"""
    shutil.copytree(original.folder, tmp_path / original.name)
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path), original.name],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "alive", done.stderr
