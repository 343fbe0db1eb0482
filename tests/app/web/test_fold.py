"""The page's fold of events against Python's: the same messages, state and questions at every cut of the corpus."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from ag_ui.core import Event

from runcast.slim import decode, encode
from runcast.slim.folding.conversation import Conversation
from tests import streams
from tests.conftest import missing
from tests.house.tree import ROOT

WEB = ROOT / "app" / "web"
RECORDED = sorted((ROOT / "tests" / "adapters").glob("*/recordings/*.events"))
DRAWN = 60  # random streams of each kind

DRIVER = """
import { createInterface } from "node:readline";
import { Conversation } from "./fold.mjs";
for await (const line of createInterface({ input: process.stdin })) {
  const conversation = new Conversation();
  const moments = JSON.parse(line).map((event) => {
    conversation.feed(event);
    return structuredClone(conversation.moment());
  });
  console.log(JSON.stringify(moments));
}
"""


@pytest.fixture(scope="module")
def fold_js(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page's fold, compiled by itself."""
    npx = shutil.which("npx")
    if npx is None or not (WEB / "node_modules").is_dir():
        missing("the page's fold needs Node and its packages: run make web")
    folder = tmp_path_factory.mktemp("fold")
    command = ["npx", "vite", "build", "--config", "vite.client.config.ts", "--mode", "fold", "--outDir"]
    subprocess.run([*command, str(folder)], cwd=WEB, check=True, capture_output=True, timeout=120)
    (folder / "fold.js").rename(folder / "fold.mjs")
    return folder


def theirs(folder: Path, corpus: Sequence[Sequence[Event]]) -> list[list[dict[str, Any]]]:
    wire = (",".join(encode(event).decode() for event in stream) for stream in corpus)
    lines = "".join(f"[{each}]\n" for each in wire)
    ran = subprocess.run(
        ["node", "--input-type=module", "--eval", DRIVER],
        cwd=folder, input=lines, capture_output=True, check=False, text=True, timeout=300,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return [json.loads(line) for line in ran.stdout.split("\n") if line]


def ours(stream: Sequence[Event]) -> list[dict[str, Any]]:
    conversation, moments = Conversation(), list[dict[str, Any]]()
    for event in stream:
        conversation.feed(event)
        moments.append(
            {
                "messages": [_bare(each) for each in conversation.wire_messages()],
                "state": conversation.state,
                "interrupts": [
                    each.model_dump(mode="json", by_alias=True) for each in conversation.pending_interrupts
                ],
            }
        )
    wire: list[dict[str, Any]] = json.loads(json.dumps(moments))
    return wire


def _bare(message: dict[str, Any]) -> dict[str, Any]:
    """A message without its nulls, which are as good as left out."""
    return {key: value for key, value in message.items() if value is not None}


def compared(folder: Path, corpus: Sequence[Sequence[Event]], names: Sequence[object]) -> None:
    for name, stream, found in zip(names, corpus, theirs(folder, corpus), strict=True):
        for cut, (mine, yours) in enumerate(zip(ours(stream), found, strict=True), 1):
            yours["messages"] = [_bare(each) for each in yours["messages"]]
            assert yours == mine, f"{name}, after {cut} events"


def test_the_recorded_corpus_is_folded_alike_at_every_cut(fold_js: Path):
    corpus = [[decode(line) for line in path.read_bytes().splitlines() if line] for path in RECORDED]
    assert len(corpus) > 200
    compared(fold_js, corpus, [path.stem for path in RECORDED])


@pytest.mark.parametrize("chunks", [False, True], ids=["explicit", "chunks"])
def test_random_streams_are_folded_alike_at_every_cut(fold_js: Path, chunks: bool):
    corpus = [streams.structured(random.Random(seed), chunks=chunks) for seed in range(DRAWN)]
    compared(fold_js, corpus, range(DRAWN))
