"""The page's reader of docs/engines.md, over `nats.ws` and a real nats-server: from a sequence, then live."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from pathlib import Path

import pytest

from runcast.broadcast import open_publisher
from tests.broadcast.envelopes.test_rollup import chunk
from tests.broadcast.publishers.test_nats import nats_server, ready
from tests.conftest import missing
from tests.servers import free_port

ROOT = Path(__file__).parents[2]
CLIENTS = ROOT / "tests" / "e2e" / "js-pusher"
CHANNEL = "private-agent.t"

# A page has a WebSocket; Node 20 has the one of `ws`.
DRIVER = """
import ws from "ws";
globalThis.WebSocket = ws;
%s
const [servers, until] = [process.argv[2], Number(process.argv[3])];
const login = { user: "app", pass: "s/e+c" };
let place = 0;
const seen = [];
const show = (envelope, seq) => {
  place = seq;
  seen.push(envelope.seq);
  console.log(envelope.seq);
  return envelope.seq < 3;
};
const reader = await follow(servers, "t", show, login);
const rest = (envelope) => {
  console.log(envelope.seq);
  return envelope.seq < until;
};
await follow(servers, "t", rest, { from: place + 1, reader, ...login });
"""


def reader_of_the_document() -> str:
    text = (ROOT / "docs" / "engines.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```js\n(import \{ DeliverPolicy.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return code.replace('"/runcast.js"', json.dumps((ROOT / "app/runcast/app/page/runcast.js").as_uri()))


@pytest.mark.oracle
async def test_a_page_reads_jetstream_from_a_sequence_and_then_live(tmp_path: Path) -> None:
    if shutil.which("node") is None or not (CLIENTS / "node_modules" / "nats.ws").is_dir():
        missing("no nats.ws here: make js")
    web = free_port()
    config = tmp_path / "nats.conf"
    config.write_text(f"websocket {{ host: 127.0.0.1, port: {web}, no_tls: true }}\n")
    with nats_server(tmp_path / "data", "-js", "-c", str(config)) as port:
        await ready(port)
        target = open_publisher(f"nats://app:s%2Fe%2Bc@127.0.0.1:{port}")
        await target.publish("private-agent.other", [chunk(1, "other")])
        await target.publish(CHANNEL, [chunk(n, "a") for n in range(1, 6)])
        script = tmp_path / "page.mjs"
        script.write_text(DRIVER % reader_of_the_document())
        node = await asyncio.create_subprocess_exec(
            "node", "--input-type=module", "-", f"ws://127.0.0.1:{web}", "8",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, cwd=CLIENTS,
        )  # fmt: skip
        assert node.stdin is not None
        node.stdin.write(script.read_bytes())
        node.stdin.close()
        assert node.stdout is not None
        got: list[int] = []
        async with asyncio.timeout(30):
            while line := await node.stdout.readline():
                got.append(int(line))
                if got[-1] == 5:
                    await target.publish(CHANNEL, [chunk(n, "live") for n in (5, 6, 7, 8)])
            _, errors = await node.communicate()
        assert (node.returncode, got) == (0, [1, 2, 3, 4, 5, 6, 7, 8]), errors.decode()
        await target.aclose()
