"""What speedscope's published schema asks of a file, in our words; and the schema itself, applied."""

UNITS = {"bytes", "microseconds", "milliseconds", "nanoseconds", "none", "seconds"}
SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def check_frame(frame):
    assert isinstance(frame, dict) and isinstance(frame["name"], str), frame
    assert isinstance(frame.get("file", ""), str), frame
    assert is_number(frame.get("line", 1)) and is_number(frame.get("col", 1)), frame
    assert set(frame) <= {"name", "file", "line", "col"}, frame


def check_sampled(profile, frames):
    assert len(profile["samples"]) == len(profile["weights"])
    assert all(is_number(weight) and weight >= 0 for weight in profile["weights"])
    for stack in profile["samples"]:
        assert all(isinstance(frame, int) and 0 <= frame < frames for frame in stack), stack


def check_evented(profile, frames):
    """Frames close in the reverse order of their opening, and time does not run backwards."""
    opened, now = [], profile["startValue"]
    for event in profile["events"]:
        assert event["type"] in ("O", "C") and is_number(event["at"]), event
        assert event["at"] >= now and 0 <= event["frame"] < frames, event
        now = event["at"]
        if event["type"] == "O":
            opened.append(event["frame"])
        else:
            assert opened.pop() == event["frame"], event
    assert not opened and now <= profile["endValue"]


def check(file):
    """Raises AssertionError or KeyError where the file breaks a rule."""
    assert file["$schema"] == SCHEMA
    for key, kind in (("name", str), ("exporter", str)):
        assert isinstance(file.get(key, ""), kind), key
    profiles, frames = file["profiles"], file["shared"]["frames"]
    assert isinstance(profiles, list) and profiles
    assert 0 <= file.get("activeProfileIndex", 0) < len(profiles)
    for frame in frames:
        check_frame(frame)
    for profile in profiles:
        assert isinstance(profile["name"], str) and profile["unit"] in UNITS, profile
        assert is_number(profile["startValue"]) and is_number(profile["endValue"])
        assert profile["startValue"] <= profile["endValue"]
        {"sampled": check_sampled, "evented": check_evented}[profile["type"]](profile, len(frames))


KINDS = {"object": dict, "array": list, "string": str}


def faults(schema, rule, value, at="$"):
    """What a JSON schema of the kind that speedscope publishes has against a value."""
    if "$ref" in rule:
        *_, name = rule["$ref"].split("/")
        return faults(schema, schema["definitions"][name], value, at)
    if "anyOf" in rule:
        all_faults = [faults(schema, choice, value, at) for choice in rule["anyOf"]]
        return min(all_faults, key=len)
    kind = rule.get("type")
    if kind == "number" and not is_number(value) or kind in KINDS and \
            not isinstance(value, KINDS[kind]):
        return [f"{at} is no {kind}"]
    found = []
    if "const" in rule and value != rule["const"] or "enum" in rule and value not in rule["enum"]:
        found.append(f"{at} is {value!r}")
    if kind == "object":
        found += [f"{at} has no {key}" for key in rule.get("required", ()) if key not in value]
        for key, inner in rule.get("properties", {}).items():
            if key in value:
                found += faults(schema, inner, value[key], f"{at}.{key}")
    if kind == "array" and "items" in rule:
        for index, item in enumerate(value):
            found += faults(schema, rule["items"], item, f"{at}[{index}]")
    return found
