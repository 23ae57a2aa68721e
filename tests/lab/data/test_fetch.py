import gzip
import hashlib
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from carpediem.lab.data import DataError, FetchError, fetch, load
from carpediem.lab.data.fetch import DOWNLOADS, Download, download
from lab.data.makers import cifar10_binary, mnist_files, tar_of, tar_with


class Server:
    """A real web server on this machine with the files of `served`."""

    def __init__(self):
        self.served: dict[str, bytes] = {}
        self.short: set[str] = set()  # announced whole and sent without the last byte
        self.requests: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                name = self.path.lstrip("/")
                outer.requests.append(name)
                if name not in outer.served:
                    self.send_error(404)
                    return
                blob = outer.served[name]
                self.send_response(200)
                if not name.startswith("unsized"):
                    self.send_header("Content-Length", str(len(blob)))
                self.end_headers()
                self.wfile.write(blob[:-1] if name in outer.short else blob)

            def log_message(self, *args):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def close(self):
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    running = Server()
    yield running
    running.close()


def sha256(blob: bytes) -> str:
    return hashlib.sha256(blob).hexdigest()


def serve(
    server, monkeypatch, name: str, file: str, blob: bytes, target: str, *, checksum: str | None = None
):
    server.served[file] = blob
    item = Download(f"{server.url}/{file}", checksum or sha256(blob), target)
    monkeypatch.setitem(DOWNLOADS, name, (item,))


def everything_below(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_a_file_arrives_whole_and_its_progress_is_told(server, tmp_path):
    blob = bytes(range(256)) * 3000
    server.served["a.bin"] = blob
    steps = []
    progress = lambda *step: steps.append(step)  # noqa: E731
    download(f"{server.url}/a.bin", tmp_path / "deep" / "a.bin", sha256=sha256(blob), progress=progress)
    assert (tmp_path / "deep" / "a.bin").read_bytes() == blob
    assert steps[-1] == ("a.bin", len(blob), len(blob))
    assert [done for _, done, _ in steps] == sorted({done for _, done, _ in steps})
    assert len(everything_below(tmp_path)) == 1


def test_a_server_may_keep_the_size_to_itself(server, tmp_path):
    server.served["unsized.bin"] = b"abc"
    steps = []
    download(
        f"{server.url}/unsized.bin",
        tmp_path / "a.bin",
        sha256=sha256(b"abc"),
        progress=lambda *step: steps.append(step),
    )
    assert steps == [("a.bin", 3, None)]


@pytest.mark.parametrize("existing", [None, b"older"])
def test_a_wrong_checksum_leaves_everything_as_it_was(server, tmp_path, existing):
    server.served["a.bin"] = b"something else"
    target = tmp_path / "a.bin"
    if existing is not None:
        target.write_bytes(existing)
    with pytest.raises(FetchError, match=r"a\.bin must have sha256 .*, got .*nothing was kept"):
        download(f"{server.url}/a.bin", target, sha256=sha256(b"expected"))
    assert [path.read_bytes() for path in everything_below(tmp_path)] == ([existing] if existing else [])


def test_a_truncated_answer_leaves_nothing(server, tmp_path):
    server.served["a.bin"] = b"x" * 100_000
    server.short.add("a.bin")
    with pytest.raises(FetchError, match=r"a\.bin (announced 100000 bytes and sent 99999|could not be read)"):
        download(f"{server.url}/a.bin", tmp_path / "a.bin", sha256=sha256(server.served["a.bin"]))
    assert everything_below(tmp_path) == []


def test_a_file_that_is_not_there_leaves_nothing(server, tmp_path):
    with pytest.raises(FetchError, match=r"gone\.bin answered 404"):
        download(f"{server.url}/gone.bin", tmp_path / "gone.bin", sha256="0")
    assert everything_below(tmp_path) == []


def test_a_server_that_is_not_there_is_named(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/a.bin"
        with pytest.raises(FetchError, match=r"could not be read .*check the connection"):
            download(url, tmp_path / "a.bin", sha256="0", timeout=5)
    assert everything_below(tmp_path) == []


def test_an_interrupted_download_leaves_nothing(server, tmp_path):
    server.served["a.bin"] = b"x" * 1000

    def interrupt(*step):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download(f"{server.url}/a.bin", tmp_path / "a.bin", sha256="0", progress=interrupt)
    assert everything_below(tmp_path) == []


def test_a_fetched_archive_can_be_loaded(server, tmp_path, monkeypatch):
    archive = tar_of(cifar10_binary(tmp_path / "made"), tmp_path / "cifar-10-binary.tar.gz")
    serve(server, monkeypatch, "cifar10", archive.name, archive.read_bytes(), "cifar-10-batches-bin")
    into = tmp_path / "data"
    assert fetch("cifar10", into) == into / "cifar-10-batches-bin"
    assert len(load("cifar10", into).train_images) == 20
    assert [path.name for path in into.iterdir()] == ["cifar-10-batches-bin"]


def test_fetched_files_can_be_loaded_and_are_not_fetched_twice(server, tmp_path, monkeypatch):
    items = []
    for name, blob in mnist_files().items():
        server.served[f"{name}.gz"] = gzip.compress(blob)
        checksum = sha256(server.served[f"{name}.gz"])
        items.append(Download(f"{server.url}/{name}.gz", checksum, f"MNIST/raw/{name}.gz"))
    monkeypatch.setitem(DOWNLOADS, "mnist", tuple(items))
    assert fetch("mnist", tmp_path) == tmp_path / "MNIST" / "raw"
    assert len(load("mnist", tmp_path).train_images) == 20
    assert len(server.requests) == 4
    (tmp_path / "MNIST" / "raw" / "t10k-labels-idx1-ubyte.gz").unlink()
    fetch("mnist", tmp_path)
    assert server.requests[4:] == ["t10k-labels-idx1-ubyte.gz"]


def test_the_variable_says_where_to(server, tmp_path, monkeypatch):
    archive = tar_with(tmp_path / "x.tar.gz", {"set/a": b"a"})
    serve(server, monkeypatch, "cifar10", "x.tar.gz", archive.read_bytes(), "set")
    monkeypatch.setenv("CARPEDIEM_DATA", str(tmp_path / "named"))
    assert fetch("cifar10") == tmp_path / "named" / "set"


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"set/a": b"a", "../escaped": b"gotcha"}, "unsafe member"),
        ({"other/a": b"a"}, "must hold the folder set"),
    ],
)
def test_a_bad_archive_leaves_nothing_behind(server, tmp_path, monkeypatch, members, message):
    blob = tar_with(tmp_path / "x.tar.gz", members).read_bytes()
    (tmp_path / "x.tar.gz").unlink()
    serve(server, monkeypatch, "cifar10", "x.tar.gz", blob, "set")
    with pytest.raises(DataError, match=message):
        fetch("cifar10", tmp_path / "data")
    assert everything_below(tmp_path) == []


def test_an_archive_with_a_wrong_checksum_is_never_opened(server, tmp_path, monkeypatch):
    serve(server, monkeypatch, "cifar10", "x.tar.gz", b"not an archive", "set", checksum="0" * 64)
    with pytest.raises(FetchError, match="must have sha256"):
        fetch("cifar10", tmp_path)
    assert everything_below(tmp_path) == []


def test_a_set_that_cannot_be_downloaded_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"one of mnist, cifar10, cifar100, .* got 'mit67'"):
        fetch("mit67", tmp_path)


def test_the_published_addresses_are_encrypted_and_the_checksums_complete():
    for item in (item for items in DOWNLOADS.values() for item in items):
        assert item.url.startswith("https://")
        assert len(bytes.fromhex(item.sha256)) == 32
