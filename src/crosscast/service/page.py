"""The documentation of the service: OpenAPI, and a page that loads nothing from elsewhere."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec

from crosscast.service.questions import QUESTIONS, Endpoint

SAFE = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'"}
"""Headers of the page: it needs no scripts, fonts or pictures."""

_HEAD = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Crosscast</title>
<style>
  body { font: 16px sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em }
  td, th { text-align: left; vertical-align: top; padding: .2em 1em .2em 0 }
  body, td { overflow-wrap: anywhere }
  pre { background: #eee; color: #000; padding: .6em; white-space: pre-wrap }
</style>
<main>
<h1>Crosscast</h1>
<p>Errors are <code>{"error": "a sentence"}</code> with a status code. Times are seconds, powers watts.</p>
"""


def documented(question: Endpoint) -> dict[str, object]:
    """Return the OpenAPI documentation of a request body."""
    content = {"application/json": {"schema": _schema(question), "example": question.example}}
    return {"requestBody": {"required": True, "content": content}}


def _schema(question: Endpoint) -> dict[str, Any]:
    _, parts = msgspec.json.schema_components((question.request_type,))
    # Requests contain no nested structures.
    schema: dict[str, Any]
    (schema,) = parts.values()
    return schema


@cache
def page(paths: Sequence[str]) -> str:
    """Return the HTML of all endpoints, with the fields and an example of each."""
    links = "".join(f'<li><a href="{path}">GET {path}</a></li>' for path in paths)
    return f"{_HEAD}<ul>{links}</ul>{''.join(map(_section, QUESTIONS))}</main></html>"


def _section(question: Endpoint) -> str:
    rows = "".join(
        f"<tr><td><code>{_escaped(name)}</code></td><td>{_escaped(field.get('description', ''))}</td>"
        f"<td>{_escaped(json.dumps(field['default'])) if 'default' in field else ''}</td></tr>"
        for name, field in _schema(question)["properties"].items()
    )
    example = _escaped(json.dumps(question.example))
    return (
        f"<h2>POST {question.path}</h2><p>{_escaped(question.about)}</p>"
        f"<pre>curl --unix-socket predict.sock http://localhost{question.path} -d '{example}'</pre>"
        f"<table><tr><th>field</th><th>what it says</th><th>default</th></tr>{rows}</table>"
    )


def _escaped(text: str) -> str:
    return html.escape(text, quote=False)
