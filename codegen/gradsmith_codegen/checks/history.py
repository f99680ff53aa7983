"""What an operator says of its versions."""

from __future__ import annotations

from collections.abc import Iterator

from ..model import Op
from .registry import Finding, Scope, op_rule


@op_rule("G901", needs=("history", "since_version"))
def versions_out_of_order(op: Op, scope: Scope) -> Iterator[Finding]:
    """The versions of an operator's history do not begin with its `since_version`, do not ascend, or go
    beyond the file's."""
    first = op.since_version or scope.document.since_version
    latest = max(first, scope.document.since_version)
    last = 0
    for revision in op.history:
        version = revision.version
        told = ""
        if not last and version != first:
            told = f"begins with version {version}; expected {first}, since which the operator is there"
        elif version <= last:
            told = f"has version {version} behind {last}; expected a later one"
        elif version > latest:
            told = f"has version {version}; expected {latest} at most, the version of the file"
        if told:
            yield Finding(f"the history of operator '{op.name}' {told}", revision.at("version"))
            return
        last = version
