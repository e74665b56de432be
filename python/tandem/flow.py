"""Values as one line of YAML, as scenarios and --set read them. Needs nothing but Python."""
import json
import math
import re

WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
NUMBER = re.compile(r"-?\d+(\.\d+)?(e[-+]?\d+)?")


def _number(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isnan(value) or math.isinf(value):
            return json.dumps(str(value))
        text = repr(value)
        return text if NUMBER.fullmatch(text) else f"{value:.17g}"
    return str(value)


def flow(value):
    """One line of YAML. Of a map, what is None is left out."""
    if value is None:
        return "null"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {flow(v)}" for k, v in value.items() if v is not None) + "}"
    if isinstance(value, (list, tuple, range)):
        return "[" + ", ".join(flow(v) for v in value) + "]"
    if isinstance(value, str):
        return value if WORD.fullmatch(value) and value not in ("null", "true", "false") else json.dumps(value)
    return _number(value)
