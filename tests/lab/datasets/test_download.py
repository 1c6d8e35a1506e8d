import os
import socket

import pytest

from secondlook.errors import InputError
from secondlook.lab.datasets import download
from secondlook.lab.datasets.download import fetch
from secondlook.lab.datasets.folders import cache_folder, find, folders


def get(url, target, **options):
    options = {"problem": lambda path: None, "by_hand": "do it by hand"} | options
    return fetch(url, target, **options)


@pytest.fixture
def target(tmp_path):
    return tmp_path / "deep" / "down" / "file"


def left_behind(target):
    return sorted(path.name for path in target.parent.glob("*"))


def test_arrives_whole_with_progress(server, target, monkeypatch):
    monkeypatch.setattr(download, "_CHUNK", 400)
    server.bodies["/file"] = bytes(1000)
    told = []
    get(f"{server.url}/file", target, progress=lambda *two: told.append(two))
    assert target.read_bytes() == bytes(1000)
    assert told == [(400, 1000), (800, 1000), (1000, 1000)]
    assert left_behind(target) == ["file"]


def test_total_is_unknown_if_the_server_does_not_say(server, target):
    server.bodies["/file"], server.promised["/file"] = b"abc", -1
    told = []
    get(f"{server.url}/file", target, progress=lambda *two: told.append(two))
    assert told == [(3, None)]


def test_cut_off(server, target):
    server.bodies["/file"], server.promised["/file"] = b"abc", 1024
    # Newer Pythons notice themselves and word the bytes their own way.
    message = r"^the download of http.*/file broke off .*\b3\b.*; try again, or do it by hand\.$"
    with pytest.raises(InputError, match=message):
        get(f"{server.url}/file", target)
    assert left_behind(target) == []


def test_not_there(server, target):
    message = rf"^the server answered 404 for {server.url}/file; do it by hand\.$"
    with pytest.raises(InputError, match=message):
        get(f"{server.url}/file", target)
    assert left_behind(target) == []


def test_nobody_answers(target):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(
        InputError, match=r"^cannot reach http.*/file \(Connection refused\); do it by hand\.$"
    ):
        get(f"{url}/file", target)
    assert left_behind(target) == []


def test_failed_check_keeps_the_old_file(server, target):
    target.parent.mkdir(parents=True)
    target.write_text("old")
    server.bodies["/file"] = b"new"
    with pytest.raises(InputError, match=r"^what http.*/file sent is odd; try again, or do"):
        get(f"{server.url}/file", target, problem=lambda path: "is odd")
    assert target.read_text() == "old"
    assert left_behind(target) == ["file"]


def test_interrupted(server, target):
    def stop(done, total):
        raise KeyboardInterrupt

    server.bodies["/file"] = b"abc"
    with pytest.raises(KeyboardInterrupt):
        get(f"{server.url}/file", target, progress=stop)
    assert left_behind(target) == []


def test_cannot_write(server, tmp_path):
    (tmp_path / "taken").write_text("a file, not a folder")
    with pytest.raises(InputError, match=r"^cannot write .*SECONDLOOK_CACHE, or do it by hand\.$"):
        get(f"{server.url}/file", tmp_path / "taken" / "file")


def test_cache_folder(monkeypatch, tmp_path):
    assert cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("SECONDLOOK_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "secondlook"
    monkeypatch.setenv("HOME", str(tmp_path))
    for ignored in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        assert cache_folder() == tmp_path / ".cache" / "secondlook"


def test_folders_in_order(monkeypatch, tmp_path, cache):
    for folder in ("given", "named", "cache"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "file").touch()
    monkeypatch.setenv("SECONDLOOK_DATA", str(tmp_path / "named"))
    assert folders(tmp_path / "given") == [tmp_path / "given", tmp_path / "named", cache]
    for folder in ("given", "named", "cache"):
        assert find(tmp_path / "given", ["none", "file"]) == tmp_path / folder / "file"
        os.remove(tmp_path / folder / "file")
    assert find(tmp_path / "given", ["file"]) is None


def test_a_folder_that_is_not_there(monkeypatch, tmp_path):
    with pytest.raises(InputError, match=r"^data must name a folder that exists, got .*leave data"):
        folders(tmp_path / "none")
    monkeypatch.setenv("SECONDLOOK_DATA", "none")
    with pytest.raises(InputError, match=r"^SECONDLOOK_DATA must name a folder that exists, got"):
        folders(None)
