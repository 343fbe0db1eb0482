"""`make fuzz`: every target for its share of ten minutes, or `--seconds 60 --only wire,hub`.

With atheris (`make fuzz` fetches it where it has a wheel) the search is guided by counters in runcast's own bytecode;
without, by the home loop. What reached something new is kept, what broke something is written to its corpus and told;
then the exit code is 1. One process at a time.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from time import monotonic

from tests.fuzz import corpora
from tests.fuzz.home import explore, fewest

SLOWEST = 30  # seconds that one input may take


@dataclass
class Found:
    """What came of one target."""

    engine: str
    tried: int
    inputs: list[bytes]
    broken: dict[str, bytes]  # by where
    traces: dict[str, str] = field(default_factory=dict[str, str])


def guided(target: corpora.Target, seconds: int) -> Found:
    """With atheris, in a process of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "corpus").mkdir()
        for data in target.first():
            (folder / "corpus" / sha256(data).hexdigest()[:20]).write_bytes(data)
        words = folder / "words"
        words.write_text("".join(f'"{_escaped(token)}"\n' for token in target.tokens))
        limits = [f"-max_total_time={seconds}", f"-timeout={SLOWEST}", "-rss_limit_mb=2048", "-max_len=4096"]
        places = [f"-artifact_prefix={folder}/", f"-dict={words}", "-print_final_stats=1"]
        ran = subprocess.run(
            [sys.executable, "-m", "tests.fuzz.guided", target.name, name, *limits, *places],
            capture_output=True,
            check=False,
        )
        said = ran.stderr.decode("utf-8", "replace")
        told = re.search(r"stat::number_of_executed_units: (\d+)", said) or re.search(r"#(\d+)\s+\w+", said)
        inputs = [path.read_bytes() for path in (folder / "corpus").iterdir()]
        broken = {path.stem: path.read_bytes() for path in (folder / "broke").glob("*") if path.suffix == ""}
        traces = {path.stem: path.read_text() for path in (folder / "broke").glob("*.txt")}
        for path in folder.iterdir():  # too slow, too large, or the end of the process
            if path.is_file() and path != words:
                broken[path.name], traces[path.name] = path.read_bytes(), said[-2_000:]
        if ran.returncode and not broken:
            broken["the engine"], traces["the engine"] = b"", said[-4_000:]
        return Found("atheris", int(told[1]) if told else 0, inputs, broken, traces)


def by_hand(target: corpora.Target, seconds: int) -> Found:
    """With the home loop, here; a seed of the clock's."""
    tried, inputs, broken = explore(target, seconds, seed=int(monotonic() * 1000))
    return Found("home", tried, inputs, broken.inputs, broken.traces)


def _escaped(token: bytes) -> str:
    return "".join(
        chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\x{byte:02x}" for byte in token
    )


def run(name: str, seconds: int, *, home: bool) -> int:
    """Search one target, keep what is worth it, and say it in a line; answers how much broke."""
    target = corpora.target(name)
    fewest(
        target.check, target.inputs()
    )  # fills the caches, or the first count has steps that no later one has
    _, before = fewest(target.check, target.inputs())
    found = by_hand(target, seconds) if home else guided(target, seconds)
    kept, after = fewest(target.check, [*target.inputs(), *found.inputs])
    corpora.write(name, "kept", kept)
    print(
        f"{name:10} {found.engine:8} {found.tried:>10,} tried {found.tried // max(1, seconds):>7,}/s  "
        f"steps {before:>5} -> {after:<5}  kept {len(kept):>4} ({sum(map(len, kept)):>6,} bytes)  "
        f"broke {len(found.broken)}",
        flush=True,
    )
    if found.broken:
        corpora.write(name, "broke", [*corpora.read(name, "broke"), *found.broken.values()])
        for place, data in found.broken.items():
            print(f"\n--- {name} broke: {data[:200]!r}\n{found.traces.get(place, place)}", flush=True)
    return len(found.broken)


def main() -> int:
    """Read the arguments and search."""
    parser = argparse.ArgumentParser(prog="make fuzz", description="Search for inputs that break a promise.")
    parser.add_argument("--seconds", type=int, default=600, help="in all (600)")
    parser.add_argument("--only", default="", help=f"some of {','.join(corpora.names())}")
    parser.add_argument("--home", action="store_true", help="the home loop, although atheris is there")
    given = parser.parse_args()
    chosen = [each for each in given.only.split(",") if each] or corpora.names()
    if unknown := set(chosen) - set(corpora.names()):
        parser.error(f"no target {', '.join(sorted(unknown))}; there are: {', '.join(corpora.names())}")
    home = given.home or importlib.util.find_spec("atheris") is None
    share = max(1, given.seconds // len(chosen))
    return 1 if sum([run(name, share, home=home) for name in chosen]) else 0


if __name__ == "__main__":
    sys.exit(main())
