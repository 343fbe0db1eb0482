"""The paper model: what follows from its figures whatever they are, and where one engine gives way to the next."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from benchmarks.model import (
    UTILISATION,
    Figures,
    Load,
    costs_table,
    figures_of,
    late_key,
    model,
    plan_table,
    sizes_table,
)

# Round numbers of the right size, so that a new measurement changes no test.
FIGURES = Figures(
    graph_us=25, adapt_us=5, log_us=15, redact_us=2, show_us=40, run_ms=8, held_bytes=30, events_s=80, frames_s=25,
    wire_kb_s=12, deflated_kb_s=0.8, deliveries_s=200_000, connection_kib=12, kept_bytes=30, kept_bytes_peer=200,
    snapshot_bytes=3_000, pg_batches=4_000, pg_batch_client=250, pg_event_client=2, pg_batch_server=90, pg_event_server=2,
    pg_batch_wal=200, pg_event_wal=270, pg_event_bytes=200, redis_publish_us=50, redis_server_us=15, redis_deliver_us=2,
    redis_hear_us=45, http_publish_us=100, http_deliveries_s_peer=150_000,
)  # fmt: skip


def rows() -> list[dict[str, object]]:
    told = asdict(FIGURES)
    found: list[dict[str, object]] = [
        {"name": key, "key": key, "ours": value, "peer": told.get(f"{key}_peer")}
        for key, value in told.items()
        if not key.endswith("_peer")
    ]
    return [
        *found,
        {"name": "not for the model", "ours": 1},
        {"key": "http_deliveries_s", "ours": 1.0, "peer": 150_000},
    ]


def test_the_figures_are_read_from_the_rows_by_their_keys():
    assert figures_of(rows()) == FIGURES


def test_a_figure_that_is_missing_is_named():
    with pytest.raises(LookupError, match="the figures lack redis_hear_us"):
        figures_of(row for row in rows() if row.get("key") != "redis_hear_us")


def test_one_run_with_a_few_watchers_needs_no_engine():
    plan = model(FIGURES, Load(1, 10))
    assert (plan.store, plan.sockets, plan.web_nodes, plan.redis_in_s) == ("SQLite", "own hub", 0, 0)


def test_a_hundred_runs_take_postgresql_and_redis():
    plan = model(FIGURES, Load(100, 1_000))
    assert (plan.store, plan.bus, plan.sockets) == ("PostgreSQL", "Redis", "own hub on every web node")
    assert plan.web_nodes >= 2


def test_a_million_watchers_take_several_redis_and_hear_what_they_watch():
    plan = model(FIGURES, Load(10_000, 1_000_000, flush_ms=200))
    assert plan.bus.startswith("Redis x ")
    assert plan.redis_out_s == plan.redis_in_s  # each envelope goes to the one node that watches it
    hearing = 10_000 * FIGURES.frames_s * FIGURES.redis_hear_us / 1e6
    sending = 1_000_000 * FIGURES.frames_s / FIGURES.deliveries_s
    assert plan.web_nodes == pytest.approx((hearing + sending) / UTILISATION, abs=1)


def test_watchers_on_any_node_cost_a_hearing_for_every_node_of_a_thread():
    plan = model(FIGURES, Load(10_000, 1_000_000, flush_ms=200))
    assert plan.web_nodes_anywhere > 5 * plan.web_nodes
    alone = model(FIGURES, Load(1_000, 1_000))  # one watcher a thread is on one node anyway
    assert alone.web_nodes_anywhere == alone.web_nodes


def test_the_sizes_are_a_row_each_with_their_latency_where_it_was_measured():
    load = Load(100, 1_000)
    table = sizes_table(FIGURES, {late_key(load, 50): 12.34}, [Load(1, 10), load])
    assert [line.count("|") for line in table.splitlines()] == [11] * 4
    assert table.splitlines()[-1].endswith("| 12.3 ms | not measured |")


def test_runs_that_start_are_runs_that_are_active_over_how_long_they_last():
    assert model(FIGURES, Load(300, 0, seconds=30)).starts_s == pytest.approx(10)


@pytest.mark.parametrize("load", [Load(100, 1_000), Load(10_000, 20_000)])
def test_a_longer_wait_makes_fewer_batches_and_less_work(load: Load):
    plan, patient = (model(FIGURES, each) for each in (load, replace(load, flush_ms=200)))
    assert patient.batches_s < plan.batches_s / 5
    assert patient.database_cores < plan.database_cores
    assert patient.worker_cores < plan.worker_cores
    assert patient.disk_gb_day == plan.disk_gb_day


def test_a_batch_is_never_written_more_often_than_events_come():
    assert model(FIGURES, Load(100, 0, flush_ms=0)).batches_s == pytest.approx(100 * FIGURES.events_s)


def test_twice_the_watchers_are_twice_the_traffic_and_the_same_database():
    one, two = (model(FIGURES, Load(100, watchers)) for watchers in (50_000, 100_000))
    assert two.egress_gbit_s == pytest.approx(2 * one.egress_gbit_s)
    assert two.database_cores == one.database_cores
    assert one.web_nodes < two.web_nodes <= 2 * one.web_nodes + 1


def test_quiet_watchers_are_bound_by_connections():
    quiet = replace(FIGURES, frames_s=0.01)
    assert model(quiet, Load(100, 100_000)).bound == "connections"
    heavy = replace(quiet, connection_kib=1_000)
    assert model(heavy, Load(100, 100_000)).bound == "memory"


def test_many_batches_need_several_databases():
    plan = model(FIGURES, Load(100_000, 100))
    assert plan.store.startswith("PostgreSQL x ")


def test_the_tables_have_a_column_a_load_and_a_line_a_cost():
    assert all(line.count("|") == 4 for line in plan_table(FIGURES, [Load(1, 1), Load(2, 2)]).splitlines())
    assert "| redaction | 2.0 | us an event |" in costs_table(FIGURES)
