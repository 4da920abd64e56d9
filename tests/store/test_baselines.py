import dataclasses
import json
import math
import re

import jsonschema
import pytest

from kmrun.core import baseline as document
from kmrun.core.baseline import Baseline, baseline_device, case_of, definition_digest, device_key, slug
from kmrun.core.yardstick import Session
from kmrun.errors import InvalidInput, UsageError
from kmrun.schema import baseline as schema
from kmrun.schema.export import schema_of
from kmrun.store import baselines
from support.cases import CPU, GPU, clause, make_case


def sessions(count=10):
    return [
        Session(1.0 + 0.01 * n, 2.0, 4.0, math.log(0.5 + 0.005 * n), math.log(0.25)) for n in range(count)
    ]


def make_baseline(**changes):
    case = case_of(make_case().id, "0" * 64, "mem", sessions(), "2026-01-02T03:04:05+00:00")
    fields = {
        "kmrun_baseline": 1,
        "suite": "adding",
        "device": baseline_device(CPU, None),
        "environment": {"torch": "2.13.0"},
        "cases": (case,),
    }
    return Baseline(**(fields | changes))


@pytest.mark.parametrize(
    ("plain", "model"),
    [
        (document.Baseline, schema.Baseline),
        (document.BaselineCase, schema.Case),
        (document.BaselineDevice, schema.Device),
        (Session, schema.Session),
    ],
)
def test_the_classes_and_the_schema_are_one_document(plain, model):
    assert [entry.name for entry in dataclasses.fields(plain)] == list(model.model_fields)


def test_what_is_written_is_read_back(tmp_path):
    path = baselines.file_of(tmp_path, "adding", "cpu-test-8c")
    assert path == tmp_path / "baselines" / "adding.cpu-test-8c.json"
    assert baselines.read(path) is None
    target, wanted = baselines.target(path), make_baseline()
    target.replace(baselines.render(wanted))
    found = baselines.read(path)
    assert found.device == wanted.device
    assert found.case("add[n=16777216,dtype=fp32]").sessions[3].over_memory == pytest.approx(
        math.log(0.515), rel=1e-5
    )
    assert found.case("nothing[]") is None
    jsonschema.validate(json.loads(path.read_text()), schema_of("baseline"))
    assert len(path.read_text().splitlines()) < 60
    target.replace(baselines.render(found))
    assert baselines.read(path) == found


def test_nothing_but_a_baseline_is_replaced(tmp_path):
    path = baselines.file_of(tmp_path, "adding", "x")
    path.parent.mkdir()
    path.write_text("my notes")
    with pytest.raises(UsageError, match="no baseline of kmrun"):
        baselines.target(path)
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be made"):
        baselines.target(tmp_path / "file" / "baselines" / "x.json")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not JSON"),
        ("[]", "no baseline document"),
        ('{"kmrun_baseline": 2}', "baseline format 2, this kmrun reads 1"),
        ('{"kmrun_baseline": 1}', "damaged baseline: suite: field required"),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path, text, said):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=said):
        baselines.read(path)


@pytest.mark.parametrize("value", ["1e5", "-1e5", "NaN", "Infinity", "1e999"])
def test_what_no_machine_measured_is_damage(tmp_path, value):
    """A log ratio of a thousand would be a factor that no float holds."""
    path = baselines.file_of(tmp_path, "adding", "cpu-test-8c")
    baselines.target(path).replace(
        re.sub(
            r'"over_memory": [-0-9.]+', f'"over_memory": {value}', baselines.render(make_baseline()), count=1
        )
    )
    with pytest.raises(baselines.DamagedBaseline):
        baselines.read(path)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            '"memory_calls": 1',
            '"memory_calls": 1000000',
            "sessions.0.memory_calls: input should be less than",
        ),
        ('"memory_calls": 1', '"memory_calls": 2', "value error, sessions of other calls of a yardstick"),
        ('"kernel_ms": 1.0', '"kernel_ms": 1e300', "sessions.0.kernel_ms: input should be less than"),
        ('"saved": "2026', '"saved": "\\u001b[31m', "saved: string should match pattern"),
        ('"sessions": [', '"sessions": [' + 100 * "{}, ", "sessions.0.kernel_ms: field required"),
    ],
)
def test_damage_is_told_by_its_place(tmp_path, old, new, told):
    text = baselines.render(make_baseline())
    assert old in text
    path = tmp_path / "x.json"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(baselines.DamagedBaseline, match=f"damaged baseline: cases.0.*{re.escape(told)}"):
        baselines.read(path)


def test_a_case_that_is_there_twice_and_sessions_without_end_are_damage(tmp_path):
    path = tmp_path / "x.json"
    (case,) = make_baseline().cases
    path.write_text(baselines.render(make_baseline(cases=(case, case))))
    with pytest.raises(baselines.DamagedBaseline, match="is there twice"):
        baselines.read(path)
    many = dataclasses.replace(case, sessions=101 * case.sessions[:1])
    path.write_text(baselines.render(make_baseline(cases=(many,))))
    with pytest.raises(baselines.DamagedBaseline, match="at most 100 items"):
        baselines.read(path)


def test_baselines_for_other_devices_are_found(tmp_path):
    for suite, key in (("adding", "h100-sxm"), ("adding", "cpu-x-2c"), ("other", "a")):
        baselines.target(baselines.file_of(tmp_path, suite, key)).replace("{}")
    assert baselines.others(tmp_path, "adding", "cpu-x-2c") == ["h100-sxm"]
    assert baselines.others(tmp_path / "nowhere", "adding", "x") == []


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("Intel(R) Xeon(R) Platinum 8480+ Processor", "intel-xeon-platinum-8480"),
        ("Intel(R) Core(TM) i7-9750H CPU @ 2.60GHz", "intel-core-i7-9750h"),
        ("AMD EPYC 7763 64-Core Processor", "amd-epyc-7763-64-core"),
        ("NVIDIA H100 80GB HBM3", "nvidia-h100-80gb-hbm3"),
        ("../../\x1b龍", "unknown"),
    ],
)
def test_device_slugs(name, short):
    assert slug(name) == short


def test_device_keys():
    assert device_key(CPU, None) == "cpu-test-8c"
    assert device_key(GPU, "h100-sxm") == "h100-sxm"
    assert device_key(GPU, None) == "test-gpu"


def test_a_digest_is_of_what_is_timed():
    case = make_case()
    same = dataclasses.replace(
        case, clauses=(clause("max_ms", 1.0),), tags=("ci",), folder="elsewhere", place=()
    )
    assert definition_digest(same, "cold", "/co") == definition_digest(case, "cold", "/co")
    for other in ({"seed": 3}, {"mode": "backward"}, {"arguments": ()}, {"axes": {"n": 1}}):
        assert definition_digest(dataclasses.replace(case, **other), "cold", "/co") != definition_digest(
            case, "cold", "/co"
        )
    assert definition_digest(case, "hot", "/co") != definition_digest(case, "cold", "/co")


@pytest.mark.parametrize("roots", [("/co1", "/elsewhere/ü/co2"), ("/tree", "/a/tree")])
def test_a_digest_holds_in_every_checkout(roots):
    def digest(root, value="{root}/src:/opt"):
        env = {"PYTHONPATH": value.replace("{root}", root)}
        implementation = dataclasses.replace(make_case().implementation, env=env, target=f"{root}/s/k.py:add")
        case = dataclasses.replace(make_case(), implementation=implementation, folder=f"{root}/s")
        return definition_digest(case, "cold", root)

    first, second = map(digest, roots)
    assert first == second
    assert digest(roots[0], "{root}/other") != first


def test_the_spread_is_that_between_sessions():
    (case,) = make_baseline().cases
    assert case.median_ms == pytest.approx(1.045)
    assert case.ci_low_ms < 1.045 < case.ci_high_ms
    assert 0.02 < case.spread < 0.05
