"""What argus-bed runs: one step of your program, in two arms.

This example runs as it stands. The candidate halves the bytes of each value, so scaling takes
half the time, and yet the step takes as long: why? Put your own code in place of `setup` and
`step`, then `argus-bed check`, then `argus-bed run`.
"""

import mmap

import numpy as np

from argus_bed import Workload, stage
from argus_bed.workload import Knob, Stage

VALUES = 2_000_000


def setup(dtype, buffer):
    """Called once in each process, with the settings of an arm or knob. Not timed.

    Whatever it returns is handed to every step.
    """
    values = np.linspace(0.0, 1.0, VALUES).astype(dtype)
    return {"values": values, "out": np.zeros_like(values), "buffer": buffer}


def step(state):
    """One step, request or batch: what is timed. `stage` names its parts."""
    values = state["values"]
    with stage("clear"):
        if state["buffer"] == "fresh":
            state["out"] = np.frombuffer(mmap.mmap(-1, values.nbytes), values.dtype)
        state["out"].fill(0)
    with stage("scale"):
        for _ in range(3):
            np.multiply(values, 1.01, out=state["out"])


def scale(state):
    """The changed part alone, on an output of its own."""
    values, out = state["values"], np.zeros_like(state["values"])
    return lambda: np.multiply(values, 1.01, out=out)


workload = Workload(
    name="scale",
    question="Values have half the bytes and scaling is faster. Why is the step not?",
    setup=setup,
    step=step,
    # The two arms: the settings that `setup` is called with. They differ in what you changed.
    arms={
        "baseline": {"dtype": "float64", "buffer": "reused"},
        "candidate": {"dtype": "float32", "buffer": "fresh"},
    },
    # What the change was meant to do to its own part: "faster", "same" or "unknown".
    intent="faster",
    # The parts that `stage` marks. changed: by the candidate, on purpose (None: not known).
    stages=(
        Stage("clear", "host", changed=False, what="an output of zeros"),
        Stage("scale", "compute", changed=True, what="values times a constant"),
    ),
    # What can be turned, in the candidate unless `of` says otherwise. Say beforehand which
    # mechanisms a value removes (`argus-bed hypotheses list`): that makes it an experiment.
    knobs=(Knob("buffer", "reused", settings={"buffer": "reused"}, removes={"allocator_stall"}),),
    # The changed part alone: returns a function that runs it once.
    operations={"scale": scale},
)
