# SPDX-License-Identifier: BSL-1.0
"""Random valid plans with the numbers that semantics.md, and for language models language.md, gives for them.

    generate.py --seed S --count N [--kind K]

prints {"cases": [{"model", "cluster", "plan", "expected", "kind"}, ...]}. Without --kind the kinds
take turns. The same arguments give the same cases. Numbers are generic, so that ties are rare, but
some layers cost nothing, some edges carry nothing and some routes have no latency. Where semantics.md
leaves the order of simultaneous flows open, a case whose numbers depend on it is drawn again.
"""
import argparse
import contextlib
import itertools
import json
import math
import random
import sys

import semantics

KINDS = ["chain", "dag", "multi_stage", "pipelines", "microbatch_sizes", "tied", "frozen",
         "tensor_parallel", "inference", "generation", "exclusive", "per_link", "unlimited", "priority",
         "chunks", "topologies", "mixed", "block", "shared_tensors", "memory_savers"]
FORMS = ["grid", "fsdp", "zero2", "cuts"]       # what a stage may be besides replicas with one microbatch size
DEEPCEE_KINDS = [*FORMS, "forms"]               # each of them, and any in one plan
LANGUAGE_KINDS = ["language_generation", "language_inference", "language_training"]    # of token models
KINDS += DEEPCEE_KINDS + LANGUAGE_KINDS
TIER_KINDS = ["tiers", "language_tiers"]        # weights below the devices' memory
KINDS += TIER_KINDS
GRANTED = ("exclusive", "per_link")     # the order of simultaneous flows matters
TOPOLOGIES = ["shared", "ring", "star", "mesh", "hierarchical", "explicit"]


def features_of(kind, rng):
    """What a case of this kind has; whatever is not named here stays plain."""
    f = {"dag": rng.random() < 0.25, "several": False, "explicit": False, "pipelines": False,
         "sizes": False, "tied": False, "frozen": rng.random() < 0.1, "tensor_parallel": False,
         "profile": rng.random() < 0.3, "savers": False, "mode": "training", "network": "fair_share", "flows": None,
         "transfers": "overlap", "forms": [], "language": False, "copies": False, "even": False, "tiers": False}
    if kind == "chain":
        f["dag"] = False
    elif kind == "dag":
        f["dag"] = True
    elif kind == "multi_stage":
        f["several"] = f["explicit"] = True
    elif kind in ("pipelines", "tied", "frozen", "tensor_parallel"):
        f[kind] = True
        f["pipelines"] |= kind == "tied" and rng.random() < 0.3
    elif kind == "microbatch_sizes":
        f["sizes"] = True
    elif kind in ("inference", "generation"):
        f["mode"] = kind
        f["several"] = f["explicit"] = rng.random() < 0.3
        f["pipelines"] = rng.random() < 0.2
    elif kind in ("exclusive", "per_link", "unlimited"):
        f["network"] = kind
        f["mode"] = rng.choice(["training", "inference", "generation"])
        f["several"] = f["explicit"] = rng.random() < 0.4
        f["flows"] = rng.choice([None, None, "priority"])
    elif kind == "priority":
        f["network"], f["flows"] = "priority", "priority"
        f["several"] = f["explicit"] = rng.random() < 0.3
    elif kind == "chunks":
        f["network"] = rng.choice(["priority", "priority", "fair_share"])
        f["flows"] = "chunks"
        f["mode"] = rng.choice(["training", "training", "inference"])
        f["several"] = f["explicit"] = rng.random() < 0.3
    elif kind == "block":
        f["transfers"] = "block"
        f["network"] = rng.choice(semantics.POLICIES)
        f["mode"] = rng.choice(["training", "training", "inference", "generation"])
        for name in ("sizes", "pipelines", "tied"):
            f[name] = rng.random() < 0.3
        f["several"] = f["explicit"] = rng.random() < 0.3
    elif kind == "shared_tensors":
        # stages of one device that hold the same tensors: tied layers, or the same layers in several pipelines
        f["tied"] = f["several"] = f["explicit"] = True
        f["pipelines"] = rng.random() < 0.5
        f["mode"] = rng.choice(["training", "training", "inference", "generation"])
    elif kind == "memory_savers":
        f["savers"] = True
        f["several"] = f["explicit"] = rng.random() < 0.5
        f["pipelines"], f["sizes"], f["tied"] = (rng.random() < 0.2 for _ in range(3))
        f["transfers"] = rng.choice(["overlap", "overlap", "block"])
        f["tensor_parallel"] = rng.random() < 0.2
    elif kind == "mixed":
        for name in ("dag", "explicit", "pipelines", "sizes", "tied", "frozen", "tensor_parallel"):
            f[name] = rng.random() < 0.4
        f["several"] = f["explicit"] and rng.random() < 0.7
        f["mode"] = rng.choice(["training", "training", "training", "inference", "generation"])
        f["network"] = rng.choice(semantics.POLICIES)
        f["flows"] = rng.choice([None, "priority", "chunks"])
    elif kind in DEEPCEE_KINDS:
        f["forms"] = FORMS if kind == "forms" else [kind]
        modes = {"grid": ["inference", "generation"], "cuts": ["inference"], "forms": ["inference"]}.get(kind, [])
        f["mode"] = rng.choice(["training"] * 3 + modes)
        f["several"] = f["explicit"] = rng.random() < 0.4
        f["explicit"] |= rng.random() < 0.3
        for name, chance in ("sizes", 0.3), ("dag", 0.3), ("frozen", 0.4), ("tied", 0.15), ("savers", 0.4):
            f[name] = rng.random() < chance
        f["savers"] &= f["mode"] == "training"
        f["tensor_parallel"] = rng.random() < 0.2
        f["pipelines"] = kind == "cuts" and rng.random() < 0.2     # elsewhere they share tensors
        f["network"] = rng.choice(["fair_share", *semantics.POLICIES])
        if kind == "cuts":
            f["transfers"] = rng.choice(["overlap", "overlap", "overlap", "block"])
        if f["transfers"] == "overlap":
            f["flows"] = rng.choice([None, None, "priority", "chunks"])
    elif kind in LANGUAGE_KINDS:
        language_features(f, kind.removeprefix("language_"), rng)
    elif kind == "language_tiers":
        language_features(f, rng.choice(["generation", "generation", "inference", "training"]), rng)
    elif kind == "tiers":
        f["mode"] = rng.choice(["training", "inference", "generation"])
        f["several"] = f["explicit"] = rng.random() < 0.4
        for name, chance in ("dag", 0.3), ("pipelines", 0.2), ("sizes", 0.2), ("tied", 0.4), ("tensor_parallel", 0.3):
            f[name] = rng.random() < chance
        if f["mode"] == "training" and rng.random() < 0.4:
            f["savers"] = True
        if rng.random() < 0.25:
            f["forms"], f["pipelines"] = [rng.choice(["grid", "cuts"] if f["mode"] != "generation" else ["grid"])], False
        f["network"] = rng.choice(["fair_share", *semantics.POLICIES])
        f["transfers"] = "block" if not f["forms"] and rng.random() < 0.2 else "overlap"
    if kind in TIER_KINDS:
        f["tiers"], f["frozen"] = True, True
    if f["mode"] == "generation" and not f["language"]:
        # a group is a microbatch of the plan, and an entry of `flows` names one step of one group
        f["sizes"], f["flows"] = False, None
    return f


def language_features(f, mode, rng):
    f.update(language=True, mode=mode, dag=rng.random() < 0.5, even=rng.random() < 0.2,
             network=rng.choice(["fair_share", "fair_share", "exclusive", *semantics.POLICIES]))
    f["several"] = f["explicit"] = rng.random() < 0.45
    for name, chance in ("pipelines", 0.25), ("tied", 0.15), ("frozen", 0.2), ("tensor_parallel", 0.4):
        f[name] = rng.random() < chance
    if mode != "generation":
        f["sizes"] = rng.random() < 0.2
    f["savers"] = mode == "training" and rng.random() < 0.3
    forms = {"training": FORMS, "inference": ["grid", "cuts"], "generation": ["grid"]}[mode]
    if rng.random() < 0.25:
        f["forms"] = [rng.choice(forms)]
        f["pipelines"] &= f["forms"] == ["cuts"]        # elsewhere they share tensors
    if f["forms"] in ([], ["cuts"]) and rng.random() < 0.2:
        f["transfers"] = "block"
    else:
        f["flows"] = rng.choice([None, None, None, "priority", "chunks"])
        f["copies"] = f["flows"] is None and rng.random() < 0.4


# ------------------------------------------------------------------------------------------ numbers

def spread(rng, low, high):
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def written(rng, value, *units):
    """A number, or sometimes a string with one of the units (factor, text)."""
    if rng.random() < 0.7:
        return value
    factor, text = rng.choice(units)
    return f"{value / factor:.9g}{rng.choice([' ', ''])}{text}"


def size(rng, value):
    return written(rng, value, (1e6, "MB"), (1e3, "kB"), (2.0**20, "MiB"), (1e6 / 8, "Mbit"), (1, "B"))


def rate(rng, value):
    return written(rng, value, (1e6 / 8, "Mbit/s"), (1e6 / 8, "Mbps"), (1e9 / 8, "Gbit/s"), (1e6, "MB/s"))


def delay(rng):
    value = 0.0 if rng.random() < 0.25 else spread(rng, 1e-4, 2e-2)
    return written(rng, value, (1e-3, "ms"), (1e-6, "us"), (1, "s"))


def split(rng, total, parts):
    """`total` as a sum of `parts` positive integers."""
    cuts = sorted(rng.sample(range(1, total), parts - 1))
    return [b - a for a, b in zip([0] + cuts, cuts + [total])]


# -------------------------------------------------------------------------------------------- model

def random_token_model(rng, f, kinds, profiled_kinds):
    """Layers per request come first and layers of the last token last, so that the rules of §L1 hold."""
    count = rng.randint(3, 8)
    names, tokens = [f"l{i}" for i in range(count)], rng.choice([1, 1, 4, 16, 16, 128])
    f["full"] = rng.random() < 0.2
    requests = rng.choice([0, 0, 1, 2, min(3, count - 1)])
    lasts = rng.choice([0, 0, 1, 1, min(2, count - requests)])
    even = spread(rng, 1e8, 3e9) if f["even"] else None     # equal layers end together
    layers = []
    for i, name in enumerate(names):
        per = 1 if i < requests else tokens
        forward = 0.0 if rng.random() < 0.05 else per * (even or spread(rng, 1e8, 3e9))
        layer = {"name": name, "forward_flops": forward, "weight": round(spread(rng, 1e5, 5e7))}
        if rng.random() < 0.3:
            layer["weight_traffic"] = round(layer["weight"] * rng.uniform(0.3, 1.2))
        if rng.random() < 0.1:
            del layer["weight"]
        if rng.random() < 0.7:
            layer["activation"] = size(rng, per * spread(rng, 1e3, 1e5))
            if f["explicit"] and rng.random() < 0.4:
                layer["activation_for_weights"] = rng.choice([0, rng.random() * semantics.quantity(layer["activation"])])
        if rng.random() < 0.4:
            layer["traffic"] = size(rng, per * spread(rng, 1e3, 1e5))
        if rng.random() < 0.3:
            layer["backward_traffic"] = rng.choice([0, size(rng, per * spread(rng, 1e3, 3e5))])
        for key in ("backward_input_flops", "backward_weight_flops"):
            if rng.random() < 0.3:
                layer[key] = rng.choice([0, forward * rng.uniform(0.4, 2.5)])
        if f["frozen"] and rng.random() < 0.5:
            layer["trainable"] = False
        if rng.random() < 0.5:
            layer["calls"] = rng.randint(1, 14)
        if rng.random() < 0.4:
            layer["workspace"] = size(rng, spread(rng, 1e2, 1e6))
        if rng.random() < 0.4:
            layer["forward_workspace"] = size(rng, spread(rng, 1e2, 1e6))
        if rng.random() < 0.4:
            layer["scratch"] = size(rng, spread(rng, 1e4, 1e8))
        if rng.random() < 0.3:
            layer["forward_activation"] = size(rng, per * spread(rng, 1e3, 1e5))
        if rng.random() < 0.3:
            layer["rows"] = rng.choice([1, 7 * tokens, rng.uniform(0.5, 500)])
        if f["tensor_parallel"] and rng.random() < 0.5:
            layer["degrees"] = rng.choice([[1, 2, 4], [2, 3], [1, 2, 3, 4]])
        if "grid" in f["forms"] and rng.random() < 0.7:
            layer["split"] = rng.choice(["columns", "rows", "none", *([] if layer.get("weight") else ["along"])])
        if i < requests:
            layer["per"] = "request"
        else:
            if rng.random() < 0.15:
                layer["per"] = "token"
            random_attention(rng, f, layer, tokens)
        layer["last_token"] = i >= count - lasts
        if not layer["last_token"] and rng.random() < 0.8:
            del layer["last_token"]
        if f["profile"] and profiled_kinds and (tokens == 1 or f["mode"] != "generation") and rng.random() < 0.4:
            layer["profile"] = {kind: random_profile(rng, f["mode"])
                                for kind in rng.sample(profiled_kinds, rng.randint(1, len(profiled_kinds)))}
        layers.append(layer)
    if f["tied"]:
        members = rng.sample(layers, 2)
        weight, trainable = round(spread(rng, 1e6, 2e7)), rng.random() < 0.85
        for layer in members:
            layer.update(weight=weight, trainable=trainable, weight_group="g0")
            layer.pop("split", None)
    for layer in layers:        # behind what changes weights
        if layer.get("weight") and rng.random() < 0.4:
            total = rng.choice([2, 8, 64])
            least = min(layer["weight"], layer.get("weight_traffic", layer["weight"]))
            layer["experts"] = {"total": total, "active": rng.choice([1, rng.randint(1, total), total]),
                                "weight": rng.choice([least, int(least * rng.random())])}
    edges = []
    for i in range(1, count):
        before = {i - 1}
        if f["dag"]:
            before = set(rng.sample(range(max(0, i - 4), i), min(i, rng.choice([1, 1, 2, 3]))))
            if rng.random() < 0.1:
                before = set()      # one more source
        for u in before:
            per = 1 if u < requests else tokens
            edge = {"from": names[u], "to": names[i],
                    "bytes": 0 if rng.random() < 0.06 else size(rng, per * spread(rng, 1e3, 1e5))}
            if rng.random() < 0.2:
                edge["gradient"] = rng.choice([0, size(rng, per * spread(rng, 1e3, 1e5))])
            edges.append(edge)
    rng.shuffle(edges)
    model = {"format": "hetplan/model/1", "name": "random", "tokens_per_sample": tokens, "layers": layers, "edges": edges}
    if rng.random() < 0.5:
        model["bytes_per_parameter"] = rng.choice([0.5, 1, 2, 2, 4])
    if rng.random() < 0.6:
        model["precision"] = rng.choice(list(semantics.SUBSTITUTES))
    model["weight_format"] = rng.choice(["f16", "q8", "q4"])
    return model


def random_attention(rng, f, layer, tokens):
    """Attention, a window and a cache; attention is a part of the forward, sometimes all of it."""
    full = f["full"] and rng.random() < 0.5
    if full or rng.random() < 0.1:
        layer["attention"] = "full" if full else "causal"
    window = rng.choice([None, None, 1, 2, 3, 8, 64])
    if window is not None:
        layer["window"] = window
    if rng.random() < 0.6:
        sees = min(window or tokens, tokens)
        pairs = tokens * sees if full else sum(min(sees, i + 1) for i in range(tokens))
        layer["attention_flops"] = rng.choice([1, *[rng.random()] * 4]) * layer["forward_flops"] / pairs
    if rng.random() < 0.4:
        layer["attention_traffic"] = rng.choice([64, spread(rng, 1e2, 1e6)])
    if rng.random() < 0.5 or (f["mode"] == "generation" and rng.random() < 0.5):
        layer["kv_bytes_per_token"] = rng.choice([4096, spread(rng, 1e2, 1e6)])


def random_model(rng, f, kinds, profiled_kinds):
    count = rng.randint(3, 12)
    names = [f"l{i}" for i in range(count)]
    layers = []
    for name in names:
        layer = {"name": name, "kind": rng.choice(["conv", "matmul"]),
                 "forward_flops": 0 if rng.random() < 0.08 else written(
                     rng, spread(rng, 1e8, 5e9), (1e9, "GFLOP"), (1e6, "MFLOP"))}
        if rng.random() < 0.75:
            layer["weight"] = size(rng, spread(rng, 1e5, 2e7))
            if rng.random() < 0.2:
                layer["weight_traffic"] = size(rng, spread(rng, 1e4, 1e5))
            if f["frozen"] and rng.random() < 0.5:
                layer["trainable"] = False
        if rng.random() < 0.7:
            layer["activation"] = size(rng, spread(rng, 1e5, 5e6))
            if f["explicit"] and rng.random() < 0.4:    # elsewhere no backward is split and it says nothing
                layer["activation_for_weights"] = rng.choice([0, rng.random() * semantics.quantity(layer["activation"])])
        if rng.random() < 0.25:
            layer["backward_input_flops"] = rng.choice([0, spread(rng, 1e8, 5e9)])
        if rng.random() < 0.25:
            layer["backward_weight_flops"] = rng.choice([0, spread(rng, 1e8, 5e9)])
        if rng.random() < 0.3:
            layer["traffic"] = size(rng, spread(rng, 1e5, 5e6))
        if rng.random() < 0.2:
            layer["backward_traffic"] = rng.choice([0, size(rng, spread(rng, 1e5, 1e7))])
        if f["mode"] == "generation" and rng.random() < 0.6:
            layer["kv_bytes_per_token"] = spread(rng, 1e2, 1e4)
        if f["profile"] and profiled_kinds and rng.random() < 0.5:
            layer["profile"] = {kind: random_profile(rng, f["mode"])
                                for kind in rng.sample(profiled_kinds, rng.randint(1, len(profiled_kinds)))}
            if set(layer["profile"]) >= kinds and rng.random() < 0.4:
                del layer["forward_flops"]
        if "grid" in f["forms"] and rng.random() < 0.7:
            layer["split"] = rng.choice(["columns", "rows", "none", *([] if layer.get("weight") else ["along"])])
        layers.append(layer)
    if f["tied"]:
        free = names[:]
        for group in range(rng.randint(1, 2)):
            members = rng.sample(free, min(len(free), rng.randint(2, 3)))
            free = [n for n in free if n not in members]
            weight, trainable = size(rng, spread(rng, 1e6, 2e7)), rng.random() < 0.85
            for layer in layers:
                if layer["name"] in members:
                    layer.update(weight=weight, trainable=trainable, weight_group=f"g{group}")
                    layer.pop("split", None)
    edges = []
    for i in range(1, count):
        before = {i - 1}
        if f["dag"]:
            before = set(rng.sample(range(max(0, i - 4), i), min(i, rng.choice([1, 1, 1, 2, 3]))))
            if rng.random() < 0.06:
                before = set()      # one more source
        for u in before:
            edge = {"from": names[u], "to": names[i],
                    "bytes": 0 if rng.random() < 0.08 else size(rng, spread(rng, 5e4, 5e6))}
            if rng.random() < 0.25:
                edge["gradient"] = rng.choice([0, size(rng, spread(rng, 5e4, 5e6))])
            edges.append(edge)
    rng.shuffle(edges)
    return {"format": "hetplan/model/1", "name": "random", "layers": layers, "edges": edges}


def add_blocks(rng, model):
    """Runs of layers that can be run again together, some of one layer, with layers outside between them."""
    for block, names in enumerate(itertools.groupby(model["layers"], lambda _: rng.randint(0, 2))):
        for layer in names[1]:
            if names[0] > 0:
                layer["block"] = block


def random_profile(rng, mode):
    """Times that grow with the batch, so that no extrapolation falls below zero."""
    batches = sorted(rng.sample([1, 2, 3, 4, 6, 8], rng.randint(1, 4)))
    table = {"batch": batches}
    for key in ("forward", "backward"):
        value, values = spread(rng, 1e-3, 8e-3), []
        for _ in batches:
            values.append(written(rng, value, (1e-3, "ms")))
            value *= rng.uniform(1.05, 1.9)
        table[key] = values
    if mode != "training" and rng.random() < 0.5:
        del table["backward"]
    return table


# ------------------------------------------------------------------------------------------ cluster

def random_cluster(rng, f, topology):
    count = rng.choice([1, 2, 2, 3, 3, 4, 4, 5, 6])
    if f["several"] or f["pipelines"] or f["network"] != "fair_share" or f["flows"]:
        count = max(count, 2)
    if f["forms"]:
        count = rng.randint(2, 9)
    devices = []
    for i in range(count):
        idle = spread(rng, 0.5, 10)
        device = {"name": f"d{i}", "kind": rng.choice(["k0", "k1", "k2"]), "memory": "640 GB",
                  "compute": written(rng, spread(rng, 1e11, 5e12), (1e12, "TFLOP/s"), (1e9, "GFLOP/s")),
                  "half_batch": rng.choice([0, rng.uniform(0.5, 4)])}
        if rng.random() < 0.1:
            del device["kind"]
        if rng.random() < 0.8:
            device["memory_bandwidth"] = written(rng, spread(rng, 1e10, 2e11), (1e9, "GB/s"))
        if rng.random() < 0.6:
            device["launch"] = written(rng, spread(rng, 1e-5, 1e-4), (1e-6, "us"))
        if rng.random() < 0.9:
            device["power"] = {"idle": written(rng, idle, (1, "W"), (1e-3, "mW")),
                               "active": idle + spread(rng, 1, 50)}
            if rng.random() < 0.4:
                device["power"]["memory"] = written(rng, idle + spread(rng, 1, 50), (1, "W"), (1e-3, "mW"))
            if rng.random() < 0.8:
                device["power"].update(send=spread(rng, 1e-9, 5e-8),
                                       receive=written(rng, spread(rng, 1e-9, 5e-8), (1e-9, "nJ/B")))
        if f["tensor_parallel"] and rng.random() < 0.8:
            device.update(accelerators=rng.randint(2, 4), interconnect=rate(rng, spread(rng, 1e9, 2e10)))
        devices.append(device)
    cluster = {"format": "hetplan/cluster/1", "name": "random", "devices": devices}
    if f["language"]:
        for device in devices:
            random_language_device(rng, f, device)
    names = [d["name"] for d in devices]
    capacity = rate(rng, spread(rng, 1e7, 2e8))
    if f["tiers"]:
        random_tiers(rng, devices)
    if topology == "explicit":
        cluster.update(random_routes(rng, names))
    else:
        cluster["topology"] = {"kind": topology, "capacity": capacity, "latency": delay(rng)}
        if rng.random() < 0.7:
            cluster["topology"]["duplex"] = rng.choice(["full", "half"])
        if topology == "hierarchical":
            members = names[:]
            rng.shuffle(members)
            groups = []
            for g, n in enumerate(split(rng, count, rng.randint(1, min(3, count)))):
                groups.append({"name": f"site{g}", "devices": members[:n],
                               "capacity": rate(rng, spread(rng, 2e7, 4e8)), "latency": delay(rng)})
                members = members[n:]
            cluster["topology"]["groups"] = groups
    if f["tiers"]:
        share_tiers(rng, cluster)
    return cluster


def random_language_device(rng, f, device):
    """Precisions, shares of peak, rows, overheads: numbers, or objects that know every format of a model."""
    if f["even"]:
        device.update(compute=1e12, memory_bandwidth=1e11, half_batch=0)
        device.pop("launch", None)
    elif rng.random() < 0.5:
        peak = spread(rng, 1e11, 5e12)
        device["compute"] = {p: written(rng, peak * rng.uniform(0.5, 4), (1e12, "TFLOP/s"))
                             for p in rng.sample(list(semantics.SUBSTITUTES), rng.randint(1, 6))}
        device["compute"]["fp32"] = peak    # stands in for every other: the program refuses devices that could not compute
    if rng.random() < 0.6:
        del device["half_batch"]
        device["half_rows"] = rng.choice([0, 7, rng.uniform(0.5, 200)])
    for key in ("efficiency", "memory_efficiency"):
        if not f["even"] and rng.random() < 0.6:
            device[key] = rng.choice([1, rng.uniform(0.2, 1), {w: rng.uniform(0.2, 1) for w in ("f16", "q8", "q4")}])
    if rng.random() < 0.5:
        device["cache_efficiency"] = rng.choice([1, rng.uniform(0.1, 1)])
    for key, chance in ("overhead", 0.5), ("send_overhead", 0.5):
        if rng.random() < chance:
            device[key] = 1e-3 if f["even"] else written(rng, spread(rng, 1e-5, 5e-3), (1e-3, "ms"), (1e-6, "us"))
    if rng.random() < 0.3:
        device["memory_overhead"] = rng.choice(["0.8 GB", spread(rng, 1e5, 1e8)])


def random_tiers(rng, devices):
    """One to three, some of them of a resource (named later: the network makes the names)."""
    for device in devices:
        if rng.random() < 0.85:
            device["tiers"] = [{"name": name, "memory": written(rng, spread(rng, 1e10, 1e12), (1e9, "GB"), (2.0**30, "GiB")),
                                "bandwidth": rate(rng, spread(rng, 1e8, 1e11))}
                               for name in rng.choice([["ram"], ["ram", "disk"], ["disk", "ram"], ["ram", "disk", "net"]])]


def share_tiers(rng, cluster):
    """Gives some tiers a resource of the network; one of several devices, or one that transfers take, too."""
    capacities = semantics.Cluster(cluster).capacity
    for device in cluster["devices"]:
        for tier in device.get("tiers", []):
            if capacities and rng.random() < 0.4:
                tier["resource"] = rng.choice(list(capacities))
                if rng.random() < 0.7:
                    tier["bandwidth"] = spread(rng, 1e7, 1e10)


def random_offload(rng, stage, model, cluster, mode):
    """Some layers of a stage, in tiers that all of its devices have."""
    tiers = [{t["name"] for t in d.get("tiers", [])} for d in cluster["devices"] if d["name"] in {s["name"] for s in stage["devices"]}]
    common = sorted(set.intersection(*tiers))
    frozen = [l for l in model["layers"] if l["name"] in stage["layers"]
              and (mode != "training" or not l.get("trainable", True) or not l.get("weight"))]
    if common and rng.random() < 0.85:
        stage["offload"] = {l["name"]: rng.choice(common) for l in frozen if rng.random() < 0.6}


def random_routes(rng, names):
    resources = [{"name": f"r{i}", "capacity": rate(rng, spread(rng, 1e7, 2e8))}
                 for i in range(rng.randint(1, 4))]

    def via():
        hops = []
        for _ in range(rng.choice([0, 1, 1, 1, 2, 2, 3])):      # may name a resource twice
            hop = {"resource": rng.choice(resources)["name"]}
            if rng.random() < 0.5:
                hop["weight"] = rng.choice([2, rng.uniform(0.3, 3)])
            hops.append(hop)
        return hops

    routes = [{"from": "*", "to": "*", "via": via() or [{"resource": "r0", "weight": 2}]}]
    for _ in range(rng.randint(0, 2 * len(names))):
        ends = rng.choice([("*", rng.choice(names)), (rng.choice(names), "*"),
                           tuple(rng.sample(names, 2)) if len(names) > 1 else ("*", "*")])
        routes.append({"from": ends[0], "to": ends[1], "via": via()})
    for route in routes:
        if rng.random() < 0.8:
            route["latency"] = delay(rng)
    # the order of the list decides between equally specific routes (§3), so shuffle it
    rng.shuffle(routes)
    return {"resources": resources, "routes": routes}


# --------------------------------------------------------------------------------------------- plan

def when(layer):
    """In which rounds a layer runs: first, all, last."""
    return layer.get("per", "token") == "request", layer.get("last_token", False)


def partition(rng, model, count, apart=False):
    """Layers into `count` stages with an acyclic quotient: cuts of a topological order, after
    which single layers may move as long as it stays acyclic; stages in any order of index. Apart: stages for
    layers per request and for those of the last token."""
    names = [l["name"] for l in model["layers"]]
    stage_of, position, sizes = {}, 0, split(rng, len(names), count)
    if apart:
        cuts = [i for i, (a, b) in enumerate(zip(model["layers"], model["layers"][1:]), 1) if when(a) != when(b)][:count - 1]
        cuts += rng.sample([i for i in range(1, len(names)) if i not in cuts], count - 1 - len(cuts))
        sizes = [b - a for a, b in zip([0, *sorted(cuts)], [*sorted(cuts), len(names)])]
    for stage, n in enumerate(sizes):
        for name in names[position:position + n]:
            stage_of[name] = stage
        position += n
    for name in [] if apart else rng.sample(names, min(len(names), 4)):
        before = stage_of[name]
        stage_of[name] = rng.randrange(count)
        emptied = before not in stage_of.values()
        if emptied or not acyclic({(stage_of[e["from"]], stage_of[e["to"]]) for e in model["edges"]}):
            stage_of[name] = before
    label = list(range(count))
    if rng.random() < 0.3:
        rng.shuffle(label)
    return [[n for n in names if label[stage_of[n]] == stage] for stage in range(count)]


def acyclic(edges):
    edges = {(u, v) for u, v in edges if u != v}
    while edges:
        inner = {(u, v) for u, v in edges if u in {w for _, w in edges}}
        if inner == edges:
            return False
        edges = inner
    return True


def random_stages(rng, f, model, cluster, devices, samples, microbatch, budget):
    """The stages of one pipeline on `devices`; without explicit orders each device takes one."""
    layers = len(model["layers"])
    if f["several"]:
        count = rng.randint(1, min(layers, 3 if f["forms"] else len(devices) + 3))
        widths = [1, 2, 3, 4, 6] if f["forms"] else [1, 1, 1, 2, 3]
        hosts = [rng.sample(devices, min(len(devices), rng.choice(widths))) for _ in range(count)]
    else:
        count = rng.randint(1, min(layers, len(devices) // 3 + 1 if f["forms"] else len(devices)))
        if rng.random() < 0.3 and not f["forms"]:
            count = min(layers, len(devices))
        used, hosts = rng.sample(devices, rng.randint(count, len(devices))), []
        for n in split(rng, len(used), count):
            hosts.append(used[:n])
            used = used[n:]
    stages = []
    for names, chosen in zip(partition(rng, model, count, f["language"] and rng.random() < 0.5), hosts):
        own = microbatch
        if f["sizes"]:
            own = rng.choice([b for b in range(1, 9) if samples % b == 0 and samples // b <= budget])
        form = rng.choice([None, *f["forms"] * 2]) if f["forms"] else None
        if form != "grid":
            chosen = chosen[:own]
        if f["network"] in GRANTED and not f["language"]:
            chosen.sort()       # the list order and the device order of simultaneous flows then agree
        stage = {"layers": names, "devices": []}
        if own != microbatch:
            stage["microbatch_size"] = own
        for saver in ("recompute", "shard_state"):
            if f["savers"] and rng.random() < 0.6 and not (saver == "shard_state" and form in ("fsdp", "zero2")):
                stage[saver] = rng.random() < 0.9 and (rng.choice([True, "blocks"]) if saver == "recompute" else True)
        stages.append(stage)
        if form == "grid":
            make_grid(rng, stage, model, chosen, own)
            continue
        for device, share in zip(chosen, split(rng, own, len(chosen))):
            entry = {"name": device, "samples": share}
            accelerators = next(d for d in cluster["devices"] if d["name"] == device).get("accelerators", 1)
            if accelerators > 1 and rng.random() < 0.8:
                entry["tensor_parallel"] = rng.randint(1, accelerators)
            stage["devices"].append(entry)
        if form in ("fsdp", "zero2") and f["mode"] == "training":
            stage["shard"] = form
            if rng.random() < 0.6:
                lengths = split(rng, len(names), rng.randint(1, len(names)))
                stage["units"] = [[names[sum(lengths[:i]) + j] for j in range(n)] for i, n in enumerate(lengths)]
    if "cuts" in f["forms"]:
        for stage in stages:
            if rng.random() < (0.7 if f["forms"] == ["cuts"] else 0.3):
                stage["cuts"] = random_cuts(rng, f, stage, samples)
    return stages


def make_grid(rng, stage, model, devices, samples):
    """Rows and columns for many of the devices; what splits must not be profiled there."""
    shapes = [(r, c) for c in range(1, len(devices) + 1) for r in range(1, min(samples, len(devices) // c) + 1)]
    rows, columns = max(rng.choices(shapes, k=3), key=lambda s: (s[0] * s[1], s[1] > 1))
    stage["devices"] = [{"name": name} for name in devices[:rows * columns]]
    stage["grid"] = {"rows": split(rng, samples, rows), "columns": [rng.randint(1, 4) for _ in range(columns)]}
    for layer in model["layers"]:
        if layer["name"] in stage["layers"] and columns > 1:
            if layer.get("split") != "none" and layer.pop("profile", None):
                layer.setdefault("forward_flops", spread(rng, 1e8, 5e9))
            if rng.random() < 0.3:
                layer["units"] = sum(stage["grid"]["columns"]) * rng.randint(1, 3)


def random_cuts(rng, f, stage, samples):
    """Any boundaries at which the shares of every device are whole samples."""
    shares = stage["grid"]["rows"] if "grid" in stage else [d["samples"] for d in stage["devices"]]
    step = sum(shares) // math.gcd(*shares)
    inner = range(step, samples, step)
    return {phase: [0, *sorted(rng.sample(inner, rng.randint(0, min(7, len(inner))))), samples]
            for phase in (["forward", "backward"] if f["mode"] == "training" else ["forward"])}


def random_plan(rng, f, model, cluster):
    devices = [d["name"] for d in cluster["devices"]]
    microbatch, count = rng.randint(1, 5), rng.randint(1, 8)
    if f["forms"]:
        microbatch, count = rng.randint(2, 6), rng.randint(1, 5)
    if f["sizes"]:
        microbatch, count = rng.choice([(2, 6), (3, 4), (4, 6), (6, 2), (2, 8), (4, 4), (6, 3), (8, 2)])
    plan = {"format": "hetplan/plan/1", "model": "random", "cluster": "random", "planner": "random",
            "mode": f["mode"], "microbatch_size": microbatch, "microbatches": count,
            "workload": {**random_optimizer(rng, f), "context": rng.randint(0, 512),
                         "tokens": rng.randint(2, 5)},
            "schedule": {"kind": rng.choice(["1f1b", "1f1b", "gpipe"])}, "network": f["network"]}
    if f["transfers"] != "overlap":
        plan["transfers"] = f["transfers"]
    if f["copies"]:
        plan["copies"] = "per_device"
    if f["language"]:
        plan["workload"] = random_workload(rng, f, model)
    elif rng.random() < 0.1:
        del plan["workload"]
        if f["mode"] == "generation":
            plan["workload"] = {"tokens": 3}
    pipelines = min(rng.choice([2, 2, 3]), count) if f["pipelines"] else 1
    if not f["several"]:
        pipelines = min(pipelines, len(devices))
    shares = [n * microbatch for n in split(rng, count, pipelines)]
    order = devices[:]
    rng.shuffle(order)
    listed = []
    for samples, n in zip(shares, split(rng, len(devices), pipelines) if pipelines <= len(devices)
                          else [1] * pipelines):
        own = devices if f["several"] else order[:n]
        order = order[n:]
        listed.append({"samples": samples, "stages":
                       random_stages(rng, f, model, cluster, own, samples, microbatch, 24)})
    if f["pipelines"]:
        plan["pipelines"] = listed
    else:
        plan["stages"] = listed[0]["stages"]
    for index, stage in enumerate(s for p in listed for s in p["stages"]):
        if rng.random() < 0.5:
            stage["name"] = f"part{index}"
    if f["tiers"]:
        for stage in (s for p in listed for s in p["stages"]):
            random_offload(rng, stage, model, cluster, f["mode"])
    if f["explicit"]:
        plan["schedule"] = {"kind": "explicit", "orders": {}}
    elif f["mode"] == "training" and any("cuts" in s for p in listed for s in p["stages"]):
        plan["schedule"] = {"kind": "gpipe"}
    parsed = semantics.Plan(plan, semantics.Model(model), semantics.Cluster(cluster))
    if f["explicit"]:
        plan["schedule"]["orders"] = random_orders(rng, parsed)
    elif plan["schedule"]["kind"] == "1f1b" and rng.random() < 0.4:
        plan["schedule"]["warmup"] = random_warmups(rng, parsed)
    if f["mode"] == "training" and reduces_between_stages(parsed):
        # a server is only named where a reduction uses it
        plan["sync"] = rng.choice(["ring", {"parameter_server": rng.choice(devices)}])
    if f["flows"]:
        plan["flows"] = random_flows(rng, f, model, cluster, plan)
    return plan


def random_optimizer(rng, f):
    if f["savers"] and rng.random() < 0.5:
        return {"optimizer": rng.choice(list(semantics.OPTIMIZERS))}
    return {"optimizer_factor": rng.choice([0, 1, 2])}


def random_workload(rng, f, model):
    """Prompts, chunks and steps, with edges on purpose: no prompt, one token, chunks of one token or that do not
    divide the prompt, and more than 16 steps, whose contexts are rounded."""
    if f["mode"] != "generation":
        return random_optimizer(rng, f)
    prompt = rng.choice([0, 1, 2, 5, 7, 7, 16, 16, 24, 24, 33, 100])
    workload = {"prompt": prompt, "tokens": rng.choice([1, 1, 2, 3, 5, 17, 18, 33])}
    if rng.random() < 0.6:
        workload["context"] = rng.choice([0, 1, 3, 40, 500])
    if rng.random() < 0.15:
        del workload["prompt"]
        prompt = model["tokens_per_sample"] if model["tokens_per_sample"] > 1 else 0
    full = any(l.get("attention") == "full" for l in model["layers"])
    if rng.random() < 0.85:
        least = prompt if full else max(1, prompt // 16)
        workload["prompt_chunk"] = max(1, rng.choice([least, *[rng.randint(least, max(least, prompt - 1))] * 3, prompt + 3]))
        if rng.random() < 0.6:
            workload["chunks_in_flight"] = rng.randint(1, 3)
    return workload


def reduces_between_stages(parsed):
    seen = {}
    for stage in parsed.stages:
        for tensor, layer in stage.tensors().items():
            if layer.trainable and layer.weight > 0:
                seen.setdefault(tensor, set()).add(stage.parts[0].device.index)
    return any(len(firsts) > 1 for firsts in seen.values())


def random_warmups(rng, parsed):
    """Any warm-ups, raised from the sinks backwards until the 1F1B rule of §5 holds."""
    k = {}
    for index in parsed.from_sinks:
        k[index] = rng.randint(1, 5)
        for t in parsed.after[index]:
            while parsed.cuts[index, t][1] > 0 and not parsed.warmup_suffices(
                    parsed.stages[index], parsed.stages[t], k[index], k[t]):
                k[index] += 1
    return [k[s.index] for s in parsed.stages]


def random_orders(rng, parsed):
    """List scheduling: tasks in a random topological order, each appended to its device's list. A
    single order of all tasks stands behind the lists, so they cannot wait for each other."""
    training = parsed.mode == "training"
    needs = {}      # (phase, stage, m, part number) -> tasks it waits for; fsdp has one task for all its parts

    def at(stage, phase, m, number):
        return phase, stage.index, m, 0 if stage.shard == "fsdp" else number

    def overlapping(other, phase, low, high):
        return [at(other, phase, m, number) for m in range(other.passes(phase)) for number, p in enumerate(other.parts)
                if min(high, other.interval(p, phase, m)[1]) > max(low, other.interval(p, phase, m)[0])]

    for s in parsed.stages:
        split_here = training and rng.random() < 0.4
        for number, part in enumerate(s.parts):
            if s.shard != "fsdp" and number > 0:
                split_here = training and rng.random() < 0.4
            for phase in ("F" if not training else "FBW" if split_here else "FB"):
                for m in range(s.passes(phase)):
                    before = needs.setdefault(at(s, phase, m, number), [])
                    interval = s.interval(part, phase, m)
                    if phase == "F":
                        for u in parsed.before[s.index]:
                            before += overlapping(parsed.stages[u], "F", *interval)
                    elif phase == "B":
                        before += overlapping(s, "F", *interval)
                        before += [at(s, "F", f, number) for f in s.own_forwards("B", m)]
                        for t in parsed.after[s.index]:
                            if parsed.cuts[s.index, t][1] > 0:
                                before += overlapping(parsed.stages[t], "B", *interval)
                    else:
                        before.append(at(s, "B", m, number))
    # The taste decides how the list looks: arbitrary, in microbatch order, backwards early or late.
    taste = rng.choice(["any", "microbatch", "backward", "forward"])
    rank = {"any": lambda t: 0, "microbatch": lambda t: t[2],
            "backward": lambda t: {"B": 0, "F": 1, "W": 2}[t[0]],
            "forward": lambda t: {"F": 0, "B": 1, "W": 2}[t[0]]}[taste]
    orders, done, left = {}, set(), sorted(needs)
    while left:
        ready = [t for t in left if all(n in done for n in needs[t])]
        task = min(ready, key=lambda t: (rank(t) if rng.random() < 0.9 else 0, rng.random()))
        done.add(task)
        left.remove(task)
        phase, s, m, number = task
        stage = parsed.stages[s]
        unique = sum(x.name == stage.name for x in parsed.stages) == 1
        label = stage.name if unique and rng.random() < 0.2 else s
        for part in stage.parts if stage.shard == "fsdp" else [stage.parts[number]]:
            orders.setdefault(part.device.name, []).append([phase, label, m])
    return orders


def random_flows(rng, f, model, cluster, plan):
    """Chunks, releases and priorities of some transfers: those that one entry names uniquely."""
    m, c = semantics.Model(model), semantics.Cluster(cluster)
    parsed = semantics.Plan(plan, m, c)
    graph = semantics.TaskGraph(m, c, parsed)
    horizon = semantics.Simulation(graph.order, graph.flows, c.capacity, plan["network"]).run()
    held = [part.device.index for stage in parsed.stages for part in stage.parts]
    ambiguous = len(held) > len(set(held)) or len(parsed.stages) == 1
    named = {}
    for flow in graph.flows:
        if not flow.names:
            continue        # no entry names the gathers and scatters of fsdp and zero2
        if flow.names[0] != "sync" or (f["flows"] == "chunks" and "own" in flow.index):
            named.setdefault(flow.names, []).append(flow)
    entries = []
    for (kind, sender, receiver, s, t, microbatch), flows in named.items():
        rounds = {flow.index[3] for flow in flows}      # an entry holds for every chunk and step
        if len(flows) > len(rounds) or rng.random() < 0.4:
            continue
        chunks = rng.choice([1, 2, 3, 4]) if f["flows"] == "chunks" else 1
        with_stages = ambiguous or rng.random() < 0.6
        for chunk in range(chunks):
            entry = {"from": c.devices[sender].name, "to": c.devices[receiver].name, "phase": kind}
            if kind != "sync":
                entry["microbatch"] = microbatch
            if with_stages:
                entry.update(from_stage=s, to_stage=t)
            if chunks > 1 or rng.random() < 0.5:
                entry.update(chunk=chunk, of=chunks)
            if f["flows"] == "chunks" and rng.random() < 0.5:
                entry["release"] = rng.uniform(0, 1.1 * horizon)
            if rng.random() < 0.8:
                entry["priority"] = rng.randint(0, 4)
            entries.append(entry)
    rng.shuffle(entries)
    return entries


# -------------------------------------------------------------------------------------------- cases

@contextlib.contextmanager
def replaced(owner, name, value):
    kept = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, kept)


def depends_on_open_ties(case, expected, language):
    """`exclusive` and `per_link` order flows by (priority, microbatch, stage, device). Where a reduction stands
    among microbatches, where the gathers and scatters of a stage stand among its other flows, what follows
    when all four agree, and whether tasks without length run before flows of the same instant are granted
    is not said: the numbers must not depend on it. Of language models the round and the place of the receiver are
    part of the key; open is whether senders go by place, and whether the round or the receiving stage comes first."""
    def tail_reversed(flows):
        rest = sorted(flows, key=lambda x: [(isinstance(i, str), i) for i in x.index[3:]], reverse=True)
        return sorted(rest, key=lambda x: (x.priority, x.index[:3]))

    def shares_last(flows):
        return sorted(flows, key=lambda x: (x.priority, x.index[0], x.index[2] == semantics.SHARES, x.index))

    def reductions_first(flows):
        return sorted(flows, key=lambda x: (x.priority, -1 if x.index[0] == math.inf else x.index[0],
                                            x.index[1:]))

    def receivers_first(flows):
        return sorted(flows, key=lambda x: (x.priority, x.index[0], x.index[4], x.receiver, x.index))

    def senders_by_place(flows):
        return sorted(flows, key=lambda x: (x.priority, x.index[:2], x.sender_place, x.index[2:]))

    def receiving_stage_first(flows):
        return sorted(flows, key=lambda x: (x.priority, x.index[:3], x.index[4], x.index[3], x.index[5:]))

    def reductions_reversed(flows):
        reductions = [x for x in flows if x.index[0] == math.inf]
        others = sorted((x for x in flows if x.index[0] != math.inf), key=lambda x: (x.priority, x.index))
        return sorted(others + tail_reversed(reductions), key=lambda x: (x.priority, x.index[0] == math.inf))

    def flows_before_tasks(self, start_tasks=semantics.Simulation._start_tasks):
        return self._start_flows() or start_tasks(self)

    variants = []
    if case["plan"]["network"] in GRANTED:
        orders = [senders_by_place, receiving_stage_first, reductions_reversed] if language else [tail_reversed, receivers_first]
        variants = [(semantics, "turns", v) for v in (*orders, reductions_first, shares_last)]
        variants.append((semantics.Simulation, "_start_tasks", flows_before_tasks))
    # nor may they depend on how close two times must be to count as equal
    variants += [(semantics, "SAME_TIME", tolerance) for tolerance in (0.0, 1e-11)]
    for variant in variants:
        with replaced(*variant):
            if semantics.deviation(semantics.simulate(case), expected) > semantics.CHECK / 10:
                return True
    return False


def has_form(stage, kind):
    if kind == "cuts":
        return "cuts" in stage
    return len(stage["grid"]["columns"]) > 1 if "grid" in stage else "shard" in stage and len(stage["devices"]) > 1


def random_case(rng, kind, number):
    while True:
        f = features_of(kind, rng)
        topology = TOPOLOGIES[number % len(TOPOLOGIES)] if kind == "topologies" else rng.choice(TOPOLOGIES)
        cluster = random_cluster(rng, f, topology)
        kinds = {d.get("kind", d["name"]) for d in cluster["devices"]}
        # a profiled layer must not be split over accelerators (§4)
        whole = {d.get("kind", d["name"]) for d in cluster["devices"] if d.get("accelerators", 1) > 1}
        model = (random_token_model if f["language"] else random_model)(rng, f, kinds, sorted(kinds - whole))
        if f["savers"]:
            add_blocks(rng, model)
        try:
            plan = random_plan(rng, f, model, cluster)
            case = {"model": model, "cluster": cluster, "plan": plan}
            expected = semantics.simulate(case)
        except semantics.BadInput:
            # with unequal sizes an edge without gradient can close a circle that the rule of §5 does not see;
            # a tensor of a grid, fsdp or zero2 may not stand in another stage; a device may have no precision that
            # will do, a layer not this degree, and chunks in flight can close a circle with an explicit order
            if kind not in ("microbatch_sizes", "mixed", "block", "memory_savers", *DEEPCEE_KINDS, *LANGUAGE_KINDS, *TIER_KINDS):
                raise
            continue
        listed = plan.get("stages") or [s for p in plan["pipelines"] for s in p["stages"]]
        if kind in DEEPCEE_KINDS and not any(has_form(stage, kind) for stage in listed):
            continue
        if f["tiers"] and not any(stage.get("offload") for stage in listed):
            continue
        if expected["latency"] == 0 or (f["flows"] and not plan["flows"]):
            continue
        if (f["network"] in GRANTED or f["even"]) and depends_on_open_ties(case, expected, f["language"]):
            continue
        return {**case, "expected": expected, "kind": kind}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--kind", choices=KINDS)
    arguments = parser.parse_args()
    cases = []
    for i in range(arguments.count):
        kind = arguments.kind or KINDS[i % len(KINDS)]
        # a generator of its own per case: a case does not depend on how many came before it
        rng = random.Random(f"{arguments.seed} {kind} {i}")
        cases.append(random_case(rng, kind, i if arguments.kind else i // len(KINDS)))
    json.dump({"cases": cases}, sys.stdout)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
