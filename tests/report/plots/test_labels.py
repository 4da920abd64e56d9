import itertools

from hypothesis import given
from hypothesis import strategies as st

from kmrun.report.plots.labels import Box, Room, Wish, place, text_box, text_width

BOUNDS = Box(0, 0, 800, 400)
POINTS = st.tuples(st.floats(0, 800), st.floats(0, 400))
TEXTS = st.text(min_size=1, max_size=12)


@given(st.lists(st.tuples(POINTS, TEXTS), min_size=1, max_size=40))
def test_labels_overlap_neither_each_other_nor_a_mark(found):
    room = Room(BOUNDS)
    marks = [Box(x - 5, y - 5, x + 5, y + 5) for (x, y), _ in found]
    for mark in marks:
        room.take(mark)
    placed = place([Wish(text, x, y, 5) for (x, y), text in found], room, 11)
    boxes = [each.box for each in placed]
    assert not any(one.meets(other) for one, other in itertools.combinations(boxes, 2))
    assert not any(box.meets(mark) for box in boxes for mark in marks)
    assert all(box.within(BOUNDS) for box in boxes)


@given(POINTS)
def test_where_there_is_room_a_label_stands_close(point):
    x, y = 30 + point[0] * 0.9, 30 + point[1] * 0.85
    placed = place([Wish("12", x, y, 5)], Room(BOUNDS), 11)
    assert len(placed) == 1
    assert not placed[0].apart


def test_the_first_wish_chooses_first_and_what_finds_no_room_is_left_out():
    wishes = [Wish(f"case {index}", 400, 200, 5) for index in range(200)]
    placed = place(wishes, Room(BOUNDS), 11)
    assert placed[0].wish == wishes[0]
    assert 8 < len(placed) < 200
    assert any(each.apart for each in placed)


@given(st.lists(st.tuples(POINTS, st.floats(1, 90), st.floats(1, 90)), max_size=30))
def test_what_is_free_is_what_meets_nothing(found):
    room, taken = Room(BOUNDS), []
    for (x, y), width, height in found:
        box = Box(x, y, x + width, y + height)
        expected = box.within(BOUNDS) and not any(box.meets(other) for other in taken)
        assert room.free(box) == expected
        assert room.copy().free(box) == expected
        room.take(box)
        taken.append(box)


def test_trying_something_in_a_copy_leaves_the_room_as_it_was():
    room = Room(BOUNDS)
    room.copy().take(Box(10, 10, 20, 20))
    assert room.free(Box(10, 10, 20, 20))


@given(TEXTS, TEXTS)
def test_widths_add_up(one, other):
    assert abs(text_width(one + other, 11) - text_width(one, 11) - text_width(other, 11)) < 1e-6


def test_a_box_holds_the_text_above_and_below_its_baseline():
    box = text_box("gjM", 10, 100, 10)
    assert box.left == 10
    assert box.top < 92
    assert box.bottom > 102
