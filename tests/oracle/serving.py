# SPDX-License-Identifier: BSL-1.0
"""The request simulator of semantics.md, section 11, once more, slowly: an oracle for the library.

It takes parsed documents of the formats in docs/reference/serving-files.md (plain SI numbers, no texts
with units) and shares no code with the library. Every instant is gone through in the five steps of the
page; every batch end, token boundary and publication is an instant of its own. Names in quotes are the
page's headings.

Numbers are those of the documents. With fractions (see `exact`) sums are exact, and times that are the same are
equal: the library, which adds doubles, promises the same answers.
"""
import fractions
import functools
import heapq
import math

NEARLY = 1e-9       # "One part in 10^9". "Some free rate", "w > 0" and equal free rates mean it, too.
ANSWERS_ARE_SLOWED = True       # A slow link slows the answers that begin on it, too.
ATTEMPTS = 8                    # at drawing a server by its capacity
BATCHES = 4                     # or SLOs, that the mean of what a server does is taken over
FAULTS_OF_A_TIME = ("ring_cut", "slow_link", "wrong_state")
MOVES = ("server_joins", "server_leaves")


def u(seed, i, h, a):
    """The number of attempt a at drawing where request i goes after h times of being passed on: 0 <= u < 1."""
    mask = 2**64 - 1
    z = (seed + 0x9E3779B97F4A7C15 * (64 * i + h + 1) + 0xD1B54A32D192ED03 * a) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    z ^= z >> 31
    return (z >> 11) * 2.0**-53


def exact(document):
    """A document whose floats are the decimal fractions that they are written as."""
    if isinstance(document, float):
        return fractions.Fraction(str(document))
    if isinstance(document, dict):
        return {name: exact(value) for name, value in document.items()}
    return [exact(value) for value in document] if isinstance(document, list) else document


# ---------------------------------------------------------------------------------- "Service times"

def between(batches, seconds, b):
    """What is listed for some batches, linear between two of them."""
    for i, known in enumerate(batches):
        if b == known:
            return seconds[i]
        if b < known:
            more = seconds[i] - seconds[i - 1]
            return seconds[i - 1] + more * (b - batches[i - 1]) / (known - batches[i - 1])
    raise AssertionError(f"no time for a batch of {b}")


class Service:
    def __init__(self, document):
        self.name = document["name"]
        self.ttft = document.get("ttft")
        self.between = document.get("time_between_tokens")
        self.limits_answer = "latency" in document
        if self.limits_answer:
            self.slo = document["latency"]
        else:
            self.slo = self.ttft + (document["tokens"]["out"] - 1) * self.between
        self.chunk = document.get("prefill_chunk")
        self.rate = document.get("rate")
        self.request_bytes = document.get("request_bytes", 0)
        self.response_bytes = document.get("response_bytes", 0)
        self.bytes_per_token = document.get("bytes_per_token", 0)
        self.tokens = document.get("tokens")
        self.frames = document.get("frames", 1)
        self.weights = document.get("weights", 0)
        self.continuous = document.get("batching", "fixed") == "continuous"
        assert not (self.continuous and (self.rate is not None or self.tokens is None))
        assert self.continuous or self.chunk is None
        self.variants = {v["name"]: Variant(self, v) for v in document["variants"]}


class Variant:
    def __init__(self, service, document):
        self.service = service
        self.name = document["name"]
        self.kind = document["gpu"]
        self.pipeline = document.get("pipeline_parallel", 1)
        self.gpus = document.get("tensor_parallel", 1) * self.pipeline
        self.share = document.get("compute", 1)
        self.memory = document["memory"]
        self.pass_times = document["pass"]
        self.step_times = document.get("step")
        self.cache = document.get("cache_tokens", math.inf)
        assert service.continuous or self.cache == math.inf
        lists = [self.pass_times["batch"]] + ([self.step_times["batch"]] if self.step_times else [])
        self.largest = min(batches[-1] for batches in lists)
        assert all(batches[0] == 1 and batches == sorted(set(batches)) for batches in lists)

    def of_pass(self, b, x):
        base = between(self.pass_times["batch"], self.pass_times["seconds"], b)
        return base + self.pass_times.get("per_token", 0) * x

    def of_step(self, b, c=0):
        """step(b, c), c the tokens in the caches."""
        return between(self.step_times["batch"], self.step_times["seconds"], b) + self.step_times.get("per_cached_token", 0) * c

    def of_steps(self, requests, steps):
        """The first steps of a fixed batch: at each, the caches hold the tokens in and those made so far, as if nobody were done."""
        b, known = len(requests), sum(r.tokens_in for r in requests)
        return sum(self.of_step(b, known + b * k) for k in range(1, steps + 1))

    # What the following methods return is asked for with every publication.
    @functools.cache
    def mean_step(self, b):
        """A step of b typical requests, half of whose tokens out are there."""
        tokens = self.service.tokens
        return self.of_step(b, b * (tokens["in"] + fractions.Fraction(tokens["out"]) / 2))

    @functools.cache
    def typical_pass(self, b):
        return self.of_pass(b, b * self.service.tokens["in"] if self.service.tokens else 0)

    @functools.cache
    def typical(self, b):
        """T(b) of the typical numbers of tokens."""
        tokens = self.service.tokens
        return self.typical_pass(b) + ((tokens["out"] - 1) * self.mean_step(b) if tokens else 0)

    def of_batch(self, requests):
        """D of a fixed batch."""
        b = len(requests)
        if not self.service.tokens:
            return self.of_pass(b, 0)
        longest = max(r.tokens_out for r in requests)
        return self.of_pass(b, sum(r.tokens_in for r in requests)) + self.of_steps(requests, longest - 1)


# -------------------------------------------------------------------------------------- "The cloud"

class Server:
    def __init__(self, document, name, number, ring, load_bandwidth):
        self.name = name
        self.number = number
        self.ring = ring
        self.gpus = [g for g in document.get("gpus", []) for _ in range(g.get("count", 1))]
        self.uplink = document["uplink"]
        self.downlink = document.get("downlink", self.uplink)
        self.latency = document.get("latency", 0)
        self.load_bandwidth = document.get("load_bandwidth", load_bandwidth)
        self.devices = {d["name"]: d for d in document.get("devices", [])}
        self.uplink_free = self.downlink_free = 0
        self.failed_before = None   # the first period that begins at the failure or later
        self.present = True

    @property
    def failed(self):
        return self.failed_before is not None


def servers_of(cloud):
    """of `count` servers the first has number 0, and the name of a single one stays as it is."""
    found = []
    for document in cloud["servers"]:
        count = document.get("count", 1)
        for n in range(count):
            name = document["name"] + (str(n) if count > 1 else "")
            ring = len(found) // cloud["ring"].get("group", 100)
            found.append(Server(document, name, len(found), ring, cloud.get("load_bandwidth", math.inf)))
    return found


class Request:
    def __init__(self, number, document, service, entered):
        self.number = number
        self.arrival = document["arrival"]
        self.service = service
        self.entered = entered
        tokens = service.tokens or {"in": 0, "out": 1}
        self.tokens_in = self.given(document, "tokens_in", tokens["in"])
        self.tokens_out = self.given(document, "tokens_out", tokens["out"])
        self.frames = self.tokens_out if service.tokens else self.given(document, "frames", service.frames)
        self.bytes = service.request_bytes + service.bytes_per_token * self.tokens_in
        self.deadline = self.arrival + service.slo
        self.begin_by = self.deadline if service.ttft is None else min(self.deadline, self.arrival + service.ttft)
        self.server = entered       # where it was handled last
        self.handled_at = []
        self.offloads = 0
        self.record = None

    @staticmethod
    def given(document, name, otherwise):
        return otherwise if document.get(name) is None else document[name]


# -------------------------------------------------------------------------------------- "Instances"

class Instance:
    """What the three kinds of instances have in common."""

    def __init__(self, run, spec, ready):
        self.run = run
        self.key = run.key_of(spec)
        self.service = run.services[spec["service"]]
        self.variant = self.service.variants[self.key[1]]
        self.device = spec.get("device")
        self.coming = 0     # requests on their way to that device
        self.gpus = [(run.named[s], number) for s, number in spec.get("gpus", [])]
        self.leader = run.named[self.device[0]] if self.device else self.gpus[0][0]
        self.batch = spec["batch"]
        self.multi_frame = spec.get("frames", 1)
        self.groups = spec.get("groups", 1)
        self.ready = ready
        self.deployed = True
        self.out = False
        self.waiting = []
        if ready > -math.inf:
            run.wake(ready)

    def servers(self):
        return {self.leader} | {server for server, _ in self.gpus}

    def enqueue(self, request, now):
        self.waiting.append(request)
        self.take(now)

    def in_time(self, requests, now):
        """Those that have not timed out; the others leave."""
        for r in requests:
            if r.begin_by <= now:
                self.run.end(r, "timed_out", now)
        return [r for r in requests if r.begin_by > now]

    def can_hold(self, request):
        return True

    def end_by_limits(self, end, first):
        """The end that stands for a start: a first token that would be late counts as a late end."""
        return end if self.service.ttft is None else max(end, first + self.service.slo - self.service.ttft)

    def send_back(self, now):
        waiting, self.waiting = self.waiting, []
        for r in waiting:
            self.run.send_back(r, now)

    def there(self, request, now):
        """When what leaves now is where the request entered."""
        end = now
        if self.device:
            device = self.leader.devices[self.device[1]]
            end += device.get("latency", 0) + self.service.response_bytes / device["bandwidth"]
        return end + self.run.answers_way(request, request.server, end)

    def answer(self, request, now, first=None, last=None):
        """The answer leaves: `now` its batch has ended. Its first and last token were there at `first` and `last`."""
        end, service, slack = self.there(request, now), self.service, NEARLY * self.service.slo
        ttft = None if first is None else self.there(request, first) - request.arrival
        between = None if first is None or request.tokens_out == 1 else (last - first) / (request.tokens_out - 1)
        in_time = not service.limits_answer or end <= request.deadline + slack
        in_time = in_time and (service.ttft is None or ttft <= service.ttft + slack)
        in_time = in_time and (service.between is None or between is None or between <= service.between + slack)
        self.run.end(request, "served" if in_time else "late", end, 1 if in_time else 0, ttft, between)


class Fixed(Instance):
    """Fixed batches."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.free = -math.inf       # r, the time at which the next batch can be taken
        self.under_way = []         # (end, requests)
        self.ended = 0
        self.able = self.variant.pipeline * self.batch / self.variant.typical(self.batch)

    def idle(self):
        return not self.under_way

    def step_one(self, now):
        over = [b for b in self.under_way if b[0] <= now]
        self.under_way = [b for b in self.under_way if b[0] > now]
        for end, requests in over:
            self.ended += len(requests)
            for r in requests:
                if self.service.tokens:
                    first = end - self.variant.of_steps(requests, max(x.tokens_out for x in requests) - 1)
                    self.answer(r, end, first, first + self.variant.of_steps(requests, r.tokens_out - 1))
                else:
                    self.answer(r, end)
        self.take(now)

    def take(self, now):
        while self.waiting and self.free <= now and self.ready <= now:
            requests = []
            while self.waiting and len(requests) < self.batch:
                requests += self.in_time([self.waiting.pop(0)], now)
            if requests:
                duration = self.variant.of_batch(requests)
                end = max([now + duration] + [b[0] for b in self.under_way])    # nobody overtakes
                self.under_way.append((end, requests))
                self.free = now + duration / self.variant.pipeline
                self.run.wake(end)
                self.run.wake(self.free)

    def expected_start(self, t):
        """When a request that comes at t would start, and in a batch of how many."""
        t, r, q = max(t, self.ready), max(self.free, self.ready), len(self.waiting) + self.coming
        if q == 0 and r <= t:
            return t, 1
        return max(t, r) + q // self.batch * self.variant.typical(self.batch) / self.variant.pipeline, self.batch

    def expected_end(self, t):
        start, b = self.expected_start(t)
        return self.end_by_limits(start + self.variant.typical(b), start + self.variant.typical_pass(b))

    def fail(self, now):
        for _, requests in self.under_way:
            for r in requests:
                self.run.end(r, "failed", now)
        self.under_way = []


class Member:
    """One of a running set: in its pass, with its prompt read in part, or with some tokens."""

    def __init__(self, request):
        self.request = request
        self.left = request.tokens_in       # of its prompt
        self.has, self.first = 0, None      # tokens; when the first one was there

    def all_tokens(self):
        return self.request.tokens_in + self.request.tokens_out


class Continuous(Instance):
    """Continuous batches: those that run (have a token), and those whose prompt is read."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.running = []
        self.reading = []           # in the order in which they joined
        self.parts = []             # tokens that the first of them read in the iteration that goes on
        self.boundary = None        # the next one
        self.tau, self.k, self.grown = 0, 0, 0
        self.ended = 0
        tokens = self.service.tokens
        self.usual = self.batch     # how many typical ones it holds
        if self.variant.cache < math.inf:
            self.usual = min(self.batch, max(1, math.floor(self.variant.cache / fractions.Fraction(tokens["in"] + tokens["out"]))))
        self.able = self.usual / self.whole(self.usual)

    @functools.cache
    def whole(self, b):
        """W(b): all others stand still in a pass, or chunks make the steps longer."""
        tokens, v = self.service.tokens, self.variant
        if self.service.chunk is None:
            return b * v.typical_pass(1) + (tokens["out"] - 1) * v.mean_step(b)
        chunks = max(1, math.ceil(fractions.Fraction(tokens["in"]) / self.service.chunk))
        return (chunks + tokens["out"] - 1) * v.mean_step(b) + b * (v.typical_pass(1) - v.of_pass(1, 0))

    def members(self):
        return self.running + self.reading

    def idle(self):
        return not self.members()

    def cached(self):
        return sum(m.request.tokens_in + m.has for m in self.running)

    def can_hold(self, request):
        return Member(request).all_tokens() <= self.variant.cache

    def enqueue(self, request, now):
        if not self.can_hold(request):
            self.run.end(request, "no_resources", now)
        else:
            super().enqueue(request, now)

    def step_one(self, now):
        if self.boundary is not None and self.boundary <= now:
            was_pass = bool(self.reading) and self.service.chunk is None
            for m in [] if was_pass else self.running:
                m.has += 1
            for m, part in zip(self.reading, self.parts):
                m.left -= part
            read = [m for m in self.reading[:len(self.parts)] if m.left == 0]
            for m in read:
                m.has, m.first = 1, now
            self.running, self.reading = self.running + read, self.reading[len(read):]
            over = [m for m in self.running if m.has == m.request.tokens_out]
            self.running = [m for m in self.running if m.has < m.request.tokens_out]
            self.boundary = None
            for m in over:
                self.ended += 1
                self.answer(m.request, now, m.first, now)
            if self.parts or over:
                self.tau, self.k, self.grown = now, 0, 0
            self.join(now)
        else:
            self.take(now)

    def take(self, now):
        if self.idle():
            self.join(now)

    def join(self, now):
        """At a boundary: the first that wait join, as far as there is room, and the next iteration begins."""
        joined = False
        while self.waiting and self.ready <= now and len(self.members()) < self.batch:
            if sum(m.all_tokens() for m in self.members() + [Member(self.waiting[0])]) > self.variant.cache:
                break       # and nobody overtakes
            for r in self.in_time([self.waiting.pop(0)], now):
                self.reading.append(Member(r))
                joined = True
        self.parts, v, n = [], self.variant, len(self.running)
        if not self.members():
            return
        assert sum(m.all_tokens() for m in self.members()) <= v.cache
        if self.service.chunk is None and joined:
            self.parts = [m.left for m in self.reading]
            self.boundary = now + v.of_pass(len(self.parts), sum(self.parts))
        elif self.reading:
            left = self.service.chunk
            for m in self.reading:
                part = min(m.left, left)
                if part == 0 and m.left > 0:
                    break
                self.parts.append(part)
                left -= part
                if part < m.left:
                    break
            x = sum(self.parts)
            if n == 0:
                self.boundary = now + v.of_pass(len(self.parts), x)
            else:
                self.boundary = now + v.of_step(n, self.cached()) + v.of_pass(1, x) - v.of_pass(1, 0)
        else:
            self.k += 1
            self.grown += v.of_step(n, self.cached()) - v.of_step(n)
            self.boundary = self.tau + self.k * v.of_step(n) + self.grown
        self.run.wake(self.boundary)

    def expected_start(self, t):
        """When a request that comes at t would start, and among how many."""
        t, n, q, b = max(t, self.ready), len(self.running) + len(self.reading), len(self.waiting) + self.coming, self.usual
        start = max(self.boundary, t) if n else t
        if q + 1 > b - n:
            return start + (q + 1 - (b - n)) * self.whole(b) / b, b
        return start, n + q + 1

    def expected_end(self, t):
        start, holds = self.expected_start(t)
        v, x = self.variant, self.service.tokens["in"]
        first = v.typical_pass(1)
        if self.service.chunk is not None:
            x += sum(m.left for m in self.reading)
            chunks = max(1, math.ceil(fractions.Fraction(x) / self.service.chunk))
            first = chunks * v.mean_step(holds) + v.of_pass(1, x) - v.of_pass(1, 0)
        return self.end_by_limits(start + self.whole(holds), start + first)

    def fail(self, now):
        for m in self.members():
            self.run.end(m.request, "failed", now)
        self.running, self.reading, self.parts, self.boundary = [], [], [], None


class Streams(Instance):
    """Streams: (begin, request, rate), in the order in which they began."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.streams = []
        self.able = self.capacity(self.batch)

    def capacity(self, n):
        """R(n)."""
        best = 0
        for k in range(1, n + 1):
            c = min(self.batch, k * self.multi_frame)
            seconds = self.variant.of_step(c) if self.service.tokens else self.variant.of_pass(c, 0)
            best = max(best, self.variant.pipeline * c / seconds)
        return self.groups * best

    def free_rate(self, now):
        if self.ready > now:
            return 0
        return self.capacity(len(self.streams) + 1) - sum(rate for _, _, rate in self.streams)

    def idle(self):
        return not self.streams

    def end_of(self, stream):
        begin, request, _ = stream
        return begin + request.frames / self.service.rate

    def begin(self, request, now):
        free = self.free_rate(now)
        whole = free >= self.service.rate * (1 - NEARLY)
        self.streams.append((now, request, self.service.rate if whole else free))
        self.run.wake(self.end_of(self.streams[-1]))

    def step_one(self, now):
        over = [s for s in self.streams if self.end_of(s) <= now]
        self.streams = [s for s in self.streams if self.end_of(s) > now]
        for begin, r, rate in over:
            end = self.end_of((begin, r, rate))
            if rate == self.service.rate:
                self.run.end(r, "served", end, r.frames)
            else:
                self.run.end(r, "in_part", end, r.frames * rate / self.service.rate)

    def take(self, now):
        assert not self.waiting

    def expected_start(self, t):
        return t, 1     # nobody waits for a stream: Q is 0

    def expected_end(self, t):
        return t

    def fail(self, now):
        for begin, r, rate in self.streams:
            self.run.end(r, "failed", now, rate * (now - begin))
        self.streams = []


# ----------------------------------------------------------------- "What servers know of each other"

class Topology:
    """A ring's state in a period: who stands in it, who of these has failed, which gaps are cut."""

    def __init__(self, servers, cut):
        self.in_ring = frozenset(s.number for s in servers if s.present)
        self.out = frozenset(s.number for s in servers if s.failed)
        self.cut = frozenset(cut)

    def __eq__(self, other):
        return (self.in_ring, self.out, self.cut) == (other.in_ring, other.out, other.cut)

    def distance(self, ring, a, b, alive=None):
        """d between two servers (numbers) of the ring (numbers in the order of the list)."""
        counted = self.in_ring - self.out | ({alive} if alive in self.in_ring else set())
        if a not in counted or b not in counted:
            return math.inf
        return min(self.one_way(ring, a, b, counted), self.one_way(ring, b, a, counted))

    def one_way(self, ring, a, b, counted):
        """Forward from a to b: over the gaps behind a and all before b."""
        at, d = ring.index(a), 0
        while ring[at] != b:
            if ring[at] in self.cut:
                return math.inf
            at = (at + 1) % len(ring)
            d += ring[at] in counted
        return d


# ------------------------------------------------------------------------------------------ the run

class Run:
    def __init__(self, cloud, services, deployment, requests, faults, seed, offloads, handler):
        assert handler in ("epara", "local")
        self.seed, self.offloads, self.handler = seed, offloads, handler
        self.period = cloud["ring"]["period"]
        self.servers = servers_of(cloud)
        self.named = {s.name: s for s in self.servers}
        self.rings = {}
        for s in self.servers:
            self.rings.setdefault(s.ring, []).append(s.number)
        self.max_age = cloud["ring"].get("max_age")
        self.services = {s["name"]: Service(s) for s in services["services"]}
        self.requests = [Request(i, r, self.services[r["service"]], self.named[r["server"]])
                         for i, r in enumerate(requests)]
        assert all(a.arrival <= b.arrival for a, b in zip(self.requests, self.requests[1:]))
        self.faults = list(faults["events"]) if faults else []
        self.windows = [f for f in self.faults if f["kind"] in FAULTS_OF_A_TIME]
        self.changes = list(deployment.get("changes", []))
        self.failed_gpus, self.gone_devices = set(), set()
        heard = set()
        for f in self.faults:       # who registers is not there before
            if "device" in f and (f["server"], f["device"]) not in heard:
                heard.add((f["server"], f["device"]))
                if f["kind"] == "device_registers":
                    self.gone_devices.add((f["server"], f["device"]))
        self.moves = []             # joins and leaves that wait for a change
        for s in self.servers:      # who joins is absent before
            first = next((f for f in self.faults if f["kind"] in MOVES and f["server"] == s.name), None)
            s.present = first is None or first["kind"] == "server_leaves"
        self.agenda = []            # times at which something happens
        self.due = {}               # time -> [(number of the request, what, where)]
        self.published = []         # per period: {server: {service: (p, Q, able)}}
        self.did = {}               # (server, service): (S, p) of the last period under this deployment
        self.topologies = []        # per period
        self.runs = []              # (last period, topology) of those that follow each other unchanged
        self.instances, self.others = [], []    # deployed; taken out, with something under way
        self.k0 = 0
        self.deploy(deployment["instances"], None)
        first = min([r.arrival for r in self.requests] + [x["at"] for x in self.faults + self.changes], default=0)
        self.begin = first // self.period * self.period     # of the period in which the first of all things happens
        for time in [self.begin] + [x["at"] for x in self.faults + self.changes]:
            self.wake(time)
        for r in self.requests:
            self.later(r.arrival, r, "handle", r.entered)

    def wake(self, time):
        heapq.heappush(self.agenda, time)

    def later(self, time, request, what, where):
        self.due.setdefault(time, []).append((request.number, what, where))
        self.wake(time)

    def end(self, request, outcome, end, credit=0, ttft=None, between=None):
        assert request.record is None, f"request {request.number} ends twice"
        request.record = {"outcome": outcome, "end": end, "server": request.server.name,
                          "offloads": request.offloads, "credit": credit, "ttft": ttft, "time_between_tokens": between}
        self.left -= 1

    def simulate(self):
        self.left = len(self.requests)
        faults, changes = list(self.faults), list(self.changes)
        while self.left:
            now = heapq.heappop(self.agenda)
            while self.agenda and self.agenda[0] == now:
                heapq.heappop(self.agenda)
            for instance in self.instances + self.others:                           # 1
                instance.step_one(now)
            while faults and faults[0]["at"] <= now:                                # 2
                self.fault(faults.pop(0), now)
            while changes and changes[0]["at"] <= now:                              # 3
                self.change(changes.pop(0), now)
            if self.begin + len(self.published) * self.period <= now:                            # 4
                self.publish(now)
            while self.due.get(now):                                                # 5
                # what comes up at this instant takes its turn by its number, too.
                first = min(self.due[now], key=lambda entry: entry[0])
                self.due[now].remove(first)
                number, what, where = first
                getattr(self, what)(self.requests[number], where, now)
            self.due.pop(now, None)
        return [r.record for r in self.requests]

    # ------------------------------------------------------------------------------- "Handling"

    def handle(self, request, server, now):
        request.server = server
        entering = not request.handled_at
        request.handled_at.append(server)
        service = request.service
        if server.failed or (entering and not server.present):
            return self.end(request, "lost", now)
        if now >= request.begin_by:
            return self.end(request, "timed_out", now)
        classes = self.own(server, service)
        if service.rate is not None:
            return self.handle_stream(request, server, classes, now)
        for instances in classes:
            best = None
            for instance in instances:
                end = self.expected_answer(instance, request, server, now)
                # of devices, too, the earliest end is that of the answer.
                if end <= request.deadline and (best is None or end < best[0]):
                    best = end, instance
            if best:
                return self.give(request, best[1], now)
        self.reject_or_pass_on(request, server, now)

    def handle_stream(self, request, server, classes, now):
        rate = request.service.rate
        for instances in classes:
            enough = [x for x in instances if x.free_rate(now) >= rate * (1 - NEARLY)]
            if enough:
                return self.most_free(enough, rate, now).begin(request, now)
        some = [x for instances in classes for x in instances if x.free_rate(now) > rate * NEARLY]
        target = self.target(request, server, bool(some))
        if some and target in ("too_many_offloads", "no_resources"):
            return self.most_free(some, rate, now).begin(request, now)
        self.reject_or_pass_on(request, server, now)

    @staticmethod
    def most_free(instances, rate, now):
        most = max(x.free_rate(now) for x in instances)
        return next(x for x in instances if x.free_rate(now) >= most - rate * NEARLY)

    def own(self, server, service):
        """The three classes of step 2: on this server's GPUs alone, spanning, on registered devices."""
        able = [x for x in self.instances if x.service is service and not x.out]
        on_gpus = [x for x in able if not x.device and server in x.servers()]
        return ([x for x in on_gpus if len(x.servers()) == 1], [x for x in on_gpus if len(x.servers()) > 1],
                [x for x in able if x.device and x.leader is server])

    def expected_answer(self, instance, request, server, now):
        service, there, back = request.service, 0, 0
        if not instance.can_hold(request):
            return math.inf
        if instance.device:
            there = self.way_to_device(instance, service, request.bytes)
            back = self.way_to_device(instance, service, service.response_bytes)
        end = instance.expected_end(now + there)
        return end + back + self.answers_way(request, server, now)

    @staticmethod
    def way_to_device(instance, service, amount):
        device = instance.leader.devices[instance.device[1]]
        return device.get("latency", 0) + amount / device["bandwidth"]

    def answers_way(self, request, server, begin):
        """From the server that handled it last to the one where it entered."""
        entered = request.entered
        if server is entered:
            return 0
        up, down = server.uplink, entered.downlink
        if ANSWERS_ARE_SLOWED:
            up, down = up * self.slowed(server, begin), down * self.slowed(entered, begin)
        return server.latency + entered.latency + request.service.response_bytes / min(up, down)

    def slowed(self, server, time):
        """factors of several faults at a time are multiplied."""
        factor = 1
        for f in self.windows:
            if f["kind"] == "slow_link" and f["server"] == server.name and f["at"] <= time < f["until"]:
                factor *= f["factor"]
        return factor

    def give(self, request, instance, now):
        if instance.device:
            way = self.way_to_device(instance, request.service, request.bytes)
            instance.coming += 1
            self.later(now + way, request, "reach_device", instance)
        else:
            instance.enqueue(request, now)

    def reach_device(self, request, instance, now):
        instance.coming -= 1
        if instance.out or not instance.deployed:
            self.send_back(request, now)
        else:
            instance.enqueue(request, now)

    def send_back(self, request, now):
        if request.server.failed:
            self.end(request, "lost", now)
        else:
            self.later(now, request, "handle", request.server)

    def reject_or_pass_on(self, request, server, now):
        target = self.target(request, server)
        if isinstance(target, str):
            return self.end(request, target, now)
        request.offloads += 1
        start = max(now, server.uplink_free)
        server.uplink_free = start + request.bytes / (server.uplink * self.slowed(server, start))
        self.later(server.uplink_free + server.latency + target.latency, request, "reach_downlink", target)

    def reach_downlink(self, request, server, now):
        start = max(now, server.downlink_free)
        server.downlink_free = start + request.bytes / (server.downlink * self.slowed(server, start))
        self.later(server.downlink_free, request, "handle", server)

    def target(self, request, server, partly=False):
        """Steps 3 and 4: the server to which it is passed on, or why it is not. partly: a stream that could have some rate here."""
        if self.handler == "local":
            return "no_resources"
        if request.offloads >= self.offloads:
            return "too_many_offloads"
        known = {}      # of the candidates: idle, able
        for other in self.behind(server):
            if other not in request.handled_at:
                idle = self.idle(server, other, request.service)
                if idle is not None:
                    known[other] = idle
        whole = {}      # of all that lead an instance of the service, in the order of the list
        if server.number in self.topologies[-1].in_ring:
            for n in self.rings[server.ring]:
                led = self.led(self.servers[n], request.service)
                if led:
                    whole[self.servers[n]] = sum(x.able for x in led)
        draw = [u(self.seed, request.number, request.offloads, a) for a in range(ATTEMPTS + 1)]
        for a in range(ATTEMPTS if whole else 0):
            other, into = self.reached(whole, draw[a] * sum(whole.values()))
            if other in known and into < known[other]:
                return other
        weights = known
        if not any(weights.values()):
            if not known or partly:
                return "no_resources"
            weights = {other: whole[other] for other in known}
        return self.reached(weights, draw[ATTEMPTS] * sum(weights.values()))[0]

    @staticmethod
    def reached(weights, limit):
        """The first at which the sum exceeds the limit, and how much of it is below the limit."""
        so_far = 0
        for other, w in weights.items():
            if so_far + w > limit:
                break
            so_far += w
        return other, limit - so_far

    def behind(self, server):
        """The others of the ring, in its order. who joins is in it from the next period on."""
        ring, members = self.rings[server.ring], self.topologies[-1].in_ring
        if server.number not in members:
            return []
        at = ring.index(server.number)
        return [self.servers[n] for n in ring[at + 1:] + ring[:at] if n in members]

    def led(self, server, service):
        return [x for x in self.instances if x.leader is server and x.service is service]

    def idle(self, server, other, service):
        """w of a candidate; None for who is none."""
        instances = self.led(other, service)
        if not instances or self.known_to_be_out(server, other):
            return None
        k, j = len(self.published) - 1, self.newest(server, other)
        max_age = len(self.rings[server.ring]) if self.max_age is None else self.max_age
        if k - j > max_age:
            return None
        if j < self.k0:
            return sum(x.able for x in instances)       # p = 0, Q = 0
        does, queue, able = self.published[j][other.number][service.name]
        if queue > (k - j) * self.period + service.slo:
            return None
        return able - does if able - does > NEARLY * able else 0

    # ------------------------------------------------------- "What servers know of each other"

    def publish(self, now):
        k = len(self.published)
        cut = [f["server"] for f in self.windows if f["kind"] == "ring_cut" and f["at"] <= now < f["until"]]
        topology = Topology(self.servers, [self.named[name].number for name in cut])
        if self.runs and self.runs[-1][1] == topology:
            self.runs.pop()
        self.runs.append((k, topology))
        self.topologies.append(topology)
        led = {}
        for x in self.instances:
            led.setdefault(x.leader, {}).setdefault(x.service.name, []).append(x)
        states = {}
        for server in self.servers:
            if server.present and not server.failed:
                states[server.number] = self.state(server, led.get(server, {}), now)
        self.published.append(states)
        self.wake(self.begin + (k + 1) * self.period)

    def state(self, server, led, now):
        wrong = any(f["kind"] == "wrong_state" and f["server"] == server.name and f["at"] <= now < f["until"]
                    for f in self.windows)
        found = {}
        for name, instances in led.items():
            does, whole = self.does(server, name, instances), sum(x.able for x in instances)
            going = [x for x in instances if not x.out]
            queue = min([max(0, x.expected_start(now)[0] - now) for x in going], default=math.inf)
            able = sum(x.able for x in going if x.ready <= now)
            found[name] = (0, 0, whole) if wrong else (does, queue, able)
        return found

    def does(self, server, name, instances):
        """p: of streams what they have, else the running mean of what has ended."""
        if isinstance(instances[0], Streams):
            return sum(rate for x in instances for _, _, rate in x.streams)
        done, does = sum(x.ended for x in instances), 0
        if (server, name) in self.did:
            before, did = self.did[server, name]
            batch = sum(getattr(x, "usual", x.batch) for x in instances) / sum(x.able for x in instances)
            horizon = float(BATCHES * max(batch, instances[0].service.slo))
            does = (horizon * did + done - before) / (horizon + float(self.period))
        self.did[server, name] = done, does
        return does

    def newest(self, server, other):
        """j: the newest period of `other` that `server` has heard of, max over k' <= k of k' - d of k'."""
        ring = self.rings[server.ring]
        # Of periods with the same topology the last one has the largest k' - d.
        return max(last - then.distance(ring, server.number, other.number) for last, then in self.runs)

    def known_to_be_out(self, server, other):
        if not other.failed:
            return False
        k, k1 = len(self.published) - 1, other.failed_before
        if k < k1:
            return False
        # who fails before period 0 is put back into the ring of period 0 to tell how far it was.
        then, alive = (self.topologies[k1 - 1], None) if k1 > 0 else (self.topologies[0], other.number)
        return k >= k1 + then.distance(self.rings[server.ring], server.number, other.number, alive)

    # --------------------------------------------------------------------------------- "Faults"

    def fault(self, event, now):
        kind, server = event["kind"], self.named[event["server"]]
        if kind == "server_fails":
            if not server.failed:
                server.failed_before = len(self.published)
        elif kind == "gpu_fails":
            self.failed_gpus.add((server.name, event["gpu"]))
        elif kind == "device_leaves":
            self.gone_devices.add((server.name, event["device"]))
        elif kind == "device_registers":
            self.gone_devices.discard((server.name, event["device"]))
        elif kind in MOVES:
            self.moves.append(event)
        for instance in self.instances + self.others:
            if not instance.out and self.stands_on_what_failed(instance):
                instance.out = True
                instance.fail(now)
                instance.send_back(now)

    def stands_on_what_failed(self, instance):
        if any(s.failed for s in instance.servers()):
            return True
        if instance.device:
            return tuple(instance.device) in self.gone_devices
        return any((s.name, number) in self.failed_gpus for s, number in instance.gpus)

    # ---------------------------------------------------------------- "Deployments that change"

    def key_of(self, spec):
        """What makes an instance the same one. GPUs in another order make another one."""
        first = next(iter(self.services[spec["service"]].variants))
        return (spec["service"], spec.get("variant", first), tuple(map(tuple, spec.get("gpus", []))),
                tuple(spec.get("device", [])), spec["batch"], spec.get("frames", 1), spec.get("groups", 1))

    def change(self, deployment, now):
        for event in self.moves:
            self.named[event["server"]].present = event["kind"] == "server_joins"
        self.moves = []
        self.k0 = len(self.published)
        self.did = {}
        self.deploy(deployment["instances"], now)

    def deploy(self, specs, now):
        """`now` is None for the first deployment, which is ready at once."""
        self.check(specs)
        before, self.instances = self.instances, []
        for spec in specs:
            instance = next((x for x in before if x.key == self.key_of(spec) and not x.out), None)
            if instance:
                before.remove(instance)
            else:
                service = self.services[spec["service"]]
                kind = Streams if service.rate is not None else Continuous if service.continuous else Fixed
                instance = kind(self, spec, -math.inf)
                if now is not None:
                    instance.ready = now + service.weights / instance.leader.load_bandwidth
                    self.wake(instance.ready)
                instance.out = self.stands_on_what_failed(instance)
            self.instances.append(instance)
        for instance in before:
            instance.deployed = False
            instance.send_back(now)
        self.others = [x for x in self.others + before if not x.idle()]

    def check(self, specs):
        """A deployment must be one: kinds, numbers, shares, memory."""
        share, memory = {}, {}
        for spec in specs:
            variant = self.services[spec["service"]].variants[self.key_of(spec)[1]]
            assert 1 <= spec["batch"] <= variant.largest, spec
            if "device" in spec:
                server, name = spec["device"]
                places, room = [(server, name)], [self.named[server].devices[name]]
            else:
                places = [tuple(g) for g in spec["gpus"]]
                room = [self.named[server].gpus[number] for server, number in places]
            assert len(set(places)) == len(places) == variant.gpus * spec.get("groups", 1), spec
            for place, gpu in zip(places, room):
                assert self.named[place[0]].present, spec
                assert gpu["kind"] == variant.kind, spec
                share[place] = share.get(place, 0) + variant.share
                memory[place] = memory.get(place, 0) + variant.memory
                assert share[place] <= 1 + NEARLY and memory[place] <= gpu["memory"] * (1 + NEARLY), spec


def simulate(cloud, services, deployment, requests, faults=None, seed=1, offloads=5, handler="epara"):
    """What happens to each request: {outcome, end, server, offloads, credit}, in their order."""
    return Run(cloud, services, deployment, requests, faults, seed, offloads, handler).simulate()


OUTCOMES = ("served", "late", "in_part", "timed_out", "too_many_offloads", "no_resources", "lost", "failed")


def check(records, requests, services=None, offloads=5):
    """Conservation: every request ends once, not before it came, with a credit that its outcome allows.

    Without services every request counts as one whose credit is at most its frames or tokens, at least 1.
    """
    assert len(records) == len(requests), f"{len(records)} records of {len(requests)} requests"
    known = {s["name"]: Service(s) for s in services["services"]} if services else {}
    for i, (record, request) in enumerate(zip(records, requests)):
        where = f"request {i}: {record}"
        assert record is not None and record["outcome"] in OUTCOMES, where
        assert record["end"] >= request["arrival"] and math.isfinite(record["end"]), where
        assert 0 <= record["offloads"] <= offloads, where
        outcome, credit = record["outcome"], record["credit"]
        if request["service"] in known:
            service = known[request["service"]]
            stream = service.rate is not None
            most = Request(i, request, service, None).frames if stream else 1
            assert outcome != "in_part" or stream, where
            assert not stream or outcome != "late", where
        else:
            stream = None
            most = max(request.get("frames") or 1, request.get("tokens_out") or 1)
        if outcome == "served":
            assert credit <= most * (1 + NEARLY), where
            assert stream is None or abs(credit - most) <= NEARLY * most, where
        elif outcome in ("in_part", "failed"):
            assert 0 <= credit <= most * (1 + NEARLY) and (stream is not False or credit == 0), where
        else:
            assert credit == 0, where
