"""One target under atheris, in a process of its own: `python -m tests.fuzz.guided TARGET FOLDER [options of libFuzzer]`.

libFuzzer ends the process at the first crash; here a breakage is written down in `FOLDER/broke` and the search goes on.
Only this file knows atheris, which is optional: it has wheels for some platforms only.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import atheris

from tests.fuzz.home import Breakage


def main() -> None:
    """Run until libFuzzer is told to stop."""
    name, folder = sys.argv[1], Path(sys.argv[2])
    with atheris.instrument_imports(include=["runcast"]):
        from tests.fuzz.corpora import target

        found = target(name)
    broken, seen = Breakage(), folder / "broke"
    seen.mkdir(exist_ok=True)

    def one(data: bytes) -> None:
        try:
            found.check(data)
        except Exception as error:
            if broken.note(error, data):
                print(f"broke: {error!r:.300}", file=sys.stderr, flush=True)
            for place, least in broken.inputs.items():
                stem = hashlib.sha256(place.encode()).hexdigest()[:12]
                (seen / stem).write_bytes(least)
                (seen / f"{stem}.txt").write_text(
                    f"{place}\n{broken.traces[place]}", encoding="utf-8", errors="replace"
                )

    atheris.Setup([sys.argv[0], *sys.argv[3:], str(folder / "corpus")], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
