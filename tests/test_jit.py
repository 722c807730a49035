"""What was not prebuilt runs anyway: policy, freshness, concurrency and the cache, in processes."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
from harness import levels
from packages import Package

import tack
from tack.errors import CompileError, JITWarning, NoVariantError
from tack.runtime import cache as cache_module

KERNELS = """
    import tack

    STEP = tack.constant(1.0)

    @tack.func
    def moved(x):
        return x + STEP

    @tack.kernel
    def kernel(x):
        for i in range(x.shape[0]):
            x[i] = moved(x[i])
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """Each test has a disk cache of its own."""
    monkeypatch.setenv("TACK_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("TACK_JIT", raising=False)
    cache_module.default_cache.cache_clear()
    yield tmp_path / "cache"
    cache_module.default_cache.cache_clear()


@pytest.fixture
def package(tmp_path):
    made = Package(tmp_path, {"kernels": KERNELS})
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        made.build([("kernel", "f32[:]")], levels())
        yield made
        made.forget()


def run(program, *arguments, **environment):
    """Runs a program in a process of its own; what it printed."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(program), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_plain_script_compiles_quietly(load):
    module = load(textwrap.dedent(KERNELS))
    x = np.arange(3, dtype=np.int16)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module.kernel(np.zeros(2, np.float64))
    y = np.zeros(2, np.float64)
    module.kernel(y)
    assert (y == 1).all()
    with pytest.raises(CompileError, match="cast"):
        module.kernel(x)


def test_a_package_warns_once_per_signature_with_the_manifest_line(package):
    kernels = package.load()
    with pytest.warns(JITWarning) as caught:
        kernels.kernel(np.zeros(2, np.float64))
    kernels.kernel(np.zeros(3, np.float64))
    kernels.kernel(np.zeros(3, np.float32))
    assert len(caught) == 1
    words = str(caught[0].message)
    assert f'add "f64[:]" to the signatures of "{package.name}.kernels:kernel"' in words
    assert caught[0].filename == __file__


def test_what_is_refused_is_not_said_to_be_compiled(package):
    kernels = package.load()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(CompileError, match="cast"):
            kernels.kernel(np.zeros(2, np.int16))


def test_a_warning_that_is_an_error_is_one_at_every_call(package):
    kernels = package.load()
    x = np.zeros(2, np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            with pytest.raises(JITWarning, match="so this call compiled it"):
                kernels.kernel(x)
    assert not x.any()
    with pytest.warns(JITWarning):
        kernels.kernel(x)
    assert (x == 1).all()


@pytest.mark.parametrize("policy", ["allow", "forbid"])
def test_the_policy_is_honoured(package, monkeypatch, policy):
    monkeypatch.setenv("TACK_JIT", policy)
    kernels = package.load()
    x = np.zeros(2, np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if policy == "allow":
            kernels.kernel(x)
            assert (x == 1).all()
        else:
            with pytest.raises(NoVariantError, match="TACK_JIT=forbid") as error:
                kernels.kernel(x)
            assert str(error.value) == str(tack.explain(kernels.kernel, x))
            assert not x.any()


def test_a_wrong_policy_is_named(package, monkeypatch):
    monkeypatch.setenv("TACK_JIT", "forbit")
    with pytest.raises(ValueError, match="TACK_JIT='forbit': did you mean 'forbid'"):
        package.load().kernel(np.zeros(2, np.float64))


def test_explain_says_what_a_call_would_do_and_compiles_nothing(package, own_cache):
    kernels = package.load()
    found = tack.explain(kernels.kernel, np.zeros(2, np.float64))
    assert found.chosen.jit
    assert "compiled at the call: nothing prebuilt answers" in str(found)
    assert not own_cache.exists()
    found = tack.explain(kernels.kernel, np.zeros(2, np.float32))
    assert not found.chosen.jit
    assert found.candidates[-1].reason == "a prebuilt variant answers"
    page = found._repr_html_()
    assert page.count("<tr>") == 1 + len(found.candidates)


@pytest.mark.parametrize(
    ("old", "new", "result"),
    [
        ("return x + STEP", "return x + STEP * 2", 2),
        ("constant(1.0)", "constant(5.0)", 5),
        ("x[i] = moved(x[i])", "x[i] = moved(x[i]) + 3", 4),
    ],
)
def test_what_was_edited_since_the_build_is_compiled_anew(package, old, new, result):
    package.edit("kernels", old, new)
    kernels = package.load()
    x = np.zeros(2, np.float32)
    with pytest.warns(JITWarning):
        kernels.kernel(x)
    assert (x == result).all()


def test_a_file_edited_after_its_import_is_refused_and_compiles_after_a_reload(package):
    kernels = package.load()
    package.edit("kernels", "x + STEP", "x + (-STEP)")
    x = np.zeros(2, np.float64)
    with pytest.raises(NoVariantError, match="edited after it was imported"):
        kernels.kernel(x)
    with pytest.warns(JITWarning):
        package.load().kernel(x)
    assert (x == -1).all()


def test_closures_with_other_values_are_other_kernels(load):
    module = load(
        """
        def make(value):
            step = tack.constant(value)

            @tack.kernel
            def kernel(x):
                for i in range(x.shape[0]):
                    x[i] = x[i] + step

            return kernel
        """
    )
    for value in (1.0, 2.0, 1.0):
        x = np.zeros(2, np.float32)
        module.make(value)(x)
        assert (x == value).all()


def test_a_notebook_cell_compiles():
    """A notebook puts the text of a cell into `linecache`; there is no file."""
    import linecache

    def cell(number, step):
        text = (
            "import tack\n@tack.kernel\ndef kernel(x):\n"
            f"    for i in range(x.shape[0]):\n        x[i] = x[i] + {step}\n"
        )
        name = f"<ipython-input-{number}>"
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        scope = {"__name__": "__main__"}
        exec(compile(text, name, "exec"), scope)
        return scope["kernel"]

    for number, step in enumerate([1.0, 2.0, 1.0]):
        x = np.zeros(2, np.float32)
        cell(number, step)(x)
        assert (x == step).all()


def test_no_source_is_refused_with_the_reason():
    text = "import tack\n@tack.kernel\ndef kernel(x):\n    for i in range(3): x[i] = 1.0\n"
    for scope, file, name, words in (
        ({"__name__": "nowhere"}, "<nowhere>", "nowhere", "write the function in a .py file, or"),
        ({}, "<string>", "__main__", "write the function in a .py file, or in a notebook"),
        ({"__name__": "gone"}, "/gone.py", "gone", "keep the .py file beside the package"),
    ):
        exec(compile(text, file, "exec"), scope)
        with pytest.raises(NoVariantError) as caught:
            scope["kernel"](np.zeros(3, np.float32))
        assert f": {name}:kernel: the source {file!r} cannot be read" in str(caught.value)
        assert words in str(caught.value)


def many_kernels(count):
    """The text of a module of kernels ``kernel0``, ``kernel1``, ..."""
    return "import tack\n" + "\n".join(
        f"@tack.kernel\ndef kernel{k}(x):\n    for i in range(x.shape[0]):\n        x[i] = {k}.5\n"
        for k in range(count)
    )


def test_threads_that_ask_at_once_compile_once(load, monkeypatch):
    from tack.runtime import jit

    module = load(many_kernels(10))
    compiled = []
    original = jit._compile_anew
    monkeypatch.setattr(jit, "_compile_anew", lambda *a: compiled.append(a) or original(*a))
    barrier, results = threading.Barrier(64), []

    def call(number):
        barrier.wait()
        for k in range(10):
            x = np.zeros(100, np.float64)
            which = (k + number) % 10
            getattr(module, f"kernel{which}")(x)
            results.append((x == which + 0.5).all())

    threads = [threading.Thread(target=call, args=(number,)) for number in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 640
    assert len(compiled) == 10


def test_a_failing_compile_reaches_every_waiter_and_may_be_tried_again(load, monkeypatch):
    from tack.runtime import jit

    module = load(textwrap.dedent(KERNELS))
    original = jit._compile
    started, go_on = threading.Event(), threading.Event()

    def fail(variant):
        started.set()
        go_on.wait(10)
        raise MemoryError("for the test")

    monkeypatch.setattr(jit, "_compile", fail)
    errors = []

    def call():
        try:
            module.kernel(np.zeros(2, np.float32))
        except MemoryError as error:
            errors.append(error)

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    started.wait(10)
    go_on.set()
    for thread in threads:
        thread.join()
    assert len(errors) == 8
    monkeypatch.setattr(jit, "_compile", original)
    x = np.zeros(2, np.float32)
    module.kernel(x)
    assert (x == 1).all()


PROGRAM = """
    import sys
    sys.path.insert(0, sys.argv[1])
    import numpy as np
    import importlib
    kernels = importlib.import_module(sys.argv[2])
    x = np.zeros(2, np.float64)
    kernels.kernel(x)
    assert (x == 1).all()
    print("lower" if "tack.lang.lower" in sys.modules else "cached")
    others = {"tack.ir.nodes", "tack.lang.source_kernel", "tack.model.gpus"} & set(sys.modules)
    assert "tack.lang.lower" in sys.modules or not others, others
"""


def script(folder, name="script"):
    (folder / f"{name}.py").write_text(textwrap.dedent(KERNELS), encoding="utf-8")


def compiles(cache):
    """How many entries hold a compile; another remembers the generator's digest."""
    return sum(b"'variant': " in path.read_bytes() for path in cache.glob("*.tack"))


def test_a_second_process_finds_what_the_first_compiled(tmp_path, own_cache):
    script(tmp_path)
    assert run(PROGRAM, tmp_path, "script") == "lower"
    assert compiles(own_cache) == 1
    assert run(PROGRAM, tmp_path, "script") == "cached"


FIRST = """
import enum, fractions, os, sys
sys.path.insert(0, sys.argv[1])
import ml_dtypes, numpy as np
import script

Choice = enum.IntEnum("Choice", "ONE TWO")
numbers = [np.int8(-3), np.uint64(5), np.bool_(True), np.float16(0.5), np.float32(2.5)]
numbers += [np.float64(7), np.longdouble(3), ml_dtypes.bfloat16(2), fractions.Fraction(1, 4)]
numbers += [Choice.TWO, 3, 1.5, True]
for number in numbers:  # a process of its own for each: it is the first call that counts
    child = os.fork()
    if not child:
        x = np.zeros(2)
        script.scaled(x, number)
        os._exit(0 if (x == float(number)).all() else 1)
    if os.waitpid(child, 0)[1]:
        print("wrong for", repr(number))
try:
    script.scaled(np.zeros(2), np.timedelta64(3, "s"))
except TypeError as error:
    assert "'a' is a numpy.timedelta64" in str(error), error
print("done")
"""


def test_the_first_call_of_a_process_takes_numbers_of_every_type(tmp_path):
    text = """
        import tack

        @tack.kernel
        def scaled(x, a):
            for i in range(x.shape[0]):
                x[i] = a
    """
    (tmp_path / "script.py").write_text(textwrap.dedent(text), encoding="utf-8")
    assert run(FIRST, tmp_path) == "done"


def test_the_same_text_in_another_file_or_with_a_comment_is_found(tmp_path):
    script(tmp_path)
    assert run(PROGRAM, tmp_path, "script") == "lower"
    (tmp_path / "moved.py").write_text("# moved\n" + textwrap.dedent(KERNELS), encoding="utf-8")
    assert run(PROGRAM, tmp_path, "moved") == "cached"


def test_a_damaged_entry_is_compiled_anew(tmp_path, own_cache):
    script(tmp_path)
    run(PROGRAM, tmp_path, "script")
    for path in own_cache.glob("*.tack"):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    assert run(PROGRAM, tmp_path, "script") == "lower"
    assert run(PROGRAM, tmp_path, "script") == "cached"


@pytest.mark.parametrize("home", ["missing/deep", "file/x", ""])
def test_a_home_that_cannot_be_used_is_no_error(tmp_path, home):
    script(tmp_path)
    (tmp_path / "file").write_text("")
    environment = {"HOME": str(tmp_path / "nohome"), "TACK_CACHE_DIR": ""}
    if home:
        environment["TACK_CACHE_DIR"] = str(tmp_path / home)
    run(PROGRAM, tmp_path, "script", **environment)


def test_processes_that_race_all_get_the_answer(tmp_path):
    (tmp_path / "many.py").write_text(many_kernels(10), encoding="utf-8")
    program = textwrap.dedent(
        """
        import sys
        sys.path.insert(0, sys.argv[1])
        import numpy as np, many
        for k in range(10):
            x = np.zeros(9, np.float32)
            getattr(many, f"kernel{k}")(x)
            assert (x == k + 0.5).all()
        """
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stderr=subprocess.PIPE)
        for _ in range(32)
    ]
    for process in processes:
        _, errors = process.communicate()
        assert process.returncode == 0, errors.decode()


def test_a_process_killed_at_any_moment_leaves_correct_answers(tmp_path):
    script(tmp_path)
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM), str(tmp_path), "script"]
    for attempt in range(50):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(0.15 + 0.01 * attempt)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if attempt % 10 == 9:
            run(PROGRAM, tmp_path, "script")
            for path in Path(os.environ["TACK_CACHE_DIR"]).glob("*.tack"):
                path.unlink()


def test_the_record_names_what_was_not_prebuilt(package, monkeypatch, tmp_path):
    notes = tmp_path / "notes"
    monkeypatch.setenv("TACK_RECORD", str(notes))
    kernels = package.load()
    with pytest.warns(JITWarning):
        kernels.kernel(np.zeros(2, np.float64))
    kernels.kernel(np.zeros(2, np.float32))
    assert notes.read_text().splitlines() == [
        f'{{"kernel": "{package.name}.kernels:kernel", "signature": "f64[:]"}}'
    ]


def test_the_log_tells_the_story_of_a_call(tmp_path):
    script(tmp_path)
    program = textwrap.dedent(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path), "script"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "TACK_LOG": "debug"},
    )
    assert "tack: script:kernel(f64[:]) is not prebuilt" in done.stderr
    assert "generated in" in done.stderr
    assert "compiled now by" in done.stderr


def test_source_and_ir_can_be_seen(load):
    module = load(textwrap.dedent(KERNELS))
    assert "for (int64_t i" in module.kernel.source("c", "f32[:]")
    assert "define" in module.kernel.source("llvm", "f32[:]")
    assert "__global__" in module.kernel.source("cuda:sm_90a", "f32[:]")
    assert "parallel" in module.kernel.ir("f32[:]")
    with pytest.raises(ValueError, match="did you mean 'llvm'"):
        module.kernel.source("lvm", "f32[:]")


def test_each_level_has_an_entry_of_its_own(load, monkeypatch, own_cache):
    from tack.backends import cpu

    results = []
    for level in levels():
        monkeypatch.setattr(cpu, "best_level", lambda level=level: level)
        module = load(textwrap.dedent(KERNELS))
        x = np.linspace(0, 1, 100)
        module.kernel(x)
        results.append(x.tobytes())
    assert compiles(own_cache) == len(levels())
    assert len(set(results)) == 1


def test_entries_of_llvm_and_of_a_c_compiler_are_never_exchanged(load, monkeypatch, own_cache):
    from tack.backends import cpu_cc, cpu_jit, cpu_llvm

    results = []
    for find in (cpu_llvm.find, cpu_cc.find):
        chain = find()
        assert chain is not None
        monkeypatch.setattr(cpu_jit, "toolchain", lambda chain=chain: chain)
        module = load(textwrap.dedent(KERNELS))
        x = np.linspace(0, 1, 100)
        module.kernel(x)
        results.append(x.tobytes())
    assert compiles(own_cache) == 2
    assert len(set(results)) == 1


def test_a_file_system_that_fills_up_is_no_error(tmp_path, own_cache):
    """The process may write no file of more than a few bytes, as on a full file system."""
    script(tmp_path)
    program = """
        import resource, signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
    """
    assert run(textwrap.dedent(program) + textwrap.dedent(PROGRAM), tmp_path, "script") == "lower"
    assert list(own_cache.iterdir()) == []


def test_an_expression_too_deep_to_compile_is_refused(load):
    deep = " + ".join(["x[i]"] * 900)
    module = load(
        f"@tack.kernel\ndef kernel(x):\n    for i in range(x.shape[0]):\n        x[i] = {deep}\n"
    )
    with pytest.raises(CompileError, match="too deep to compile; split it"):
        module.kernel(np.zeros(2, np.float32))


FORK = """
    import os, sys, threading, time
    sys.path.insert(0, sys.argv[1])
    import numpy as np, script
    from tack.runtime import jit
    original, started = jit._compile_anew, threading.Event()
    def slow(*arguments):
        started.set()
        time.sleep(1)
        return original(*arguments)
    jit._compile_anew = slow
    thread = threading.Thread(target=lambda: script.kernel(np.zeros(2)))
    thread.start()
    started.wait()
    child = os.fork()
    if not child:
        jit._compile_anew = original
        x = np.zeros(2)
        script.kernel(x)
        os._exit(0 if (x == 1).all() else 1)
    for _ in range(600):
        if os.waitpid(child, os.WNOHANG)[0]:
            break
        time.sleep(0.1)
    else:
        os.kill(child, 9)
        sys.exit("the child hangs")
    thread.join()
    print("done")
"""


def test_a_child_forked_during_a_compile_does_not_wait_for_it(tmp_path):
    script(tmp_path)
    assert run(FORK, tmp_path) == "done"


def test_a_log_handler_may_call_the_kernel_that_is_being_compiled(load, monkeypatch):
    import logging

    module = load(textwrap.dedent(KERNELS))
    calls = []

    class Handler(logging.Handler):
        def emit(self, record):
            if not calls:
                calls.append(record)
                module.kernel(np.zeros(2))

    handler = Handler()
    logger = logging.getLogger("tack")
    logger.addHandler(handler)
    logger.setLevel("DEBUG")
    try:
        x = np.zeros(2)
        module.kernel(x)
    finally:
        logger.removeHandler(handler)
        logger.setLevel("NOTSET")
    assert calls
    assert (x == 1).all()


def test_a_record_that_cannot_be_written_is_told(load, monkeypatch, tmp_path):
    monkeypatch.setenv("TACK_RECORD", str(tmp_path))
    with pytest.warns(RuntimeWarning, match="TACK_RECORD=.*cannot be written") as caught:
        load(textwrap.dedent(KERNELS)).kernel(np.zeros(2))
    assert caught[0].filename == __file__  # the call's line, not one of tack's


def test_private_names_in_classes_are_pythons(load):
    module = load(
        """
        __h = tack.constant(5, tack.i64)
        _D__h = tack.constant(7, tack.i64)

        class D:
            @staticmethod
            @tack.kernel
            def kernel(__x, __out):
                for i in range(__x.shape[0]):
                    __out[i] = __x[i] + __h
        """
    )
    out = np.zeros(2, np.int64)
    module.D.kernel(np.ones(2, np.int64), out)
    assert (out == 8).all()


def test_code_that_is_not_of_its_text_is_refused(tmp_path):
    """Compiled from other text under the name of a file, as import hooks do."""
    path = tmp_path / "other.py"
    text = "import tack\n@tack.kernel\ndef kernel(x):\n    for i in range(2):\n        x[i] = 5.0\n"
    path.write_text(text)
    scope = {"__name__": "other"}
    exec(compile(text.replace("5.0", "100.0"), str(path), "exec"), scope)
    with pytest.raises(NoVariantError, match="not the running code's"):
        scope["kernel"](np.zeros(2))
    scope = {}
    exec(compile(text, str(path), "exec"), scope)
    x = np.zeros(2)
    scope["kernel"](x)
    assert (x == 5).all()


@pytest.mark.parametrize(
    "statement",
    [
        "x[18446744073709551615] = 1",
        "x[i] = x[9223372036854775808]",
        "n = 9223372036854775808\n        x[n] = 1",
        "for k in range(9223372036854775808): x[i] = 1",
        "x[i] = 18446744073709551615 * 18446744073709551615",
    ],
)
def test_a_literal_beyond_i64_is_no_index_and_no_bound(load, statement):
    module = load(f"@tack.kernel\ndef kernel(x):\n    for i in range(1):\n        {statement}\n")
    with pytest.raises(CompileError, match=r"does not hold|fits no integer type"):
        module.kernel(np.zeros(2, np.int64))


def test_a_loop_over_more_than_i64_holds_is_refused(load):
    module = load(
        "@tack.kernel\ndef kernel(x):\n    for i in range(9223372036854775808):\n        x[0] = 1\n"
    )
    with pytest.raises(CompileError, match="does not hold"):
        module.kernel(np.zeros(2, np.int64))


def test_python_may_end_while_daemon_threads_run_kernels(tmp_path):
    script(tmp_path)
    program = """
        import sys, threading, time
        sys.path.insert(0, sys.argv[1])
        import numpy as np, script
        x = np.zeros(3_000_000)
        script.kernel(x)
        def forever():
            while True:
                script.kernel(x)
        for _ in range(3):
            threading.Thread(target=forever, daemon=True).start()
        time.sleep(0.1)
        print("done")
    """
    for _ in range(5):
        assert run(program, tmp_path) == "done"
