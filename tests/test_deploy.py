"""The files of deploy/ are right, and their steps lead to a running service."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from guides import LENDER, POSTGRES, ROOT, pieces

DEPLOY = ROOT / "deploy"
PAGE = ROOT / "docs" / "operate.md"
NOBODY = 65534
CHECKS = Path(sys.executable).parent  # where tools for checks are


def checked(*words):
    ran = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_hadolint_finds_nothing_in_the_dockerfile():
    checked(CHECKS / "hadolint", DEPLOY / "Dockerfile")


def test_the_compose_file_follows_its_schema():
    words = ("--builtin-schema", "vendor.compose-spec", DEPLOY / "compose.yaml")
    checked(CHECKS / "check-jsonschema", *words)


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd")
def test_systemd_takes_the_unit(tmp_path):
    text = (DEPLOY / "fairchance.service").read_text()
    unit = tmp_path / "fairchance.service"
    unit.write_text(text.replace("/opt/fairchance/bin/fairchance", "/bin/true"))
    checked("systemd-analyze", "verify", "--man=no", unit)
    checked("systemd-analyze", "security", "--offline=true", "--threshold=20", unit)


def test_systemd_waits_for_a_database_that_is_away_at_the_start():
    unit = dict(re.findall(r"^(\w+)=(.*)$", (DEPLOY / "fairchance.service").read_text(), re.M))
    away = f"postgresql://127.0.0.1:{free_port()}/lender"
    code = subprocess.call([sys.executable, "-m", "fairchance", "serve", "--ledger", away])
    assert code
    assert str(code) not in unit.get("RestartPreventExitStatus", "").split()
    assert unit["Restart"] == "on-failure"
    assert int(unit["RestartSec"]) > 2  # it gives up after five starts in ten seconds


def instructions():
    """Yield the instructions of the Dockerfile: the word, and the rest."""
    text = re.sub(r"^#.*\n", "", (DEPLOY / "Dockerfile").read_text(), flags=re.M)
    for line in text.replace("\\\n", " ").splitlines():
        if line.strip():
            word, rest = line.split(None, 1)
            yield word, rest


def test_nothing_is_run_as_root_and_images_name_no_host():
    found = list(instructions())
    bases = [rest.split()[0] for word, rest in found if word == "FROM"]
    assert len(bases) == 2
    assert not any("/" in base for base in bases)
    assert [word for word, _ in found].index("USER") > 0
    (user,) = [rest for word, rest in found if word == "USER"]
    assert int(user) > 0


class Image:
    """An environment that is made as the Dockerfile says, below a folder instead of the root."""

    def __init__(self, top):
        self.top, self.variables, self.last = top, {}, {}
        for word, rest in instructions():
            if word == "COPY" and not rest.startswith("--from"):
                source, target = rest.split()
                ignored = shutil.ignore_patterns("tests", "__pycache__")
                shutil.copytree(ROOT / source, self.place(target), ignore=ignored)
            elif word == "RUN" and "useradd" not in rest:
                words = rest.replace("python -m venv", f"{python_for_all()} -m venv")
                self.run(["sh", "-c", re.sub(r"(/opt|/src)/", rf"{top}\1/", words)])
            elif word == "ENV":
                pairs = (part.partition("=") for part in shlex.split(rest))
                self.variables |= {name: value for name, _, value in pairs}
            else:
                self.last[word] = rest
        path = (
            self.variables["PATH"]
            .replace("/opt", f"{top}/opt")
            .replace("$PATH", os.environ["PATH"])
        )
        self.variables["PATH"] = path

    def place(self, path):
        return self.top / path.lstrip("/")

    def run(self, words):
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "FAIRCHANCE"))}
        ran = subprocess.run(words, capture_output=True, text=True, check=False, env=clean)
        assert ran.returncode == 0, ran.stdout + ran.stderr


def python_for_all():
    """Return a Python that a user without rights may run; ours may be in root's own folder."""
    for python in (sys.executable, "/usr/bin/python3"):
        words = [python, "-c", "import sys, venv; sys.exit(sys.version_info < (3, 11))"]
        with suppress(OSError):
            if not subprocess.call(words, stderr=subprocess.DEVNULL, **as_user(NOBODY)):
                return python
    return pytest.skip("no Python is there that a user without rights may run")


def as_user(number):
    """Return options with which a process has no rights, if this one has all."""
    return {"user": number, "group": number, "extra_groups": []} if os.getuid() == 0 else {}


@contextmanager
def database(folder, port, password):
    """Run PostgreSQL as the compose file describes it, on a port of this machine."""
    nobody = as_user(NOBODY)  # a user with a name, which initdb needs
    data, secret = folder / "database", folder / "password"
    data.mkdir()
    secret.write_text(password)
    if nobody:
        os.chown(data, NOBODY, NOBODY)
    words = [
        POSTGRES / "initdb",
        "-D",
        data,
        "-U",
        "fairchance",
        "-A",
        "scram-sha-256",
        "--pwfile",
        secret,
    ]
    subprocess.run(words, check=True, capture_output=True, **nobody)
    words = [POSTGRES / "postgres", "-D", data, "-p", str(port), "-k", ""]
    variables = os.environ | {"PGPASSWORD": password}
    with subprocess.Popen(words, stderr=subprocess.DEVNULL, **nobody) as server:
        try:
            at = ["-h", "127.0.0.1", "-p", str(port), "-U", "fairchance"]
            waiting(lambda: not subprocess.call([POSTGRES / "pg_isready", "-q", *at]))
            subprocess.run([POSTGRES / "createdb", *at, "fairchance"], check=True, env=variables)
            yield
        finally:
            server.terminate()


def waiting(true, patience=120):
    for _ in range(10 * patience):
        if true():
            return
        time.sleep(0.1)
    pytest.fail("it did not happen")


def free_port():
    with closing(socket.socket()) as door:
        door.bind(("127.0.0.1", 0))
        return door.getsockname()[1]


def service_of(folder, port):
    """Return the environment that the compose file gives the service, with the password."""
    text = (DEPLOY / "compose.yaml").read_text().partition("  service:")[2]
    block = text.partition("    environment:\n")[2].partition("    ports:")[0]
    found = dict(re.findall(r"^      (\w+): (.*)$", block, re.M))
    password = re.search(r"=(.*)", (folder / ".env").read_text())[1]
    found["PGPASSWORD"] = found["PGPASSWORD"].replace(
        "${DATABASE_PASSWORD:?write it to .env}", password
    )
    found["FAIRCHANCE_ALERTS_SECRET"] = ""
    found["FAIRCHANCE_LEDGER"] = found["FAIRCHANCE_LEDGER"].replace(
        "@database/", f"@127.0.0.1:{port}/"
    )
    return found


@pytest.mark.long
def test_the_steps_of_the_containers_lead_to_a_running_service(tmp_path):
    (block,) = [
        text
        for kind, _, text in pieces(PAGE.read_text(encoding="utf-8"))
        if kind == "text" and "docker compose" in text
    ]
    # Not below tmp_path, which only its owner may enter.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        image = Image(folder / "image")
        data = folder / "data"
        data.mkdir()
        subprocess.run([sys.executable, LENDER / "lender.py", "history"], cwd=data, check=True)
        rounds = '\n[rounds]\nevery = "1 month"\n'
        (data / "program.toml").write_text((LENDER / "program.toml").read_text() + rounds)
        _follow(block, folder, image, data)
        # Nobody but the one who made the image wrote into it.
        owners = {file.lstat().st_uid for file in image.top.rglob("*")}
        assert owners == {os.getuid()}


def _follow(block, folder, image, data):
    """Follow the steps of the page."""
    first, *steps = [line.removeprefix("$ ") for line in block.splitlines()]
    subprocess.run(["sh", "-c", first], cwd=folder, check=True)
    at, port = free_port(), free_port()
    entry, command = (json.loads(image.last[word]) for word in ("ENTRYPOINT", "CMD"))
    variables = {**image.variables, **service_of(folder, at), "HOME": "/nonexistent"}
    how = {"cwd": data, "env": variables, "text": True}
    how |= as_user(int(image.last["USER"]))
    printed = {}
    with database(folder, at, variables["PGPASSWORD"]):
        server = None
        for step in steps:
            words = shlex.split(step)
            if words[:5] == ["docker", "compose", "run", "--rm", "service"]:
                ran = subprocess.run(entry + words[5:], capture_output=True, check=False, **how)
                assert ran.returncode == 0, (step, ran.stderr)
                printed[words[5]] = ran.stdout
            elif words == ["docker", "compose", "up", "--detach", "--wait"]:
                server = subprocess.Popen([*entry, *command, "--port", str(port)], **how)
                waiting(lambda: _answers(port, "/livez"))
            else:
                assert words[0] == "curl"
                subprocess.run(["sh", "-c", step.replace("8000", str(port))], check=True)
        assert server is not None
        check = json.loads(image.last["HEALTHCHECK"].partition("CMD ")[2])
        words = [
            word.replace("8000", image.last["EXPOSE"].replace("8000", str(port))) for word in check
        ]
        subprocess.run(words, check=True, **how)
        _decide(port, printed["keys"].strip())
        server.terminate()
        assert server.wait(60) == 0
        assert subprocess.run(words, check=False, capture_output=True, **how).returncode != 0
    assert printed["verify"].startswith("Everything fits.")


def _answers(port, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=3):
            return True
    except OSError:
        return False


def _decide(port, key):
    """Send an application to the service."""
    one = {"income": 3000, "debt": 2.5, "employed": 6}
    body = {
        "applications": [{"id": "a1", "features": one, "groups": {"sex": "f"}, "incumbent": True}]
    }
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    place = f"http://127.0.0.1:{port}/v1/decisions"
    asked = urllib.request.Request(place, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(asked, timeout=60) as answer:
        (decided,) = json.load(answer)["decisions"]
    assert (decided["id"], decided["decision"]) == ("a1", "accept")
