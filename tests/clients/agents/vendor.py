"""What the vendors' interfaces refuse in a tool's schema, as they receive it: clients convert schemas in their own ways."""

REFUSED = {
    "Anthropic": set(),
    "Gemini": {"additionalProperties", "uniqueItems", "oneOf", "const", "$ref", "default"},
    # Strict conversion adds `additionalProperties: false`, and `anyOf` for what may be null.
    "Chat": {"uniqueItems", "oneOf", "default", "$ref"},
    "Responses": {"uniqueItems", "oneOf", "default", "$ref"},
}


def faults(vendor, place, schema, root=True):
    """`place: keyword` for each thing that the vendor refuses."""
    if schema is None:
        return  # Takes no arguments, as Google's libraries say it.
    for keyword in REFUSED[vendor] & set(schema):
        yield f"{place}: {keyword}"
    if "type" not in schema and "anyOf" not in schema:
        yield f"{place}: no type"
    if root and "properties" not in schema:
        yield f"{place}: no properties"
    for name, inner in schema.get("properties", {}).items():
        yield from faults(vendor, f"{place}.{name}", inner, root=False)
    for inner in [*schema.get("anyOf", []), *([schema["items"]] if "items" in schema else [])]:
        yield from faults(vendor, f"{place}[]", inner, root=False)
