"""The verbs for who writes a schema: what editors know of it."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from .verbs import EPILOG, OK, run_verb


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Adds them to a command line."""
    _add_schema(commands)


# ----------------------------------------------------------------------------------------------------
# schema


def _add_schema(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "schema", help="print a JSON Schema of what a schema may hold, for editors", epilog=EPILOG
    )
    parser.set_defaults(run=run_verb, work=_schema, verb="schema")


def _schema(_: argparse.Namespace) -> int:
    from . import json_schema

    sys.stdout.write(json_schema.text())
    return OK
