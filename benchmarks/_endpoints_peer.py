"""A server of the counting graph over HTTP, in a process of its own: runcast's, or `ag-ui-langgraph`'s FastAPI endpoint.

Run as `python -m benchmarks._endpoints_peer runcast|ag-ui-langgraph TOKENS STORE`; prints its port.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import warnings
from typing import Any

import uvicorn

from benchmarks._langgraph_load import talking
from runcast.app.serve import listen


def runcast(tokens: int, store: str) -> Any:
    from runcast.adapters.langgraph import LangGraphAdapter
    from runcast.app import Cast

    cast = Cast.open(store, agents=[LangGraphAdapter(talking(tokens))])
    return cast.asgi(authorize=lambda user, thread_id: True, page=False)


def ag_ui_langgraph(tokens: int, store: str) -> Any:
    from ag_ui_langgraph import LangGraphAgent, add_langgraph_fastapi_endpoint
    from fastapi import FastAPI

    app = FastAPI()
    agent = LangGraphAgent(name="peer", graph=talking(tokens), emit_raw_events=False)
    add_langgraph_fastapi_endpoint(app, agent, "/")
    return app


async def main(kind: str, tokens: int, store: str) -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    app = {"runcast": runcast, "ag-ui-langgraph": ag_ui_langgraph}[kind](tokens, store)
    listening = listen("127.0.0.1", 0)
    print(listening.getsockname()[1], flush=True)
    gc.collect()
    gc.freeze()  # as `runcast serve` does; the peer gets it too
    await uvicorn.Server(uvicorn.Config(app, log_level="critical")).serve([listening])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
