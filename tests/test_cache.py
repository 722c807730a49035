"""The disk cache: what it promises when everything around it goes wrong."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tack.runtime.cache import Cache, default_cache

KEY, OTHER = "a" * 64, "b" * 64
FACTS, CODE = {"launch": {"slots": [1, 2]}, "text": "é"}, bytes(range(256)) * 10


@pytest.fixture
def cache(tmp_path):
    made = Cache(str(tmp_path / "cache"))
    assert made.reason is None
    return made


def entry(cache, key=KEY):
    return os.path.join(cache.folder, f"{key}.tack")


def names(cache):
    return sorted(os.listdir(cache.folder))


@given(
    facts=st.dictionaries(st.text(), st.integers() | st.text() | st.lists(st.booleans())),
    code=st.binary(max_size=2000),
)
@settings(deadline=None, max_examples=40)
def test_what_was_put_is_what_is_got(tmp_path_factory, facts, code):
    cache = Cache(str(tmp_path_factory.mktemp("cache")))
    cache.put(KEY, facts, code)
    assert cache.get(KEY) == (facts, code)
    assert cache.get(OTHER) is None


def test_the_folder_is_made_private(cache):
    assert os.stat(cache.folder).st_mode & 0o777 == 0o700
    cache.put(KEY, FACTS, CODE)
    assert os.stat(entry(cache)).st_mode & 0o777 == 0o600


@given(st.data())
@settings(deadline=None, max_examples=80)
def test_a_damaged_entry_is_a_miss_and_is_removed(tmp_path_factory, data):
    cache = Cache(str(tmp_path_factory.mktemp("cache")))
    cache.put(KEY, FACTS, CODE)
    with open(entry(cache), "rb") as file:
        content = file.read()
    place = data.draw(st.integers(0, len(content) - 1))
    damaged = data.draw(
        st.sampled_from(
            [
                content[:place],
                content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :],
                content + b"x",
                content[:place] + content[place + 1 :],
                b"",
            ]
        )
    )
    with open(entry(cache), "wb") as file:
        file.write(damaged)
    assert cache.get(KEY) is None
    assert names(cache) == []
    cache.put(KEY, FACTS, CODE)
    assert cache.get(KEY) == (FACTS, CODE)


def test_an_entry_under_another_key_is_a_miss(cache):
    cache.put(KEY, FACTS, CODE)
    os.rename(entry(cache), entry(cache, OTHER))
    assert cache.get(OTHER) is None


def test_the_first_entry_stays(cache):
    cache.put(KEY, FACTS, CODE)
    cache.put(KEY, {"late": True}, b"")
    assert cache.get(KEY) == (FACTS, CODE)
    assert names(cache) == [f"{KEY}.tack"]


@pytest.mark.parametrize("mode", [0o722, 0o770, 0o777])
def test_a_folder_that_others_may_write_to_is_not_used(tmp_path, mode):
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(mode)
    cache = Cache(str(folder))
    assert "others may write" in str(cache.reason)
    cache.put(KEY, FACTS, CODE)
    assert cache.get(KEY) is None
    assert names(cache) == []


def test_a_symbolic_link_is_not_used(tmp_path):
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert "symbolic link" in str(Cache(str(tmp_path / "link")).reason)


def test_an_entry_that_is_a_symbolic_link_is_a_miss(cache):
    cache.put(KEY, FACTS, CODE)
    os.rename(entry(cache), os.path.join(cache.folder, "elsewhere"))
    os.symlink(os.path.join(cache.folder, "elsewhere"), entry(cache))
    assert cache.get(KEY) is None


def test_a_folder_or_entry_of_another_user_is_not_used(cache, monkeypatch):
    cache.put(KEY, FACTS, CODE)
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    assert "belongs to another user" in str(Cache(cache.folder).reason)
    assert cache.get(KEY) is None


def test_an_entry_that_is_a_folder_or_a_pipe_is_a_miss(cache):
    os.mkdir(entry(cache))
    assert cache.get(KEY) is None
    cache.put(KEY, FACTS, CODE)
    assert names(cache) == [f"{KEY}.tack"]


def test_a_home_that_is_a_file_is_no_error(tmp_path):
    (tmp_path / "file").write_text("")
    cache = Cache(str(tmp_path / "file" / "cache"))
    assert "cannot be made" in str(cache.reason)
    cache.put(KEY, FACTS, CODE)
    assert cache.get(KEY) is None


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT])
def test_a_file_that_cannot_be_written_is_no_error(cache, monkeypatch, number):
    def fail(*_):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        cache.put(KEY, FACTS, CODE)
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", fail)
        cache.put(KEY, FACTS, CODE)
    assert names(cache) == []
    assert cache.get(KEY) is None


def test_a_folder_that_vanishes_is_no_error(cache):
    os.rmdir(cache.folder)
    cache.put(KEY, FACTS, CODE)
    assert cache.get(KEY) is None
    cache.prune()


def test_pruning_removes_the_abandoned_the_old_and_the_oldest_over_the_limit(cache):
    now = time.time()
    for number in range(6):
        key = f"{number:064x}"
        cache.put(key, {}, bytes(400_000))
        os.utime(entry(cache, key), (now - 100 * number,) * 2)
    ancient = f"{9:064x}"
    cache.put(ancient, {}, b"")
    os.utime(entry(cache, ancient), (now - 90 * 86400,) * 2)
    for name, age in [(".old.1.x", 7200), (".new.1.x", 10)]:
        path = os.path.join(cache.folder, name)
        with open(path, "w") as file:
            file.write("")
        os.utime(path, (now - age,) * 2)
    cache.megabytes = 1
    cache.prune()
    assert names(cache) == [".new.1.x", *(f"{number:064x}.tack" for number in range(2))]


def test_what_is_used_is_kept(cache):
    cache.put(KEY, FACTS, CODE)
    os.utime(entry(cache), (0, 0))
    assert cache.get(KEY) is not None
    cache.prune()
    assert cache.get(KEY) is not None


def test_processes_that_write_the_same_entries_at_once_all_read_whole_ones(tmp_path):
    program = (
        "import sys\nfrom tack.runtime.cache import Cache\ncache = Cache(sys.argv[1])\n"
        "for k in range(50):\n"
        "    cache.put(f'{k:064x}', {'k': k}, bytes([k]) * 5000)\n"
        "    assert cache.get(f'{k:064x}') == ({'k': k}, bytes([k]) * 5000), k\n"
    )
    folder = str(tmp_path / "cache")
    processes = [subprocess.Popen([sys.executable, "-c", program, folder]) for _ in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
    assert len([n for n in names(Cache(folder)) if n.endswith(".tack")]) == 50
    assert not [n for n in names(Cache(folder)) if n.startswith(".")]


def test_a_writer_killed_at_any_moment_leaves_no_half_entry(tmp_path):
    program = (
        "import sys\nfrom tack.runtime.cache import Cache\ncache = Cache(sys.argv[1])\n"
        "print(flush=True)\nk = 0\n"
        "while True:\n"
        "    cache.put(f'{k % 7:064x}', {}, bytes(300_000))\n"
        "    __import__('os').unlink(cache._path(f'{k % 7:064x}'))\n"
        "    k += 1\n"
    )
    folder = str(tmp_path / "cache")
    for attempt in range(8):
        process = subprocess.Popen(
            [sys.executable, "-c", program, folder], stdout=subprocess.PIPE, text=True
        )
        process.stdout.readline()
        time.sleep(0.002 * attempt)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        cache = Cache(folder)
        for k in range(7):
            found = cache.get(f"{k:064x}")
            assert found is None or found == ({}, bytes(300_000))


def test_a_tilde_in_tack_cache_dir_is_the_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TACK_CACHE_DIR", "~/kernels")
    default_cache.cache_clear()
    try:
        assert default_cache().folder == str(tmp_path / "kernels")
    finally:
        default_cache.cache_clear()
