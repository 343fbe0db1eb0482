"""The channel of a thread is the same in Python, in `runcast.js` and in the PHP of docs/laravel.md, which runs."""

# apt: php php-cli

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from runcast.broadcast import Position, channel_for, sign_channel
from runcast.broadcast.hub.signatures import position_data
from tests.conftest import missing

ROOT = Path(__file__).parents[3]
PHP = shutil.which("php")  # where there is none, the blocks are held by eye
IDS = [
    "t1",
    "a.b",
    "a b",
    "user:42",
    "ż/漢🙂",
    "a=2Eb",
    "=b.YQ",
    "x" * 186,
    "-_@",
    "a,b;c",
    "%41",
    "\n\t\"'$\\",
    "ü" * 31,
]
TOO_LONG = ["x" * 187, "ü" * 32]


def ran(*command: str, text: str) -> list[str]:
    done = subprocess.run(command, input=text, capture_output=True, check=False, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    answer: list[str] = json.loads(done.stdout)
    return answer


def test_javascript_names_the_same_channels() -> None:
    if shutil.which("node") is None:
        missing("no node here")
    script = f"""
        import {{ channelFor }} from "file://{ROOT}/app/runcast/app/page/runcast.js";
        const ids = {json.dumps(IDS)}, long = {json.dumps(TOO_LONG)};
        const refused = long.map((id) => {{ try {{ return channelFor(id); }} catch (error) {{ return error.name; }} }});
        console.log(JSON.stringify([...ids.map(channelFor), ...refused]));
    """
    names = ran("node", "--input-type=module", "-", text=script)
    assert names == [channel_for(each, prefix="agent.") for each in IDS] + ["RangeError"] * 2


def blocks() -> list[str]:
    """The PHP of docs/laravel.md."""
    document = (ROOT / "docs" / "laravel.md").read_text(encoding="utf-8")
    return re.findall(r"^```php\n(.*?)^```$", document, re.DOTALL | re.MULTILINE)


def php(name: str, code: str) -> list[str]:
    """What a class of the document answers to a line of PHP; nothing where there is no PHP."""
    (block,) = [each for each in blocks() if f"class {name}" in each]
    source = re.sub(r"^namespace .*\n", "", block, flags=re.MULTILINE)
    return ran("php", text=f"{source}\necho json_encode({code});\n")


def test_php_names_the_same_channels_and_reads_them_back() -> None:
    if PHP is None:
        return
    ids = f"json_decode(<<<'JSON'\n{json.dumps([*IDS, *TOO_LONG])}\nJSON, true)"
    named = [channel_for(each) for each in [*IDS, *TOO_LONG]]
    answer = php("AgentChannel", f"array_map(fn ($id) => AgentChannel::name($id), {ids})")
    assert [f"private-{name}" for name in answer] == named
    names = json.dumps(answer[: len(IDS)])
    back = f"array_map(fn ($name) => AgentChannel::threadId(substr($name, 6)), json_decode('{names}'))"
    assert php("AgentChannel", back) == IDS


def test_php_signs_as_the_hub_does() -> None:
    if PHP is None:
        return
    position = "['epoch' => 'k3f9x2', 'offset' => 41]"
    call = f"AgentProof::sign('1234.1234', 'private-agent.s1', {position}, 'key', 'secret')"
    answer: Any = php("AgentProof", call)
    data = position_data(Position("k3f9x2", 41))
    signed = sign_channel("1234.1234", "private-agent.s1", key="key", secret="secret", channel_data=data)
    assert answer == {"auth": signed, "channel_data": data}
    plain: Any = php("AgentProof", "AgentProof::sign('1.1', 'private-agent.s1', null, 'key', 'secret')")
    assert plain == {"auth": sign_channel("1.1", "private-agent.s1", key="key", secret="secret")}


@pytest.mark.parametrize("block", blocks(), ids=lambda block: re.sub(r"\W+", "-", block)[5:45])
def test_a_php_block_is_a_whole_file_and_valid(block: str) -> None:
    assert block.startswith("<?php\n")
    if PHP is None:
        return
    done = subprocess.run([PHP, "-l"], input=block, capture_output=True, check=False, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_documents_settings_are_those_that_the_tests_send() -> None:
    config = next(each for each in blocks() if "'connections' =>" in each)
    assert "'path' => '/live/'" in config  # with its slash: see tests/e2e/test_hub_laravel.py
    channels = next(each for each in blocks() if "Broadcast::channel" in each)
    assert "Broadcast::channel('agent.{segment}'" in channels
    routes = [each for each in blocks() if "Route::post" in each]
    assert all("Route::post('/live" not in each for each in routes)  # the hub's mount would shadow it
