"""Real servers for tests: started from the installed programs on a free port of the loopback, stopped by their pid.

Knows how to find and start PostgreSQL and Redis; asks no service manager, touches no server that was there before.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from tests.conftest import missing

POSTGRES = "no PostgreSQL here: apt-get install postgresql (its programs are enough, no service is used)"
REDIS = "no Redis here: apt-get install redis-server (the program is enough, no service is used)"
PATIENCE = 30.0


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a private PostgreSQL for the whole session; take a schema of it with `own_schema`."""
    if postgres_programs() is None:
        missing(POSTGRES)
    with postgres() as url:
        yield url


@pytest.fixture(scope="session")
def redis_server() -> Iterator[str]:
    """The URL of a private Redis for the whole session."""
    if redis_program() is None:
        missing(REDIS)
    with redis() as url:
        yield url


def own_schema(url: str) -> str:
    """The same database, but with an empty schema of its own: as good as a new database, and a hundred times faster."""
    name = f"test_{uuid4().hex}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
    return f"{url}?options=-csearch_path%3D{name}"


def postgres_programs() -> Path | None:
    """The folder with `initdb` and `postgres`, the newest one installed."""
    found, server = shutil.which("initdb"), shutil.which("postgres")
    if found and server:
        return Path(found).parent
    kept = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    return next((path for path in reversed(kept) if (path / "postgres").exists()), None)


def redis_program() -> str | None:
    """The path of `redis-server`."""
    return shutil.which("redis-server")


def free_port() -> int:
    """A port of the loopback that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def postgres() -> Iterator[str]:
    """A private PostgreSQL while the block runs; gives its URL. Data is thrown away, so nothing waits for a disk."""
    with cluster() as made, made.running():
        yield made.url


@dataclass(frozen=True, slots=True)
class Cluster:
    """A PostgreSQL that can be started and stopped over the same data and on the same port."""

    folder: Path
    user: str | None
    command: list[str]
    url: str

    @contextmanager
    def running(self, stop: signal.Signals = signal.SIGINT) -> Iterator[subprocess.Popen[bytes]]:
        """Run it during the block. SIGINT ends it fast and cleanly; SIGQUIT at once, as a crash would."""
        with _running(self.command, self.folder, self.user, lambda: _lets_in(self.url), stop) as process:
            yield process


@contextmanager
def cluster() -> Iterator[Cluster]:
    """A new PostgreSQL that is not running yet; it is thrown away at the end."""
    programs = postgres_programs()
    if programs is None:
        raise FileNotFoundError(POSTGRES)
    user = "postgres" if os.geteuid() == 0 else None  # PostgreSQL refuses to run as root
    with _folder(user) as folder:
        data, port = folder / "data", free_port()
        made = [
            str(programs / "initdb"),
            "-D",
            str(data),
            "-A",
            "trust",
            "-U",
            "runcast",
            "-E",
            "UTF8",
            "--no-sync",
        ]
        subprocess.run(made, user=user, check=True, stdout=subprocess.DEVNULL, cwd=folder)
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(port),
            "unix_socket_directories": str(folder),
            "fsync": "off",
            "max_connections": "200",
        }
        command = [str(programs / "postgres"), "-D", str(data)]
        command += [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        yield Cluster(folder, user, command, f"postgresql://runcast@127.0.0.1:{port}/postgres")


@contextmanager
def redis() -> Iterator[str]:
    """A private Redis while the block runs; gives its URL."""
    program = redis_program()
    if program is None:
        raise FileNotFoundError(REDIS)
    with _folder(None) as folder:
        port = free_port()
        command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
        with _running(command, folder, None, lambda: _answers(port), signal.SIGTERM):
            yield f"redis://127.0.0.1:{port}/0"


@contextmanager
def _running(
    command: list[str], folder: Path, user: str | None, ready: Callable[[], bool], stop: signal.Signals
) -> Iterator[subprocess.Popen[bytes]]:
    # Tests that are killed tidy nothing up: then Linux stops the server, where it can be asked to.
    mortal = [setpriv, f"--pdeathsig={stop.name}"] if (setpriv := shutil.which("setpriv")) else []
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            [*mortal, *command],
            cwd=folder,
            user=user,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait(process, ready, folder / "output")
        yield process
    finally:
        process.send_signal(stop)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(process: subprocess.Popen[bytes], ready: Callable[[], bool], output: Path) -> None:
    patience = time.monotonic() + PATIENCE
    while not ready():
        if process.poll() is not None or time.monotonic() > patience:
            raise RuntimeError(f"{process.args} did not start:\n{output.read_text(errors='replace')}")
        time.sleep(0.02)


def _lets_in(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def _folder(user: str | None) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="runcast-"))
    try:
        if user is not None:
            owner = pwd.getpwnam(user)
            os.chown(folder, owner.pw_uid, owner.pw_gid)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
