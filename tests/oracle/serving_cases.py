# SPDX-License-Identifier: BSL-1.0
"""Random small scenarios of serving, for comparing the program with the oracle.

`case(seed)` gives {"cloud", "services", "deployment", "requests", "faults"} (faults: None in about a third);
the same seed gives the same case. Times are random reals, so that nothing ties but what the rules tie.
`tied_case(seed)` is the opposite: every time is a multiple of 0.1 s, so that nearly everything ties, and what a
double cannot add up exactly is on both sides of every comparison.
`token_case(seed)` and `tied_token_case(seed)` are the same of services that make tokens: caches that fill, prompts in
chunks, limits on tokens.

    serving_cases.py [N]        what happens to the requests of the seeds 1..N (300), by the oracle
"""
import math
import random
import sys

import serving

KINDS = ("fixed", "fixed with tokens", "continuous", "stream", "stream of tokens")
LISTED = (1, 2, 3, 4, 6, 8, 12, 16)
MEMORY = 1e9            # of a typical GPU
LINK = 1e6              # a typical uplink


def log_uniform(rng, low, high):
    return math.exp(rng.uniform(math.log(low), math.log(high)))


# ------------------------------------------------------------------------------------- what there is

def cloud_of(rng, wide):
    kinds = ["a", "b"][:1 if wide else rng.randint(1, 2)]
    servers = []
    for i in range(rng.randint(7, 14) if wide else rng.randint(2, 14)):
        gpus, left = [], rng.randint(1, 4)
        while left:
            count = rng.randint(1, left)
            gpus.append({"kind": rng.choice(kinds), "memory": MEMORY * rng.uniform(0.6, 2.0), "count": count})
            left -= count
            if count == 1 and rng.random() < 0.5:
                del gpus[-1]["count"]
        server = {"name": f"s{i}", "gpus": gpus, "uplink": LINK * log_uniform(rng, 0.3, 3)}
        if rng.random() < 0.7:
            server["downlink"] = LINK * log_uniform(rng, 0.3, 3)
        if rng.random() < 0.35:
            server["devices"] = [{"name": f"d{n}", "kind": rng.choice(kinds + ["d"]),
                                  "memory": MEMORY * rng.uniform(0.3, 1.0),
                                  "bandwidth": LINK * log_uniform(rng, 0.3, 3)}
                                 for n in range(rng.randint(1, 3))]
        servers.append(server)
    ring = {"period": log_uniform(rng, 0.02, 0.2), "group": rng.randint(7, 8) if wide else rng.randint(2, 8)}
    return {"format": "hetplan/cloud/1", "name": "cloud", "servers": servers, "ring": ring}


def listed(rng, first, slope):
    """Batches from 1 up, and seconds that grow less than the batch."""
    batches = sorted({1} | set(rng.sample(LISTED[1:], rng.randint(0, 4))))
    seconds = [first * (1 + slope * (b - 1) * rng.uniform(0.9, 1.1)) for b in batches]
    return {"batch": batches, "seconds": seconds}


def variant_of(rng, name, kind, tokens):
    first = log_uniform(rng, 0.5, 2.0)
    variant = {"name": name, "gpu": kind, "memory": MEMORY * rng.uniform(0.05, 0.5),
               "pass": listed(rng, first, rng.uniform(0.05, 0.6))}
    if rng.random() < 0.35:
        variant["tensor_parallel"] = 2
    if rng.random() < 0.35:
        variant["pipeline_parallel"] = rng.randint(2, 3)
    if rng.random() < 0.7:
        variant["compute"] = rng.uniform(0.15, 1.0)
    if tokens:
        variant["pass"]["per_token"] = first * rng.uniform(0.1, 1.0) / max(1, tokens["in"])
        variant["step"] = listed(rng, first * log_uniform(rng, 0.03, 0.3), rng.uniform(0.02, 0.3))
    return variant


def service_of(rng, number, kind, gpu_kinds):
    service = {"name": f"v{number}", "latency": 1.0}
    if "token" in kind or kind == "continuous":
        service["tokens"] = {"in": rng.randint(0, 60), "out": rng.randint(1, 30)}
    if kind == "continuous":
        service["batching"] = "continuous"
    if kind.startswith("stream"):
        service["rate"] = 1.0
    kinds = [rng.choice(gpu_kinds) for _ in range(rng.randint(1, 3))]
    if rng.random() < 0.6 and len(kinds) < 3:
        kinds.append("d")
    service["variants"] = [variant_of(rng, f"w{n}", k, service.get("tokens")) for n, k in enumerate(kinds)]
    for variant in service["variants"]:
        if variant["gpu"] == "d" or (variant is service["variants"][0] and rng.random() < 0.6):
            variant.pop("tensor_parallel", None)
            variant.pop("pipeline_parallel", None)
    return service


# --------------------------------------------------------------------------------------- deployments

class Room:
    """What is left of the GPUs and devices of the servers that are there."""

    def __init__(self, cloud, present):
        self.left, self.kind = {}, {}       # place -> [share, memory]
        for server in cloud["servers"]:
            if server["name"] in present:
                gpus = [g for g in server["gpus"] for _ in range(g.get("count", 1))]
                for place, gpu in list(enumerate(gpus)) + [(d["name"], d) for d in server.get("devices", [])]:
                    self.left[server["name"], place] = [1.0, gpu["memory"]]
                    self.kind[server["name"], place] = gpu["kind"]

    def fits(self, place, variant):
        return self.left[place][0] >= variant.get("compute", 1) and self.left[place][1] >= variant["memory"]

    def take(self, places, variant):
        share = variant.get("compute", 1)
        if not all(p in self.left and self.fits(p, variant) for p in places):
            return False
        for place in places:
            self.left[place][0] -= share
            self.left[place][1] -= variant["memory"]
        return True


def places_of(spec):
    return [tuple(spec["device"])] if "device" in spec else [tuple(g) for g in spec["gpus"]]


def variant_in(service, spec):
    name = spec.get("variant", service["variants"][0]["name"])
    return next(v for v in service["variants"] if v["name"] == name)


def instance_of(rng, service, variant, room):
    """A new instance of a variant at a random place, or None."""
    largest = min(variant[times]["batch"][-1] for times in ("pass", "step") if times in variant)
    spec = {"service": service["name"], "variant": variant["name"], "batch": rng.randint(1, largest)}
    if variant is service["variants"][0] and rng.random() < 0.5:
        del spec["variant"]
    groups = 1
    if "rate" in service:
        if rng.random() < 0.5:
            spec["frames"] = rng.randint(1, 3)
        if rng.random() < 0.3:
            spec["groups"] = groups = 2
    needed = variant.get("tensor_parallel", 1) * variant.get("pipeline_parallel", 1) * groups
    fitting = [p for p in room.left if room.kind[p] == variant["gpu"] and room.fits(p, variant)]
    devices = [p for p in fitting if isinstance(p[1], str)]
    gpus = [p for p in fitting if isinstance(p[1], int)]
    if needed == 1 and devices and (not gpus or rng.random() < 0.3):
        places = [rng.choice(devices)]
        spec["device"] = list(places[0])
    else:
        if needed > 1 and rng.random() < 0.4:
            pool = gpus
        else:
            server = rng.choice([p[0] for p in gpus]) if gpus else None
            pool = [p for p in gpus if p[0] == server]
        if len(pool) < needed:
            return None
        places = rng.sample(pool, needed)
        spec["gpus"] = [list(p) for p in places]
    return spec if room.take(places, variant) else None


def deployment_of(rng, cloud, services, present, before):
    """Instances on the servers that are there; of those before, some stay."""
    room, found = Room(cloud, present), []
    by_name = {s["name"]: s for s in services}
    for spec in before:
        if rng.random() < 0.6 and room.take(places_of(spec), variant_in(by_name[spec["service"]], spec)):
            found.append(spec)
    tries = rng.randint(2, 4) * len(present)
    for attempt in range(tries + 100):
        if attempt >= tries and found:
            break
        service = rng.choice(services)
        spec = instance_of(rng, service, rng.choice(service["variants"]), room)
        if spec:
            found.append(spec)
    rng.shuffle(found)
    return found


def capacity(service, specs):
    """Work per second of all instances together: requests, of streams frames."""
    total = 0.0
    model = serving.Service(service)
    for spec in specs:
        if spec["service"] == service["name"]:
            variant, b = model.variants[variant_in(service, spec)["name"]], spec["batch"]
            if "rate" in service:
                seconds = variant.of_step(b) if model.tokens else variant.of_pass(b, 0)
                total += spec.get("groups", 1) * variant.pipeline * b / seconds
            else:
                total += (1 if model.continuous else variant.pipeline) * b / variant.typical(b)
    return total


def scale_times(service, factor):
    for variant in service["variants"]:
        for times in ("pass", "step"):
            if times in variant:
                variant[times]["seconds"] = [s * factor for s in variant[times]["seconds"]]
        if "per_token" in variant["pass"]:
            variant["pass"]["per_token"] *= factor


# ------------------------------------------------------------------------------- requests and faults

def fit_service(rng, service, specs, number, horizon, wide):
    """Times, SLO and bytes, so that `number` requests within the horizon are the load that is drawn."""
    load = log_uniform(rng, 1.5 if wide else 0.2, 5.0)
    work = capacity(service, specs) or 2.0
    model = serving.Service(service)
    if "rate" in service:
        # One group does about one to three streams. How long they are makes the load.
        wanted = log_uniform(rng, 10.0, 60.0)
        first = next(iter(model.variants.values()))
        rate = 1 / (first.of_step(1) if model.tokens else first.of_pass(1, 0))
        service["rate"] = wanted
        factor = rate / wanted / log_uniform(rng, 0.5, 3.0)
        scale_times(service, factor)
        frames = max(2, min(round(work / factor * horizon * load / number), round(wanted * horizon * 0.7)))
        if model.tokens:
            service["tokens"]["out"] = frames
        else:
            service["frames"] = frames
        service["latency"] = horizon * log_uniform(rng, 0.02, 0.3)
    else:
        scale_times(service, work / (number / horizon / load))
        model = serving.Service(service)
        batches = [spec["batch"] for spec in specs if spec["service"] == service["name"]] or [1]
        longest = max(v.typical(min(max(batches), v.largest)) for v in model.variants.values())
        service["latency"] = longest * log_uniform(rng, 0.9, 5.0)
    size = LINK * service["latency"] * log_uniform(rng, 0.002, 0.01 if wide else 0.3)
    if "tokens" in service and rng.random() < 0.5:
        service["bytes_per_token"] = size / 2 / max(1, service["tokens"]["in"])
        size /= 2
    service["request_bytes"] = size
    if rng.random() < 0.7:
        service["response_bytes"] = LINK * service["latency"] * log_uniform(rng, 0.0005, 0.1)
    service["weights"] = rng.uniform(0.5, 2.0) * MEMORY


def requests_of(rng, cloud, services, numbers, horizon):
    popular = [rng.expovariate(1.0) for _ in cloud["servers"]]
    requests = []
    for service, number in zip(services, numbers):
        for _ in range(number):
            request = {"arrival": rng.uniform(0.0, horizon), "service": service["name"],
                       "server": rng.choices(cloud["servers"], popular)[0]["name"]}
            tokens = service.get("tokens")
            if tokens and rng.random() < 0.7:
                request["tokens_in"] = rng.randint(0, 2 * tokens["in"] + 5)
            if tokens and rng.random() < 0.7:
                request["tokens_out"] = rng.randint(1, 2 * tokens["out"])
            if "rate" in service and not tokens and rng.random() < 0.7:
                request["frames"] = rng.randint(1, 2 * service["frames"])
            requests.append(request)
    return sorted(requests, key=lambda r: r["arrival"])


def moves_of(rng, cloud, times):
    """Servers that are there under each deployment, and the faults that say so."""
    names = [s["name"] for s in cloud["servers"]]
    movers = rng.sample(names, min(len(names) - 1, rng.randint(1, 3))) if times else []
    present, events = [set(names) for _ in range(len(times) + 1)], []
    between = list(zip([0.0] + times, times))
    for name in movers:
        plan = rng.choice(["joins", "leaves", "both"] if len(times) > 1 else ["joins", "leaves"])
        first = rng.randrange(len(times)) if plan != "both" else 0
        kinds = {"joins": ["server_joins"], "leaves": ["server_leaves"],
                 "both": rng.sample(["server_leaves", "server_joins"], 2)}[plan]
        is_in = kinds[0] == "server_leaves"
        for c in range(len(times) + 1):
            if first < c <= first + len(kinds):
                is_in = kinds[c - 1 - first] == "server_joins"
                at = rng.uniform(*between[c - 1])
                events.append({"at": at, "kind": kinds[c - 1 - first], "server": name})
            if not is_in:
                present[c].discard(name)
    return present, events, set(movers)


def faults_of(rng, cloud, horizon, times, movers, number, specs):
    events, failing = [], set()
    group = cloud["ring"]["group"]
    used = [p for spec in specs for p in places_of(spec)]
    names = [s["name"] for s in cloud["servers"]]
    with_devices = [s for s in cloud["servers"] if "devices" in s]
    kinds = ["server_fails", "slow_link", "wrong_state"] * 2 + ["gpu_fails"] * 3 + ["ring_cut"]
    kinds += ["device_leaves"] * 3 if with_devices else []
    for _ in range(number):
        kind, server = rng.choice(kinds), rng.choice(cloud["servers"])
        event = {"at": rng.uniform(0.0, 0.8 * horizon), "kind": kind, "server": server["name"]}
        if kind == "server_fails":
            stable = [n for n in names if n not in movers and n not in failing]
            if len(stable) < 2:
                continue
            event["server"] = rng.choice(stable)
            failing.add(event["server"])
            if rng.random() < 0.1:
                event["at"] = 0.0
        elif kind == "gpu_fails":
            event["gpu"] = rng.randrange(sum(g.get("count", 1) for g in server["gpus"]))
            gpus = [p for p in used if isinstance(p[1], int)]
            if gpus and rng.random() < 0.8:
                event["server"], event["gpu"] = rng.choice(gpus)
        elif kind == "device_leaves":
            server = rng.choice(with_devices)
            event["server"], event["device"] = server["name"], rng.choice(server["devices"])["name"]
            devices = [p for p in used if isinstance(p[1], str)]
            if devices and rng.random() < 0.8:
                event["server"], event["device"] = rng.choice(devices)
            same = [e for e in events if (e["server"], e.get("device")) == (event["server"], event["device"])]
            if rng.random() < 0.5 and not same:      # there from then on, or back again
                event["kind"] = "device_registers"
                if rng.random() < 0.5:
                    events.append({**event, "kind": "device_leaves", "at": event["at"] * rng.uniform(0.3, 0.9)})
            elif any(e["kind"] == "device_registers" for e in same):
                continue
        else:
            event["until"] = event["at"] + horizon * log_uniform(rng, 0.05, 0.6)
            if kind == "slow_link":
                event["factor"] = log_uniform(rng, 0.03, 0.7)
            elif kind == "wrong_state" and times and rng.random() < 0.5:    # over a change, a little longer
                change = rng.choice(times)
                event["at"] = change * rng.uniform(0.5, 1.0)
                event["until"] = change + cloud["ring"]["period"] * rng.uniform(1.0, 6.0)
            elif kind == "ring_cut" and rng.random() < 0.6:                 # a second cut parts the ring
                at = names.index(event["server"])
                other = rng.choice([n for i, n in enumerate(names) if i // group == at // group])
                events.append({**event, "at": event["at"] * rng.uniform(0.9, 1.0), "server": other})
        events.append(event)
    return events


def case(seed, kinds=KINDS):
    rng = random.Random(seed)
    wide = rng.random() < 0.3       # few services on large rings with too much to do: requests go far
    cloud = cloud_of(rng, wide)
    gpu_kinds = sorted({g["kind"] for s in cloud["servers"] for g in s["gpus"]})
    number = rng.randint(1, 2 if wide else 5)
    services = [service_of(rng, i, rng.choice(kinds), gpu_kinds) for i in range(number)]
    horizon = log_uniform(rng, 1.5, 8.0)
    total = rng.randint(100, 600)
    shares = [rng.uniform(0.3, 1.0) for _ in services]
    numbers = [max(1, round(total * s / sum(shares))) for s in shares]
    times = sorted(rng.uniform(0.15, 0.85) * horizon for _ in range(rng.choice([0, 0, 1, 1, 2])))

    with_faults = seed % 3 != 0
    moving = times if with_faults and rng.random() < 0.5 else []
    present, moves, movers = moves_of(rng, cloud, moving)
    present += [present[-1]] * (len(times) - len(moving))
    deployments = []
    for there in present:
        before = deployments[-1] if deployments else []
        deployments.append(deployment_of(rng, cloud, services, sorted(there), before))
    for service, number in zip(services, numbers):
        fit_service(rng, service, deployments[0], number, horizon, wide)

    shortest = min(s["latency"] for s in services)
    load_bandwidth = MEMORY / horizon * log_uniform(rng, 5.0, 100.0)
    if rng.random() < 0.9:
        cloud["load_bandwidth"] = load_bandwidth
    for server in cloud["servers"]:
        if rng.random() < 0.8:
            server["latency"] = shortest * rng.uniform(0.0, 0.04)
        if rng.random() < 0.3:
            server["load_bandwidth"] = load_bandwidth * log_uniform(rng, 0.3, 3)
        for device in server.get("devices", []):
            if rng.random() < 0.8:
                device["latency"] = shortest * rng.uniform(0.0, 0.1)
    if rng.random() < 0.4:
        cloud["ring"]["max_age"] = rng.randint(1, 8)

    deployment = {"format": "hetplan/deployment/1", "instances": deployments[0]}
    if times:
        deployment["changes"] = [{"at": at, "instances": d} for at, d in zip(times, deployments[1:])]
    faults = None
    if with_faults:
        number = max(0 if moves else 1, rng.randint(1, 6) - len(moves))
        events = moves + faults_of(rng, cloud, horizon, times, movers, number, rng.choice(deployments))
        faults = {"format": "hetplan/faults/1", "events": sorted(events, key=lambda e: e["at"])}
    return {"cloud": cloud, "services": {"format": "hetplan/services/1", "services": services},
            "deployment": deployment, "faults": faults,
            "requests": requests_of(rng, cloud, services, numbers, horizon)}


# ------------------------------------------------------------------------------------------- ties

def tenths(rng, least, most):
    return rng.randint(least, most) / 10


def tied_service(rng, number, kinds):
    """Passes, steps and frames that take tenths of a second."""
    kind = rng.choice(kinds)
    service = {"name": f"v{number}", "latency": tenths(rng, 2, 14), "weights": rng.choice([0.0, 100.0, 300.0]),
               "request_bytes": rng.choice([0.0, 100.0, 200.0]), "response_bytes": rng.choice([0.0, 100.0])}
    if "token" in kind or kind == "continuous":
        service["tokens"] = {"in": rng.randint(0, 2), "out": rng.randint(1, 5)}
    if kind == "continuous":
        service["batching"] = "continuous"
    if kind.startswith("stream"):
        service["rate"] = 10.0
        service["frames" if kind == "stream" else "tokens"] = 3 if kind == "stream" else {"in": 0, "out": 3}
    service["variants"] = []
    for gpu in "gd":
        first = rng.randint(1, 4)
        times = sorted(rng.randint(first, first + 4) for _ in range(2))
        variant = {"name": gpu, "gpu": gpu, "memory": 0.1, "compute": rng.choice([0.1, 0.3, 0.5]),
                   "pass": {"batch": [1, 2, 3], "seconds": [first / 10] + [t / 10 for t in times]}}
        if "rate" in service:
            variant["pass"]["seconds"] = [0.1, 0.1, rng.choice([0.1, 0.2])]
        if "tokens" in service:
            variant["pass"]["per_token"] = rng.choice([0.0, 0.1])
            variant["step"] = {"batch": [1, 2, 3], "seconds": [0.1, 0.1, rng.choice([0.1, 0.2])]}
        if gpu == "g" and rng.random() < 0.3:
            variant["pipeline_parallel"] = 2
        service["variants"].append(variant)
    return service


def tied_deployment(rng, cloud, services, before):
    room = Room(cloud, {s["name"] for s in cloud["servers"]})
    found = [spec for spec in before if rng.random() < 0.5
             and room.take(places_of(spec), variant_in(next(s for s in services if s["name"] == spec["service"]), spec))]
    for _ in range(3 * len(cloud["servers"])):
        service = rng.choice(services)
        spec = instance_of(rng, service, rng.choice(service["variants"]), room)
        if spec:
            found.append(spec)
    return found


def tied_case(seed, kinds=KINDS):
    rng = random.Random(seed)
    servers = []
    for i in range(rng.randint(1, 4)):
        servers.append({"name": f"s{i}", "gpus": [{"kind": "g", "memory": 0.3, "count": 2}], "uplink": 1000.0,
                        "downlink": rng.choice([1000.0, 500.0]), "latency": rng.choice([0.0, 0.1])})
        if rng.random() < 0.4:
            servers[-1]["devices"] = [{"name": "d", "kind": "d", "memory": 0.3, "bandwidth": 1000.0,
                                       "latency": rng.choice([0.0, 0.1])}]
    cloud = {"format": "hetplan/cloud/1", "name": "cloud", "servers": servers, "load_bandwidth": 1000.0,
             "ring": {"period": rng.choice([0.1, 0.3, 0.7]), "group": rng.randint(2, 4)}}
    services = [tied_service(rng, n, kinds) for n in range(rng.randint(1, 2))]
    first = tied_deployment(rng, cloud, services, [])
    deployment = {"format": "hetplan/deployment/1", "instances": first}
    if rng.random() < 0.4:
        deployment["changes"] = [{"at": tenths(rng, 3, 30), "instances": tied_deployment(rng, cloud, services, first)}]
    events = []
    for _ in range(rng.choice([0, 0, 1, 2])):
        event = {"at": tenths(rng, 0, 30), "kind": rng.choice(["gpu_fails", "slow_link", "server_fails", "ring_cut"]),
                 "server": rng.choice(servers)["name"]}
        if event["kind"] == "gpu_fails":
            event["gpu"] = rng.randint(0, 1)
        if event["kind"] in serving.FAULTS_OF_A_TIME:
            event["until"] = round(event["at"] + tenths(rng, 1, 20), 1)
        if event["kind"] == "slow_link":
            event["factor"] = 0.5
        events.append(event)
    requests = []
    for _ in range(rng.randint(10, 60)):
        service = rng.choice(services)
        request = {"arrival": tenths(rng, 0, 35), "service": service["name"], "server": rng.choice(servers)["name"]}
        if ("tokens" in service or "rate" in service) and rng.random() < 0.5:
            request["tokens_out" if "tokens" in service else "frames"] = rng.randint(1, 6)
        requests.append(request)
    faults = {"format": "hetplan/faults/1", "events": sorted(events, key=lambda e: e["at"])} if events else None
    return {"cloud": cloud, "services": {"format": "hetplan/services/1", "services": services},
            "deployment": deployment, "faults": faults, "requests": sorted(requests, key=lambda r: r["arrival"])}


# ----------------------------------------------------------------------------------------- tokens

def limit_tokens(rng, service, requests, time_of):
    """What depends on tokens: steps that grow with the cache, its memory, chunks, limits. time_of: a time about as long as that."""
    tokens, mine = service["tokens"], [r for r in requests if r["service"] == service["name"]]
    longest = max([tokens["in"] + tokens["out"]] + [r.get("tokens_in", tokens["in"]) + r.get("tokens_out", tokens["out"]) for r in mine])
    for variant in service["variants"]:
        if rng.random() < 0.7:
            variant["step"]["per_cached_token"] = time_of(variant["step"]["seconds"][0] / max(1, longest) / rng.choice([1, 4]))
        if service.get("batching") == "continuous" and rng.random() < 0.7:
            # At times too little for the longest.
            variant["cache_tokens"] = max(1, round(longest * rng.choice([0.7, 1.0, 1.0, 1.6, 3.0])))
    if service.get("batching") == "continuous" and rng.random() < 0.6:
        service["prefill_chunk"] = rng.choice([1, 2, 3, max(1, round(tokens["in"] / 2)), tokens["in"] + 1, 1000])
    if rng.random() < 0.6:
        service["ttft"] = time_of(service["latency"] * rng.choice([0.15, 0.4, 0.8]))
    if rng.random() < 0.6:
        service["time_between_tokens"] = time_of(service["variants"][0]["step"]["seconds"][-1] * rng.choice([1.0, 1.5, 3.0]))
    if "ttft" in service and "time_between_tokens" in service and rng.random() < 0.5:
        del service["latency"]


TOKEN_KINDS = ("continuous", "continuous", "continuous", "fixed with tokens")


def token_case(seed):
    found, rng = case(seed, TOKEN_KINDS), random.Random(f"tokens {seed}")
    for service in found["services"]["services"]:
        limit_tokens(rng, service, found["requests"], lambda time: time * rng.uniform(0.8, 1.25))
    return found


def tied_token_case(seed):
    found, rng = tied_case(seed, TOKEN_KINDS), random.Random(f"tokens {seed}")
    for service in found["services"]["services"]:
        limit_tokens(rng, service, found["requests"], lambda time: max(1, round(10 * time)) / 10)
    return found


def shifted(case, later):
    """The same by a clock that began earlier."""
    def moved(x, *names):
        return {**x, **{name: x[name] + later for name in names if name in x}}
    deployment = case["deployment"]
    if "changes" in deployment:
        deployment = {**deployment, "changes": [moved(c, "at") for c in deployment["changes"]]}
    faults = case["faults"] and {**case["faults"], "events": [moved(e, "at", "until") for e in case["faults"]["events"]]}
    return {**case, "deployment": deployment, "faults": faults, "requests": [moved(r, "arrival") for r in case["requests"]]}


# ---------------------------------------------------------------------------------------- the table

def main(count):
    outcomes, kinds, offloads, requests, with_faults = {}, {}, {}, 0, 0
    seen = {}       # outcome or fault kind -> number of seeds
    for seed in range(1, count + 1):
        drawn = case(seed)
        records = serving.simulate(**drawn, seed=seed)
        serving.check(records, drawn["requests"], drawn["services"])
        requests += len(records)
        here = set()
        for record in records:
            outcomes[record["outcome"]] = outcomes.get(record["outcome"], 0) + 1
            offloads[record["offloads"]] = offloads.get(record["offloads"], 0) + 1
            here.add(record["outcome"])
        for event in drawn["faults"]["events"] if drawn["faults"] else []:
            kinds[event["kind"]] = kinds.get(event["kind"], 0) + 1
            here.add(event["kind"])
        with_faults += drawn["faults"] is not None
        for name in here:
            seen[name] = seen.get(name, 0) + 1
    print(f"{count} cases, {with_faults} with faults, {requests} requests")
    print(f"mean offloads {sum(h * n for h, n in offloads.items()) / requests:.3f}, "
          f"offloaded {1 - offloads.get(0, 0) / requests:.1%}")
    for title, table in ("requests", outcomes), ("faults", kinds):
        for name in serving.OUTCOMES if table is outcomes else sorted(kinds):
            print(f"{name:18} {table.get(name, 0):7} {title:8} in {seen.get(name, 0):3} cases")
    for h in sorted(offloads):
        print(f"{h} times passed on  {offloads[h]:7} requests")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
