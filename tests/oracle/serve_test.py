# SPDX-License-Identifier: BSL-1.0
"""The oracle of serving against cases worked by hand, then the command line program against the oracle.

Prints its seed; HETPLAN_TEST_SEED gives another. HETPLAN_SERVE_CASES says how many random cases are compared
(100), HETPLAN_SERVE_TIES how many in which times tie (50), each again of services that make tokens; .ci/run asks for
three times as many. Where the
program is not there, that is skipped aloud.
"""
import csv
import functools
import json
import math
import os
import subprocess
import unittest

import serving
import serving_cases
from harness import CLI, SEED, WithProgram, main

CASES = int(os.environ.get("HETPLAN_SERVE_CASES", "100"))
TIES = int(os.environ.get("HETPLAN_SERVE_TIES", "50"))
FIELDS = ("request", "outcome", "end", "server", "offloads", "credit")
TOKEN_FIELDS = ("ttft", "time_between_tokens")


# ----------------------------------------------------------------------------- cases worked by hand

def cloud(*servers, period=1.0, **ring):
    """Servers of four GPUs of kind g; a name, or a name with what differs."""
    found = []
    for server in servers:
        name, more = server if isinstance(server, tuple) else (server, {})
        gpus = [{"kind": "g", "memory": 10, "count": 4}]
        found.append({"name": name, "gpus": gpus, "uplink": 1e9, **more})
    return {"format": "hetplan/cloud/1", "name": "c", "servers": found, "ring": {"period": period, **ring}}


def service(batch=(1,), seconds=(1.0,), step=None, latency=100.0, per_token=0, pipeline=1, **more):
    """The service v, with one variant w of the kind g."""
    one = {"name": "w", "gpu": "g", "memory": 1, "pipeline_parallel": pipeline}
    one["pass"] = {"batch": list(batch), "seconds": list(seconds), "per_token": per_token}
    if step:
        one["step"] = {"batch": list(batch), "seconds": list(step)}
    return {"name": "v", "latency": latency, "variants": [one], **more}


def on(*gpus, batch=1, **more):
    """An instance of v on GPUs like "A0"."""
    return {"service": "v", "gpus": [[g[0], int(g[1:])] for g in gpus], "batch": batch, **more}


def on_device(server, name):
    return {"service": "v", "device": [server, name], "batch": 1}


def at(*times):
    return [request(time) for time in times]


def request(arrival, server="A", **more):
    return {"arrival": arrival, "service": "v", "server": server, **more}


def fault(at, kind, server, **more):
    return {"at": at, "kind": kind, "server": server, **more}


class WorkedByHand(unittest.TestCase):
    def run_case(self, the_cloud, what, instances, requests, faults=(), change=None, **options):
        """`change`: (time, instances)."""
        deployment = {"instances": instances}
        if change:
            deployment["changes"] = [{"at": change[0], "instances": change[1]}]
        services = {"services": [what]}
        faults = {"events": list(faults)}
        records = serving.simulate(the_cloud, services, deployment, requests, faults, **options)
        serving.check(records, requests, services)
        return records

    def expect(self, records, *expected):
        """(outcome, end, server, offloads, credit), as many of these as are given, of each."""
        self.assertEqual(len(records), len(expected))
        for i, (record, known) in enumerate(zip(records, expected)):
            for field, value in zip(FIELDS[1:], known):
                where = f"request {i}: {record}"
                if isinstance(value, str):
                    self.assertEqual(record[field], value, where)
                else:
                    self.assertAlmostEqual(record[field], value, delta=1e-12 * max(1, value), msg=where)

    # ------------------------------------------------------------------------------ instances

    def test_a_single_instance_serves_in_order(self):
        # 2 s each. The third would start at 2 + 1 * 2 = 4 and end at 6 <= 1.5 + 4.6; the fourth, behind two
        # that wait, would end at 8 > 1.6 + 4.6: nobody else has the service.
        records = self.run_case(cloud("A"), service(seconds=[2.0], latency=4.6), [on("A0")],
                                at(0.0, 1.0, 1.5, 1.6))
        self.expect(records, ("served", 2.0, "A", 0, 1), ("served", 4.0, "A", 0, 1),
                    ("served", 6.0, "A", 0, 1), ("no_resources", 1.6, "A", 0, 0))

    def test_who_waits_goes_into_one_batch(self):
        # The first alone, 1 s; the other three together: pass(3) = 1 + (2.5 - 1) * 2/3 = 2.
        records = self.run_case(cloud("A"), service([1, 4], [1.0, 2.5]), [on("A0", batch=4)],
                                at(0.0, 0.1, 0.2, 0.3))
        self.expect(records, ("served", 1.0), ("served", 3.0), ("served", 3.0), ("served", 3.0))

    def test_a_batch_with_tokens_lasts_as_long_as_its_longest(self):
        # Alone: 1 + 0.1 * 2 = 1.2, then 0 steps. Together: pass(2, 3 + 5) = 1.5 + 0.8, 3 steps of 0.2: 1.2
        # + 2.9.
        what = service([1, 2], [1.0, 1.5], step=[0.1, 0.2], per_token=0.1, tokens={"in": 2, "out": 1})
        records = self.run_case(cloud("A"), what, [on("A0", batch=2)],
                                [request(0.0), request(0.1, tokens_in=3, tokens_out=4),
                                 request(0.2, tokens_in=5, tokens_out=2)])
        self.expect(records, ("served", 1.2), ("served", 4.1), ("served", 4.1))

    def test_who_is_late_and_who_times_out(self):
        # Expected are 1 s each. The second takes 1 + 10 * 1 s, until 12 > 0.1 + 5; then the third is past
        # its 5.2.
        what = service(seconds=[1.0], step=[1.0], latency=5.0, tokens={"in": 0, "out": 1})
        records = self.run_case(cloud("A"), what, [on("A0")],
                                [request(0.0), request(0.1, tokens_out=11), request(0.2)])
        self.expect(records, ("served", 1.0, "A", 0, 1), ("late", 12.0, "A", 0, 0),
                    ("timed_out", 12.0, "A", 0, 0))

    def test_a_pipeline_of_two_takes_a_batch_every_half(self):
        # pass 2 s: the next begins 1 s after. 0-2, 1-3, 2-4.
        records = self.run_case(cloud("A"), service(seconds=[2.0], pipeline=2), [on("A0", "A1")],
                                at(0.0, 0.5, 0.6))
        self.expect(records, ("served", 2.0), ("served", 3.0), ("served", 4.0))

    def test_continuous_batches(self):
        # 0-1 pass of r0 (1 token), 1-1.5 a step (2). At 1.5 r1 joins, there is no room for r2: pass
        # 1.5-2.5. Both take a step of 0.6: at 3.1 r1 has its 2 and leaves, r2 joins: 3.1 + 1 + 3 * 0.1 =
        # 4.4, and has its only one. r0, which has 3, takes a step of 0.5: 4.9.
        what = service([1, 2], [1.0, 1.5], step=[0.5, 0.6], per_token=0.1, batching="continuous",
                       tokens={"in": 0, "out": 2})
        records = self.run_case(cloud("A"), what, [on("A0", batch=2)],
                                [request(0.0, tokens_out=4), request(1.2, tokens_out=2),
                                 request(1.3, tokens_in=3, tokens_out=1)])
        self.expect(records, ("served", 4.9), ("served", 3.1), ("served", 4.4))

    def test_expected_ends_of_continuous_batches(self):
        # B = 1, whole(1) = 1 + 1 * 0.5 = 1.5. r0 from 0 on; at 1.2 the boundary is 1.5, n = 1, q = 0: start
        # = 1.5 + 1 * 1.5 / 1 = 3, end 4.5 <= 1.2 + 3.3. At 1.3: q = 1: start 4.5, end 6 > 1.3 + 3.3.
        what = service(step=[0.5], latency=3.3, batching="continuous", tokens={"in": 0, "out": 2})
        records = self.run_case(cloud("A"), what, [on("A0")], at(0.0, 1.2, 1.3))
        self.expect(records, ("served", 1.5), ("served", 3.0), ("no_resources", 1.3))

    def test_expected_ends_count_the_passes_of_the_others(self):
        # B = 2, W(1) = 1.5, W(2) = 2 * 1 + 1 * 0.5 = 2.5. At 0.4: n = 1, boundary 1, end 1 + 2.5 <= 0.4 + 3.2.
        # At 0.7: n = 1, q = 1: start 1 + 1 * 2.5 / 2 = 2.25, end 4.75 > 0.7 + 3.2.
        what = service(step=[0.5, 0.5], batch=[1, 2], seconds=[1.0, 1.0], latency=3.2, batching="continuous",
                       tokens={"in": 0, "out": 2})
        records = self.run_case(cloud("A"), what, [on("A0", batch=2)], at(0.0, 0.4, 0.7))
        self.expect(records, ("served", 2.5), ("served", 2.5), ("no_resources", 0.7))

    def tokens_of(self, records, *expected):
        """(time to the first token, time between tokens) of each."""
        for record, known in zip(records, expected, strict=True):
            for field, value in zip(("ttft", "time_between_tokens"), known):
                if value is None:
                    self.assertIsNone(record[field], record)
                else:
                    self.assertAlmostEqual(record[field], value, delta=1e-12, msg=f"{field} of {record}")

    def test_times_of_tokens_of_a_fixed_batch(self):
        # As above: alone 0-1.2, one token. Then a pass of 2.3 and steps of 0.2 + 0.01 c: c is 3 + 5 + 2, then 12, 14: 0.3, 0.32,
        # 0.34: first tokens at 3.5, all ends at 4.46.
        what = service([1, 2], [1.0, 1.5], step=[0.1, 0.2], per_token=0.1, tokens={"in": 2, "out": 1})
        what["variants"][0]["step"]["per_cached_token"] = 0.01
        records = self.run_case(cloud("A"), what, [on("A0", batch=2)],
                                [request(0.0), request(0.1, tokens_in=3, tokens_out=4),
                                 request(0.2, tokens_in=5, tokens_out=2)])
        self.expect(records, ("served", 1.2), ("served", 4.46), ("served", 4.46))
        self.tokens_of(records, (1.2, None), (3.4, 0.96 / 3), (3.3, 0.3))

    def continuous(self, batch=2, cache=None, **more):
        what = service([1, batch], [1.0, 1.5], step=[0.5, 0.6], per_token=0.1, batching="continuous",
                       tokens={"in": 2, "out": 2}, **more)
        what["variants"][0].update({"cache_tokens": cache} if cache else {})
        return what

    def test_steps_grow_with_what_is_cached(self):
        # Pass 0-1.2; steps of 0.5 + 0.1 * 3 and 0.5 + 0.1 * 4.
        what = self.continuous()
        what["variants"][0]["step"]["per_cached_token"] = 0.1
        records = self.run_case(cloud("A"), what, [on("A0")], [request(0.0, tokens_out=3)])
        self.expect(records, ("served", 2.9))
        self.tokens_of(records, (1.2, 0.85))

    def test_a_full_cache_makes_wait_in_order(self):
        # r0 has 2 + 3 of 8 tokens reserved; r1, with 2 + 4, does not fit, and r2, with 2 + 1, does not overtake it. r0: pass
        # 0-1.2, steps until 2.2. Then r1 joins, 2.2-3.4, beside it nothing of 3 fits: until 4.9. r2: 4.9-6.1.
        records = self.run_case(cloud("A"), self.continuous(cache=8), [on("A0", batch=2)],
                                [request(0.0, tokens_out=3), request(0.1, tokens_out=4), request(0.2, tokens_out=1)])
        self.expect(records, ("served", 2.2), ("served", 4.9), ("served", 6.1))
        # Nobody can hold 2 + 7; without an SLO in the way, who is given it anyway rejects it.
        records = self.run_case(cloud("A"), self.continuous(cache=8), [on("A0", batch=2)], [request(0.5, tokens_out=7)])
        self.expect(records, ("no_resources", 0.5, "A", 0, 0))

    def test_prompts_in_chunks(self):
        # Chunks of 3. r0, 2 tokens in: pass(1, 2) 0-1.2, its first. r1, 4 in, joins: 3 of them beside step(1): 1.2 + 0.5 + 0.3 = 2.0,
        # second of r0. r2, 4 in, joins: the last of r1 and 2 of r2: 2.8, third of r0, which leaves, and first of r1. The last 2 of
        # r2: 3.5, second of r1 and first of r2.
        what = self.continuous(batch=3, prefill_chunk=3)
        records = self.run_case(cloud("A"), what, [on("A0", batch=3)],
                                [request(0.0, tokens_out=3), request(0.1, tokens_in=4), request(1.3, tokens_in=4, tokens_out=1)])
        self.expect(records, ("served", 2.8), ("served", 3.5), ("served", 3.5))
        self.tokens_of(records, (1.2, 0.8), (2.7, 0.7), (2.2, None))

    def test_limits_on_tokens(self):
        # Between tokens 0.5; a first token takes 1.2. What breaks one is late, whatever the other.
        for limits, outcome in ({"ttft": 1.2, "time_between_tokens": 0.5}, "served"), ({"ttft": 1.25, "time_between_tokens": 0.4}, "late"):
            records = self.run_case(cloud("A"), self.continuous(**limits), [on("A0")], at(0.0))
            self.expect(records, (outcome, 1.7))
        # Without one on the answer, 20 tokens may take longer than the two of a typical request.
        what = self.continuous(ttft=1.2, time_between_tokens=0.5)
        del what["latency"]
        self.expect(self.run_case(cloud("A"), what, [on("A0")], [request(0.0, tokens_out=20)]), ("served", 10.7))
        # W(1) = 1.7: at 0.1 r1's start is expected at 1.2 + 1.7, its first token 1.2 later.
        for ttft, outcome in (4.05, "served"), (3.95, "no_resources"):
            records = self.run_case(cloud("A"), self.continuous(ttft=ttft), [on("A0")], at(0.0, 0.1))
            self.assertEqual(records[1]["outcome"], outcome)

    def test_a_stream_at_half_its_rate(self):
        # R = 30. 120 frames at 60 fps: two seconds, 60 count. The second finds nothing free, the third the
        # whole: F = 30.
        records = self.run_case(cloud("A"), service(seconds=[1 / 30], rate=60.0, frames=120), [on("A0")],
                                [request(0.0), request(0.5), request(2.5, frames=30)])
        self.expect(records, ("in_part", 2.0, "A", 0, 60), ("no_resources", 0.5, "A", 0, 0),
                    ("in_part", 3.0, "A", 0, 15))

    def test_streams_share_batches_and_groups(self):
        # pass(1) = 0.1, pass(4) = 0.2: with m = 2 one stream has c = 2, 2 / (0.4 / 3) = 15 fps, two have 4
        # / 0.2 = 20; two groups: 30 and 40. 24 fps each: the first 24 of 30, the second 40 - 24 = 16. 48
        # frames last 2 s.
        records = self.run_case(cloud("A"), service([1, 4], [0.1, 0.2], rate=24.0, frames=48),
                                [on("A0", "A1", batch=4, frames=2, groups=2)], [request(0.0), request(0.25)])
        self.expect(records, ("served", 2.0, "A", 0, 48), ("in_part", 2.25, "A", 0, 32))

    def test_a_stream_of_tokens(self):
        # step(1) = 0.05: 20 tokens a second. 10 tokens at 10 a second, twice; the third gets none.
        what = service(seconds=[9.0], step=[0.05], rate=10.0, tokens={"in": 5, "out": 10})
        records = self.run_case(cloud("A"), what, [on("A0")], at(0.0, 0.1, 0.2))
        self.expect(records, ("served", 1.0, "A", 0, 10), ("served", 1.1, "A", 0, 10),
                    ("no_resources", 0.2, "A", 0, 0))

    @staticmethod
    def with_device():
        device = {"name": "d", "kind": "g", "memory": 5, "bandwidth": 100, "latency": 0.1}
        return cloud(("A", {"devices": [device]}))

    def test_a_registered_device(self):
        # 0.1 + 100/100 there, 1 s, 0.1 + 50/100 back.
        records = self.run_case(self.with_device(), service(request_bytes=100, response_bytes=50),
                                [on_device("A", "d")], [request(0.0)])
        self.expect(records, ("served", 2.7, "A", 0, 1))

    def test_local_instances_come_before_spanning_ones(self):
        # The spanning one is free, but r1 still goes to the local one: 2-4 <= 0.5 + 3.6. r2 would end there
        # at 6.
        what = service(seconds=[2.0], latency=3.6)
        what["variants"].append({**what["variants"][0], "name": "x", "pipeline_parallel": 2})
        records = self.run_case(cloud("A", "B"), what, [on("A0", "B0", variant="x"), on("A1")],
                                at(0.0, 0.5, 0.6))
        self.expect(records, ("served", 2.0), ("served", 4.0), ("served", 2.6, "A", 0, 1))

    # ------------------------------------------------------------------------------- passing on

    def links(self):
        return cloud(("A", {"uplink": 100, "downlink": 40, "latency": 0.1}),
                     ("B", {"uplink": 20, "downlink": 50, "latency": 0.2}), period=10.0)

    def test_the_way_of_a_request_and_of_its_answer(self):
        # r0: uplink 1-2, at B's downlink 2.3, over it at 2.3 + 2 = 4.3, ends 5.3, answer 0.1 + 0.2 + 10/20:
        # 6.1. r1: uplink 2-3, at the downlink 3.3, which is free at 4.3: 6.3, ends 7.3, answer there 8.1.
        records = self.run_case(self.links(), service(request_bytes=100, response_bytes=10), [on("B0")],
                                [request(1.0), request(1.5)])
        self.expect(records, ("served", 6.1, "B", 1, 1), ("served", 8.1, "B", 1, 1))

    def test_transfers_that_begin_on_a_slow_link(self):
        # A's uplink at a half in [1.2, 3.5): r0's began before: 1-2. r1's takes 2 s: 2-4, at the downlink
        # 4.3, 6.3; ends 7.3, and no link is slow when the answer leaves: 8.1.
        records = self.run_case(self.links(), service(request_bytes=100, response_bytes=10), [on("B0")],
                                [request(1.0), request(1.5)],
                                [fault(1.2, "slow_link", "A", until=3.5, factor=0.5)])
        self.expect(records, ("served", 6.1, "B", 1, 1), ("served", 8.1, "B", 1, 1))

    def test_an_answer_over_a_slow_link(self):
        # B at a quarter in [5, 6): its answer, which leaves at 5.3, has 5 B/s: 0.3 + 2.
        records = self.run_case(self.links(), service(request_bytes=100, response_bytes=10), [on("B0")],
                                at(1.0), [fault(5.0, "slow_link", "B", until=6.0, factor=0.25)])
        self.expect(records, ("served", 7.6 if serving.ANSWERS_ARE_SLOWED else 6.1, "B", 1, 1))

    def test_the_generator(self):
        # The outputs of splitmix64 from 0 and from 1234567, as published, without their last 11 bits.
        self.assertEqual(serving.u(0, 0, 0, 0), (0xE220A8397B1DCDAF >> 11) * 2.0**-53)
        self.assertEqual(serving.u(1234567, 0, 0, 0), (6457827717110365317 >> 11) * 2.0**-53)
        self.assertEqual(serving.u(1234567, 0, 1, 0), (3203168211198807973 >> 11) * 2.0**-53)

    def test_a_draw(self):
        # B, C, D can do 1, 2, 4 a second. u(0, 0, 0) = 0.88331: U = 6.18, the sums are 1, 3, 7: D.
        # u(1234567, 0, 0) = 0.35008: U = 2.45: C. In the ring behind C come D, A, B: 4, 4, 5, and U =
        # 0.35008 * 5 = 1.75: D.
        what = service()
        what["variants"] += [{**what["variants"][0], "name": n, "pass": {"batch": [1], "seconds": [s]}}
                             for n, s in (("half", 0.5), ("quarter", 0.25))]
        one, half, quarter = on("B0"), on("C0", variant="half"), on("D0", variant="quarter")
        for seed, entered, instances, server in ((0, "A", [one, half, quarter], "D"),
                                                 (1234567, "A", [one, half, quarter], "C"),
                                                 (1234567, "C", [one, quarter], "D")):
            records = self.run_case(cloud(*"ABCD"), what, instances, [request(0.1, entered)], seed=seed)
            self.assertEqual((records[0]["server"], records[0]["offloads"]), (server, 1))

    def test_offloads_are_limited(self):
        # 2 s are too long for an SLO of 1.5, wherever it comes. Nothing takes time on the way.
        for most, offloads in (0, 0), (2, 2), (5, 3):
            records = self.run_case(cloud(*"ABCD"), service(seconds=[2.0], latency=1.5),
                                    [on("B0"), on("C0"), on("D0")], [request(0.0)], offloads=most)
            self.expect(records, ("too_many_offloads" if most == offloads else "no_resources", 0.0))
            self.assertEqual(records[0]["offloads"], offloads)

    def test_local_passes_nothing_on(self):
        records = self.run_case(cloud("A", "B"), service(), [on("B0")], [request(0.0)], handler="local")
        self.expect(records, ("no_resources", 0.0, "A", 0, 0))

    # ------------------------------------------------------------- what servers know of each other

    @staticmethod
    def at_b_and_a():
        return [request(t, "B") for t in (0.1, 1.2, 2.3)] + [request(2.5), request(3.4, "B"), request(4.5)]

    def share_of_b(self, faults=()):
        """Of 1500 seeds, where C is idle: how often the one of 4.5 goes to B."""
        instances, requests = [on("B0"), on("C0")], self.at_b_and_a()
        records = [self.run_case(cloud("A", "B", "C"), service(latency=2.0), instances, requests, faults, seed=seed)[5]
                   for seed in range(SEED, SEED + 1500)]
        self.assertTrue(all(record["outcome"] == "served" for record in records))
        return sum(record["server"] == "B" for record in records) / len(records)

    def test_what_a_server_did_is_known_with_an_age(self):
        # B is busy with its own: done 1.1, 2.2, 3.3: S is 0, 0, 1, 2 at 0, 1, 2, 3. Four SLOs of 2 s: p = 0,
        # 0, (8 * 0 + 1) / 9 = 0.11, (8 * 0.11 + 1) / 9 = 0.21. At 4.5 A knows that of 3, of B as of C: B has w =
        # 0.79, C 1. The deviation of a share of 0.44 among 1500 is 0.013.
        self.assertAlmostEqual(self.share_of_b(), 0.79 / 1.79, delta=0.04)

    def test_a_wrong_state_looks_idle(self):
        # As before, but from 1.5 on B says that p = 0; and from 3.5 on the truth again, known from 5 on.
        self.assertAlmostEqual(self.share_of_b([fault(1.5, "wrong_state", "B", until=9.0)]), 0.5, delta=0.04)
        self.assertAlmostEqual(self.share_of_b([fault(1.5, "wrong_state", "B", until=2.5)]), 0.79 / 1.79, delta=0.04)

    def test_nobody_idle_is_no_refusal(self):
        # Typical requests take 11 s, so that p^ = 1/11; those that come take 1 s: after ten of them p = 1 - (44/45)^10 =
        # 0.2 > p^: B has no idle part, and serves whoever comes.
        what = service(step=[1.0], tokens={"in": 0, "out": 11}, latency=12.0)
        requests = [request(n + 0.1, "B", tokens_out=1) for n in range(12)] + [request(11.5, tokens_out=1)]
        records = self.run_case(cloud("A", "B"), what, [on("B0")], requests)
        self.expect(records[12:], ("served", 13.1, "B", 1, 1))
        # An instance that loads until 11 can do nothing yet: it serves who can wait for it.
        records = self.run_case({**cloud("A", "B"), "load_bandwidth": 1}, service(weights=10), [], at(5.5),
                                change=(1.0, [on("B0")]))
        self.expect(records, ("served", 12.0, "B", 1, 1))

    def test_a_known_queue_that_is_too_long(self):
        # B is busy from 0.1 to 0.1 + 1 + 40. Published at 0: Q = 0, at 1: Q = 40.1. A hears of it in period
        # 2: more than an age of 1 and the SLO of 10. In period 1 it still passes on, for nothing.
        what = service(step=[1.0], latency=10.0, tokens={"in": 0, "out": 1})
        for time, offloads in (1.9, 1), (2.1, 0):
            records = self.run_case(cloud("A", "B"), what, [on("B0")],
                                    [request(0.1, "B", tokens_out=41), request(time)])
            server = "B" if offloads else "A"
            self.expect(records, ("late", 41.1), ("no_resources", time, server, offloads, 0))

    def test_a_failed_gpu_is_known_with_an_age(self):
        # B's GPU fails at 2.5. Published at 3: nothing left. C, next to B, knows it in period 4, A, two
        # away, in period 5. Until then requests are passed on, to find nothing there.
        for server, time, offloads in ("C", 3.9, 1), ("C", 4.1, 0), ("A", 4.9, 1), ("A", 5.1, 0):
            records = self.run_case(cloud(*"ACBDE"), service(), [on("B0")], [request(time, server)],
                                    [fault(2.5, "gpu_fails", "B", gpu=0)])
            self.expect(records, ("no_resources", time, "B" if offloads else server, offloads, 0))

    def test_a_failed_server_is_known_with_an_age(self):
        # C fails at 2.5: k1 = 3. A is two away and knows it from period 5 on, B from period 4 on. Until
        # then: lost.
        for server, time, offloads in ("B", 3.9, 1), ("B", 4.1, 0), ("A", 4.9, 1), ("A", 5.1, 0):
            records = self.run_case(cloud(*"ABCD"), service(), [on("C0")], [request(time, server)],
                                    [fault(2.5, "server_fails", "C")])
            self.expect(records, ("lost", time, "C", 1) if offloads else ("no_resources", time, server, 0))

    def test_distances_in_a_ring_with_gaps(self):
        # Five servers. From 0 to 2: 2 steps; with the gap behind 1 cut, the other way: 4, 3, 2, 3 steps;
        # without 4: 2.
        servers = [serving.Server({"name": str(i), "uplink": 1}, str(i), i, 0, 1) for i in range(5)]
        ring = list(range(5))
        self.assertEqual(serving.Topology(servers, []).distance(ring, 0, 2), 2)
        self.assertEqual(serving.Topology(servers, [1]).distance(ring, 0, 2), 3)
        self.assertEqual(serving.Topology(servers, [1, 4]).distance(ring, 0, 2), math.inf)
        self.assertEqual(serving.Topology(servers, [4]).distance(ring, 0, 4), 4)
        servers[4].failed_before = 0
        self.assertEqual(serving.Topology(servers, [1]).distance(ring, 0, 2), 2)
        # The gap behind 4 stays where it is.
        self.assertEqual(serving.Topology(servers, [1, 4]).distance(ring, 0, 2), math.inf)
        self.assertEqual(serving.Topology(servers, []).distance(ring, 0, 4), math.inf)

    def test_a_cut_ring(self):
        # Both gaps of a ring of two are cut in [2.5, 6.5): in the periods 3 to 6. A knows period 1 (= 2 -
        # 1) until period 7, when it knows 6. Publications of up to 3 periods are believed: in period 4 (age
        # 3), not in 5 (age 4).
        cuts = [fault(2.5, "ring_cut", "A", until=6.5), fault(2.5, "ring_cut", "B", until=6.5)]
        for time, offloads in (4.9, 1), (5.1, 0), (6.9, 0), (7.1, 1):
            records = self.run_case(cloud("A", "B", max_age=3), service(), [on("B0")], at(time), cuts)
            self.expect(records, ("served", time + 1, "B", 1) if offloads else ("no_resources", time, "A", 0))

    def test_one_cut_makes_the_way_longer(self):
        # A - B over C while the gap between them is cut, from period 0 on: two away. B's GPU, broken at
        # 2.5, is known in period 5.
        faults = [fault(0.0, "ring_cut", "A", until=99.0), fault(2.5, "gpu_fails", "B", gpu=0)]
        for time, offloads in (4.9, 1), (5.1, 0):
            records = self.run_case(cloud("A", "B", "C"), service(), [on("B0")], at(time), faults)
            self.assertEqual(records[0]["offloads"], offloads)

    # ------------------------------------------------------------------------- faults and changes

    def test_a_failing_gpu_sends_back_who_waits(self):
        # r0 on GPU 0 until 2, r1 on GPU 1 0.5-2.5, r2 waits for GPU 0 (4 < 4.5). GPU 0 fails at 1: r2 goes
        # to GPU 1: 2.5-4.5.
        records = self.run_case(cloud("A"), service(seconds=[2.0]), [on("A0"), on("A1")],
                                at(0.0, 0.5, 0.6), [fault(1.0, "gpu_fails", "A", gpu=0)])
        self.expect(records, ("failed", 1.0, "A", 0, 0), ("served", 2.5, "A", 0, 1),
                    ("served", 4.5, "A", 0, 1))

    def test_a_failing_server_loses_who_waits(self):
        records = self.run_case(cloud("A"), service(seconds=[2.0]), [on("A0")], at(0.0, 0.5, 1.5),
                                [fault(1.0, "server_fails", "A")])
        self.expect(records, ("failed", 1.0, "A", 0, 0), ("lost", 1.0, "A", 0, 0), ("lost", 1.5, "A", 0, 0))

    def test_who_waits_on_a_spanning_instance_is_where_it_was_handled(self):
        # A leads v on A0 and B0. A fails at 2: r0 is under way. r1 waits, but was handled at B, and is handled there
        # again: it goes to A, of whose failure B hears in period 3, and is lost there; or stays, where it may not go.
        what = service(seconds=[5.0], latency=20.0)
        what["variants"][0].update({"tensor_parallel": 2, "across_servers": True})
        records = self.run_case(cloud("A", "B"), what, [on("A0", "B0")], [request(0.0), request(1.0, "B")],
                                [fault(2.0, "server_fails", "A")])
        self.expect(records, ("failed", 2.0, "A", 0, 0), ("lost", 2.0, "A", 1, 0))
        records = self.run_case(cloud("A", "B"), what, [on("A0", "B0")], [request(0.0), request(1.0, "B")],
                                [fault(2.0, "server_fails", "A")], offloads=0)
        self.expect(records, ("failed", 2.0, "A", 0, 0), ("too_many_offloads", 2.0, "B", 0, 0))

    def test_an_answer_of_a_device_leaves_when_it_has_come_to_its_server(self):
        # Entered at B, to A at once, on A's device 0-1, at A 2. A's link has a tenth of 1000 B/s from 1.5 on: 10 s.
        the_cloud = cloud(("A", {"uplink": 1000, "devices": [{"name": "d", "kind": "g", "memory": 10, "bandwidth": 1000}]}),
                          ("B", {"uplink": 1000}), period=10.0)
        records = self.run_case(the_cloud, service(response_bytes=1000), [on_device("A", "d")], [request(0.0, "B")],
                                [fault(1.5, "slow_link", "A", until=9.0, factor=0.1)])
        self.expect(records, ("served", 12.0, "A", 1, 1))

    def test_a_failing_stream_has_its_frames(self):
        # 30 of 60 fps for one second.
        records = self.run_case(cloud("A"), service(seconds=[1 / 30], rate=60.0, frames=120), [on("A0")],
                                at(0.0), [fault(1.0, "gpu_fails", "A", gpu=0)])
        self.expect(records, ("failed", 1.0, "A", 0, 30))

    def test_a_device_that_leaves(self):
        # r0 gets there at 1.1 and is on it at 1.5; r1 is on its way and sent back when it gets there, at 2.5.
        records = self.run_case(self.with_device(), service(request_bytes=100, response_bytes=50),
                                [on_device("A", "d")], at(0.0, 1.4),
                                [fault(1.5, "device_leaves", "A", device="d")])
        self.expect(records, ("failed", 1.5, "A", 0, 0), ("no_resources", 2.5, "A", 0, 0))

    def test_a_device_that_registers(self):
        # d is there from 1.5 on, and used by the deployment that begins at 2; the instance of the first one is out.
        records = self.run_case(self.with_device(), service(), [on_device("A", "d")], at(1.0, 1.8, 3.0),
                                [fault(1.5, "device_registers", "A", device="d")], change=(2.0, [on_device("A", "d")]))
        self.assertEqual([r["outcome"] for r in records], ["no_resources", "no_resources", "served"])

    def test_a_change_of_deployment(self):
        # r0 goes on to its end at 1.5; r1 is sent back at 1 and waits for the new one, which has loaded 10
        # B at 5 B/s at 3: 3-4. r2 comes behind: 4-5.
        records = self.run_case({**cloud("A"), "load_bandwidth": 5}, service(weights=10), [on("A0")],
                                at(0.5, 0.6, 1.2), change=(1.0, [on("A1")]))
        self.expect(records, ("served", 1.5, "A", 0, 1), ("served", 4.0, "A", 0, 1),
                    ("served", 5.0, "A", 0, 1))

    def test_who_stays_need_not_load(self):
        records = self.run_case({**cloud("A"), "load_bandwidth": 5}, service(weights=10), [on("A0")],
                                at(0.5, 0.6, 1.2), change=(1.0, [on("A1"), on("A0")]))
        # r2 at 1.2: A1 would begin at 3 and end at 4 > 3.5 of A0, where r1 waits until 1.5.
        self.expect(records, ("served", 1.5), ("served", 2.5), ("served", 3.5))

    def test_servers_join_and_leave(self):
        # B joins with the change at 2: before, who enters there is lost. A leaves with it: r2 is under way
        # and ends at 2.9, r3 waits and finds nothing.
        faults = [fault(0.5, "server_joins", "B"), fault(0.6, "server_leaves", "A")]
        records = self.run_case(cloud("A", "B"), service(), [on("A0")],
                                [request(0.7), request(1.0, "B"), request(1.9), request(1.95),
                                 request(2.1, "B"), request(2.2)], faults, change=(2.0, [on("B0")]))
        self.expect(records, ("served", 1.7), ("lost", 1.0, "B", 0, 0), ("served", 2.9, "A", 0, 1),
                    ("no_resources", 2.0, "A", 0, 0), ("served", 3.1, "B", 0, 1), ("lost", 2.2, "A", 0, 0))

    def test_who_joins_is_in_the_ring_from_the_next_period_on(self):
        # B joins at 2.5. A passes on to it in period 3: it knows the deployment, and is 1 away.
        for time, offloads in (2.9, 0), (3.1, 1):
            records = self.run_case(cloud("A", "B"), service(), [], at(time),
                                    [fault(0.5, "server_joins", "B")], change=(2.5, [on("B0")]))
            self.expect(records, ("served", time + 1, "B", 1) if offloads else ("no_resources", time, "A", 0))

    def test_an_instance_that_loads_can_do_nothing_yet(self):
        # B has its weights from 1.5 on. Until then a stream finds no rate there; published from period 2
        # on, known in 3. In period 1 (the change was in 0) the deployment itself tells, in 2 the
        # publication of 1.
        the_cloud = {**cloud("A", "B"), "load_bandwidth": 10}
        what = service(seconds=[0.1], rate=10.0, frames=10, weights=10)
        for time, expected in ((1.2, ("no_resources", 1.2, "B", 1, 0)),
                               (2.2, ("served", 3.2, "B", 1, 10)),
                               (3.2, ("served", 4.2, "B", 1, 10))):
            records = self.run_case(the_cloud, what, [], at(time), change=(0.5, [on("B0")]))
            self.expect(records, expected)


# ------------------------------------------------------------------------------------ random cases

@functools.lru_cache(maxsize=None)
def expected_of(seed):
    return serving.simulate(**serving_cases.case(seed), seed=seed)


@functools.lru_cache(maxsize=None)
def expected_of_ties(seed):
    """In exact fractions, so that what ties is equal."""
    return serving.simulate(**serving.exact(serving_cases.tied_case(seed)), seed=seed)


@functools.lru_cache(maxsize=None)
def expected_of_tokens(seed):
    return serving.simulate(**serving_cases.token_case(seed), seed=seed)


@functools.lru_cache(maxsize=None)
def expected_of_tied_tokens(seed):
    return serving.simulate(**serving.exact(serving_cases.tied_token_case(seed)), seed=seed)


class RandomCases(unittest.TestCase):
    def test_every_request_ends_once(self):
        outcomes, kinds = set(), set()
        for seed in range(SEED, SEED + CASES):
            case = serving_cases.case(seed)
            with self.subTest(seed=seed):
                serving.check(expected_of(seed), case["requests"], case["services"])
            outcomes |= {record["outcome"] for record in expected_of(seed)}
            kinds |= {event["kind"] for event in case["faults"]["events"]} if case["faults"] else set()
        if CASES >= 100:
            self.assertEqual(outcomes, set(serving.OUTCOMES))
            self.assertEqual(len(kinds), 9, kinds)

    def test_a_seed_gives_one_case(self):
        self.assertEqual(json.dumps(serving_cases.case(SEED)), json.dumps(serving_cases.case(SEED)))
        self.assertNotEqual(json.dumps(serving_cases.case(SEED)), json.dumps(serving_cases.case(SEED + 1)))


class ProgramAgainstOracle(WithProgram):
    def write_requests(self, requests):
        columns = ["arrival", "service", "server"]
        columns += [c for c in ("tokens_in", "tokens_out", "frames") if any(c in r for r in requests)]
        # A number's str is its shortest text that reads back the same.
        lines = [",".join(columns)] + [",".join(str(r.get(c, "")) for c in columns) for r in requests]
        (self.folder / "requests.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def serve(self, case, seed):
        """The records of `hetplan serve` on the case's files."""
        for part in ("cloud", "services", "deployment", "faults"):
            (self.folder / f"{part}.json").write_text(json.dumps(case[part]), encoding="utf-8")
        self.write_requests(case["requests"])
        command = [CLI, "serve", "cloud.json", "services.json", "requests.csv"]
        command += ["--deployment", "deployment.json"]
        command += ["--faults", "faults.json"] if case["faults"] else []
        command += ["--seed", str(seed), "--records", "out.csv", "--quiet"]
        (self.folder / "out.csv").unlink(missing_ok=True)
        run = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=120)
        self.assertEqual(run.returncode, 0, f"seed {seed}: {run.stderr}")
        with open(self.folder / "out.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertTrue(rows and tuple(rows[0]) in (FIELDS, FIELDS + TOKEN_FIELDS), f"seed {seed}: {rows[:1]}")
        return [{"outcome": row["outcome"], "end": float(row["end"]), "server": row["server"],
                 "offloads": int(row["offloads"]), "credit": float(row["credit"]),
                 **{f: float(row[f]) if row.get(f) else None for f in TOKEN_FIELDS}} for row in rows]

    @staticmethod
    def same(found, expected):
        close = [math.isclose(found[f], expected[f], rel_tol=1e-9, abs_tol=1e-12) for f in ("end", "credit")]
        # Differences of times are as exact as these.
        close += [found[f] is expected[f] is None or None not in (found[f], expected[f]) and
                  math.isclose(found[f], expected[f], rel_tol=1e-9, abs_tol=1e-15 * found["end"]) for f in TOKEN_FIELDS]
        return all(close) and all(found[f] == expected[f] for f in ("outcome", "server", "offloads"))

    def test_requests_end_as_in_the_oracle(self):
        self.compare(CASES, serving_cases.case, expected_of)

    def test_what_ties_is_no_matter_of_rounding(self):
        self.compare(TIES, serving_cases.tied_case, expected_of_ties)

    def test_tokens_come_as_in_the_oracle(self):
        self.compare(CASES, serving_cases.token_case, expected_of_tokens)

    def test_tokens_that_tie_are_no_matter_of_rounding(self):
        self.compare(TIES, serving_cases.tied_token_case, expected_of_tied_tokens)

    def test_the_origin_of_time_does_not_matter(self):
        # Whole periods of every tied case (0.1, 0.3 or 0.7 s): an hour, and a clock that began in 1970.
        for later in 3591, 1700000001:
            self.compare(TIES // 3, lambda seed: serving_cases.shifted(serving_cases.tied_case(seed), later),
                         lambda seed: [{**r, "end": r["end"] + later} for r in expected_of_ties(seed)])

    def compare(self, cases, case_of, expected_of):
        compared, differing = 0, []
        for seed in range(SEED, SEED + cases):
            case = case_of(seed)
            with self.subTest(seed=seed):
                found, expected = self.serve(case, seed), expected_of(seed)
                self.assertEqual(len(found), len(expected), f"seed {seed}")
                # What goes wrong first in time is the cause of what follows.
                wrong = [i for i in range(len(expected)) if not self.same(found[i], expected[i])]
                if wrong:
                    differing.append(seed)
                    first = min(wrong, key=lambda i: min(found[i]["end"], expected[i]["end"]))
                    self.fail(f"seed {seed}: {len(wrong)} of {len(expected)} requests differ, the first is "
                              f"{wrong[0]}, the first in time is {first}, {case['requests'][first]}: "
                              f"{found[first]} instead of {expected[first]}")
                serving.check(found, case["requests"], case["services"])
                compared += len(expected)
        print(f"seeds {SEED} to {SEED + cases - 1}: {compared} requests end as in the oracle; "
              f"seeds that differ: {differing or 'none'}")


if __name__ == "__main__":
    main()
