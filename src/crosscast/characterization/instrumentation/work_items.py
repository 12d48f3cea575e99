"""Work-item functions such as ``get_global_id``, as values of the segment's parameters."""

from __future__ import annotations

from crosscast.characterization.instrumentation.inline import Call

__all__ = ["is_work_item_function", "work_item_value"]

_PER_DIMENSION = {
    "get_local_id": ("%cc.id", "0"),
    "get_group_id": ("%cc.group", "0"),
    "get_local_size": ("%cc.size", "1"),
    "get_enqueued_local_size": ("%cc.enqueued", "1"),
    "get_global_size": ("%cc.global", "1"),
    "get_num_groups": ("%cc.groups", "1"),
    "get_global_offset": ("%cc.offset", "0"),
}
_LINEAR_PARTS = ("group", "enqueued", "id", "global")
_OTHERS = {
    "get_work_dim": "trunc i64 %cc.dims to i32",
    "get_local_linear_id": "add i64 %cc.wi, 0",
    "get_global_linear_id": "call i64 @cc.linear("
    + ", ".join(f"i64 %cc.{part}{d}" for d in range(3) for part in _LINEAR_PARTS)
    + ")",
}


def is_work_item_function(name: str) -> bool:
    """Whether a builtin is a work-item function."""
    return name == "get_global_id" or name in _PER_DIMENSION or name in _OTHERS


def work_item_value(name: str, call: Call, *, small_ids: bool) -> str:
    """Instruction that stands for a call of a work-item function.

    Parameters
    ----------
    name
        Name of the function.
    call
        The call.
    small_ids
        All global ids fit 31 bits.
    """
    if name in _OTHERS:
        return _OTHERS[name]
    dimension = call.arguments[0][1]
    fixed = dimension in ("0", "1", "2")
    if name == "get_global_id":
        return _global_id(dimension, fixed=fixed, small_ids=small_ids)
    if name == "get_local_id" and fixed:
        return f"call i64 @cc.small_sum(i64 0, i64 %cc.id{dimension})"
    stem, other = _PER_DIMENSION[name]
    if fixed:
        return f"add i64 {stem}{dimension}, 0"
    values = ", ".join(f"i64 {stem}{d}" for d in range(3))
    return f"call i64 @cc.pick(i32 {dimension}, {values}, i64 {other})"


def _global_id(dimension: str, *, fixed: bool, small_ids: bool) -> str:
    if fixed and small_ids:
        return f"call i64 @cc.small_sum(i64 %cc.base{dimension}, i64 %cc.id{dimension})"
    if fixed:
        return f"add i64 %cc.base{dimension}, %cc.id{dimension}"
    values = ", ".join(f"i64 %cc.{part}{d}" for part in ("base", "id") for d in range(3))
    return f"call i64 @cc.pick_sum(i32 {dimension}, {values})"
