from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argus_bed.quantity import QUANTITIES
from argus_bed.report import describe as say


@pytest.mark.parametrize(
    ("value", "quantity", "contrast", "words"),
    [
        (0.2, "step_time", True, "+22.1%"),
        (-0.004, "step_time", True, "-0.40%"),
        (0.0, "step_time", True, "0%"),
        (math.log(3.4), "step_time", True, "3.4x"),
        (math.log(0.0123), "step_time", False, "12.3 ms"),
        (1.76, "gil_wait", False, "18% of the step"),
        (0.0, "gil_wait", False, "0% of the step"),
        (math.log(13.0), "launch_count", False, "12"),
        (math.log(3 * 2**20 + 1), "bytes_moved", False, "3 MiB"),
        (math.log(1.41e9), "sm_clock", False, "1.41 GHz"),
        (0.0, "device_busy", False, "50%"),
        (-0.95, "device_busy", True, "odds 0.39x"),
        (7.25, "temperature", True, "+7.25 °C"),
        (0.8, "delay_slope", False, "0.8"),
        (1.0, "env_flag", False, "yes"),
        (0.3, "env_flag", False, "yes in 30%"),
        (math.nan, "step_time", True, "n/a"),
        (0.5, "something_else", True, "+0.5"),
    ],
)
def test_values_in_words(value: float, quantity: str, contrast: bool, words: str) -> None:
    assert say.value(value, quantity, contrast=contrast) == words


@given(st.floats(), st.sampled_from(sorted(QUANTITIES)), st.booleans())
def test_any_value_has_words(value: float, quantity: str, contrast: bool) -> None:
    words = say.value(value, quantity, contrast=contrast)
    assert words
    assert "nan" not in words
    assert words.isprintable()


@given(st.sampled_from(sorted(QUANTITIES)), st.floats(0.01, 0.99))
def test_levels_agree_with_the_quantitys_own_link(name: str, value: float) -> None:
    known = QUANTITIES[name]
    if known.unit in ("1", "s") and known.link.value == "log":
        words = say.value(known.to_link(value), name, contrast=False)
        shown = say.seconds(value) if known.unit == "s" else f"{value:.3g}"
        assert words == shown


def test_intervals() -> None:
    assert say.interval(0.2, 0.1, "step_time", contrast=True) == "+3.6% to +44.0%"
    assert say.interval(1.0, 0.3, "gil_wait", contrast=False) == "5.1% to 15% of the step"
    assert say.interval(0.0, 0.5, "device_busy", contrast=True) == "odds 0.44x to 2.3x"
    assert say.interval(0.9, 0.1, "env_flag", contrast=False) == "yes in 90%"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0, "0 s"),
        (4.2e-7, "420 ns"),
        (8.4e-4, "840 µs"),
        (0.0123, "12.3 ms"),
        (9.2345, "9.23 s"),
        (59.96, "1 min"),
        (125.0, "2 min 05 s"),
        (11520.0, "3 h 12 min"),
        (-2.0, "-2 s"),
        (0.9999, "1 s"),
    ],
)
def test_durations(seconds: float, words: str) -> None:
    assert say.seconds(seconds) == words


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.0, "0%"),
        (1.0, "100%"),
        (4e-9, "<0.1%"),
        (0.99999, ">99.9%"),
        (0.042, "4.2%"),
        (0.37, "37%"),
        (0.995, "99.5%"),
    ],
)
def test_a_probability_is_never_rounded_to_certainty(share: float, words: str) -> None:
    assert say.percent(share) == words


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("step_time[candidate] vs baseline", ("step_time", None, "candidate", "baseline")),
        ("gil_wait[io@candidate]", ("gil_wait", "io", "candidate", None)),
        ("anything else", ("anything else", None, "", None)),
        ("odd[", ("odd[", None, "", None)),
    ],
)
def test_names_of_readings_come_apart(text: str, parts: tuple) -> None:
    name = say.reading_name(text)
    assert (name.quantity, name.stage, name.condition, name.against) == parts


def test_names_match_what_a_measurement_calls_itself() -> None:
    from argus_bed.frame import Cell
    from argus_bed.probe import Measurement

    measured = Measurement(Cell("gil_wait", "candidate", "io"), Cell("gil_wait", "baseline", "io"))
    assert str(say.reading_name(str(measured))) == "gil wait of io, candidate against baseline"


def test_control_characters_do_not_reach_a_terminal() -> None:
    assert say.clean("a\x1b[2Jb\r\u202ec") == "a\ufffd[2Jb\ufffd\ufffdc"
