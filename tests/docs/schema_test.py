# SPDX-License-Identifier: BSL-1.0
"""The JSON schemas take good documents and refuse broken ones, and what they refuse the program refuses, too."""

import copy
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("HETPLAN_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
CLI = os.environ.get("HETPLAN_CLI", "")
REFERENCE = SOURCE / "docs/reference"
SILENT = {"$schema", "$id", "$defs", "title", "description", "default"}
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool}


def is_of(value, kind):
    if kind in TYPES:
        return isinstance(value, TYPES[kind])
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return kind == "number" or value == int(value)


def key(value):
    """Equal for equal values: 1 and 1.0, but not 1 and true."""
    return json.dumps(float(value) if is_of(value, "number") else value, sort_keys=True)


def faults(value, schema, root, at=""):
    """What a schema says against a value: all of JSON Schema that our schemas use. A keyword that is not here is an error."""
    if isinstance(schema, bool):
        return [] if schema else [f"{at}: not allowed"]
    found = []

    def inner(part, which=value, where=at):
        return faults(which, part, root, where)

    def say(ok, rule):
        if not ok:
            found.append(f"{at}: {rule}")

    def count(parts):
        return sum(not inner(p) for p in parts)

    array, thing = isinstance(value, list), isinstance(value, dict)
    number, text = is_of(value, "number"), isinstance(value, str)
    for rule, wanted in schema.items():
        if rule in SILENT or rule in ("then", "else"):
            continue
        elif rule == "$ref":
            found += inner(root["$defs"][wanted.removeprefix("#/$defs/")])
        elif rule == "type":
            kinds = wanted if isinstance(wanted, list) else [wanted]
            say(any(is_of(value, k) for k in kinds), f"expected {wanted}")
        elif rule == "const":
            say(key(value) == key(wanted), f"expected {wanted}")
        elif rule == "enum":
            say(key(value) in map(key, wanted), f"expected one of {wanted}")
        elif rule == "minimum":
            say(not number or value >= wanted, f"expected >= {wanted}")
        elif rule == "exclusiveMinimum":
            say(not number or value > wanted, f"expected > {wanted}")
        elif rule == "maximum":
            say(not number or value <= wanted, f"expected <= {wanted}")
        elif rule == "minLength":
            say(not text or len(value) >= wanted, "expected a longer text")
        elif rule == "pattern":
            say(not text or re.search(wanted, value), f"expected {wanted}")
        elif rule == "minItems":
            say(not array or len(value) >= wanted, f"expected at least {wanted} elements")
        elif rule == "maxItems":
            say(not array or len(value) <= wanted, f"expected at most {wanted} elements")
        elif rule == "uniqueItems":
            say(not array or len(set(map(key, value))) == len(value), "expected each once")
        elif rule == "prefixItems":
            for i, (part, each) in enumerate(zip(wanted, value if array else [])):
                found += inner(part, each, f"{at}/{i}")
        elif rule == "items":
            for i, each in enumerate(value if array else []):
                found += inner(wanted, each, f"{at}/{i}")
        elif rule == "properties":
            for name, part in wanted.items():
                if thing and name in value:
                    found += inner(part, value[name], f"{at}/{name}")
        elif rule == "additionalProperties":
            for name in value if thing else []:
                if name not in schema.get("properties", {}):
                    found += inner(wanted, value[name], f"{at}/{name}")
        elif rule == "required":
            say(not thing or all(name in value for name in wanted), f"expected {wanted}")
        elif rule == "minProperties":
            say(not thing or len(value) >= wanted, f"expected at least {wanted} members")
        elif rule == "dependentRequired":
            for name, others in wanted.items():
                say(not thing or name not in value or all(o in value for o in others), f"{name} needs {others}")
        elif rule == "allOf":
            for part in wanted:
                found += inner(part)
        elif rule == "anyOf":
            say(count(wanted) >= 1, f"expected one of {wanted}")
        elif rule == "oneOf":
            say(count(wanted) == 1, f"expected exactly one of {wanted}")
        elif rule == "not":
            say(inner(wanted), f"expected not {wanted}")
        elif rule == "if":
            found += inner(schema.get("else" if inner(wanted) else "then", True))
        else:
            raise ValueError(f"schema keyword {rule}")
    return found


def schema_of(kind):
    return json.loads((REFERENCE / f"{kind}.schema.json").read_text())


def changed(document, path, value):
    """A copy with another value at /path/to/it; `None` takes it out."""
    d = copy.deepcopy(document)
    *way, last = [int(p) if p.isdigit() else p for p in path.strip("/").split("/")]
    there = d
    for step in way:
        there = there[step]
    if value is None:
        del there[last]
    elif isinstance(there, list) and last == len(there):
        there.append(value)
    else:
        there[last] = value
    return d


PASS = {"batch": [1, 8], "seconds": ["20 ms", 0.06]}
STEP = {"batch": [1, 8], "seconds": ["5 ms", "9 ms"]}
GOOD = {
    "cloud": {
        "format": "hetplan/cloud/1", "name": "street", "load_bandwidth": "2 GB/s", "ring": {"period": "100 ms", "group": 2, "max_age": 9},
        "servers": [
            {"name": "pole", "count": 3, "gpus": [{"kind": "P100", "memory": "16 GB", "count": 2}], "uplink": "1 Gbit/s", "latency": 0.001},
            {"name": "shop", "uplink": 1e8, "downlink": 2e8, "load_bandwidth": 1e9,
             "devices": [{"name": "phone", "kind": "phone", "memory": 8e9, "bandwidth": "100 Mbit/s", "latency": "5 ms"}]}]},
    "services": {
        "format": "hetplan/services/1",
        "services": [
            {"name": "image", "latency": "2 s", "request_bytes": "100 kB", "response_bytes": 500, "weights": 1e8,
             "variants": [{"name": "one", "gpu": "P100", "compute": 0.5, "memory": "2 GB", "pass": PASS},
                          {"name": "two", "gpu": "P100", "tensor_parallel": 1, "pipeline_parallel": 2, "memory": "2 GB",
                           "across_servers": True, "pass": PASS},
                          {"name": "hand", "gpu": "phone", "memory": 2e9, "pass": PASS}]},
            {"name": "video", "latency": 1, "frame_latency": "300 ms", "rate": 30, "frames": 90,
             "variants": [{"name": "one", "gpu": "P100", "memory": "2 GB", "pass": PASS}]},
            {"name": "chat", "latency": "9 s", "tokens": {"in": 20.5, "out": 8}, "bytes_per_token": 4, "batching": "continuous",
             "prefill_chunk": 16, "ttft": "2 s",
             "variants": [{"name": "one", "gpu": "P100", "memory": "2 GB", "cache_tokens": 4096, "pass": {**PASS, "per_token": "1 us"},
                           "step": {**STEP, "per_cached_token": "2 us"}}]},
            {"name": "talk", "ttft": 1, "time_between_tokens": "90 ms", "tokens": {"in": 20, "out": 8},
             "variants": [{"name": "one", "gpu": "P100", "memory": "16 GB",
                           "judged": {"model": "tinyllama-1.1b", "device": "v100", "weights": "q8_0", "largest": 4}}]}]},
    "deployment": {
        "format": "hetplan/deployment/1",
        "instances": [{"service": "image", "gpus": [["pole0", 0]], "batch": 8},
                      {"service": "image", "variant": "hand", "device": ["shop", "phone"], "batch": 2},
                      {"service": "video", "gpus": [["pole1", 0], ["pole1", 1]], "batch": 8, "frames": 4, "groups": 2}],
        "changes": [{"at": "500 ms", "instances": [{"service": "chat", "gpus": [["pole2", 1]], "batch": 8}]}]},
    "faults": {
        "format": "hetplan/faults/1",
        "events": [{"at": 0.1, "kind": "gpu_fails", "server": "pole0", "gpu": 1},
                   {"at": 0.1, "kind": "ring_cut", "server": "pole1", "until": "400 ms"},
                   {"at": 0.2, "kind": "slow_link", "server": "pole1", "until": 0.4, "factor": 0.5},
                   {"at": 0.2, "kind": "device_leaves", "server": "shop", "device": "phone"},
                   {"at": 0.3, "kind": "wrong_state", "server": "pole2", "until": 0.4},
                   {"at": "0.4 s", "kind": "server_fails", "server": "pole2"},
                   {"at": 0.45, "kind": "server_leaves", "server": "shop"}]},
}
BROKEN = {
    "cloud": [("/format", "hetplan/cloud/2"), ("/name", None), ("/servers", []), ("/ring/period", 0), ("/ring/max_age", 0),
              ("/ring/group", 1.5), ("/servers/0/uplink", None), ("/servers/0/count", 0), ("/servers/0/gpu", []),
              ("/servers/0/gpus/0/memory", -1), ("/servers/1/devices/0/kind", ""), ("/load_bandwidth", "fast")],
    "services": [("/services", []), ("/services/0/latency", None), ("/services/0/variants", []), ("/services/0/variants/0/compute", 1.5),
                 ("/services/0/variants/0/pass/batch", []), ("/services/0/variants/0/pass/batch/0", 0),
                 ("/services/0/variants/0/step", STEP), ("/services/2/variants/0/step", None), ("/services/0/frame_latency", 1),
                 ("/services/2/tokens/out", 0), ("/services/2/rate", 20), ("/services/0/batching", "continuous"),
                 ("/services/2/ttft", 0), ("/services/1/ttft", 1), ("/services/2/prefill_chunk", 0), ("/services/3/prefill_chunk", 16),
                 ("/services/0/prefill_chunk", 16), ("/services/2/variants/0/cache_tokens", 0.5),
                 ("/services/0/variants/0/cache_tokens", 100), ("/services/2/variants/0/step/per_cached_token", -1),
                 ("/services/2/latency", None), ("/services/3/ttft", None), ("/services/3/variants/0/judged/model", None),
                 ("/services/3/variants/0/judged/device", None), ("/services/3/variants/0/judged/cluster", "v100"),
                 ("/services/3/variants/0/pass", PASS), ("/services/3/variants/0/step", STEP),
                 ("/services/0/variants/0/judged", {"model": "tinyllama-1.1b", "device": "v100"}),
                 ("/services/1/rate", "30"), ("/services/0/variants/1/across_servers", 1), ("/services/1/frames", 2.5)],
    "deployment": [("/instances", None), ("/instances/0/batch", None), ("/instances/0/gpus", []), ("/instances/0/gpus/0", ["pole0"]),
                   ("/instances/0/gpus/0/1", -1), ("/instances/0/gpus/0/1", "0"), ("/instances/1/device", ["shop"]),
                   ("/instances/0/device", ["shop", "phone"]), ("/instances/2/groups", 0), ("/changes/0/at", 0),
                   ("/changes/0/instances", None)],
    "faults": [("/events", None), ("/events/0/kind", "gpu_leaves"), ("/events/0/server", None), ("/events/0/gpu", None),
               ("/events/0/until", 1), ("/events/1/until", None), ("/events/1/factor", 0.5), ("/events/2/factor", 0),
               ("/events/3/device", None), ("/events/5/device", "phone"), ("/events/0/at", -1)],
    "serving-sweep": [("/clouds", []), ("/requests", None), ("/cycles", []), ("/cycles", [1, 1]), ("/systems/0", 3), ("/planners", [])],
}
SWEEP = {"format": "hetplan/serving-sweep/1", "clouds": ["cloud.json"], "services": ["services.json"], "requests": ["requests.csv"],
         "faults": "faults.json", "cycles": [0, "300 ms"], "systems": ["epara", "lru"]}
REQUESTS = "arrival,service,server,tokens_in,tokens_out,frames\n" + "".join(
    f"{0.01 * i},{('image', 'video', 'chat')[i % 3]},{('pole0', 'pole1', 'shop')[i % 3]},,,\n" for i in range(60))


class schemas(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.at = pathlib.Path(folder.name)
        (self.at / "requests.csv").write_text(REQUESTS)

    def run_program(self, documents, command):
        for kind, document in documents.items():
            (self.at / f"{kind}.json").write_text(json.dumps(document))
        return subprocess.run([CLI, *command.split()], cwd=self.at, capture_output=True, text=True, timeout=60, check=False)

    def serve(self, documents):
        return self.run_program(documents,
                                "serve cloud.json services.json requests.csv --deployment deployment.json --faults faults.json --json")

    def test_good_documents_pass_and_broken_ones_do_not(self):
        for kind, document in {**GOOD, "serving-sweep": SWEEP}.items():
            schema = schema_of(kind)
            self.assertEqual(faults(document, schema, schema), [], kind)
            for path, value in BROKEN[kind]:
                with self.subTest(kind=kind, path=path, value=value):
                    self.assertNotEqual(faults(changed(document, path, value), schema, schema), [])

    def test_examples_of_the_page_pass(self):
        seen = set()
        for text in re.findall(r"```json\n(.*?)```", (REFERENCE / "files.md").read_text(), flags=re.S):
            document = json.loads(re.sub(r"^ *//.*\n", "", text, flags=re.M))
            kind = document["format"].split("/")[1]
            if (REFERENCE / f"{kind}.schema.json").exists():
                schema = schema_of(kind)
                self.assertEqual(faults(document, schema, schema), [], text)
                seen.add(kind)
        self.assertGreaterEqual(seen, {"model", "cluster", "job", "plan", "sweep", "timeline", "tasks"})

    @unittest.skipUnless(CLI, "the command line program is not built")
    def test_the_program_reads_and_refuses_the_same(self):
        done = self.serve(GOOD)
        self.assertEqual(done.returncode, 0, done.stderr)
        for kind in GOOD:
            for path, value in BROKEN[kind]:
                with self.subTest(kind=kind, path=path, value=value):
                    refused = self.serve({**GOOD, kind: changed(GOOD[kind], path, value)})
                    self.assertEqual(refused.returncode, 2, refused.stdout)
                    self.assertIn(f"{kind}.json: ", refused.stderr)
        for path, value in BROKEN["serving-sweep"]:
            with self.subTest(path=path, value=value):
                refused = self.run_program({**GOOD, "sweep": changed(SWEEP, path, value)}, "sweep sweep.json")
                self.assertEqual(refused.returncode, 2, refused.stdout)

    @unittest.skipUnless(CLI, "the command line program is not built")
    def test_what_the_program_prints_is_a_history(self):
        schema = schema_of("history")
        history = json.loads(self.serve(GOOD).stdout)
        self.assertEqual(faults(history, schema, schema), [])
        for path, value in [("/status", "done"), ("/requests", -1), ("/outcomes/lost", None), ("/services/0/latency/p95", 1),
                            ("/servers/0/credit", "1"), ("/attainment", 1.5), ("/servers", [])]:
            with self.subTest(path=path, value=value):
                self.assertNotEqual(faults(changed(history, path, value), schema, schema), [])

    def test_the_validator_says_what_json_schema_says(self):
        with self.assertRaises(ValueError):
            faults(1, {"multipleOf": 2}, {})
        self.assertEqual(faults([1], {"items": False}, {}), ["/0: not allowed"])
        self.assertEqual(faults(True, {"type": "number"}, {}), [": expected number"])
        self.assertEqual(faults(4.0, {"type": "integer"}, {}), [])


if __name__ == "__main__":
    unittest.main()
