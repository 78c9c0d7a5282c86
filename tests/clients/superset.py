"""Sends a data set to the server as Superset does: rendered by Jinja, then inside of another SELECT.

Superset itself is not installed. `filter_values` and `where_in` are stand-ins that do what its documentation says of them.
"""

import sys
from pathlib import Path

import jinja2
import psycopg


def where_in(values):
    return "(" + ", ".join("'" + value.replace("'", "''") + "'" for value in values) + ")"


def rendered(text, chosen):
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined)
    environment.filters["where_in"] = where_in
    return environment.from_string(text).render(filter_values=lambda column: chosen.get(column, []))


def inside(select, rest):
    return f"SELECT * FROM ({select}) AS virtual_table {rest}"


template = Path(sys.argv[1]).read_text()
with psycopg.connect() as connection:
    # How Superset learns of the columns.
    cursor = connection.execute(inside(rendered(template, {}), "LIMIT 1"))
    types = {column.name: connection.adapters.types[column.type_code].name for column in cursor.description}
    assert types == {
        "topic": "text", "question": "text", "answer": "text", "found": "bool", "confidence": "float8", "n": "int4",
        "title": "text", "uri": "text", "section": "text", "page_from": "int4", "page_to": "int4", "quote": "text",
        "support": "float8",
    }, types

    # One filter, chosen values with quotes in them, and what an attacker would choose.
    france, laptop = "What's the capital of France?", "When is a laptop replaced?"
    for chosen, expected in [
        ([laptop], [(laptop, "laptops.md")]),
        ([france], [(france, None)]),
        (["x') OR true --"], []),
    ]:
        select = rendered(template, {"question": chosen})
        rows = connection.execute(inside(select, "WHERE question = ANY (%s) ORDER BY question LIMIT 1000"), [chosen]).fetchall()
        assert [(row[1], row[7]) for row in rows] == expected, rows

    # A chart: how many questions have an answer, by topic.
    chart = f"""SELECT topic, count(DISTINCT question), count(n), bool_or(found)
                FROM ({rendered(template, {})}) AS virtual_table GROUP BY topic ORDER BY topic"""
    rows = connection.execute(chart).fetchall()
    assert rows == [("other", 1, 0, False), ("things", 1, 1, True), ("time", 1, 1, True)], rows
print("all as expected")
