"""The cache of compiled code on machines with other users, odd files, full disks and odd names."""

import contextlib
import ctypes
import importlib
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import primgraph as pg
from primgraph.cli.main import main
from primgraph.codegen import native
from primgraph.codegen.runtime.toolchain import cache, compile_c, folder, loading, run_compiler
from primgraph.codegen.runtime.toolchain.folder import open_private
from primgraph.codegen.runtime.toolchain.loading import load

posix = pytest.mark.skipif(os.name != "posix", reason="there are no owners, modes and pipes")
pytestmark = [
    posix,
    pytest.mark.skipif(
        not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler"
    ),
]
needs_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be two users"
)

_TEXT = "int number(void) { return %d; }"
_OTHER = 54321


@pytest.fixture
def own(tmp_path, monkeypatch):
    """An empty cache."""
    found = tmp_path / "cache"
    monkeypatch.setenv("PRIMGRAPH_CACHE", str(found))
    return found


@contextlib.contextmanager
def another_user():
    """This process has another user's number, so that all its files are of another user."""
    real = os.geteuid()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folder.os, "geteuid", lambda: real + _OTHER)
        yield


def number(stored):
    return load(stored, ctypes.CDLL).number()


def is_refused(path):
    try:
        open_private(path).close()
    except PermissionError:
        return True
    return False


# Folders.


@needs_root
def test_a_folder_below_one_of_another_user_is_refused(tmp_path):
    middle = tmp_path / "middle"
    inner = middle / "inner"
    inner.mkdir(parents=True, mode=0o700)
    assert not is_refused(inner)
    for mode in (0o755, 0o1777, 0o1755):
        os.chown(middle, _OTHER, _OTHER)
        middle.chmod(mode)
        # The owner of a sticky directory may rename what is in it.
        assert is_refused(inner), oct(mode)
        os.chown(middle, 0, 0)
        assert not is_refused(inner), oct(mode)
    middle.chmod(0o755)
    os.chown(inner, _OTHER, _OTHER)
    assert is_refused(inner)


def test_a_folder_of_another_user_is_refused(tmp_path):
    inner = tmp_path / "inner"
    inner.mkdir(mode=0o700)
    assert not is_refused(inner)
    with another_user():
        assert is_refused(inner)


def test_a_folder_that_others_may_write_is_refused(tmp_path):
    inner = tmp_path / "middle" / "inner"
    inner.mkdir(parents=True, mode=0o700)
    for mode, refused in ((0o777, True), (0o1777, False), (0o755, False), (0o702, True)):
        inner.parent.chmod(mode)
        assert is_refused(inner) == refused, oct(mode)
    inner.parent.chmod(0o700)
    for mode, refused in ((0o777, True), (0o1777, True), (0o770, True), (0o755, False)):
        inner.chmod(mode)
        assert is_refused(inner) == refused, oct(mode)
    inner.chmod(0o700)
    tmp_path.chmod(0o777)
    try:
        assert is_refused(inner)
    finally:
        tmp_path.chmod(0o700)


@needs_root
def test_a_group_may_write_only_if_this_user_is_alone_in_it(tmp_path, monkeypatch):
    inner = tmp_path / "middle" / "inner"
    inner.mkdir(parents=True, mode=0o700)
    inner.parent.chmod(0o775)
    os.chown(inner.parent, 0, _OTHER)
    assert is_refused(inner)
    os.chown(inner.parent, 0, 0)
    groups = importlib.import_module("grp")
    members = []
    found = type(groups.getgrgid(0))
    monkeypatch.setattr(groups, "getgrgid", lambda n: found(("root", "x", n, members)))
    assert not is_refused(inner)
    members.append("somebody")
    assert is_refused(inner)
    members.clear()
    # An access list may name others, and the bits of the group are its mask.
    monkeypatch.setattr(folder.os, "listxattr", lambda handle: ["system.posix_acl_access"])
    assert is_refused(inner)


def test_links_and_missing_components_are_walked_by_descriptor(tmp_path):
    real = tmp_path / "real"
    real.mkdir(mode=0o700)
    (tmp_path / "absolute").symlink_to(real)
    (tmp_path / "relative").symlink_to("absolute/../real")
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "file").write_text("")
    for name in ("absolute", "relative", "relative/../real", "./real//"):
        with open_private(tmp_path / name) as opened:
            assert opened.path == os.path.realpath(real)
    with open_private(tmp_path / "absolute" / "a" / "b", make=True) as opened:
        assert opened.path == os.path.realpath(real / "a" / "b")
        assert stat.S_IMODE((real / "a").stat().st_mode) == 0o700
        opened.write("x", b"1", b"2")
        # The directory is what was opened, wherever it is moved to.
        (real / "a").rename(tmp_path / "moved")
        assert opened.read("x") == b"12"
    for name in ("circle", "file", "missing", "missing/../real", "file/more"):
        with pytest.raises(OSError, match=name.split("/", 1)[0]):
            open_private(tmp_path / name)
    for path in ("link", "two"):
        (tmp_path / path).symlink_to("/nowhere/at/all")
        with pytest.raises(FileNotFoundError):
            open_private(tmp_path / path)


def test_files_are_for_their_owner_alone(tmp_path):
    with open_private(tmp_path / "cache", make=True) as opened:
        opened.write("x", b"1")
        os.close(opened.open_lock("lock"))
        for name in ("x", "lock"):
            assert stat.S_IMODE((tmp_path / "cache" / name).stat().st_mode) == 0o600


@needs_root
def test_a_link_of_another_user_is_not_followed(tmp_path):
    tmp_path.chmod(0o1777)
    (tmp_path / "real").mkdir(mode=0o700)
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "real")
    assert not is_refused(link)
    os.lchown(link, _OTHER, _OTHER)
    assert is_refused(link)
    tmp_path.chmod(0o700)


@needs_root
def test_temporary_folders_of_another_user_are_not_used(tmp_path, monkeypatch):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    monkeypatch.setenv("PRIMGRAPH_CACHE", str(shared / "cache"))
    monkeypatch.setattr(cache._temporary_files(), "tempdir", str(shared))
    monkeypatch.setattr(cache, "_temporary", cache.cache(cache._temporary.__wrapped__))
    os.chown(shared, _OTHER, _OTHER)
    with cache.usable_folder() as used:
        assert shared not in Path(used.path).parents
    assert number(compile_c.library(_TEXT % 1, runtime=False)) == 1
    assert not list(shared.iterdir())


@pytest.fixture
def reachable():
    """A folder that other users can enter."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        os.chmod(name, 0o755)
        yield Path(name)


_ATTACK = """
cd "$1" || exit
while :; do mv -T cache aside && mv -T evil cache; mv -T cache evil; mv -T aside cache; done
"""


@needs_root
def test_another_user_who_exchanges_folders_runs_no_code(reachable, monkeypatch):
    shared, evil = reachable / "shared", reachable / "shared" / "evil"
    (shared / "cache").mkdir(parents=True, mode=0o700)
    monkeypatch.setenv("PRIMGRAPH_CACHE", str(shared / "cache"))
    made = compile_c.library(_TEXT % 1, runtime=False)
    other = compile_c.library(_TEXT % 666, runtime=False)
    evil.mkdir()
    (evil / made.name).write_bytes(other.content + cache._sum_of(made.name, other.content))
    for path in (evil, evil / made.name, shared):
        os.chown(path, _OTHER, _OTHER)
    shared.chmod(0o1777)
    command = ["/bin/sh", "-c", _ATTACK, "sh", str(shared)]
    attacker = subprocess.Popen(
        command,
        user=_OTHER,
        group=_OTHER,
        extra_groups=[],
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + 3
        while time.monotonic() < deadline:
            assert number(compile_c.library(_TEXT % 1, runtime=False)) == 1
        assert attacker.poll() is None
    finally:
        # What the shell has started goes with it: nothing is moved while folders are removed.
        os.killpg(attacker.pid, signal.SIGKILL)
        attacker.wait()
        time.sleep(0.1)


# Files.


def test_what_is_loaded_is_what_was_verified(own, monkeypatch):
    """Files are exchanged, cut off and removed between the check and the load."""
    made, other = (compile_c.library(_TEXT % n, runtime=False) for n in (2, 3))
    file = own / made.name
    for exchange in (
        lambda: shutil.copy(own / other.name, file),
        lambda: os.truncate(file, 100),
        lambda: shutil.rmtree(own),
    ):
        stored = compile_c.library(_TEXT % 2, runtime=False)
        exchange()
        assert number(stored) == 2


def test_libraries_that_are_exchanged_with_their_sums_are_made_again(own):
    """Under another name a file is not what is looked for."""
    one, two = (own / compile_c.library(_TEXT % n, runtime=False).name for n in (10, 11))
    for sums in ("", ".sum"):
        others = [path.with_name(path.name + sums) for path in (one, two)]
        if all(path.exists() for path in others):
            others[0].rename(own / "aside")
            others[1].rename(others[0])
            (own / "aside").rename(others[1])
    assert [number(compile_c.library(_TEXT % n, runtime=False)) for n in (10, 11)] == [10, 11]


@pytest.fixture
def deadline():
    """Interrupt a test that waits for a pipe."""

    def late(*args):
        raise TimeoutError("it waits")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(100)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("deadline")
@pytest.mark.parametrize("kind", ["fifo", "directory", "link", "socket"])
def test_what_is_no_regular_file_in_the_cache_is_passed_over(own, kind, tmp_path):
    path = compile_c.compiler().command[0]
    version = compile_c._version(path)
    assert number(compile_c.library(_TEXT % 4, runtime=False)) == 4
    names = [f.name for f in own.iterdir()]
    assert {name.partition("-")[0] for name in names} > {"compiler", "lock"}
    for name in names:
        content = (own / name).read_bytes()
        (own / name).unlink()
        if kind == "fifo":
            os.mkfifo(own / name)
        elif kind == "directory":
            (own / name).mkdir()
        elif kind == "socket":
            os.mknod(own / name, stat.S_IFSOCK | 0o600)
        else:
            (tmp_path / name).write_bytes(content)
            (own / name).symlink_to(tmp_path / name)
    assert number(compile_c.library(_TEXT % 4, runtime=False)) == 4
    assert compile_c._version(path) == version


def test_copies_are_in_memory_or_in_a_private_folder(own, monkeypatch):
    made = [compile_c.library(_TEXT % n, runtime=False) for n in (5, 6)]
    # Descriptors have the same number each time, libraries are others.
    assert [number(m) for m in made * 3] == [5, 6] * 3
    seen = []

    def opened(path):
        seen.append(path)
        if path.startswith("/proc"):
            raise OSError("not loaded from memory")
        return ctypes.CDLL(path)

    assert load(made[0], opened).number() == 5
    assert len(seen) == 1 + hasattr(os, "memfd_create")
    assert own in Path(seen[-1]).parents
    assert not Path(seen[-1]).exists()
    monkeypatch.delattr(loading.os, "memfd_create", raising=False)
    assert load(made[1], opened).number() == 6
    assert own in Path(seen[-1]).parents


def test_files_are_private_whatever_the_umask(own):
    before = os.umask(0o002)
    try:
        made = compile_c.library(_TEXT % 7, runtime=False)
    finally:
        os.umask(before)
    assert compile_c.load_cached(made.name) == made
    assert {stat.S_IMODE(f.stat().st_mode) for f in own.iterdir()} == {0o600}


# Compilers and disks.


def by_numpy(function, x):
    """Compile a function to C, which NumPy runs instead; return the plan and the warning."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        kernel = pg.compile(pg.trace(function, x), target="c")
        np.testing.assert_allclose(kernel(x), function(x))
        assert kernel.running_style((x,)) == "planned"
    assert {w.category for w in told} == {RuntimeWarning}
    return str(kernel.plan).splitlines()[0], " ".join(str(w.message) for w in told)


def script(path, text):
    """A compiler."""
    with open(path, "w") as file:
        file.write(f"#!/bin/sh\n{text}\n")
    os.chmod(path, 0o755)
    return os.fsdecode(path)


def test_a_command_that_cannot_be_read_is_no_compiler(own, monkeypatch):
    monkeypatch.setenv("CC", "gcc 'x")
    monkeypatch.setattr(compile_c, "find_compiler", compile_c.find_compiler.__wrapped__)
    with pytest.warns(RuntimeWarning, match="no C compiler .gcc 'x. is to be found"):
        assert compile_c.compiler.__wrapped__() is None


def test_a_cache_whose_path_is_not_unicode(own, monkeypatch, capsys):
    path = os.fsencode(own) + b"-\xff"
    try:
        os.mkdir(path, 0o700)
    except OSError:
        pytest.skip("the file system takes no such names")
    monkeypatch.setenv("PRIMGRAPH_CACHE", os.fsdecode(path))
    made = compile_c.library(_TEXT % 8)
    assert number(made) == 8
    assert compile_c.load_cached(made.name) == made
    assert main(["cache"]) == 0
    assert "-\\xff\n" in capsys.readouterr().out
    assert main(["cache", "clear"]) == 0
    assert not os.listdir(path)


def test_a_compiler_whose_path_is_not_unicode(own, tmp_path, monkeypatch):
    real = compile_c.compiler().command[0]
    try:
        path = script(os.fsencode(tmp_path) + b"/cc-\xff", f'exec {real} "$@"')
    except OSError:
        pytest.skip("the file system takes no such names")
    monkeypatch.setenv("CC", path)
    found = compile_c.find_compiler.__wrapped__()
    assert found.command == (path,)
    monkeypatch.setattr(compile_c, "compiler", lambda: found)
    assert number(compile_c.library(_TEXT % 8, runtime=False)) == 8


def test_a_library_without_its_functions_is_not_used(native_cache, monkeypatch):
    made = compile_c.library("int other;", runtime=False)
    monkeypatch.setattr(native, "library", lambda text, **options: made)
    plan, told = by_numpy(lambda x: pg.sin(x) * 2.125, np.linspace(0.0, 1.0, 50))
    assert plan == "NumPy does all: the C could not be compiled, as a warning has said"
    assert "cannot be loaded" in told
    assert "undefined symbol" in told
    # It is made again by a compiler that is repaired.
    assert compile_c.load_cached(made.name) is None


def test_a_compiler_without_a_message_has_refused_nothing(own, tmp_path, monkeypatch):
    path = script(tmp_path / "cc", "exit 1")
    monkeypatch.setattr(compile_c, "compiler", lambda: compile_c.Compiler((path,), "1"))
    with pytest.raises(compile_c.UnavailableError, match="failed without a message"):
        compile_c.library(_TEXT % 8, runtime=False)


def test_messages_of_compilers_about_the_machine():
    for text in (
        "gcc: fatal error: Killed signal terminated program cc1\ncompilation terminated.",
        "collect2: fatal error: ld terminated with signal 9 [Killed]",
        "fatal error: error writing to /tmp/x.s: No space left on device",
        "gcc: fatal error: cannot execute 'cc1': execvp: No such file or directory",
    ):
        assert run_compiler.NO_ROOM.search(text), text
    # So ends every fatal error, also one in C of the user's.
    text = "kernel.c:1:10: fatal error: none.h: No such file or directory\ncompilation terminated."
    assert not run_compiler.NO_ROOM.search(text)


@pytest.fixture
def disk(tmp_path, monkeypatch):
    """Fills a disk, which the cache and temporary files are on, up to some KiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no disk can be mounted")
    monkeypatch.setenv("PRIMGRAPH_CACHE", str(disk / "cache"))
    for name in ("TMPDIR", "TMP", "TEMP"):
        monkeypatch.setenv(name, str(disk))
    monkeypatch.setattr(tempfile, "tempdir", str(disk))

    def fill(room):
        (disk / "fill").write_bytes(bytes(1024 * (252 - room)))
        return disk / "cache"

    yield fill
    subprocess.run(["umount", str(disk)], check=True)


@needs_root
def test_on_a_full_disk_numpy_runs(disk):
    cache = disk(0)
    plan, told = by_numpy(lambda x: pg.sin(x) * 2.25, np.linspace(0.0, 1.0, 50))
    assert plan.startswith("NumPy does all")
    assert "No space left on device" in told
    assert not list(cache.glob("making-*"))


@needs_root
@pytest.mark.parametrize("room", [8, 16, 24, 64])
def test_a_disk_that_is_nearly_full_is_no_fault_of_the_source(disk, room):
    cache = disk(room)
    with contextlib.suppress(compile_c.UnavailableError):
        assert number(compile_c.library(_TEXT % 9, runtime=False)) == 9
    assert not list(cache.glob("making-*"))


def test_a_temporary_folder_that_cannot_be_used_is_not_needed(own, monkeypatch):
    for name in ("TMPDIR", "TMP", "TEMP"):
        monkeypatch.setenv(name, "/proc/self")
    monkeypatch.setattr(tempfile, "tempdir", "/proc/self")
    assert number(compile_c.library(_TEXT % 9, runtime=False)) == 9


def test_what_cannot_be_used_is_said(own, capsys):
    own.mkdir()
    own.chmod(0o777)
    assert main(["cache"]) == 0
    out = capsys.readouterr().out
    assert f"unused:  '{own}' may be written by another user\nfiles:   0" in out
    with warnings.catch_warnings():
        assert number(compile_c.library(_TEXT % 9, runtime=False)) == 9
    assert not list(own.iterdir())
