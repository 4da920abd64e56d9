from kmrun.report import numbers


def test_percent_and_spread():
    assert [numbers.percent(value) for value in (None, 0.0, 0.0051, 0.00996, 0.544, 1.0)] == [
        *("-", "0 %", "0.5 %", "1 %", "54 %", "100 %")
    ]
    assert [numbers.spread(value) for value in (None, 0.0031, 0.0994, 0.0996, 1.0049, 1.005, 13.55)] == [
        *("-", "0.3 %", "9.9 %", "10 %", "100 %", "> 100 %", "> 100 %")
    ]


def test_a_change_that_rounds_to_nothing_has_no_sign():
    values = (-0.0004, 0.0004, -0.0, 0.0, -0.0006, 0.061, -0.12)
    assert [numbers.signed_percent(value) for value in values] == [
        *("0.0 %", "0.0 %", "0.0 %", "0.0 %", "-0.1 %", "+6.1 %", "-12 %")
    ]


def test_numbers_of_no_measurement_are_short():
    assert numbers.percent(1e300) == "1e+302 %"
    assert numbers.signed_percent(-1e300) == "-1e+302 %"
    assert numbers.spread(1e300) == "1e+302 %"
    assert numbers.percent(1.7e308) == numbers.percent(float("inf")) == "no number"
    assert numbers.signed_percent(float("nan")) == "no number"
    assert numbers.duration(1e300) == "1.0e+300 s"
    assert [numbers.whole(value) for value in (1754.6, 1e300)] == ["1755", "1e+300"]


def test_duration_and_count():
    assert [numbers.duration(value) for value in (0.91, 9.96, 21.4, 119.6, 185.2)] == [
        *("0.9 s", "10 s", "21 s", "2 min 0 s", "3 min 5 s")
    ]
    assert numbers.count(1, "case") == "1 case"
    assert numbers.count(0, "case") == "0 cases"
    assert numbers.first_of(["add"]) == "add"
    assert numbers.first_of(["add", "gelu", "sum"]) == "add and 2 more"
    assert numbers.first_of(["add", "gelu", "sum"], 2) == "add, gelu and 1 more"
    assert numbers.first_of(["add", "gelu"], 2) == "add, gelu"


def test_readable_has_no_exponent_where_a_person_needs_none():
    values = (0.08333, 0.33, 20.0, 81.92, 999.7, 1170.3, 27310.4, 1e-7, 1e21)
    assert [numbers.readable(value) for value in values] == [
        *("0.0833", "0.33", "20", "81.9", "1000", "1170", "27310", "1e-07", "1e+21")
    ]
    assert numbers.readable(12345.6, 4) == "12346"
