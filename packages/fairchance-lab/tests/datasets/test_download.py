import os
import socket

import pytest

from fairchance.errors import InputError, UnavailableError
from fairchance_lab.datasets import download
from fairchance_lab.datasets.download import cache_folder, fetch, find, search_folders


def get(url, target, **options):
    options = {"find_problem": lambda path: None, "by_hand": "do it by hand"} | options
    return fetch(url, target, **options)


@pytest.fixture
def target(tmp_path):
    return tmp_path / "deep" / "down" / "file"


def files_beside(target):
    return sorted(path.name for path in target.parent.glob("*"))


def test_downloads_with_progress(server, target, monkeypatch):
    monkeypatch.setattr(download, "_CHUNK", 400)
    server.bodies["/file"] = bytes(1000)
    calls = []
    get(f"{server.url}/file", target, progress=lambda *call: calls.append(call))
    assert target.read_bytes() == bytes(1000)
    assert calls == [(400, 1000), (800, 1000), (1000, 1000), (1000, 1000)]
    assert files_beside(target) == ["file"]


def test_unknown_total(server, target):
    server.bodies["/file"], server.promised["/file"] = b"abc", -1
    calls = []
    get(f"{server.url}/file", target, progress=lambda *call: calls.append(call))
    assert {total for _, total in calls} == {None}


def test_incomplete_download(server, target):
    server.bodies["/file"], server.promised["/file"] = b"abc", 1024
    with pytest.raises(UnavailableError, match=f"{server.url}/file"):
        get(f"{server.url}/file", target)
    assert files_beside(target) == []


def test_missing_on_the_server(server, target):
    with pytest.raises(UnavailableError, match=f"404.* {server.url}/file"):
        get(f"{server.url}/file", target)
    assert files_beside(target) == []


def test_unreachable_server(target):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(UnavailableError, match=r"/file \(Connection refused\)"):
        get(f"{url}/file", target)
    assert files_beside(target) == []


def test_a_download_that_fails_the_check_is_deleted(server, target):
    server.bodies["/file"] = b"new"
    with pytest.raises(UnavailableError, match="/file is odd"):
        get(f"{server.url}/file", target, find_problem=lambda path: "is odd")
    assert files_beside(target) == []


def test_interrupted_download_is_deleted(server, target):
    def stop(done, total):
        raise KeyboardInterrupt

    server.bodies["/file"] = b"abc"
    with pytest.raises(KeyboardInterrupt):
        get(f"{server.url}/file", target, progress=stop)
    assert files_beside(target) == []


def test_unwritable_folder(server, tmp_path):
    (tmp_path / "taken").write_text("a file, not a folder")
    with pytest.raises(InputError, match=r"taken/file .*FAIRCHANCE_CACHE"):
        get(f"{server.url}/file", tmp_path / "taken" / "file")


def test_cache_folder(monkeypatch, tmp_path):
    assert cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("FAIRCHANCE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "fairchance"


def test_order_of_search_folders(monkeypatch, tmp_path, cache):
    for folder in ("given", "named", "cache"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "file").touch()
    monkeypatch.setenv("FAIRCHANCE_DATA", str(tmp_path / "named"))
    assert search_folders(tmp_path / "given") == [tmp_path / "given", tmp_path / "named", cache]
    for folder in ("given", "named", "cache"):
        assert find(tmp_path / "given", ["none", "file"]) == tmp_path / folder / "file"
        os.remove(tmp_path / folder / "file")
    assert find(tmp_path / "given", ["file"]) is None


def test_missing_data_folder(monkeypatch, tmp_path):
    with pytest.raises(InputError, match=r"^data .*none"):
        search_folders(tmp_path / "none")
    monkeypatch.setenv("FAIRCHANCE_DATA", "none")
    with pytest.raises(InputError, match=r"^FAIRCHANCE_DATA .*'none'"):
        search_folders(None)
