"""`runcast say`: one more message for a thread of a log that other processes serve.

Knows the log; the processes that serve it run the agent.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from runcast.app.cli.common import guarded, opened, thread_ids
from runcast.app.cli.printing import finish
from runcast.app.cli.printing import say as printed
from runcast.app.errors import BadRequest

if TYPE_CHECKING:
    from runcast.app.nodes.handover import OnBusy
    from runcast.app.runs.handle import RunHandle


@guarded
def say(
    thread: Annotated[str, typer.Argument(help="The thread's id.", autocompletion=thread_ids)],
    message: Annotated[str, typer.Argument(help="The message.")],
    agent: Annotated[str | None, typer.Option(help="The agent; by default the thread's.")] = None,
    url: Annotated[
        str | None, typer.Option(help="The log's store; by default sqlite:///runcast.db, here.")
    ] = None,
    queue: Annotated[bool, typer.Option("--queue", help="While a run is active: wait for its end.")] = False,
    steer: Annotated[bool, typer.Option("--steer", help="Hand it to the agent while it works.")] = False,
    interrupt: Annotated[bool, typer.Option("--interrupt", help="Stop the active run, and follow.")] = False,
    rollback: Annotated[
        bool, typer.Option("--rollback", help="Take the active run back, and follow.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
) -> None:
    """Send a message to a thread; a process that serves this log runs the agent."""
    from runcast.app.cli.settings import Settings
    from runcast.app.host.cast import Cast

    chosen: dict[OnBusy, bool] = {
        "queue": queue,
        "steer": steer,
        "interrupt": interrupt,
        "rollback": rollback,
    }
    policies: list[OnBusy] = [name for name, wanted in chosen.items() if wanted]
    if len(policies) > 1:
        raise BadRequest(f"choose one of {', '.join(f'--{each}' for each in policies)}")
    store = url or Settings().url

    async def work() -> RunHandle:
        async with opened(store):
            pass  # a store that does not answer is one error here
        async with Cast.open(store, work=False, watch=False) as cast:
            return await cast.say(thread, message, agent=agent, on_busy=policies[0] if policies else None)

    run = asyncio.run(work())
    if json:
        finish({"thread_id": run.thread_id, "run_id": run.run_id, "status": run.accepted})
    else:
        printed(f"{run.accepted}: run {run.run_id}")
