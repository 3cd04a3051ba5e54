# SPDX-License-Identifier: BSL-1.0
"""The oracle of dispatch policies against the reference, values worked out elsewhere, and laws.

Prints its seed; HETPLAN_TEST_SEED gives another. Without the data folder, the reference is skipped aloud.
"""
import dataclasses
import math
import random
import unittest

import dispatch
import semantics
from harness import SEED, main, reference

CASES = 600


def even(stages, m, forward, backward, weight, delay, memory):
    return dispatch.Pipeline([forward] * stages, [backward] * stages, [weight] * stages, [delay] * (stages - 1), m,
                             [memory] * stages)


def random_pipeline(rng, tight):
    """A chain, a V or an interleaved placement; times in integers, where events tie, or not."""
    devices, shape = rng.randint(1, 5), rng.choice(["chain", "v", "interleaved"])
    device = {"chain": list(range(devices)), "v": [*range(devices), *reversed(range(devices))],
              "interleaved": list(range(devices)) * rng.randint(2, 3)}[shape]
    stages = range(len(device))
    draw = rng.choice([lambda top: rng.randint(0, top), lambda top: rng.uniform(0, top)])
    times = [[draw(12) for _ in stages] for _ in "FBW"]
    delay = [draw(rng.choice([1, 30])) for _ in stages][:-1]
    keeps = [rng.choice([1, 1, 0.5, rng.uniform(0.1, 2)]) for _ in stages]
    inputs = {s: rng.uniform(0, 0.3) if s > 0 else 0 for s in stages if rng.random() < 0.2}
    pipeline = dispatch.Pipeline(*times, delay, rng.randint(1, 8), [math.inf] * devices, device, keeps, inputs)
    if tight or rng.random() < 0.7:
        # what the first microbatch of all stages needs is the least with which anything can end
        for d in range(devices):
            here = [s for s in stages if device[s] == d]
            least = sum(pipeline.taken("F", s) for s in here) + max((keeps[s] for s in here if s in inputs), default=0)
            pipeline.memory[d] = least * (1 if tight else rng.uniform(1, 4))
    return pipeline


def as_case(pipeline, orders):
    """A chain of one stage a device as files: a device does one FLOP in a second, and a byte is free."""
    layers = [{"name": f"l{s}", "forward_flops": pipeline.forward[s], "backward_input_flops": pipeline.backward[s],
               "backward_weight_flops": pipeline.weight[s], "traffic": 0, "activation": pipeline.keeps[s],
               "activation_for_weights": pipeline.keeps[s] / 2} for s in pipeline.stages()]
    # a recomputing stage keeps what comes in, which an infinitely fast route brings
    edges = [{"from": f"l{s}", "to": f"l{s + 1}", "bytes": pipeline.inputs.get(s + 1, 0), "gradient": 1}
             for s in pipeline.stages()][:-1]
    routes = [{"from": f"d{a}", "to": f"d{b}", "latency": pipeline.delay[min(a, b)], "via": []}
              for s in pipeline.stages()[1:] for a, b in ((s - 1, s), (s, s - 1))]
    stages = [{"layers": [f"l{s}"], "devices": [{"name": f"d{s}", "samples": 1}], "recompute": s in pipeline.inputs}
              for s in pipeline.stages()]
    return {"model": {"layers": layers, "edges": edges},
            "cluster": {"devices": [{"name": f"d{d}", "compute": 1} for d in pipeline.device], "routes": routes},
            "plan": {"mode": "training", "microbatch_size": 1, "microbatches": pipeline.microbatches, "stages": stages,
                     "network": "unlimited", "schedule": {"kind": "explicit", "orders": {
                         f"d{d}": [list(task) for task in tasks] for d, tasks in orders.items()}}}}


class AgainstReference(unittest.TestCase):
    def test_dispatched_pipelines_have_the_reference_numbers(self):
        cases = reference(self, "dispatch_cases.json")["cases"]
        self.assertGreaterEqual(len(cases), 80)
        for case in cases:
            found = dispatch.told(case)
            self.assertEqual(found["values"], case["values"], case["name"])
            self.assertEqual(found["lower_bound_of_span"], case["lower_bound_of_span"], case["name"])


class ByHand(unittest.TestCase):
    """Four stages and eight microbatches, which two programs agreed on; limits p, 1.5 p and none."""

    def check(self, times, compact, eager, spans):
        for policy, makespans in (("compact", compact), ("eager", eager)):
            for place, memory in enumerate((4, 6, math.inf)):
                run = dispatch.dispatch(even(4, 8, *times, memory), policy)
                self.assertEqual(run.makespan(), makespans[place], (times, policy, memory))
                if policy == "eager" and spans:
                    self.assertEqual(max(run.span(d) for d in run.orders), spans[place])

    def test_makespans_and_longest_spans(self):
        self.check((5, 6, 4, 0), (161, 153, 153), (151, 135, 135), (151, 132, 127))
        self.check((10, 10, 10, 1), (328, 306, 306), (308, 274, 273), (308, 274, 252))
        self.check((10, 10, 10, 20), (540, 500, 420), (510, 450, 350), None)

    def test_compact_is_best_where_stages_differ(self):
        pipeline = dispatch.Pipeline([4, 5, 6, 5], [4, 5, 6, 5], [3, 4, 5, 4], [1] * 3, 16, [4] * 4)
        self.assertEqual(dispatch.dispatch(pipeline, "compact").makespan(), 286)
        self.assertEqual(dispatch.dispatch(pipeline, "eager").makespan(), 290)

    def test_the_longest_span_has_the_bounds_of_the_zero_bubble_schedules(self):
        def bound(pipeline):
            return max(dispatch.lower_bound(pipeline, s) for s in pipeline.stages())

        for stages, m, times, memory, expected in (
                (4, 8, (5, 6, 4, 0), 4, 138), (4, 8, (5, 6, 4, 0), 6, 128), (4, 8, (5, 6, 4, 0), 8, 120),
                (4, 8, (10, 10, 10, 1), 4, 276), (8, 8, (1, 1, 1, 0), 8, 31),
                (8, 16, (5478, 5806, 3534, 200), 8, 280530), (8, 16, (5478, 5806, 3534, 200), 12, 258618)):
            self.assertEqual(bound(even(stages, m, *times, memory)), expected)
        uneven = dispatch.Pipeline([4, 5, 6, 5], [4, 5, 6, 5], [3, 4, 5, 4], [1] * 3, 16, [4] * 4)
        self.assertEqual(bound(uneven), 272)
        self.assertEqual(bound(dataclasses.replace(uneven, memory=[4.9] * 4)), 272)

    def test_what_arrives_within_an_instant_decides_with_the_rest(self):
        # the second stage ends its first F when, but for a rounding, the next one arrives
        for late, first in ((0, "FFB"), (1e-12, "FFB"), (1e-3, "FBF")):
            pipeline = dispatch.Pipeline([1 + late, 1], [1, 1], [1, 1], [0], 2, [math.inf] * 2)
            run = dispatch.dispatch(pipeline, "compact")
            self.assertEqual("".join(phase for phase, _, _ in run.orders[1])[:3], first)
            self.assertEqual(run.start["F", 1, 1], 1 + late + 1 + (late if first == "FFB" else 1))


class Laws(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.drawn = []
        for number in range(CASES):
            pipeline = random_pipeline(random.Random(f"{SEED} {number}"), tight=number % 2 == 0)
            for policy in dispatch.CLASSES:
                # it never gets stuck, or this raises
                run = dispatch.dispatch(pipeline, policy)
                cls.drawn.append((f"seed {SEED}, case {number}, {policy}", pipeline, policy, run))

    def test_the_replay_of_its_own_orders_is_the_same_to_the_bit(self):
        for name, pipeline, _, run in self.drawn:
            again = dispatch.replay(pipeline, run.orders)
            self.assertEqual((again.start, again.end), (run.start, run.end), name)

    def test_the_unit_of_time_changes_no_order(self):
        for name, pipeline, policy, run in self.drawn:
            scaled = dataclasses.replace(pipeline, **{part: [0.001 * t for t in getattr(pipeline, part)]
                                                      for part in ("forward", "backward", "weight", "delay")})
            again = dispatch.dispatch(scaled, policy)
            self.assertEqual(again.orders, run.orders, name)
            self.assertAlmostEqual(again.makespan(), 0.001 * run.makespan(), delta=1e-12 * run.makespan(), msg=name)

    def test_memory_and_bounds_are_kept(self):
        for name, pipeline, _, run in self.drawn:
            for device, limit in enumerate(pipeline.memory):
                self.assertLessEqual(dispatch.peak(pipeline, run, device), limit * (1 + 1e-9), name)
            if pipeline.device == list(pipeline.stages()) and not pipeline.inputs and set(pipeline.keeps) == {1}:
                for s in pipeline.stages():
                    self.assertGreaterEqual(run.span(s), dispatch.lower_bound(pipeline, s) * (1 - 1e-9), name)

    def test_the_simulation_of_the_plan_has_the_same_numbers(self):
        for name, pipeline, _, run in self.drawn:
            if pipeline.device == list(pipeline.stages()) and len(pipeline.device) > 1:
                found = semantics.simulate(as_case(pipeline, run.orders))
                self.assertAlmostEqual(found["latency"], run.makespan(), delta=1e-9 * run.makespan(), msg=name)
                for d in pipeline.device:
                    self.assertAlmostEqual(found["span"][f"d{d}"], run.span(d), delta=1e-9 * run.makespan(), msg=name)
                    most = dispatch.peak(pipeline, run, d)
                    self.assertAlmostEqual(found["peak_memory"][f"d{d}"], most, delta=1e-9 * most, msg=name)

    def test_the_room_for_later_stages_is_what_keeps_it_going(self):
        class Careless(dispatch.Pipeline):
            def room(self, phase, stage):
                return self.taken(phase, stage)

        stuck = 0
        for number in range(0, 200, 2):
            careful = random_pipeline(random.Random(f"{SEED} {number}"), tight=True)
            careless = Careless(**{f.name: getattr(careful, f.name) for f in dataclasses.fields(careful)})
            try:
                dispatch.dispatch(careless, "compact")
            except RuntimeError:
                stuck += 1
        self.assertGreater(stuck, 20)


if __name__ == "__main__":
    main()
