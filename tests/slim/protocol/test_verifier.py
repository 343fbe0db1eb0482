"""One question a rule: the verifier's answer, and that the client of record gives the same one."""

from __future__ import annotations

import pytest

from runcast.slim.errors import WireError
from runcast.slim.protocol.rules import RULES
from runcast.slim.protocol.verifier import verify
from tests.e2e.oracle import Oracle
from tests.slim.probes import ORDER, Probe
from tests.slim.probes_owners import MISSHAPEN, OWNERSHIP, STRIPPED
from tests.slim.wires import Wire, read, started, subagent

PROBES = [*ORDER, *OWNERSHIP]
every_probe = pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.name)


@pytest.mark.parametrize("probe", [*PROBES, *STRIPPED], ids=lambda probe: probe.name)
def test_the_client_profile_answers_each_question(probe: Probe):
    found = verify(read(probe.events), "client", explicit_nulls=True)
    if probe.rule is None:
        assert found == []
    else:
        assert (found[0].rule, found[0].index) == (probe.rule, len(probe.events) - 1)
        assert found[0].type == probe.events[-1]["type"]


@every_probe
@pytest.mark.oracle
def test_the_client_of_record_gives_the_same_answer(probe: Probe, oracle: Oracle):
    answer = oracle.accepts(probe.events)
    assert answer["ok"] is (probe.rule is None)
    if probe.rule is not None:
        assert answer["passed"] == len(probe.events) - 1


@pytest.mark.parametrize("probe", STRIPPED, ids=lambda probe: probe.name)
@pytest.mark.oracle
def test_an_earlier_client_refuses_what_this_one_strips(probe: Probe, oracle: Oracle):
    assert oracle.accepts(probe.events)["ok"]
    assert oracle.earlier(probe.events)["passed"] == len(probe.events) - 1


def test_every_rule_of_the_client_is_asked_for():
    asked = {probe.rule for probe in PROBES} - {None}
    assert asked == {name for name, rule in RULES.items() if not rule.strict}


@pytest.mark.parametrize("wire", MISSHAPEN, ids=str)
def test_what_the_client_refuses_for_its_shape_never_becomes_an_event(wire: Wire):
    with pytest.raises(WireError):
        read([wire])


@pytest.mark.parametrize("wire", MISSHAPEN, ids=str)
@pytest.mark.oracle
def test_the_client_of_record_refuses_these_shapes(wire: Wire, oracle: Oracle):
    before = [] if wire["type"] == "SUBAGENT_STARTED" else [subagent()]
    assert oracle.verify([started(), *before, wire])["passed"] == 1 + len(before)
