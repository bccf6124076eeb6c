"""How layers of configuration lie over each other."""

from typing import Any

import pytest

from sidecar.config.merge import Merged, origin_in


def merged(*layers: dict[str, Any]) -> Merged:
    result = Merged()
    for number, layer in enumerate(layers, 1):
        result.add(layer, f"layer {number}")
    return result


def test_tables_are_merged_by_key_and_lists_are_replaced() -> None:
    result = merged({"t": {"a": 1, "b": [1, 2]}, "x": 1}, {"t": {"b": [3], "c": {"d": 4}}})

    assert result.data == {"t": {"a": 1, "b": [3], "c": {"d": 4}}, "x": 1}


def test_each_value_remembers_its_layer() -> None:
    result = merged({"t": {"a": 1, "b": [{"n": 1}]}}, {"t": {"b": [{"n": 2}]}})

    assert origin_in(result.origins, ("t", "a")) == "layer 1"
    assert origin_in(result.origins, ("t", "b", 0, "n")) == "layer 2"
    assert origin_in(result.origins, ("t", "absent")) is None


def test_merging_leaves_the_layers_alone() -> None:
    first, second = {"t": {"a": 1}}, {"t": {"b": {"c": 2}}}
    result = merged(first, second, {"t": {"a": 9, "b": {"c": 9}}})

    assert (first, second) == ({"t": {"a": 1}}, {"t": {"b": {"c": 2}}})
    assert result.data == {"t": {"a": 9, "b": {"c": 9}}}


def test_deny_rules_of_an_earlier_layer_stay_and_others_go() -> None:
    deny, allow = {"decision": "deny", "tool": "rm"}, {"decision": "allow", "tool": "ls"}
    later = {"decision": "allow", "tool": "rm"}

    def layer(*rules: dict[str, Any]) -> dict[str, Any]:
        return {"agents": {"a": {"approvals": {"rules": list(rules)}}}}

    result = merged(layer(allow, deny), layer(later), layer(), layer(deny))

    assert result.data == layer(deny)
    assert merged(layer(allow, deny), layer(later)).data == layer(deny, later)


@pytest.mark.parametrize("key", ["api_key_command", "api_key_secret"])
def test_a_later_source_of_the_key_replaces_the_earlier_one(key: str) -> None:
    result = merged({"endpoints": {"e": {"api_key_env": "A", "max_retries": 1}}}, {"endpoints": {"e": {key: "b"}}})

    assert result.data["endpoints"]["e"] == {"max_retries": 1, key: "b"}
    assert origin_in(result.origins, ("endpoints", "e", "api_key_env")) is None
