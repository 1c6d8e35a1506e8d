"""Every command of docs/operate.md runs, in its order, and its schedules name such commands."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from contextlib import nullcontext
from types import ModuleType

import pytest

from guides import PLACE, ROOT, check_page, commands, pieces

pytestmark = pytest.mark.xdist_group("guide")
PAGE = ROOT / "docs" / "operate.md"
HOME = "/srv/lender"


def blocks(kind):
    return [text for found, _, text in pieces(PAGE.read_text(encoding="utf-8")) if found == kind]


def test_the_page_comes_out_as_it_is_written(shell, new_database, request):
    swaps = {PLACE: new_database(), PLACE.replace("/lender", "/restored"): new_database()}
    check_page(PAGE, shell, swaps, request)


@pytest.fixture(scope="module")
def units(tmp_path_factory):
    """Return a folder with the units of systemd that the page has."""
    folder = tmp_path_factory.mktemp("units")
    for text in blocks("ini"):
        (folder / re.match(r"# /etc/systemd/system/(\S+)\n", text)[1]).write_text(text)
    (folder / "tell-the-risk-team.service").write_text("[Service]\nExecStart=/bin/true\n")
    return folder


def job():
    """Return the commands that write the job and run it."""
    (text,) = [text for text in blocks("console") if "job.sh <<" in text]
    return text


def cron():
    """Return the command that cron runs."""
    (line,) = [line for line in blocks("text")[0].splitlines() if re.match(r"[\d*]", line)]
    fields = line.split(None, 5)
    assert all(re.fullmatch(r"\d+|\*", field) for field in fields[:5])
    assert not re.search(r"(?<!\\)%", fields[5])  # cron takes it for the end of the line
    return fields[5].replace(r"\%", "%")


def systemd(units):
    """Return the command that systemd runs."""
    (line,) = re.findall(r"^ExecStart=(.*)$", (units / "lender-job.service").read_text(), re.M)
    return f"cd {HOME}; {line.replace('$$', '$').replace('%%', '%')}"


def airflow(monkeypatch):
    """Return the command that Airflow runs."""
    made = []
    modules = {
        "airflow": {"DAG": lambda _, **options: nullcontext(options)},
        "airflow.operators": {},
        "airflow.operators.bash": {"BashOperator": lambda **options: made.append(options)},
    }
    for name, content in modules.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    exec(blocks("python3")[0], {})
    (operator,) = made
    month = re.compile(r"\{\{ data_interval_end.strftime\('%Y-%m'\) \}\}")
    assert operator["cwd"] == HOME
    return f"cd {HOME} && {month.sub('2031-02', operator['bash_command'])}"


def test_each_scheduler_runs_the_job(shell, units, monkeypatch):
    for command, _ in commands(blocks("console")[0]) + commands(job()):
        shell.run(command, "2031-01-15")
        assert shell.code == 0
    (shell.folder / "lender.env").write_text("FAIRCHANCE_LEDGER=sqlite:///lender.db\n")
    (shell.folder / "bin").mkdir()
    (shell.folder / "bin" / "date").write_text("#!/bin/sh\necho 2031-02\n")
    (shell.folder / "bin" / "date").chmod(0o755)
    shell.run(f'export PATH="{shell.folder}/bin:$PATH"', None)
    for command in (cron(), systemd(units), airflow(monkeypatch)):
        shell.run(command.replace(HOME, str(shell.folder)), "2031-02-15")
        assert shell.code == 0
        (shell.folder / "decisions-2031-02.csv").unlink()


def test_cron_mails_why_the_job_failed(shell):
    shell.folder.joinpath("lender.env").write_text("FAIRCHANCE_LEDGER=sqlite:///missing.db\n")
    shell.folder.joinpath("bin").mkdir()
    mail = shell.folder / "bin" / "mail"
    mail.write_text('#!/bin/sh\n{ echo "$@"; cat; } > mail.txt\n')
    mail.chmod(0o755)
    for command, _ in commands(job())[:-1]:
        shell.run(command, "2031-01-15")
    shell.run(f'export PATH="{shell.folder}/bin:$PATH"', None)
    shell.run(cron().replace(HOME, str(shell.folder)), "2031-01-15")
    sent = (shell.folder / "mail.txt").read_text()
    assert "-s fairchance: 2 " in sent
    assert "missing.db" in sent


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd")
def test_systemd_takes_the_units(units):
    words = ["systemd-analyze", "verify", "--man=no", *units.glob("lender-job.*")]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
