from kmrun.report import numbers


def test_percent_and_spread():
    assert [numbers.percent(value) for value in (None, 0.0, 0.0051, 0.00996, 0.544, 1.0)] == [
        *("-", "0 %", "0.5 %", "1 %", "54 %", "100 %")
    ]
    assert [numbers.spread(value) for value in (None, 0.0031, 0.0994, 0.0996)] == [
        *("-", "0.3 %", "9.9 %", "10 %")
    ]


def test_duration_and_count():
    assert [numbers.duration(value) for value in (0.91, 9.96, 21.4, 119.6, 185.2)] == [
        *("0.9 s", "10 s", "21 s", "2 min 0 s", "3 min 5 s")
    ]
    assert numbers.count(1, "case") == "1 case"
    assert numbers.count(0, "case") == "0 cases"
