"""Names, units, links: every value is checked where it enters."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argus_bed.errors import UnitError, UnknownName, ValueRejected
from argus_bed.quantity import QUANTITIES, Family, Link, convert, parse, quantity, units


def test_every_quantity_is_complete():
    for name, q in QUANTITIES.items():
        assert q.name == name
        assert len(q.definition) > 10
        units().Unit(q.unit)  # raises if pint does not know it


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("12.3ms", "step_time", 0.0123),
        ("12.3", "step_time", 12.3),
        ("1.5 GHz", "sm_clock", 1.5e9),
        ("40 degC", "temperature", 40.0),
        ("3 count", "launch_count", 3.0),
        ("50%", "device_busy", 0.5),
        ("2 MB", "bytes_moved", 2e6),
    ],
)
def test_values_are_read_as_people_write_them(text, name, value):
    assert parse(text, name) == pytest.approx(value)


@pytest.mark.parametrize("text", ["12 W", "fast", "", "12 parsecs per", "1 2"])
def test_wrong_units_are_named(text):
    with pytest.raises(UnitError, match="step_time"):
        parse(text, "step_time")


@pytest.mark.parametrize("text", ["nan", "inf", "-1", "0", "nan ms"])
def test_values_that_no_clock_gives_are_refused(text):
    with pytest.raises((ValueRejected, UnitError)):
        parse(text, "step_time")


def test_an_unknown_quantity_names_the_nearest():
    with pytest.raises(UnknownName, match="did you mean 'step_time'"):
        quantity("step_tme")


def test_convert_keeps_the_case_format_units():
    assert convert(21.0, "degC", "temperature") == 21.0
    assert convert(3.0, "B", "bytes_moved") == 3.0
    assert convert(1590.0, "MHz", "sm_clock") == pytest.approx(1.59e9)


@given(st.sampled_from(sorted(QUANTITIES)), st.floats(1e-6, 1.0), st.floats(1e-6, 1.0))
def test_links_keep_the_order_of_values(name, a, b):
    q = QUANTITIES[name]
    if q.link is Link.BINARY:
        return
    low, high = sorted((a, b))
    assert q.to_link(low) <= q.to_link(high)
    assert math.isfinite(q.to_link(low))


def test_a_ratio_is_the_same_at_every_scale():
    q = quantity("step_time")
    assert q.family is Family.DURATION
    assert q.to_link(2e-6) - q.to_link(1e-6) == pytest.approx(q.to_link(20.0) - q.to_link(10.0))
