"""Every mistake in a manifest has its sentence: file, place, value, and what to write."""

from __future__ import annotations

import pytest
from projects import MANIFEST, Project

from tack.aot.manifest import read_manifest
from tack.errors import ManifestError

VALID = """
    schema = 1
    package = "NAME"
    targets.cpu = ["x86-64-v3"]
    [[kernel]]
    name = "NAME.kernels:saxpy"
    signatures = ["f32, f32[:], f32[:], f32[:]"]
"""

FORM = {
    # What is wrong with the manifest itself: replacements in VALID, and the sentence.
    "no TOML": ("schema = 1", "schema = ", ": this is not TOML: Invalid value (at line 2"),
    "no schema": ("schema = 1", "", ": 'schema' is missing; write schema = 1"),
    "another schema": ("schema = 1", "schema = 2", ": schema: schema 2 is not one that this tack"),
    "schema as text": (
        "schema = 1",
        'schema = "1"',
        ": schema: '1' is not an integer; write schema",
    ),
    "schema as boolean": ("schema = 1", "schema = true", ": schema: true is not an integer"),
    "no package": (
        'package = "NAME"',
        "",
        """: 'package' is missing; write package = "mykernels\"""",
    ),
    "package with a dash": (
        'package = "NAME"',
        'package = "my-kernels"',
        """: package: 'my-kernels' is no package; write package = "mykernels\"""",
    ),
    "package that is a keyword": ('package = "NAME"', 'package = "if"', "'if' is no package"),
    "misspelt key": ("package =", "pakage =", ": unknown key 'pakage'; did you mean 'package'?"),
    "unknown key": ("schema = 1", "schema = 1\nxyz = 1", ": unknown key 'xyz'; known are schema, "),
    "no targets": (
        'targets.cpu = ["x86-64-v3"]',
        "",
        ": 'targets' is missing; write [targets] with",
    ),
    "no cpu": (
        "targets.cpu = ",
        "targets.cpus = ",
        ": targets: unknown key 'cpus'; did you mean 'cpu'",
    ),
    "empty cpu": ('["x86-64-v3"]', "[]", ": targets.cpu: no level is listed; write cpu = ["),
    "cpu as text": (
        '["x86-64-v3"]',
        '"x86-64-v3"',
        ": targets.cpu: 'x86-64-v3' is not a list of texts; write cpu = [",
    ),
    "misspelt level": (
        "x86-64-v3",
        "x86_64_v3",
        ": targets.cpu[0]: unknown CPU level 'x86_64_v3'; did you mean 'x86-64-v3'?",
    ),
    "level twice": (
        '["x86-64-v3"]',
        '["x86-64-v3", "x86-64-v3"]',
        ": targets.cpu[1]: 'x86-64-v3' is listed twice; remove one",
    ),
    "one bracket": (
        "[[kernel]]",
        "[kernel]",
        ": kernel: a table is not a list of tables; write [[kernel]] with name",
    ),
    "no kernel": ("[[kernel]]", "[build]", ": 'kernel' is missing; write [[kernel]] with name = "),
    "kernel without a name": (
        'name = "NAME.kernels:saxpy"',
        "",
        """: kernel[0]: 'name' is missing; write name = "mykernels.kernels:saxpy\"""",
    ),
    "name without a colon": (
        "NAME.kernels:saxpy",
        "NAME.kernels.saxpy",
        (
            """: kernel[0].name: 'NAME.kernels.saxpy' is not module:kernel; """
            """write name = "NAME.kernels:saxpy\""""
        ),
    ),
    "name of another package": (
        "NAME.kernels:saxpy",
        "numpy:sin",
        ": kernel[0].name: 'numpy:sin' is outside the package 'NAME'",
    ),
    "misspelt signatures": (
        "signatures =",
        "signature =",
        ": kernel[0]: unknown key 'signature'; did you mean 'signatures'?",
    ),
    "no signatures": (
        '["f32, f32[:], f32[:], f32[:]"]',
        "[]",
        ": kernel[0].signatures: no variant of 'NAME.kernels:saxpy' would be built; write",
    ),
    "signatures as text": (
        '["f32, f32[:], f32[:], f32[:]"]',
        '"f32"',
        ": kernel[0].signatures: 'f32' is not a list of texts; write signatures = [",
    ),
    "build.source absolute": (
        "targets.cpu",
        'build.source = "/src"\ntargets.cpu',
        """: build.source: '/src' is no folder relative to the manifest; write source = "src\"""",
    ),
    "build.package_init as text": (
        "targets.cpu",
        'build.package_init = "no"\ntargets.cpu',
        ": build.package_init: 'no' is not a boolean; write package_init = false",
    ),
    "an instance that is no function of the package": (
        "signatures =",
        "instances =",
        "[0]: 'f32, f32[:], f32[:], f32[:]' is no module:function of the package 'NAME'; write",
    ),
}

LATER = {
    "operators": (
        "[[kernel]]",
        "[[operator]]\n[[kernel]]",
        ": operator: operators are not built yet",
    ),
    "budget": ("targets.cpu", "budget.wheel_mb = 1\ntargets.cpu", ": budget: size budgets are not"),
    "opencl": (
        "targets.cpu",
        'targets.opencl = ["c1.2"]\ntargets.cpu',
        ": targets.opencl: OpenCL targets are",
    ),
}

GPU_TARGETS = {
    # What stands in place of the CPU levels, and the sentence.
    "nothing": ("targets = {}", ": targets: no target is listed; write [targets] with cpu = ["),
    "cuda as a list": (
        'targets.cuda = ["sm_80"]',
        """: targets.cuda: ['sm_80'] is not a table; write cuda = { sass = ["sm_80", "sm_90a"]""",
    ),
    "cuda with another key": (
        'targets.cuda = { sas = ["sm_80"] }',
        ": targets.cuda: unknown key 'sas'; did you mean 'sass'?",
    ),
    "cuda without any": (
        "targets.cuda = { sass = [] }",
        ": targets.cuda: no architecture is listed; write cuda = {",
    ),
    "sass as a text": (
        'targets.cuda.sass = "sm_80"',
        """: targets.cuda.sass: 'sm_80' is not a list of texts; write sass = ["sm_80\"""",
    ),
    "ptx as a number": (
        "targets.cuda.ptx = 90",
        ': targets.cuda.ptx: 90 is not a text or a list of texts; write ptx = "compute_90"',
    ),
    "misspelt sass": (
        'targets.cuda.sass = ["sm_80", "SM90"]',
        ": targets.cuda.sass[1]: unknown cuda architecture 'SM90'; did you mean 'sm_90'?",
    ),
    "ptx as sass": (
        'targets.cuda.sass = ["compute_90a"]',
        ": targets.cuda.sass[0]: unknown cuda architecture 'compute_90a'; did you mean 'sm_90a'?",
    ),
    "sass as ptx": (
        'targets.cuda.ptx = "sm_90"',
        ": targets.cuda.ptx: unknown cuda architecture 'sm_90'; did you mean 'compute_90'?",
    ),
    "sass twice": (
        'targets.cuda.sass = ["sm_80", "sm_80"]',
        ": targets.cuda.sass[1]: 'sm_80' is listed twice; remove one",
    ),
    "hip as a text": (
        'targets.hip = "gfx942"',
        """: targets.hip: 'gfx942' is not a list of texts; write hip = ["gfx90a", "gfx942"]""",
    ),
    "hip with a feature": (
        'targets.hip = ["gfx90a:xnack+"]',
        ": targets.hip[0]: unknown hip architecture 'gfx90a:xnack+'; did you mean 'gfx90a'?",
    ),
    "no hip": ("targets.hip = []", ": targets.hip: no architecture is listed; write hip = ["),
    "misspelt metal": (
        'targets.metal = ["Metal3.1"]',
        ": targets.metal[0]: unknown metal architecture 'Metal3.1'; did you mean 'metal3.1'?",
    ),
}


def refusal(project):
    with pytest.raises(ManifestError) as caught:
        project.plan()
    message = str(caught.value)
    assert message.startswith(str(project.manifest_path))
    return message.removeprefix(str(project.manifest_path)).replace(project.name, "NAME")


@pytest.mark.parametrize("case", [*FORM, *LATER])
def test_a_mistake_in_form_is_named_with_its_place(case, tmp_path):
    old, new, sentence = {**FORM, **LATER}[case]
    assert old in VALID
    message = refusal(Project(tmp_path, manifest=VALID.replace(old, new, 1)))
    assert sentence in message
    if case in LATER:
        assert "not built yet" in message


@pytest.mark.parametrize("case", GPU_TARGETS)
def test_a_mistake_in_a_gpus_target_is_named_with_its_place(case, tmp_path):
    line, sentence = GPU_TARGETS[case]
    text = VALID.replace('targets.cpu = ["x86-64-v3"]', line)
    assert sentence in refusal(Project(tmp_path, manifest=text))


def test_a_provider_may_be_for_gpus_alone(tmp_path):
    line = """
    [targets]
    metal = ["metal3.1"]
    cuda = { ptx = ["compute_80", "compute_90a"], sass = ["sm_90"] }
    hip = ["gfx11-generic"]
    """
    text = VALID.replace('targets.cpu = ["x86-64-v3"]', line)
    manifest = Project(tmp_path, manifest=text).read()
    assert [str(target) for target in manifest.targets] == [
        "metal:metal3.1",
        "cuda:compute_80",
        "cuda:compute_90a",
        "cuda:sm_90",
        "hip:gfx11-generic",
    ]


def test_a_valid_manifest_is_read(tmp_path):
    project = Project(tmp_path)
    manifest = project.read()
    assert [str(target) for target in manifest.targets] == ["cpu:x86-64-v2", "cpu:x86-64-v3"]
    assert [k.name.partition(":")[2] for k in manifest.kernels] == ["saxpy", "scale"]
    assert manifest.kernels[0].where == (("T", ("f32", "f64")),)
    assert manifest.source == project.root / "src"


def test_no_manifest(tmp_path):
    with pytest.raises(
        ManifestError, match=r"there is no manifest; write one, or let `tack-aot init`"
    ):
        read_manifest(tmp_path / "tack-aot.toml")


def test_a_manifest_that_is_a_folder_or_no_text(tmp_path):
    with pytest.raises(ManifestError, match="cannot be read: Is a directory"):
        read_manifest(tmp_path)
    (tmp_path / "m.toml").write_bytes(b"package = '\xff'")
    with pytest.raises(ManifestError, match="not UTF-8"):
        read_manifest(tmp_path / "m.toml")


def test_a_kernel_listed_twice(tmp_path):
    entry = MANIFEST[MANIFEST.index("    [[kernel]]") :]
    message = refusal(Project(tmp_path, manifest=MANIFEST + entry))
    assert message == (
        ": kernel[2].name: 'NAME.kernels:saxpy' is listed by kernel[0] too; put both lists of "
        "signatures into one [[kernel]]"
    )


NAMES = {
    "module": (
        "NAME.kernel:saxpy",
        "there is no module 'NAME.kernel' in SOURCE; did you mean NAME.kernels:saxpy?",
    ),
    "kernel": (
        "NAME.kernels:saxpi",
        "'NAME.kernels' has no 'saxpi'; did you mean NAME.kernels:saxpy?",
    ),
    "nothing near": (
        "NAME.kernels:qqq",
        "'NAME.kernels' has no 'qqq'; its kernels are other, saxpy, scale",
    ),
    "device function": (
        "NAME.kernels:halved",
        "is no kernel: it is a device function (@tack.func), which kernels call; list the kernels",
    ),
    "plain function": (
        "NAME.kernels:plain",
        "is no kernel: it is a plain function; write @tack.kernel",
    ),
    "constant": ("NAME.kernels:HALF", "is no kernel: it is of type _FloatConstant; list functions"),
    "alias": (
        "NAME.kernels:other",
        "is another name of 'NAME.kernels:saxpy'; write that one, which calls are looked up by",
    ),
}


@pytest.mark.parametrize("case", NAMES)
def test_a_name_that_is_no_kernel(case, tmp_path):
    name, sentence = NAMES[case]
    project = Project(tmp_path, manifest=VALID.replace("NAME.kernels:saxpy", name))
    message = refusal(project)
    assert message.startswith(f": kernel[0].name: '{name}'")
    assert sentence.replace("SOURCE", str(tmp_path / "src")) in message


def test_a_kernel_made_by_a_function(tmp_path):
    project = Project(tmp_path, manifest=VALID)
    project.write(
        "kernels",
        """
        import tack

        def make(n):
            @tack.kernel
            def kernel(x):
                for i in range(x.shape[0]):
                    x[i] = 0
            return kernel

        saxpy = make(3)
        """,
    )
    assert refusal(project) == (
        ": kernel[0].name: 'NAME.kernels:saxpy' was made inside a function (make.<locals>.kernel), "
        "and such kernels are not built yet; define it at the level of its module"
    )


IMPORTS = {
    "it raises": ("1 / 0", "raised ZeroDivisionError at FILE:2: division by zero"),
    "it does not parse": ("def (", "raised SyntaxError at FILE:2: invalid syntax"),
    "it needs another module": (
        "import tack_test_missing",
        (
            "raised ModuleNotFoundError at FILE:2: No module named 'tack_test_missing'; if the "
            "package's __init__ needs what is not built yet, write [build] with package_init = "
            "false"
        ),
    ),
    "it exits": ("raise SystemExit(3)", "raised SystemExit at FILE:2: 3"),
}


@pytest.mark.parametrize("case", IMPORTS)
def test_a_module_that_does_not_import(case, tmp_path):
    line, sentence = IMPORTS[case]
    project = Project(tmp_path, {"kernels": f"import tack\n{line}\n"}, VALID)
    message = refusal(project).replace(
        str(project.source / "kernels.py").replace(project.name, "NAME"), "FILE"
    )
    assert message == (
        f": kernel[0].name: 'NAME.kernels:saxpy': importing 'NAME.kernels' {sentence}"
    )


SIGNATURES = {
    "no type": ("fp32", "signature 'fp32': unknown type 'fp32'; did you mean 'f32'?"),
    "no form": ("f32, f32[:", "neither a scalar such as f32 nor an array such as f32[:, :]"),
    "too few parts": (
        "f32, f32[:]",
        "does not fit 'NAME.kernels:saxpy': it has 2 entries and the kernel 4 parameters (",
    ),
    "an integer that no call has": (
        "i32, f32[:], f32[:], f32[:]",
        (
            "'a' has no annotation, so an integer there is i64, and no call selects i32; write "
            "i64, or annotate it: a: tack.i32"
        ),
    ),
    "a float that no call has": (
        "f64, f32[:], f32[:], f32[:]",
        (
            "'a' has no annotation, so a float there is f32 where no f64 array is among the "
            "arguments, and no call selects f64; write f32, or annotate it: a: tack.f64"
        ),
    ),
    "a float beside an f64 array": (
        "f32, f32[:], f64[:], f32[:]",
        "a float there is f64 where an f64 array is among the arguments",
    ),
}


@pytest.mark.parametrize("case", SIGNATURES)
def test_a_signature_that_does_not_fit(case, tmp_path):
    signature, sentence = SIGNATURES[case]
    message = refusal(
        Project(tmp_path, manifest=VALID.replace("f32, f32[:], f32[:], f32[:]", signature))
    )
    assert message.startswith(": kernel[0].signatures[0]: ")
    assert sentence in message


@pytest.mark.parametrize(
    ("signature", "sentence"),
    [
        ("i64, f32[:]", "'n' is annotated tack.i32, so no call has i64 there; write i32"),
        (
            "i32[:], f32[:]",
            "'n' is annotated tack.i32, so no call has i32[:] there; write i32",
        ),
    ],
)
def test_an_annotation_is_kept(signature, sentence, tmp_path):
    manifest = MANIFEST.replace("i32, f32[:]", signature)
    message = refusal(Project(tmp_path, manifest=manifest))
    assert message.startswith(": kernel[1].signatures[0]: ")
    assert sentence in message


WHERE = {
    "unused": ('where.U = ["f32"]', ": kernel[0].where.U: no signature of", "uses 'U'; use it or"),
    "no list": (
        'where.T = "f32"',
        ": kernel[0].where.T: 'f32' is not a list of texts",
        "write T = [",
    ),
    "empty": ("where.T = []", ": kernel[0].where.T: no value is listed; write T = [", ""),
    "a type's name": (
        'where.f32 = ["f64"]',
        ": kernel[0].where.f32: 'f32' cannot stand for a",
        "as T",
    ),
    "a type twice": (
        'where.T = ["f32", "f32"]',
        ": kernel[0].signatures[0] with T = f32: 'f32, f32[:], f32[:], f32[:]'",
        "was asked for by kernel[0].signatures[0] with T = f32; remove one",
    ),
    "no type": (
        'where.T = ["fp32"]',
        ": kernel[0].signatures[0] with T = fp32:",
        "did you mean 'f32'?",
    ),
}


@pytest.mark.parametrize("case", WHERE)
def test_a_product_that_does_not_work_out(case, tmp_path):
    line, start, end = WHERE[case]
    manifest = VALID.replace("f32, f32[:], f32[:], f32[:]", "T, T[:], T[:], T[:]") + f"    {line}\n"
    message = refusal(Project(tmp_path, manifest=manifest))
    assert message.startswith(start)
    assert end in message


def test_a_product_runs_over_all_its_names(tmp_path):
    manifest = VALID.replace("f32, f32[:], f32[:], f32[:]", "f32, T[:], U[:], U[:]")
    manifest += '    where.T = ["f32", "u8"]\n    where.U = ["f32", "i16"]\n'
    kernels = "import tack\n\n@tack.kernel\ndef saxpy(a: tack.f32, x, y, out):\n"
    kernels += "    for i in range(x.shape[0]):\n        out[i] = y[i]\n"
    project = Project(tmp_path, {"kernels": kernels}, manifest)
    signatures = [str(s.variant.signature) for unit in project.plan().units for s in unit.sources]
    assert signatures == [
        "f32, f32[:], f32[:], f32[:]",
        "f32, f32[:], i16[:], i16[:]",
        "f32, u8[:], f32[:], f32[:]",
        "f32, u8[:], i16[:], i16[:]",
    ]


def test_layouts_and_ranks_stand_in_rows_and_products(tmp_path):
    rows = '"f32, T[:, :; strided], T[:, 3; strided], T[()]", "f32, T[:], T[:], T[:, :, :, :, :]"'
    manifest = VALID.replace('"f32, f32[:], f32[:], f32[:]"', rows)
    kernels = "import tack\n\n@tack.kernel\ndef saxpy(a: tack.f32, x, y, out):\n"
    kernels += "    for i in range(x.size):\n        out.flat[i] = x.flat[i]\n"
    project = Project(tmp_path, {"kernels": kernels}, manifest + '    where.T = ["f32", "u8"]\n')
    signatures = [str(s.variant.signature) for unit in project.plan().units for s in unit.sources]
    assert signatures == [
        "f32, f32[:, :; strided], f32[:, 3; strided], f32[()]",
        "f32, u8[:, :; strided], u8[:, 3; strided], u8[()]",
        "f32, f32[:], f32[:], f32[:, :, :, :, :]",
        "f32, u8[:], u8[:], u8[:, :, :, :, :]",
    ]


def test_a_package_that_is_not_there(tmp_path):
    project = Project(tmp_path, manifest=VALID.replace('package = "NAME"', 'package = "nope"'))
    project.write_manifest(
        VALID.replace('package = "NAME"', 'package = "nope"').replace("NAME.", "nope.")
    )
    message = refusal(project)
    assert message.startswith(": package: there is no package 'nope' (looked for ")
    assert message.endswith('write [build] with source = "src", the folder that holds it')


def test_a_package_that_is_a_module(tmp_path):
    project = Project(tmp_path)
    (tmp_path / "src" / "single.py").write_text("")
    project.write_manifest(VALID.replace("NAME", "single"))
    assert refusal(project) == (
        ": package: 'single' is the module single.py, and a bundle needs a folder; make it the "
        "package single/__init__.py"
    )
