"""Warp operations: what the lanes of a warp (a sub-group, in OpenCL's words) do together.

A warp operation cuts the kernel like a barrier, but only for the lanes that take part in it: all that a
mask names, those of a tile, or all that get there. So work-items of a group may stand at different cuts, and
a kernel with warp operations runs by turns: `runtime/warps.c` keeps where each work-item stands, lets lanes
of a warp run that stand before the same segment, and does the operation when those who take part have come.

Kernels of CUDA and HIP in which a thread may end before a barrier run in the same way: who has ended is not
waited for.
"""

from __future__ import annotations

from crosscast.characterization import ir
from crosscast.characterization.instrumentation.context import Names
from crosscast.characterization.instrumentation.inline import builtin_name, called_builtin, parse_call
from crosscast.errors import UnsupportedError

OPERATIONS = (
    *("sync", "active", "all", "any", "ballot", "shuffle", "up", "down", "xor", "match_any", "match_all"),
    *("add", "min", "max", "and", "or", "bitxor", "scan_add", "scan_min", "scan_max"),
    *("scan_exclusive_add", "scan_exclusive_min", "scan_exclusive_max"),
)
"""What lanes do together; `warps.c` numbers them alike."""

_VALUE, _MASK, _LANE, _WIDTH, _IGNORED = 0, 1, 2, 3, -1
_PLACES = {"v": _VALUE, "m": _MASK, "l": _LANE, "w": _WIDTH, "t": _WIDTH, "-": _IGNORED}
WORDS = 4

# Each function's operation, and what its arguments are: a value, a mask, a lane or distance, the width of the
# parts that a warp has for it (`w`), or the width of the tile that takes part (`t`).
FUNCTIONS: dict[str, tuple[str, str]] = {
    "__syncwarp": ("sync", "m"),
    "__activemask": ("active", ""),
    "__all_sync": ("all", "mv"),
    "__any_sync": ("any", "mv"),
    "__ballot_sync": ("ballot", "mv"),
    "__shfl_sync": ("shuffle", "mvlw"),
    "__shfl_up_sync": ("up", "mvlw"),
    "__shfl_down_sync": ("down", "mvlw"),
    "__shfl_xor_sync": ("xor", "mvlw"),
    "__match_any_sync": ("match_any", "mv"),
    "cc_match_all": ("match_all", "mv"),
    "__reduce_add_sync": ("add", "mv"),
    "__reduce_min_sync": ("min", "mv"),
    "__reduce_max_sync": ("max", "mv"),
    "__reduce_and_sync": ("and", "mv"),
    "__reduce_or_sync": ("or", "mv"),
    "__reduce_xor_sync": ("bitxor", "mv"),
    # HIP's, of the lanes that are active
    "__all": ("all", "v"),
    "__any": ("any", "v"),
    "__ballot": ("ballot", "v"),
    "__shfl": ("shuffle", "vlw"),
    "__shfl_up": ("up", "vlw"),
    "__shfl_down": ("down", "vlw"),
    "__shfl_xor": ("xor", "vlw"),
    # of tiles
    "cc_tile_sync": ("sync", "t"),
    "cc_tile_all": ("all", "vt"),
    "cc_tile_any": ("any", "vt"),
    "cc_tile_ballot": ("ballot", "vt"),
    "cc_tile_shfl": ("shuffle", "vlt"),
    "cc_tile_shfl_up": ("up", "vlt"),
    "cc_tile_shfl_down": ("down", "vlt"),
    "cc_tile_shfl_xor": ("xor", "vlt"),
    "cc_tile_match_any": ("match_any", "vt"),
    **{f"cc_tile_{name}": (name, "vt") for name in ("add", "min", "max", "and", "or", "bitxor")},
    **{f"cc_tile_{name}": (name, "vt") for name in OPERATIONS if name.startswith("scan")},
    # of OpenCL's sub-groups
    "sub_group_barrier": ("sync", "--"),
    "sub_group_all": ("all", "v"),
    "sub_group_any": ("any", "v"),
    "sub_group_broadcast": ("shuffle", "vl"),
    "sub_group_shuffle": ("shuffle", "vl"),
    "sub_group_shuffle_xor": ("xor", "vl"),
    "sub_group_shuffle_up": ("up", "vl"),
    "sub_group_shuffle_down": ("down", "vl"),
    **{f"sub_group_reduce_{name}": (name, "v") for name in ("add", "min", "max")},
    **{f"sub_group_scan_inclusive_{name}": (f"scan_{name}", "v") for name in ("add", "min", "max")},
    **{f"sub_group_scan_exclusive_{name}": (f"scan_exclusive_{name}", "v") for name in ("add", "min", "max")},
}

_TYPES = {"i": 0, "j": 1, "l": 2, "m": 3, "x": 2, "y": 3, "f": 4, "d": 5}
_BY_LANES = 32
"""Flag of an operation of all lanes that get there: no mask and no tile says who takes part."""

_BARRIER, _COLLECTIVE, _WARP = 1, 2, 3


def is_warp_operation(instruction: ir.Instruction) -> bool:
    """Whether an instruction is an operation of a warp."""
    return called_builtin(instruction) in FUNCTIONS


def hand_over(operation: ir.Instruction, names: Names) -> list[str]:
    """Hand a lane's arguments to the runtime: a value, a mask, a lane or distance, a width."""
    call = parse_call(operation)
    _, layout = FUNCTIONS[builtin_name(call.name)]
    places = {word: names.unique("x") for word in range(WORDS)}
    texts = [
        f"{place} = getelementptr [{WORDS} x i64], ptr %cc.warps, i64 %cc.wi, i64 {word}"
        for word, place in places.items()
    ]
    texts += [f"store i64 0, ptr {place}" for place in places.values()]
    for (type_, value), letter in zip(call.arguments, layout, strict=False):
        word = _PLACES[letter]
        if word != _IGNORED:
            texts.append(f"store {type_.split(' ')[0]} {value}, ptr {places[word]}")
    return texts


def take(operation: ir.Instruction, result: str, names: Names) -> list[str]:
    """Take a lane's result."""
    address = names.unique("x")
    word = f"getelementptr [{WORDS} x i64], ptr %cc.warps, i64 %cc.wi, i64 0"
    if operation.type != "i1":
        return [f"{address} = {word}", f"{result} = load {operation.type}, ptr {address}"]
    return [
        f"{address} = {word}",
        f"{address}.w = load i64, ptr {address}",
        f"{result} = trunc i64 {address}.w to i1",
    ]


def _code(operation: ir.Instruction) -> tuple[int, int]:
    """Operation and type, as the runtime numbers them."""
    symbol = parse_call(operation).name
    name = builtin_name(symbol)
    kind, layout = FUNCTIONS[name]
    types = symbol[len(f"_Z{len(name)}{name}") :]
    position = layout.find("v")
    letter = types[position : position + 1] if position >= 0 else "i"
    if letter not in _TYPES:
        raise UnsupportedError(f"{operation.where}{name} of this type is not supported")
    alone = "m" not in layout and "t" not in layout
    return OPERATIONS.index(kind) | (_BY_LANES if alone else 0), _TYPES[letter]


def cut_codes(
    cutters: list[ir.Instruction | None], collectives: dict[int, tuple[int, int]], turns: list[int]
) -> list[tuple[int, int, int, int]]:
    """What stands before each segment, as the runtime reads it: kind, operation, type.

    Beside the k-th there is the number of the segment that is the k-th as the program runs. Empty where
    `turns` is.
    """
    codes = []
    for turn, (number, cutter) in zip(turns, enumerate(cutters), strict=False):
        if cutter is None:
            codes.append((0, 0, 0, turn))
        elif is_warp_operation(cutter):
            codes.append((_WARP, *_code(cutter), turn))
        elif number in collectives:
            codes.append((_COLLECTIVE, *collectives[number], turn))
        else:
            codes.append((_BARRIER, 0, 0, turn))
    return codes


_QUERIES = {
    # Values of 64 bits; each is cut to the 32 that OpenCL C has for it.
    "get_sub_group_local_id": ["{r}.v = urem i64 %cc.wi, {warp}"],
    "get_sub_group_id": ["{r}.v = udiv i64 %cc.wi, {warp}"],
    "get_num_sub_groups": ["{r}.u = add i64 %cc.items, {less}", "{r}.v = udiv i64 {r}.u, {warp}"],
    "get_enqueued_num_sub_groups": ["{r}.v = add i64 {enqueued}, 0"],
    "get_max_sub_group_size": ["{r}.v = add i64 {most}, 0"],
    "get_sub_group_size": [
        "{r}.s = urem i64 %cc.wi, {warp}",
        "{r}.f = sub i64 %cc.wi, {r}.s",
        "{r}.l = sub i64 %cc.items, {r}.f",
        "{r}.c = icmp ult i64 {r}.l, {warp}",
        "{r}.v = select i1 {r}.c, i64 {r}.l, i64 {warp}",
    ],
}


def query(name: str, result: str, warp: int, items: int) -> list[str]:
    """Code for a query of OpenCL's about sub-groups; empty where it is none."""
    texts = _QUERIES.get(name, [])
    numbers = {"warp": warp, "less": warp - 1, "enqueued": -(-items // warp), "most": min(warp, items)}
    return [text.format(r=result, **numbers) for text in texts]
