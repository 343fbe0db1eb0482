"""The queue on paper and the queue simulated: they agree, they come out the same each time, and say where it breaks."""

from __future__ import annotations

import random

import pytest

from benchmarks.model import UTILISATION
from benchmarks.queueing import CROWD_SQUARED, breaks_at, crowd, formula, in_step, simulated

FRAMES = 60_000


def test_the_services_drawn_have_the_moments_that_the_formula_takes():
    rng = random.Random(1)
    drawn = [crowd(rng) for _ in range(FRAMES)]
    assert sum(drawn) / FRAMES == pytest.approx(1, rel=0.03)
    assert sum(each * each for each in drawn) / FRAMES == pytest.approx(CROWD_SQUARED, rel=0.03)


@pytest.mark.parametrize("load", [0.3, 0.5, 0.6, 0.7, 0.8])
def test_the_simulation_agrees_with_the_formula(load: float):
    paper, queue = formula(load), simulated(load, FRAMES)
    assert queue.mean == pytest.approx(paper.mean, rel=0.15)
    assert queue.p99 == pytest.approx(paper.p99, rel=0.2)


def test_the_formula_agrees_with_the_textbook_where_services_are_exponential():
    # M/M/1: the mean wait is load / (1 - load), and so is its tail's.
    assert formula(0.5, 2.0).mean == pytest.approx(1)
    queue = simulated(0.5, FRAMES, service=lambda rng: rng.expovariate(1))
    assert queue.mean == pytest.approx(1, rel=0.15)


def test_a_seed_gives_the_same_waits_and_another_seed_others():
    assert simulated(0.6, 5_000) == simulated(0.6, 5_000)
    assert simulated(0.6, 5_000) != simulated(0.6, 5_000, seed=1)
    assert in_step(0.6, 5_000) == in_step(0.6, 5_000)


def test_runs_in_step_wait_no_longer_than_the_formula_says_when_it_is_tight():
    assert in_step(0.9, FRAMES).p99 < formula(0.9).p99


def test_waiting_breaks_where_one_in_a_hundred_waits_too_long():
    patience = formula(UTILISATION).p99
    assert breaks_at(patience) == pytest.approx(UTILISATION, abs=0.011)
    assert breaks_at(4 * patience) > 0.85
    assert formula(0.95).p99 > 8 * patience
