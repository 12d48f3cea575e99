"""State of code generation from a plan, and prologues of the functions of its segments."""

from __future__ import annotations

from collections.abc import Sequence

from crosscast.characterization import ir
from crosscast.characterization.engine.layout import ARGUMENT_BYTES, INVARIANTS, slot
from crosscast.characterization.instrumentation import builtin_calls
from crosscast.characterization.instrumentation.accesses import PointerClass
from crosscast.characterization.instrumentation.builtin_calls import Lowering
from crosscast.characterization.instrumentation.code import Code, InstrumentationOptions, Names, Scopes
from crosscast.characterization.instrumentation.plan import Plan
from crosscast.characterization.instrumentation.segments import Segment, slot_name
from crosscast.characterization.instrumentation.sub_groups import Recording


class Emission:
    """Code generation of a plan: names, scopes, counters and records."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.names = Names(plan.names)
        self.scopes = Scopes()
        self.fault_lines: list[int] = []  # Source line of each fault site
        self.lowering = Lowering(self.names, plan.options, plan.used, self.fault_lines)
        words = plan.options.stream_words
        self.recording = Recording(self.scopes, plan.columns, plan.alike, words, [*plan.sites])
        if plan.per_warp:
            self.recording.apart.update(range(len(plan.sites)))
        self.counted: set[PointerClass] = set()  # Classes with accesses that are not strided
        self.counters = plan.counters  # Number of allocated counters
        self.conditional_writes: dict[int, str] = {}  # Address space by counter
        self.order_counter: int | None = None
        self.strided = 0

    def counter_for_writes(self, space: str) -> int:
        """Return a counter of one compare-exchange's successes, which are writes to an address space."""
        number = self._next_counter()
        self.conditional_writes[number] = space
        return number

    def counter_for_order(self) -> int:
        """Return the one counter that sums the positions of work-items' last loads or stores."""
        if self.order_counter is None:
            self.order_counter = self._next_counter()
        return self.order_counter

    def _next_counter(self) -> int:
        self.counters += 1
        return self.counters - 1

    def number_strided(self) -> int:
        """Return the number of a strided access; the next one is of its parts."""
        self.strided += 2
        return self.strided - 2

    def count(self, code: Code, number: int, amount: str) -> None:
        """Add an amount to one of the thread's counters."""
        code.add_to("i64", code.at("%cc.counts", 8 * number), amount, self.scopes.attach("counts"))


SLICE_PARAMETERS = "ptr %cc.ctx, i64 %cc.id0, i64 %cc.id1, i64 %cc.id2, ptr %cc.results"


def formal(parameters: Sequence[ir.FunctionParameter]) -> str:
    """Return the formal parameters: context, counters, histories, work-item, invariants, kernel's."""
    return actual([f"%cc.id{d}" for d in range(3)], "%cc.wi", parameters)


def actual(ids: Sequence[str], item: str, parameters: Sequence[ir.FunctionParameter]) -> str:
    """Return the arguments for a work-item with the given ids and number."""
    values = [
        *("ptr %cc.ctx", "ptr %cc.acc", "ptr %cc.past"),
        *(f"i64 {name}" for name in ids),
        *(f"i64 {item}", "i64 %cc.items"),
        *(f"{type_} %cc.{name}" for name, type_ in INVARIANTS.items()),
        *(f"{p.type} {p.name}" for p in parameters),
    ]
    return ", ".join(values)


def load_arguments(parameters: Sequence[ir.FunctionParameter], options: InstrumentationOptions) -> list[str]:
    """Load all invariants and kernel arguments from the context."""
    texts = []
    for name, type_ in INVARIANTS.items():
        stem, dimension = name[:-1], name[-1]
        if stem == "enqueued" or (stem == "size" and options.uniform):
            texts.append(f"  %cc.{name} = add i64 {options.local_size[int(dimension)]}, 0")
        else:
            texts += [
                f"  %cc.at.{name} = getelementptr i8, ptr %cc.ctx, i64 {slot(name)}",
                f"  %cc.{name} = load {type_}, ptr %cc.at.{name}",
            ]
    for position, parameter in enumerate(parameters):
        address, name, offset = f"%cc.at.arg{position}", parameter.name, str(parameter.offset)
        if parameter.offset is None:
            texts.append(f"  {address} = getelementptr i8, ptr %cc.args, i64 {ARGUMENT_BYTES * position}")
            if parameter.type != "ptr addrspace(3)":
                texts.append(f"  {name} = load {parameter.type}, ptr {address}")
                continue
            offset = f"{address}.offset"
            texts.append(f"  {offset} = load i64, ptr {address}")
        texts.append(f"  {name} = getelementptr i8, ptr %cc.local, i64 {offset}")
    return texts


def load_for_slice(parameters: Sequence[ir.FunctionParameter], options: InstrumentationOptions) -> list[str]:
    """Compute the parameters of a segment's function in a slice."""
    return [
        *load_arguments(parameters, options),
        "  %cc.xy = mul i64 %cc.size0, %cc.size1",
        "  %cc.items = mul i64 %cc.xy, %cc.size2",
        "  %cc.row.y = mul i64 %cc.id1, %cc.size0",
        "  %cc.row.z = mul i64 %cc.id2, %cc.xy",
        "  %cc.row.yz = add i64 %cc.row.y, %cc.row.z",
        "  %cc.wi = add i64 %cc.row.yz, %cc.id0",
    ]


class Frame:
    """Header and prologue of the functions of one segment."""

    def __init__(self, segment: Segment, emission: Emission) -> None:
        self._segment, self._emission = segment, emission

    def header(self, result: str, name: str, *, divided: bool = False) -> str:
        """Return the first line of a function; in a divided loop it has a parameter for the part."""
        parameters = formal(self._emission.plan.parameters) + ", i1 %cc.rest" * divided
        return f"define internal {result} @{name}({parameters}) alwaysinline nounwind {{"

    def prologue(self) -> list[str]:
        """Compute addresses and the values that enter the segment; then jump to its entry."""
        emission, segment = self._emission, self._segment
        slots, code = [], Code(emission.names)
        code.do(*emission.plan.private.prologue())
        for carried in segment.restore:
            emission.plan.live.load(carried, segment.entering(carried.name), code, emission.scopes)
        for original in segment.recompute:
            for instruction in emission.lowering.lower(original.copy()):
                instruction.rename(segment.entering)
                if instruction.result:
                    instruction.result = segment.entering(instruction.result)
                code.do(instruction.render())
        if segment.after is not None and segment.after.result:
            builtin_calls.take(segment.after, segment.entering(segment.after.result), code)
        for name, type_ in segment.slots.items():
            slots.append(f"{slot_name(name)} = alloca {type_}")
            code.store(type_, segment.entering(name), slot_name(name))
        return [f"  {text}" for text in [*slots, *code.texts, f"br label {segment.entry}"]]
