import dataclasses
import json
import typing

import jsonschema
import pytest

from kmrun.core import result as document
from kmrun.core.measurement import Finding, OutputCheck
from kmrun.core.score import Roofs
from kmrun.core.slowdown import Slowdown
from kmrun.schema import result as schema
from kmrun.store.results import render
from support.cases import GPU, clause, make_case, make_found
from support.results import make_entry, make_result

PAIRS = [
    (document.Result, schema.Result),
    (document.CaseResult, schema.Case),
    (document.ClauseEntry, schema.Clause),
    (document.Reason, schema.Reason),
    (document.CheckEntry, schema.Check),
    (document.VersusEntry, schema.Versus),
    (document.TelemetryEntry, schema.Telemetry),
    (document.SeriesEntry, schema.Series),
    (Slowdown, schema.Slowdown),
    (document.SuiteEntry, schema.Suite),
    (document.DeviceEntry, schema.Device),
    (document.CeilingEntry, schema.Ceilings),
    (document.BandwidthEntry, schema.Bandwidth),
    (document.MatmulEntry, schema.Matmul),
]

PROMISED = """
id kernel axes verdict reasons clauses labels median_ms ci_low_ms ci_high_ms samples_ms first_call_ms
host_us event_us handoff_us bytes flops gb_per_s tflop_per_s intensity bound roof_fraction
roof_max_fraction ceiling_fraction peak_bw_fraction fp32_fraction speedup correct max_error isolation
exchange l2 clock time_verified versus roof_clk_fraction telemetry slowdown
"""


@pytest.mark.parametrize(("plain", "model"), PAIRS)
def test_the_classes_and_the_schema_are_one_document(plain, model):
    assert [entry.name for entry in dataclasses.fields(plain)] == list(model.model_fields)


@pytest.mark.parametrize(("plain", "model"), PAIRS)
def test_a_document_without_what_is_younger_than_it_is_read(plain, model):
    """What a document may leave out, as an earlier kmrun did, has a default in the class, too."""
    optional = {name for name, facts in model.model_fields.items() if not facts.is_required()}
    required = {
        entry.name
        for entry in dataclasses.fields(plain)
        if entry.default is dataclasses.MISSING and entry.default_factory is dataclasses.MISSING
    }
    assert optional & required == set()


def test_the_promised_keys_are_there():
    assert set(PROMISED.split()) <= set(schema.Case.model_fields)
    assert {"kmrun_result", "complete", "suite", "device", "environment", "cases"} <= set(
        schema.Result.model_fields
    )
    assert set(schema.Suite.model_fields) == {"name", "file", "digest"}


def results() -> typing.Iterator[document.Result]:
    failing = make_case(clauses=(clause("max_ms", 1.0), clause("min_roof", 0.5), clause("min_ceiling", 0.1)))
    nan = (OutputCheck("o", "auto", False, float("nan"), 1e-3, (0, 1), float("inf"), 2.0, 9),)
    wrong = Finding("wrong-result", "o differs", "kernel", "fail", "trace")
    yield make_result(make_entry(failing), make_entry())
    yield make_result(
        make_entry(found=make_found(findings=(wrong,), correct=False, checks=nan, samples_ns=()))
    )
    yield make_result(make_entry(device=GPU, roofs=Roofs(1e12, 1e13, 2e13, 3e13, "l4")))


@pytest.mark.parametrize("result", list(results()))
def test_what_a_run_makes_is_valid(result):
    plain = json.loads(render([result]))
    schema.Result.model_validate(plain)
    jsonschema.validate(plain, schema.Result.model_json_schema())


def test_a_number_that_json_cannot_say_is_null():
    (_, wrong, _) = results()
    (check,) = wrong.cases[0].checks
    assert (check.error, check.got, check.want) == (None, None, 2.0)
    assert wrong.cases[0].median_ms is None


def test_places_become_file_and_line():
    first = next(results()).cases[0]
    assert (first.file, first.line) == ("suites/add.yaml", 5)
    assert {(entry.file, entry.line) for entry in first.clauses[1:]} == {("suites/add.yaml", 7)}
