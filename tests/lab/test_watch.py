"""The report on loopback: what is answered, what is refused, and that it follows the records."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from contextlib import closing

import pytest
from typer.testing import CliRunner

from carpediem.cli import app
from carpediem.lab.report import Watch
from lab.report_makers import unfinish


@pytest.fixture
def watched(study):
    served = Watch([study])
    served.start()
    yield served, study
    served.stop()


def ask(served, path="/", *, host=None, method="GET", **headers):
    with closing(http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)) as connection:
        connection.putrequest(method, path, skip_host=True)
        for name, value in ({"Host": host or f"127.0.0.1:{served.port}"} | headers).items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer, answer.read()


def test_watch_serves_the_page_and_its_data(watched):
    served, study = watched
    answer, body = ask(served)
    assert answer.status == 200
    assert b"data-live" in body
    answer, body = ask(served, "/data.json")
    assert json.loads(body)["title"] == study.name
    assert served.address == f"http://127.0.0.1:{served.port}/"


def test_the_tag_changes_when_a_record_does_and_not_otherwise(watched):
    served, study = watched
    tag = ask(served, "/data.json")[0].headers["ETag"]
    assert ask(served, "/data.json", **{"If-None-Match": tag})[0].status == 304
    (study / "checkpoint.tmp").write_text("not a record")
    assert ask(served, "/data.json", **{"If-None-Match": tag})[0].status == 304
    unfinish(study, "online", 5)
    answer, body = ask(served, "/data.json", **{"If-None-Match": tag})
    assert answer.status == 200
    assert "1 not finished" in json.loads(body)["summary"]


@pytest.mark.parametrize(
    "path",
    ["/study.json", "/runs", "/../study.json", "/..%2f..%2fetc/passwd", "//etc/passwd", "/data.json/", "*"],
)
def test_no_other_address_is_answered(watched, path):
    answer, body = ask(watched[0], path)
    assert answer.status == 404
    assert b"compare" not in body


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1",
        "127.0.0.1:1",
        "localhost.evil:{port}",
        "10.0.0.1:{port}",
    ],
)
def test_a_foreign_host_is_refused(watched, host):
    answer, body = ask(watched[0], host=host.format(port=watched[0].port))
    assert answer.status == 421
    assert b"<html" not in body


@pytest.mark.parametrize("host", ["localhost:{port}", "LOCALHOST:{port}", "127.0.0.1:{port}"])
def test_its_own_names_are_answered(watched, host):
    assert ask(watched[0], host=host.format(port=watched[0].port))[0].status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_can_be_written(watched, method):
    assert ask(watched[0], method=method)[0].status == 501


def test_damaged_records_are_told_and_watching_goes_on(watched):
    served, study = watched
    (file, *_) = study.glob("runs/*/epochs.jsonl")
    good = file.read_text()
    file.write_text("{\n" + good)
    answer, body = ask(served, "/data.json")
    assert answer.status == 200
    assert "damaged" in json.loads(body)["damage"][0]
    file.write_text(good)
    assert json.loads(ask(served, "/data.json")[1])["damage"] == []


def test_watch_may_begin_before_the_first_run(tmp_path):
    (tmp_path / "runs").mkdir()
    served = Watch([tmp_path])
    served.start()
    try:
        assert json.loads(ask(served, "/data.json")[1])["summary"] == "No run has begun yet."
    finally:
        served.stop()


def test_watch_listens_on_loopback_and_ends_cleanly_on_ctrl_c(study):
    with subprocess.Popen(
        [sys.executable, "-m", "carpediem", "watch", str(study), "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    ) as process:
        said = process.stdout.readline()
        port = int(re.search(r"http://127\.0\.0\.1:(\d+)/", said)[1])
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as connection:
            connection.request("GET", "/")
            answer = connection.getresponse()
            assert (answer.status, answer.read()[:15]) == (200, b"<!doctype html>")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
        assert (process.returncode, errors) == (0, "")


def test_a_port_in_use_gets_one_sentence(watched):
    done = CliRunner().invoke(app, ["watch", str(watched[1]), "--port", str(watched[0].port)])
    assert done.exit_code == 2
    assert re.fullmatch(
        r"error: cannot listen on 127\.0\.0\.1 port \d+: [^\n]+; choose another --host or --port\n",
        done.stderr,
    )
