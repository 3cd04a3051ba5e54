# SPDX-License-Identifier: BSL-1.0
"""An executor that runs nothing: its profile is made up, its iterations take what the simulator says, times FACTOR.

usage: fake_executor.py HETPLAN FACTOR [fails] profile|run ...
"""

import json
import pathlib
import subprocess
import sys

cli, factor, arguments = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
fails = arguments[0] == "fails"  # fails on data-parallel plans
if fails:
    arguments.pop(0)


def option(name):
    return arguments[arguments.index(name) + 1]


def chain(names):
    return [{"from": a, "to": b, "bytes": 4000} for a, b in zip(names, names[1:])]


if arguments[0] == "profile":
    network, cluster = arguments[1], json.loads(pathlib.Path(arguments[2]).read_text())
    if network == "towers":
        left, right, rest = ["a0", "a1", "a2"], ["b0", "b1"], ["join", "head", "last"]
        edges = chain(left) + chain(right) + chain(rest) + [{"from": "a2", "to": "join", "bytes": 4000}, {"from": "b1", "to": "join", "bytes": 4000}]
        names = left + right + rest
    else:
        names = [f"l{i}" for i in range(8)]
        edges = chain(names)
    batches = [int(b) for b in option("--batches").split(",")]
    layers = []
    for i, name in enumerate(names):
        profile = {}
        for d in cluster["devices"]:
            s = float(d["kind"].partition("/")[2] or 1) * (1 + i % 3) * 1e-4
            profile[d["kind"]] = {"batch": batches, "forward": [s * b for b in batches], "backward": [2 * s * b for b in batches]}
        layers.append({"name": name, "weight": 8000, "profile": profile})
    model = {"format": "hetplan/model/1", "name": network, "layers": layers, "edges": edges}
    pathlib.Path(option("--out-model")).write_text(json.dumps(model))
    pathlib.Path(option("--out-cluster")).write_text(json.dumps(cluster))
else:
    model, cluster, plan = arguments[1:4]
    said = json.loads(subprocess.run([cli, "simulate", model, cluster, plan, "--json"], check=True, capture_output=True, text=True).stdout)
    if fails and "data-parallel" in plan:
        print("fake: line that nobody wants\nfake: out of order", file=sys.stderr)
        sys.exit(1)
    slow = option("--slow") if "--slow" in arguments else "wait"
    one = factor * said["latency"]
    print(json.dumps({"executor": "fake", "predicted": said["latency"], "iterations": [one, 0.99 * one, 1.01 * one], "measured": one, "paced": True, "slow": slow,
                      "overruns": 2}))
