"""Whole diagnoses of really executed workloads: the cause, and nothing in the twin.

One seed each: a wrong answer in one of fifty runs fails such a test once in fifty times;
``argus-bed zoo run NAME --repeats N`` measures the rate.
"""

import pytest

from argus_bed.study import open_study
from argus_bed.zoo import ZOO


def diagnosed(name: str, fault_free: bool) -> tuple[str, tuple[str, ...], float]:
    entry = ZOO[name]
    with open_study(name, workload=entry.load(fault_free), ledger="sqlite://", seed=1) as study:
        verdict = study.run()
    return verdict.status.value, verdict.causes, verdict.probability


def test_a_call_that_keeps_the_lock_is_found():
    status, causes, probability = diagnosed("gil", False)
    assert (status, causes) == ("decided", ("gil_held",))
    assert probability >= 0.95


@pytest.mark.slow
@pytest.mark.promise("A01")
def test_a_fast_kernel_off_the_critical_path_is_found():
    status, causes, probability = diagnosed("flat", False)
    assert (status, causes) == ("decided", ("off_critical_path",))
    assert probability >= 0.95


@pytest.mark.slow
@pytest.mark.promise("A01")
def test_the_twin_of_a_fast_kernel_ends_in_no_effect():
    assert diagnosed("flat", True)[0] == "no_effect"


@pytest.mark.slow
def test_the_twin_of_the_call_ends_in_no_effect():
    assert diagnosed("gil", True)[0] == "no_effect"
