"""From a kernel's IR to LLVM IR for this machine that runs a work-group and counts what it does.

Each segment of the kernel becomes a function of one work-item; `driver` calls it in a loop over the
work-items of a group. Counters are stack slots that LLVM keeps in registers across that loop.
"""

from __future__ import annotations

from crosscast.characterization import ir
from crosscast.characterization.instrumentation.context import Switches
from crosscast.characterization.instrumentation.driver import Driver
from crosscast.characterization.instrumentation.instrumented import Instrumented
from crosscast.characterization.instrumentation.segment_code import write_segment


def instrument(module: ir.Module, function: ir.Function, switches: Switches) -> Instrumented:
    """Instrument a flattened kernel."""
    made = Instrumented(module, function, switches)
    codes = [write_segment(segment, made) for segment in made.segments]
    made.blocks = [cost for code in codes for cost in code.costs]
    functions = [code.text for code in codes] + Driver(made, codes).rows()
    made.text = made.scopes.complete(functions)
    return made
