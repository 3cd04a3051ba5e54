# SPDX-License-Identifier: BSL-1.0
"""The oracle against plans worked by hand: grids, fsdp, zero2, cuts, spans, and what is refused."""
import copy
import unittest

import semantics


def layer(name, flops=1e9, **more):
    return {"name": name, "forward_flops": flops, "traffic": 0, "weight_traffic": 0, **more}


def case(layers, stages, devices=1, edges=(), capacity="1 Gbit/s", latency=0, mode="training", samples=4, count=1,
         schedule="gpipe", each=None, **plan):
    """Devices d0, d1, ... of 1 TFLOP/s on a mesh, stages over them."""
    each = each or {}
    return {
        "model": {"layers": layers, "edges": [{"from": u, "to": v, "bytes": b} for u, v, b in edges]},
        "cluster": {"devices": [{"name": f"d{i}", "compute": 1e12, **each.get(i, {})} for i in range(devices)],
                    "topology": {"kind": "mesh", "capacity": capacity, "latency": latency}},
        "plan": {"mode": mode, "microbatch_size": samples, "microbatches": count, "stages": stages,
                 "schedule": schedule if isinstance(schedule, dict) else {"kind": schedule}, **plan}}


def stage(layers, devices, **more):
    """Devices with their samples, {0: 4}; in a grid their numbers alone."""
    listed = [{"name": f"d{d}", "samples": n} for d, n in devices.items()] if isinstance(devices, dict) else [
        {"name": f"d{d}"} for d in devices]
    return {"layers": list(layers), "devices": listed, **more}


def grid(layers, devices, rows, columns, **more):
    return stage(layers, devices, grid={"rows": rows, "columns": columns}, **more)


def block(weight=1e6):
    """An MLP of a language model with a norm before and after it."""
    layers = [layer("norm", split="none", weight=1e3), layer("up", split="columns", weight=weight),
              layer("gelu", split="along"), layer("down", split="rows", weight=weight), layer("last")]
    return layers, [("norm", "up", 1e5), ("up", "gelu", 4e5), ("gelu", "down", 4e5), ("down", "last", 1e5)]


class Same(unittest.TestCase):
    def assertSame(self, one, other):
        self.assertEqual(set(one), set(other))
        self.assertLessEqual(semantics.deviation(one, other), 1e-12, f"{one} instead of {other}")

    def assertClose(self, found, expected):
        self.assertAlmostEqual(found, expected, delta=1e-9 * abs(expected))


class Grids(Same):
    def test_thirds_of_a_layer_take_36_ms(self):
        result = semantics.simulate(case(
            [layer("a", 3e9, weight=1), layer("z", 0)], [grid("a", [0, 1], [4], [1, 2]), stage("z", {2: 4})], 3,
            edges=[("a", "z", 1e6)], mode="inference", each={1: {"compute": 2e12}}))
        self.assertClose(result["busy"]["d0"], 0.036)
        self.assertClose(result["busy"]["d1"], 0.036)
        self.assertClose(result["bytes"]["d0->d1"], 4e6)
        self.assertClose(result["bytes"]["d1->d0"], 4e6)
        self.assertClose(result["bytes"]["d0->d2"], 4e6)     # the row's output, once
        self.assertEqual(result["bytes"]["d1->d2"], 0)

    def test_one_column_is_the_devices_alone(self):
        layers, edges = block()
        for mode in ("training", "inference", "generation"):
            plain = case(layers, [stage(["norm", "up"], {0: 1, 1: 3}), stage(["gelu", "down", "last"], {2: 4})], 3,
                         edges, count=3, mode=mode, latency=1e-3)
            gridded = copy.deepcopy(plain)
            gridded["plan"]["stages"] = [grid(["norm", "up"], [0, 1], [1, 3], [5]),
                                         grid(["gelu", "down", "last"], [2], [4], [2])]
            self.assertSame(semantics.simulate(gridded), semantics.simulate(plain))

    def test_equal_columns_over_equal_links_are_tensor_parallel_accelerators(self):
        layers = [layer(n, 2e9, weight=3e6, traffic=1e7, weight_traffic=3e6) for n in "abc"]
        edges = [("a", "b", 2e6), ("b", "c", 1e6)]
        more = {"launch": 1e-4, "memory_bandwidth": 1e10, "half_batch": 1}
        for c in (2, 3, 4):
            within = case(layers, [stage("abc", {0: 4})], 1, edges, count=2,
                          each={0: {"accelerators": c, "interconnect": "1 Gbit/s", **more}})
            within["plan"]["stages"][0]["devices"][0]["tensor_parallel"] = c
            across = case(layers, [grid("abc", range(c), [4], [1] * c)], c, edges, count=2, each={i: more for i in range(c)})
            one, other = semantics.simulate(within), semantics.simulate(across)
            self.assertClose(other["latency"], one["latency"])
            for device in range(c):
                self.assertClose(other["busy"][f"d{device}"], one["busy"]["d0"])

    def test_an_mlp_has_one_all_reduce_for_forward_and_one_for_backward(self):
        layers, edges = block()
        result = semantics.simulate(case(layers, [grid([l["name"] for l in layers], [0, 1], [4], [1, 1])], 2, edges,
                                         latency=1e-3))
        once = 2 * 1e-3 + 4 * 1e5 / 1.25e8       # 2 (c − 1) latencies and 2 (c − 1)/c of the output of `down`
        # F: norm, last whole, three halves; B the same; W of norm whole and of two halves
        self.assertClose(result["busy"]["d0"], 4e-3 * (2 * (1 + 1 + 3 / 2) + 1 + 2 / 2) + 2 * once)
        self.assertClose(result["bytes"]["d0->d1"], 2 * 4e5)

    def test_recomputing_repeats_the_all_reduces_of_the_forward(self):
        layers, edges = block()
        names = [l["name"] for l in layers]
        plain, again = (semantics.simulate(case(layers, [grid(names, [0, 1], [4], [1, 1], recompute=r)], 2, edges))
                        for r in (False, True))
        self.assertClose(again["bytes"]["d0->d1"], 3 / 2 * plain["bytes"]["d0->d1"])
        self.assertClose(again["busy"]["d0"] - plain["busy"]["d0"], 4e-3 * 3.5 + 4e5 / 1.25e8)

    def test_the_slowest_link_of_the_ring_counts_its_latency_once_per_step(self):
        wide = case([layer("a", 3e9, weight=1), layer("z", 0)], [grid("a", [0, 1, 2], [3], [1, 1, 1]), stage("z", {3: 3})],
                    4, [("a", "z", 1e6)], mode="inference", samples=3)
        wide["cluster"] = {"devices": wide["cluster"]["devices"],
                           "resources": [{"name": "fast", "capacity": 1e9}, {"name": "slow", "capacity": 1e8}],
                           "routes": [{"from": "*", "to": "*", "latency": 1e-3, "via": [{"resource": "fast"}]},
                                      {"from": "d2", "to": "d0", "latency": 2e-3, "via": [{"resource": "slow"}]},
                                      {"from": "d0", "to": "d2", "latency": 9, "via": [{"resource": "slow"}]}]}
        result = semantics.simulate(wide)
        self.assertClose(result["busy"]["d1"], 3e-3 + 4 * 2e-3 + 4 / 3 * 3e6 / 1e8)
        self.assertClose(result["bytes"]["slow"], 4 / 3 * 3e6)

    def test_memory_is_a_columns_part_of_what_splits(self):
        layers = [layer("a", weight=3e6, activation=9e5), layer("b", weight=1e6, activation=1e5, split="none")]
        result = semantics.simulate(case(layers, [grid("ab", range(4), [1, 2], [1, 2])], 4, [("a", "b", 0)], samples=3))
        for device, samples, share in ((0, 1, 1 / 3), (1, 1, 2 / 3), (2, 2, 1 / 3), (3, 2, 2 / 3)):
            expected = 4 * (3e6 * share + 1e6) + samples * (9e5 * share + 1e5)
            self.assertClose(result["peak_memory"][f"d{device}"], expected)

    def test_each_column_reduces_its_part_and_what_is_whole(self):
        layers = [layer("a", weight=3e6), layer("b", weight=1e6, split="none"),
                  layer("c", weight=5e6, split="none", trainable=False)]
        result = semantics.simulate(case(layers, [grid("abc", range(4), [1, 2], [1, 2])], 4, samples=3))
        self.assertClose(result["bytes"]["d0->d2"], 1e6 + 1e6)
        self.assertClose(result["bytes"]["d3->d1"], 2e6 + 1e6)
        self.assertEqual(result["bytes"]["d0->d1"], 0)

    def test_a_device_is_fed_by_the_first_of_a_row_and_by_nobody_if_it_is_in_the_row(self):
        layers = [layer("a"), layer("b", split="none")]
        result = semantics.simulate(case(
            layers, [grid("a", [0, 1], [4], [1, 1]), grid("b", [1, 2], [4], [1, 1])], 3, [("a", "b", 1e6)], schedule={
                "kind": "explicit", "orders": {"d0": [["F", 0, 0], ["B", 0, 0]], "d2": [["F", 1, 0], ["B", 1, 0]],
                                               "d1": [["F", 0, 0], ["F", 1, 0], ["B", 1, 0], ["B", 0, 0]]}}))
        moved = {link for link, amount in result["bytes"].items() if amount > 0}
        self.assertEqual(moved, {"d0->d2", "d1->d0"})

    def test_a_backward_waits_for_the_forwards_of_its_row(self):
        result = semantics.simulate(case([layer("a", split="none")], [grid("a", [0, 1], [4], [1, 1])], 2,
                                         each={1: {"compute": 5e11}}))
        self.assertClose(result["latency"], 0.016)
        self.assertClose(result["span"]["d0"], 0.012)    # 4 ms, then 4 ms of waiting
        self.assertClose(result["period"], 0.016)


class Shares(Same):
    def sharded(self, shard=None, n=3, count=4, **more):
        layers = [layer("a", weight=6e6, activation=1e5), layer("b", weight=3e6, activation=2e5),
                  layer("c", weight=1.2e7, trainable=False)]
        stages = [stage("abc", {i: 2 for i in range(n)}, **({"shard": shard} if shard else {}), **more)]
        return case(layers, stages, n, [("a", "b", 1e3), ("b", "c", 1e3)], samples=2 * n, count=count,
                    workload={"optimizer_factor": 2})

    def test_bytes_per_link_are_those_of_the_rings(self):
        trainable, everything, m = 9e6, 2.1e7, 4
        for shard, volume in ((None, 2 * trainable), ("zero2", (m + 1) * trainable),
                              ("fsdp", m * (2 * everything + trainable))):
            result = semantics.simulate(self.sharded(shard))
            self.assertClose(result["bytes"]["d0->d1"], 2 / 3 * volume)
            self.assertClose(result["bytes"]["d2->d0"], 2 / 3 * volume)

    def test_memory_is_shares_and_whole_units(self):
        kept = 4 * 2 * 3e5      # activations of all four microbatches
        for shard, units, expected in (
                ("fsdp", None, (4 * 9e6 + 1.2e7) / 3 + 2 * 1.2e7), ("zero2", None, 2.1e7 + 3 * 9e6 / 3 + 6e6),
                ("fsdp", ["ab", "c"], (4 * 9e6 + 1.2e7) / 3 + 2 * 1.2e7), ("zero2", ["ab", "c"], 2.1e7 + 9e6 + 9e6)):
            more = {} if units is None else {"units": [list(u) for u in units]}
            result = semantics.simulate(self.sharded(shard, **more))
            self.assertClose(result["peak_memory"]["d1"], expected + kept)

    def test_one_device_has_no_shares(self):
        plain = semantics.simulate(self.sharded(n=1))
        for shard in ("fsdp", "zero2"):
            self.assertSame(semantics.simulate(self.sharded(shard, n=1)), plain)

    def test_a_part_waits_for_its_weights_which_come_while_the_one_before_it_runs(self):
        layers = [layer("a", weight=2e6), layer("b", weight=4e6)]
        result = semantics.simulate(case(layers, [stage("ab", {0: 2, 1: 2}, shard="fsdp")], 2, [("a", "b", 0)],
                                         capacity=1e9, latency=1e-4))
        # gather 1.1 ms, F a 2 ms with the gather of b 2.1 ms, F b 2 ms with another 2.1 ms, B b 4 ms with the gather of
        # a 1.1 ms, B a 4 ms with the scatter of b 2.1 ms, scatter of a 1.1 ms
        self.assertClose(result["latency"], 1.1e-3 + 2.1e-3 + 2.1e-3 + 4e-3 + 4e-3 + 1.1e-3)
        self.assertClose(result["span"]["d0"], 2.1e-3 + 2.1e-3 + 8e-3)
        self.assertClose(result["busy"]["d0"], 12e-3)

    def test_zero2_scatters_unit_by_unit_and_gathers_at_the_end(self):
        layers = [layer("a", weight=2e6), layer("b", weight=4e6)]
        result = semantics.simulate(case(layers, [stage("ab", {0: 2, 1: 2}, shard="zero2")], 2, [("a", "b", 0)],
                                         capacity=1e9, latency=1e-4))
        self.assertClose(result["latency"], 12e-3 + 1.1e-3 + 3.1e-3)


class Cuts(Same):
    def pipeline(self, *cuts, **more):
        """Four stages that take 4 ms + 1 ms a sample."""
        stages = [stage(f"{i}", {i: 128}, cuts=c) for i, c in enumerate(cuts)]
        return semantics.simulate(case(
            [layer(f"{i}") for i in range(4)], stages, 4, [(f"{i}", f"{i + 1}", 0) for i in range(3)], samples=128,
            each={i: {"launch": 4e-3} for i in range(4)}, **more))

    def test_passes_of_sixteen_samples_take_220_ms(self):
        for size, latency in ((8, 0.228), (16, 0.220), (32, 0.252)):
            cuts = {"forward": list(range(0, 129, size))}
            self.assertClose(self.pipeline(*[cuts] * 4, mode="inference")["latency"], latency)

    def test_even_cuts_are_microbatches(self):
        layers = [layer("a", weight=1e6, activation=1e5), layer("b", weight=1e6, activation=2e5)]
        edges = [("a", "b", 1e6)]
        plain = case(layers, [stage("a", {0: 1, 1: 3}), stage("b", {2: 4})], 3, edges, count=3)
        cut = copy.deepcopy(plain)
        for entry in cut["plan"]["stages"]:
            entry["cuts"] = {"forward": [0, 4, 8, 12], "backward": [0, 4, 8, 12]}
        self.assertSame(semantics.simulate(cut), semantics.simulate(plain))

    def test_a_backward_goes_through_several_forwards(self):
        layers = [layer("a", weight=1, activation=1e6)]
        result = semantics.simulate(case(layers, [stage("a", {0: 4}, cuts={"forward": [0, 1, 3, 8], "backward": [0, 3, 8]})],
                                         count=2, schedule={"kind": "explicit", "orders": {"d0": [
                                             ["F", 0, 0], ["F", 0, 1], ["B", 0, 0], ["F", 0, 2], ["B", 0, 1]]}}))
        self.assertClose(result["latency"], 8 * 3e-3)
        self.assertClose(result["peak_memory"]["d0"], 4 + 5e6)

    def test_a_backward_waits_for_the_forwards_of_other_devices_that_have_its_samples(self):
        # forwards d0: [0, 4), d1: [4, 8); backwards d0: [0, 2), [4, 6), d1: [2, 4), [6, 8)
        result = semantics.simulate(case([layer("a", weight=1)], [
            stage("a", {0: 4, 1: 4}, cuts={"forward": [0, 8], "backward": [0, 4, 8]})], 2, samples=8,
            capacity=1e30, each={1: {"compute": 5e11}}))
        # the second backward of d0 takes the samples of d1, which is ready at 8 ms
        self.assertClose(result["span"]["d0"], 12e-3)


class BadInput(unittest.TestCase):
    def refused(self, words, document):
        with self.assertRaisesRegex(semantics.BadInput, words):
            semantics.simulate(document)

    def split(self, change=lambda stage, layers: None, columns=(1, 2), **more):
        layers = [layer("a", weight=1e6, split="columns"), layer("b", weight=1e6, split="rows"), layer("c")]
        stages = [grid("ab", range(4), [1, 3], list(columns)), stage("c", {4: 4})]
        change(stages[0], layers)
        return case(layers, stages, 5, [("a", "b", 1e5), ("b", "c", 1e5)], **more)

    def test_grids(self):
        semantics.simulate(self.split())
        for words, change in (
                ("profiled", lambda s, l: l[0].update(profile={"d3": {"batch": [1], "forward": [1], "backward": [1]}})),
                ("tensor_parallel", lambda s, l: s["devices"][1].update(tensor_parallel=2)),
                ("samples of a device", lambda s, l: s["devices"][1].update(samples=1)),
                ("shares", lambda s, l: s["grid"].update(rows=[1, 2])),
                ("positive integers", lambda s, l: s["grid"].update(rows=[0, 4])),
                ("positive integers", lambda s, l: s["grid"].update(columns=[1, 0])),
                ("positive integers", lambda s, l: s["grid"].update(columns=[0.5, 0.5])),
                ("devices", lambda s, l: s["grid"].update(columns=[1, 1, 1])),
                ("device twice", lambda s, l: s["devices"][1].update(name="d0")),
                ("units", lambda s, l: l[0].update(units=4)),
                ("shard", lambda s, l: s.update(shard="fsdp")),
                ("tensor of another", lambda s, l: (l[1].update(weight_group="g"), l[2].update(weight=1e6, weight_group="g"))),
                ("split and whole", lambda s, l: (l[0].update(weight_group="g", split="none"), l[1].update(weight_group="g"))),
                ("along with weights", lambda s, l: l[0].update(split="along")),
                ("split heads", lambda s, l: l[0].update(split="heads"))):
            with self.subTest(words):
                self.refused(words, self.split(change))
        semantics.simulate(self.split(lambda s, l: l[0].update(units=6)))
        routeless = self.split()
        routeless["cluster"].pop("topology")
        self.refused("no route", routeless)

    def test_grids_in_several_pipelines(self):
        layers = [layer("a", weight=1e6)]
        document = case(layers, [], 3, count=2)
        document["plan"].pop("stages")
        document["plan"].update(pipelines=[
            {"samples": 4, "stages": [grid("a", [0, 1], [4], [1, 1])]}, {"samples": 4, "stages": [stage("a", {2: 4})]}])
        self.refused("tensor of another", document)

    def test_shares(self):
        def sharded(mode="training", **more):
            layers = [layer("a", weight=1e6), layer("b", weight=1e6)]
            return case(layers, [stage("ab", {0: 2, 1: 2}, **more)], 2, [("a", "b", 0)], mode=mode, count=2)

        semantics.simulate(sharded(shard="fsdp", units=[["a", "b"]]))
        self.refused("shard fsdp", sharded("inference", shard="fsdp"))
        self.refused("shard zero3", sharded(shard="zero3"))
        self.refused("units", sharded(shard="fsdp", units=[["a"]]))
        self.refused("units", sharded(shard="zero2", units=[["b"], ["a"]]))
        self.refused("units without shard", sharded(units=[["a", "b"]]))
        self.refused("shard beside", sharded(shard="zero2", shard_state=True))
        document = sharded(shard="fsdp")
        orders = {"d0": [["F", 0, 0], ["F", 0, 1], ["B", 0, 0], ["B", 0, 1]],
                  "d1": [["F", 0, 0], ["F", 0, 1], ["B", 0, 1], ["B", 0, 0]]}
        document["plan"]["schedule"] = {"kind": "explicit", "orders": orders}
        self.refused("several orders", document)
        tied = case([layer(n, weight=1e6, weight_group="g") for n in "ab"],
                    [stage("a", {0: 2, 1: 2}, shard="fsdp"), stage("b", {2: 4})], 3, [("a", "b", 0)])
        self.refused("tensor of another", tied)

    def test_cuts(self):
        def cut(forward, backward=(0, 4, 8), schedule="gpipe", mode="training", shares=(4,)):
            cuts = {"forward": list(forward), **({"backward": list(backward)} if backward else {})}
            return case([layer("a")], [stage("a", dict(enumerate(shares)), cuts=cuts)], 3, count=2, schedule=schedule, mode=mode)

        semantics.simulate(cut((0, 3, 8)))
        semantics.simulate(cut((0, 3, 8), None, "1f1b", "inference"))
        semantics.simulate(cut((0, 4, 8), (0, 8), shares=(1, 3)))
        self.refused("cuts with 1f1b", cut((0, 3, 8), schedule="1f1b"))
        self.refused("cuts in generation", cut((0, 3, 8), None, mode="generation"))
        self.refused("stage 0: cuts", cut((0, 3, 8), None))
        self.refused("stage 0: cuts", cut((0, 3, 8), mode="inference"))
        for wrong in ((0, 3, 7), (1, 8), (0, 3, 3, 8), (0, 5, 4, 8), (0, 2.5, 8), ()):
            self.refused("stage 0: cuts", cut(wrong))
        self.refused("shares of a pass", cut((0, 2, 8), shares=(1, 3)))
        early = {"kind": "explicit", "orders": {"d0": [["F", 0, 0], ["B", 0, 0], ["F", 0, 1], ["B", 0, 1]]}}
        self.refused("order of device 0", cut((0, 3, 8), schedule=early))


if __name__ == "__main__":
    unittest.main(verbosity=2)
