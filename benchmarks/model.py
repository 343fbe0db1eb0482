"""What a load takes, on paper: from measured figures to cores, databases, messages, bytes, and the engine to use.

`model(figures, load)` is arithmetic over what `docs/figures.json` holds; it measures nothing and reads no clock.
`python -m benchmarks.model` prints its table, `--active N --watchers M` another load's. What it assumes is a field of
`Load` or a constant here; what it cannot know (your graph, your network, your disks) is said in `docs/scale.md`.

A run is *active* from its start to its end, and says 80 tokens a second all the time: a bound, not an average. Every
watcher watches an active run, and watchers are spread evenly over runs. A web node hears the channels that it watches, so
what it hears depends on how watchers reach it: by thread, so that all of a thread are on one node, or anywhere. Everything
is planned at `UTILISATION`, where `benchmarks.queueing` still finds the queue short.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

UTILISATION = 0.6  # of a core, a database or a Redis: beyond, waiting grows faster than load
WEB_MEMORY = 2 * 2**30  # bytes of a web node for its connections
WEB_CONNECTIONS = 10_000  # `HubLimits.connections`
DATABASE_CORES = 16
DAY = 86_400
KB, GB = 1e3, 1e9


@dataclass(frozen=True, slots=True)
class Figures:
    """What was measured, by the keys of the rows. Times are microseconds of a processor unless they say otherwise."""

    graph_us: float  # an event: the graph itself, which runs whether anybody is told or not
    adapt_us: float
    log_us: float
    redact_us: float
    show_us: float  # mapper, roll-up, hub, snapshots, compaction
    run_ms: float  # a run of one token, whole
    held_bytes: float  # what a process keeps of an event while its run goes on
    events_s: float  # of an active run
    frames_s: float
    wire_kb_s: float  # to one watcher
    deflated_kb_s: float
    deliveries_s: float  # frames a second of one core
    connection_kib: float
    kept_bytes: float  # an event after compaction
    kept_bytes_peer: float  # an event as JSON
    snapshot_bytes: float
    pg_batches: float  # a second, measured with the client on the same machine
    pg_batch_client: float
    pg_event_client: float
    pg_batch_server: float
    pg_event_server: float
    pg_batch_wal: float  # bytes
    pg_event_wal: float
    pg_event_bytes: float  # on disk, with its index
    redis_publish_us: float
    redis_server_us: float
    redis_deliver_us: float
    redis_hear_us: float
    http_publish_us: float
    http_deliveries_s_peer: float  # what soketi delivered


@dataclass(frozen=True, slots=True)
class Load:
    """What is asked for."""

    active: int  # runs at the same time
    watchers: int
    seconds: float = 30.0  # a run
    flush_ms: float = 20.0  # `RunLog(flush_ms=…)`: how long an event may wait for its batch


@dataclass(frozen=True, slots=True)
class Plan:
    """What it takes. Cores are whole ones at `UTILISATION`, disk and traffic are what flows."""

    load: Load
    starts_s: float
    events_s: float
    graph_cores: float  # the user's own work
    worker_cores: float  # runcast's part of the workers
    batches_s: float
    database_cores: float
    wal_mb_s: float
    disk_gb_day: float  # raw events, before they are pruned
    kept_gb_day: float  # what stays of them
    redis_in_s: float
    redis_out_s: float
    redis_cores: float
    redises: int  # each runs its commands on one core
    web_nodes: int  # of one core each, the watchers of a thread on one node
    bound: str  # what bounds a web node
    web_nodes_anywhere: int  # the same, watchers on any node
    deliveries_s: float
    egress_gbit_s: float
    deflated_gbit_s: float
    store: str
    bus: str
    sockets: str


def figures_of(rows: Iterable[Mapping[str, Any]]) -> Figures:
    """The figures among the rows of a run; raises when one is missing."""
    found: dict[str, float] = {}
    for row in rows:
        key = row.get("key")
        if key is not None:
            found[key] = float(row["ours"])
            if row.get("peer") is not None:
                found[f"{key}_peer"] = float(row["peer"])
    wanted = [field.name for field in fields(Figures)]
    missing = [name for name in wanted if name not in found]
    if missing:
        raise LookupError(
            f"the figures lack {', '.join(missing)}: say `make bench`, with PostgreSQL and Redis installed"
        )
    return Figures(**{name: found[name] for name in wanted})


def model(figures: Figures, load: Load) -> Plan:
    """What a load takes of each part, and which engines that asks for."""
    events, frames = load.active * figures.events_s, load.active * figures.frames_s
    starts, batches = load.active / load.seconds, batches_s(figures, load)
    deliveries = load.watchers * figures.frames_s
    sending = deliveries / figures.deliveries_s  # cores, all of them busy
    hearing = frames * figures.redis_hear_us / 1e6  # cores, when every envelope is heard once
    # What all of it takes in one process, with SQLite: the one form that needs no engine.
    alone = (events * (figures.graph_us + own_us(figures)) + starts * figures.run_ms * 1e3) / 1e6 + sending
    single = alone <= UTILISATION
    nodes, bound = (0, "") if single else web_nodes(figures, load, sending + hearing)
    anywhere = 0 if single else nodes_anywhere(load, sending, hearing, nodes)
    redis = 0 if single else frames * (figures.redis_server_us + figures.redis_deliver_us) / 1e6 / UTILISATION
    publishing = frames * figures.redis_publish_us
    writing = batches * figures.pg_batch_client + events * figures.pg_event_client
    work = events * (own_us(figures) - (0 if single else figures.log_us)) + starts * figures.run_ms * 1e3
    own = work + (0 if single else events * figures.log_us + writing + publishing)
    return Plan(
        load=load,
        starts_s=starts,
        events_s=events,
        graph_cores=events * figures.graph_us / 1e6 / UTILISATION,
        worker_cores=own / 1e6 / UTILISATION,
        batches_s=batches,
        database_cores=0 if single else (batches * figures.pg_batch_server + events * figures.pg_event_server) / 1e6 / UTILISATION,
        wal_mb_s=0 if single else (batches * figures.pg_batch_wal + events * figures.pg_event_wal) / 1e6,
        disk_gb_day=events * DAY * (figures.kept_bytes_peer if single else figures.pg_event_bytes) / GB,
        kept_gb_day=(events * figures.kept_bytes + starts * figures.snapshot_bytes) * DAY / GB,
        redis_in_s=0 if single else frames,
        redis_out_s=0 if single else frames,
        redis_cores=redis,
        redises=math.ceil(redis),
        web_nodes=nodes,
        bound=bound,
        web_nodes_anywhere=anywhere,
        deliveries_s=deliveries,
        egress_gbit_s=load.watchers * figures.wire_kb_s * KB * 8 / 1e9,
        deflated_gbit_s=load.watchers * figures.deflated_kb_s * KB * 8 / 1e9,
        **engines(single, math.ceil(redis), (batches * figures.pg_batch_server + events * figures.pg_event_server) / 1e6),
    )  # fmt: skip


def own_us(figures: Figures) -> float:
    """What runcast adds to an event in a worker."""
    return figures.adapt_us + figures.log_us + figures.redact_us + figures.show_us


def batches_s(figures: Figures, load: Load) -> float:
    """A run writes when its first unwritten event is `flush_ms` old, and the next batch opens with the next event."""
    return load.active / (load.flush_ms / 1e3 + 1 / figures.events_s)


def web_nodes(figures: Figures, load: Load, work: float) -> tuple[int, str]:
    """Nodes of one core each, and what they run out of first. Every thread's watchers are on one of them."""
    by = {
        "processor": math.ceil(work / UTILISATION),
        "connections": math.ceil(load.watchers / WEB_CONNECTIONS),
        "memory": math.ceil(load.watchers * figures.connection_kib * 1024 / WEB_MEMORY),
    }
    bound = max(by, key=lambda each: by[each])
    return max(by[bound], 2), bound  # two, or one that dies takes the page along


def nodes_anywhere(load: Load, sending: float, hearing: float, least: int) -> int:
    """Nodes when watchers come to any of them: an envelope is heard by every node that a watcher of its thread is on."""
    nodes = least
    while True:
        copies = nodes * (1 - (1 - 1 / nodes) ** (load.watchers / load.active))
        needed = math.ceil((sending + hearing * copies) / UTILISATION)
        if needed <= nodes:
            return nodes
        nodes = needed


def engines(single: bool, redises: int, database: float) -> dict[str, str]:
    """Which engine carries what."""
    if single:
        return {"store": "SQLite", "bus": "none: one process", "sockets": "own hub"}
    servers = max(1, math.ceil(database / UTILISATION / DATABASE_CORES))
    divided = "{} x {}, threads divided by id"
    return {
        "store": "PostgreSQL" if servers == 1 else divided.format("PostgreSQL", servers),
        "bus": "Redis" if redises <= 1 else divided.format("Redis", redises),
        "sockets": "own hub on every web node",
    }


# ------------------------------------------------------------------------ text

LOADS = (
    Load(1, 10),
    Load(100, 1_000),
    Load(100, 100_000),
    Load(10_000, 20_000, flush_ms=200),
    Load(10_000, 1_000_000, flush_ms=200),
)


def late_key(load: Load, percent: int) -> str:
    """The key of the measured latency of a load, in `benchmarks.scale`."""
    return f"late_{load.active}_{load.watchers}_p{percent}"


def sizes_table(figures: Figures, late: Mapping[str, float], loads: Sequence[Load] = LOADS) -> str:
    """One row a size, in Markdown: which engines, what they cost, and how late an envelope was measured to be."""
    heads = ["runs", "watchers", "store", "between the nodes", "worker cores", "PostgreSQL cores", "Redis cores", "web nodes", "p50", "p99"]  # fmt: skip
    lines = [_line(heads[0], heads[1:]), "|---:|---:|---|---|" + "---:|" * 6]
    for load in loads:
        plan = model(figures, load)
        costs = (plan.worker_cores, plan.database_cores, plan.redis_cores, plan.web_nodes)
        found = (late.get(late_key(load, percent)) for percent in (50, 99))
        measured = ["not measured" if each is None else f"{each:.3g} ms" for each in found]
        lines.append(
            _line(
                f"{load.active:,}",
                [f"{load.watchers:,}", plan.store, plan.bus, *map(_number, costs), *measured],
            )
        )
    return "\n".join(lines)


def _number(value: float) -> str:
    if value == 0:
        return "-"
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}" if value >= 1 else f"{value:.2g}"


def plan_table(figures: Figures, loads: Sequence[Load] = LOADS) -> str:
    """The plans beside each other, in Markdown."""
    plans = [model(figures, load) for load in loads]
    numbers: dict[str, list[float]] = {
        "runs started a second": [plan.starts_s for plan in plans],
        "events a second": [plan.events_s for plan in plans],
        "cores for the graphs themselves (a fake model's)": [plan.graph_cores for plan in plans],
        "cores for runcast in the workers": [plan.worker_cores for plan in plans],
        "batches written a second": [plan.batches_s for plan in plans],
        "PostgreSQL: cores": [plan.database_cores for plan in plans],
        "PostgreSQL: write-ahead log, MB/s": [plan.wal_mb_s for plan in plans],
        "raw events on disk, GB a day": [plan.disk_gb_day for plan in plans],
        "of these kept after pruning, GB a day": [plan.kept_gb_day for plan in plans],
        "Redis: messages in, a second": [plan.redis_in_s for plan in plans],
        "Redis: messages out, a second": [plan.redis_out_s for plan in plans],
        "Redis: cores": [plan.redis_cores for plan in plans],
        "web nodes of one core, watchers routed by thread": [plan.web_nodes for plan in plans],
        "web nodes of one core, watchers anywhere": [plan.web_nodes_anywhere for plan in plans],
        "frames delivered a second": [plan.deliveries_s for plan in plans],
        "egress, Gbit/s": [plan.egress_gbit_s for plan in plans],
        "egress deflated, Gbit/s": [plan.deflated_gbit_s for plan in plans],
    }
    words: dict[str, list[str]] = {
        "web nodes run out of": [plan.bound or "-" for plan in plans],
        "connections a web node": [_number(plan.load.watchers / plan.web_nodes) if plan.web_nodes else "-" for plan in plans],
        "flush_ms of the log": [_number(plan.load.flush_ms) for plan in plans],
        "store": [plan.store for plan in plans],
        "between the nodes": [plan.bus for plan in plans],
        "sockets": [plan.sockets for plan in plans],
    }  # fmt: skip
    heads = [f"{plan.load.active:,} runs, {plan.load.watchers:,} watchers" for plan in plans]
    lines = [_line("", heads), "|---|" + "---:|" * len(plans)]
    lines += [_line(name, [_number(value) for value in values]) for name, values in numbers.items()]
    return "\n".join([*lines, *(_line(name, told) for name, told in words.items())])


def costs_table(figures: Figures) -> str:
    """The figures that the plan is made from, in Markdown."""
    said = {
        "the graph itself (a model that costs nothing)": (figures.graph_us, "us an event"),
        "adapter": (figures.adapt_us, "us an event"),
        "log": (figures.log_us, "us an event"),
        "redaction": (figures.redact_us, "us an event"),
        "mapper, roll-up, hub, snapshots, compaction": (figures.show_us, "us an event"),
        "a run, whatever it says": (figures.run_ms, "ms"),
        "memory a run holds": (figures.held_bytes, "bytes an event"),
        "an active run": (figures.events_s, "events/s"),
        "of it, to each watcher": (figures.frames_s, "frames/s"),
        "an event as JSON": (figures.kept_bytes_peer, "bytes"),
        "an event in PostgreSQL, with its index": (figures.pg_event_bytes, "bytes"),
        "an event kept after compaction": (figures.kept_bytes, "bytes"),
        "a snapshot": (figures.snapshot_bytes, "bytes"),
        "frames delivered by one core": (figures.deliveries_s, "/s"),
        "a connection at rest, without the kernel's buffers": (figures.connection_kib, "KiB"),
        "PostgreSQL, a batch": (figures.pg_batch_server, "us of the server"),
        "PostgreSQL, an event in it": (figures.pg_event_server, "us of the server"),
        "PostgreSQL, a batch, of ours": (figures.pg_batch_client, "us"),
        "Redis, an envelope published": (figures.redis_server_us, "us of the server"),
        "Redis, handed to one more node": (figures.redis_deliver_us, "us of the server"),
        "an envelope published to Redis, of ours": (figures.redis_publish_us, "us"),
        "an envelope posted to soketi, of ours": (figures.http_publish_us, "us"),
        "an envelope heard by a web node": (figures.redis_hear_us, "us"),
    }
    lines = ["| | cost | |", "|---|---:|---|"]
    return "\n".join(
        [*lines, *(f"| {name} | {_number(value)} | {unit} |" for name, (value, unit) in said.items())]
    )


def _line(name: str, cells: Sequence[str]) -> str:
    return "| " + " | ".join([name, *cells]) + " |"


def main(arguments: Sequence[str] | None = None) -> int:
    from benchmarks import _figures

    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.model", description="What a load takes, on paper."
    )
    parser.add_argument("--active", type=int, metavar="N", help="runs at the same time")
    parser.add_argument("--watchers", type=int, metavar="N", default=0)
    parser.add_argument("--seconds", type=float, default=30.0, help="how long a run lasts")
    parser.add_argument(
        "--flush-ms", type=float, default=20.0, help="how long an event may wait for its batch"
    )
    asked = parser.parse_args(arguments)
    kept = _figures.read()
    loads = (
        LOADS
        if asked.active is None
        else (Load(asked.active, asked.watchers, asked.seconds, asked.flush_ms),)
    )
    print(_figures.machine(kept), "", plan_table(figures_of(kept["rows"]), loads), sep="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
