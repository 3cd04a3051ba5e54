# SPDX-License-Identifier: BSL-1.0
"""Random tables of operators to be placed, with the smallest makespan that any placement and any order reach.

    placement.py --seed S --count N

prints {"cases": [{"table", "contention", "copies", "kind", "optimum"}, ...]}; an optimum of null: no placement keeps the rules. The
same arguments give the same cases. All numbers are integers, so that sums are exact in any order.

The optimum is enumerated. Placements one by one; for each the operators and the transfers that it needs, in every order: what starts
next is chosen, in order of starts. Cut off is only what must end no sooner than an optimum that is at hand, and what a node that could
end before it starts might do first. Orders that lead to the same situation are followed once.
"""
import argparse
import json
import random

INFINITE = float("inf")
CONTENTIONS = ["none", "per_link", "one_port", "shared"]
COPIES = ["per_edge", "per_device"]


# ---------------------------------------------------------------------------------------------------------------- the rules


class Table:
    """A case's numbers, as the C++ side reads them."""

    def __init__(self, data):
        self.devices = len(data["capacity_bytes"])
        self.size = len(data["held_bytes"])
        self.edges = [(a, b) for a, b, _ in data["edges"]]
        self.bytes = [size for _, _, size in data["edges"]]
        self.time = [[number(data["time_s"][v * self.devices + k]) for k in range(self.devices)] for v in range(self.size)]
        self.held = data["held_bytes"]
        self.working = data["working_bytes"] or [0] * self.size
        self.tied = data["tied"]
        self.capacity = [number(c) for c in data["capacity_bytes"]]
        self.pairs = data["pairs"]
        self.edge_time = data["edge_time_s"]
        self.out_edges = [[e for e, (a, _) in enumerate(self.edges) if a == v] for v in range(self.size)]
        self.in_edges = [[e for e, (_, b) in enumerate(self.edges) if b == v] for v in range(self.size)]

    def transfer(self, edge, a, b):
        """Seconds of an edge's data between two devices."""
        pair = a * self.devices + b
        if self.edge_time:
            return number(self.edge_time[edge * self.devices ** 2 + pair])
        latency, per_byte, _ = self.pairs[pair]
        return INFINITE if per_byte is None else latency + self.bytes[edge] * per_byte

    def fits(self, device_of, k):
        mine = [v for v, j in enumerate(device_of) if j == k]
        return not mine or bytes_of(mine, self.held, self.tied, self.working) <= self.capacity[k]


def bytes_of(mine, held, tied, working):
    """Of a device with these operators: a tied tensor is there once."""
    return (sum(held[v] for v in mine) + sum(size for size, group in tied if any(v in group for v in mine))
            + max((working[v] for v in mine), default=0))


def number(x):
    return INFINITE if x is None else x


def held_while_sending(table, contention, a, b):
    """What one transfer at a time may hold: ports, or the resources of a route."""
    if contention == "none":
        return []
    if contention == "one_port":
        return [("out", a), ("in", b)]
    return [("resource", r) for r in table.pairs[a * table.devices + b][2]]


def nodes_of(table, contention, copies, device_of):
    """What a placement has to do: (seconds, machines, what it waits for) of operators, then of transfers. None: a route is missing."""
    nodes = [[table.time[v][k], [("device", k)], []] for v, k in enumerate(device_of)]
    sent = {}
    for e, (a, b) in enumerate(table.edges):
        here, there = device_of[a], device_of[b]
        if here == there:
            nodes[b][2].append(a)
            continue
        key = e if copies == "per_edge" else (a, there)
        if key not in sent:
            together = [e] if copies == "per_edge" else table.out_edges[a]
            seconds = max(table.transfer(x, here, there) for x in together)
            if seconds == INFINITE:
                return None
            machines, alone = held_while_sending(table, contention, here, there), 0
            if contention == "shared" and not table.edge_time:
                # A resource carries bytes; nothing flows during the latency.
                alone = seconds if max(table.bytes[x] for x in together) == 0 else table.pairs[here * table.devices + there][0]
                nodes.append([alone, [], [a]])
            sent[key] = len(nodes)
            nodes.append([seconds - alone, machines if contention != "shared" or seconds > alone else [],
                          [sent[key] - 1 if contention == "shared" and not table.edge_time else a]])
        nodes[b][2].append(sent[key])
    return nodes


# ------------------------------------------------------------------------------------------------------------ the enumeration


def best_order(nodes, best):
    """The smallest makespan of nodes that take turns on their machines, or `best` if none is smaller."""
    count = len(nodes)
    names = sorted({m for _, machines, _ in nodes for m in machines})
    machines = [[names.index(m) for m in held] for _, held, _ in nodes]
    seconds = [node[0] for node in nodes]
    waits_for = [node[2] for node in nodes]
    readers = [[] for _ in nodes]
    for b in range(count):
        for a in waits_for[b]:
            readers[a].append(b)

    left, order = [len(w) for w in waits_for], [b for b in range(count) if not waits_for[b]]
    for a in order:
        for b in readers[a]:
            left[b] -= 1
            if left[b] == 0:
                order.append(b)
    tail = [0] * count
    for a in reversed(order):
        tail[a] = seconds[a] + max((tail[b] for b in readers[a]), default=0)

    seen = set()

    def extend(done, ready, free, last):
        """`ready`: when each node could start, by what it waits for and has been done; if it is done, its end."""
        nonlocal best
        starts = []
        for b in range(count):
            if done >> b & 1:
                continue
            start = max(ready[b], last)
            for m in machines[b]:
                start = max(start, free[m])
            if start + tail[b] >= best:
                return
            if all(done >> a & 1 for a in waits_for[b]):
                starts.append((start, b))
        if not starts:
            best = min(best, max(ready))
            return
        # Whatever starts later than this could end might as well wait for it.
        first_end, first = min((start + seconds[b], b) for start, b in starts)
        for start, b in sorted(starts):
            if start >= first_end and b != first:
                continue
            end = start + seconds[b]
            new_free = list(free)
            for m in machines[b]:
                new_free[m] = end
            new_ready = list(ready)
            new_ready[b] = end
            for c in readers[b]:
                new_ready[c] = max(new_ready[c], end)
            state = (done | 1 << b, tuple(max(r, start) for r in new_ready), tuple(max(f, start) for f in new_free), start)
            if state in seen:
                continue
            seen.add(state)
            extend(done | 1 << b, new_ready, new_free, start)

    extend(0, [0] * count, [0] * len(names), 0)
    return best


def optimum(table, contention, copies):
    """The smallest makespan over all placements, or None."""
    order, placed = [], set()
    while len(order) < table.size:
        v = next(v for v in range(table.size) if v not in placed and all(table.edges[e][0] in placed for e in table.in_edges[v]))
        order.append(v)
        placed.add(v)
    fastest = [min(times) for times in table.time]
    behind = [0] * table.size
    for v in reversed(order):
        behind[v] = max((fastest[table.edges[e][1]] + behind[table.edges[e][1]] for e in table.out_edges[v]), default=0)
    best = INFINITE
    device_of, end = [None] * table.size, [0] * table.size

    def place(i, load):
        nonlocal best
        if i == table.size:
            if max(load) < best:
                nodes = nodes_of(table, contention, copies, device_of)
                if nodes:
                    best = best_order(nodes, best)
            return
        v = order[i]
        for k in range(table.devices):
            start = 0
            for e in table.in_edges[v]:
                a = table.edges[e][0]
                start = max(start, end[a] + (0 if device_of[a] == k else table.transfer(e, device_of[a], k)))
            end[v] = start + table.time[v][k]
            if end[v] + behind[v] >= best or end[v] == INFINITE:
                continue
            device_of[v] = k
            if table.fits(device_of, k):
                place(i + 1, [x + (table.time[v][k] if j == k else 0) for j, x in enumerate(load)])
            device_of[v] = None

    place(0, [0] * table.devices)
    return None if best == INFINITE else best


# ------------------------------------------------------------------------------------------------------------------ the cases


def draw_network(rng, devices):
    """Resources by ordered pair: a wire for each, one for each two, one medium for all, or links to a switch."""
    kind = rng.choice(["mesh", "half_duplex", "medium", "star", "free"])
    names, routes = {}, []
    for a in range(devices):
        for b in range(devices):
            if a == b or kind == "free":
                route = []
            elif kind == "mesh":
                route = [(a, b)]
            elif kind == "half_duplex":
                route = [(min(a, b), max(a, b))]
            elif kind == "medium":
                route = ["all"]
            else:
                route = [("up", a), ("down", b)]
            routes.append(sorted(names.setdefault(r, len(names)) for r in route))
    return routes, len(names)


def draw_capacities(rng, data, size, devices):
    """No limit, loose, full to the byte, or a byte less than that."""
    kind = rng.choice(["none", "none", "none", "loose", "full", "full", "short"])
    if kind == "none":
        return kind, [rng.choice([None, 10 ** 9]) for _ in range(devices)]
    placement = [rng.randrange(devices) for _ in range(size)]
    working = data["working_bytes"] or [0] * size
    capacity = []
    for k in range(devices):
        mine = [v for v in range(size) if placement[v] == k]
        capacity.append(bytes_of(mine, data["held_bytes"], data["tied"], working))
    if kind == "loose":
        capacity = [c + rng.randint(0, 6) for c in capacity]
    elif kind == "short":
        k = max(range(devices), key=lambda j: capacity[j])
        capacity[k] = max(0, capacity[k] - 1)
    return kind, capacity


def draw(rng, contention, copies, size, devices):
    edges = []
    percent = rng.choice([15, 30, 50, 80])
    for a in range(size):
        for b in range(a + 1, size):
            if rng.randrange(100) < percent:
                edges.append([a, b, rng.randint(0, 4)])
    names = list(range(size))
    rng.shuffle(names)      # operators need not be numbered along edges
    edges = [[names[a], names[b], size_] for a, b, size_ in edges]
    rng.shuffle(edges)
    slow = rng.choice([1, 4, 9])
    time = [rng.randint(0 if rng.random() < 0.2 else 1, 9) for _ in range(size * devices)]
    if rng.random() < 0.25:
        for v in range(size):
            if devices > 1 and rng.random() < 0.3:
                time[v * devices + rng.randrange(devices)] = None
    routes, resources = draw_network(rng, devices)
    missing = 0.25 if rng.random() < 0.25 else 0
    pairs, edge_time = [], None
    for p in range(devices * devices):
        joined = p // devices == p % devices or rng.random() >= missing
        pairs.append([rng.randint(0, 2), rng.randint(0, slow) if joined else None, routes[p]])
    if rng.random() < 0.5:
        edge_time = []
        for _ in edges:
            for p in range(devices * devices):
                same, joined = p // devices == p % devices, pairs[p][1] is not None
                edge_time.append(0 if same else rng.randint(0, slow) if joined else None)
    data = {"time_s": time, "edges": edges, "pairs": pairs, "edge_time_s": edge_time, "resources": resources,
            "held_bytes": [rng.randint(0, 9) for _ in range(size)],
            "working_bytes": [rng.randint(0, 5) for _ in range(size)] if rng.random() < 0.35 else None}
    data["tied"] = []
    if size > 1 and rng.random() < 0.35:
        data["tied"] = [[rng.randint(0, 9), sorted(rng.sample(range(size), rng.randint(2, min(size, 3))))] for _ in range(rng.randint(1, 2))]
    memory, data["capacity_bytes"] = draw_capacities(rng, data, size, devices)
    kind = ", ".join(filter(None, [f"{size} x {devices}", f"memory {memory}", "tied tensors" if data["tied"] else "", "working bytes" if data["working_bytes"] else "",
                                   "edge times" if edge_time else "", "routes missing" if missing else "",
                                   "times missing" if None in time else ""]))
    return {"table": data, "contention": contention, "copies": copies, "kind": kind,
            "optimum": optimum(Table(data), contention, copies)}


def draw_size(rng, contention):
    if contention == "none":
        return rng.choice([(3, 1), (2, 2), (4, 3), (5, 3), (6, 3), (7, 2), (8, 2), (6, 4), (7, 3), (8, 3), (8, 4)])
    return rng.choice([(4, 1), (2, 2), (3, 2), (4, 2), (5, 2), (7, 2), (4, 3), (5, 3), (6, 3), (7, 3)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=400)
    options = parser.parse_args()
    cases = []
    for i in range(options.count):
        rng = random.Random(f"placement {options.seed} {i}")
        contention, copies = CONTENTIONS[i % 4], COPIES[i // 4 % 2]
        cases.append(draw(rng, contention, copies, *draw_size(rng, contention)))
    print(json.dumps({"cases": cases}))


if __name__ == "__main__":
    main()
