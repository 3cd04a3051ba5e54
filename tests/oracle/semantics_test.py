# SPDX-License-Identifier: BSL-1.0
"""The oracle against plans worked by hand: grids, fsdp, zero2, cuts, spans, language models, and what is refused."""
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


class Blocks(Same):
    def document(self, again, **more):
        layers = [layer("a", activation=2), layer("b", activation=3, block=0), layer("c", activation=10, block=0),
                  layer("d", activation=20, block=1), layer("e", activation=4)]
        edges = [(x, y, 7) for x, y in zip("abcd", "bcde")]
        return case(layers, [stage("abcde", {0: 2}, recompute=again)], 1, edges, samples=2, count=3, **more)

    def test_layers_outside_inputs_of_blocks_and_one_block_at_a_time(self):
        plain, again = (semantics.simulate(self.document(r)) for r in (False, "blocks"))
        self.assertClose(plain["peak_memory"]["d0"], 3 * 2 * 39)
        self.assertClose(again["peak_memory"]["d0"], 3 * 2 * (2 + 4 + 7 + 7) + 2 * 20)
        self.assertClose(again["busy"]["d0"] - plain["busy"]["d0"], 3 * 2 * 3e-3)

    def test_all_blocks_stay_for_a_separate_weight_part(self):
        orders = {"d0": [["F", 0, 0], ["B", 0, 0], ["F", 0, 1], ["B", 0, 1], ["W", 0, 0], ["W", 0, 1],
                         ["F", 0, 2], ["B", 0, 2], ["W", 0, 2]]}
        found = semantics.simulate(self.document("blocks", schedule={"kind": "explicit", "orders": orders}))
        self.assertClose(found["peak_memory"]["d0"], 2 * (39 + 14) + 2 * (39 + 14))

    def test_optimizers_have_the_bytes_of_their_table(self):
        for name, most in (("adamw", 8), ("adamw-amp", 18), ("adamw-8bit", 6.03125), ("sgd", 4), ("sgd-amp", 10), ("sgd-momentum", 6),
                           ("sgd-momentum-amp", 14)):
            document = case([layer("a", weight=2e6)], [stage("a", {0: 1})], 1, samples=1, count=1, workload={"optimizer": name})
            document["model"]["bytes_per_parameter"] = 2
            self.assertClose(semantics.simulate(document)["peak_memory"]["d0"], most * 1e6)


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


def token_model(layers, stages, tokens=1, devices=1, workload=None, **more):
    """Generation by default, one group of one sequence, on devices of 1 TFLOP/s."""
    fields = more.pop("model", {})
    document = case(layers, stages, devices, **{"mode": "generation", "samples": 1, **more})
    document["model"].update(tokens_per_sample=tokens, **fields)
    document["plan"]["workload"] = workload or {}
    return document


class LanguageModels(Same):
    # Llama-3-8B at block level, bf16: attention 4096 x (4096 + 2 x 1024 + 4096), MLP 3 x 4096 x 14336, 32 blocks, head
    # 4096 x 128256; 2 FLOP and 2 bytes a parameter; 4 x 4096 FLOP a pair; K and V 2 x 1024 x 2 bytes a token and block.
    ATTENTION, MLP, HEAD, PAIR, CACHE = 4096 * 10240, 3 * 4096 * 14336, 4096 * 128256, 4 * 4096, 4096

    def llama(self, prompt, steps, context=0, last_token=True, **device):
        """Seconds of the prompt and of the last step on 100 TFLOP/s and 1 TB/s."""
        def one(name, parameters, **more):
            return {"name": name, "forward_flops": 2 * parameters + more.get("attention_flops", 0), "weight": 2 * parameters,
                    "traffic": 0, **more}

        layers = []
        for i in range(32):
            layers.append(one(f"a{i}", self.ATTENTION, attention_flops=self.PAIR, kv_bytes_per_token=self.CACHE))
            layers.append(one(f"m{i}", self.MLP))
        layers.append(one("head", self.HEAD, last_token=last_token))
        names = [l["name"] for l in layers]
        result = semantics.simulate(token_model(
            layers, [stage(names, {0: 1})], each={0: {"compute": 1e14, "memory_bandwidth": 1e12, **device}},
            edges=[(u, v, 0) for u, v in zip(names, names[1:])],
            workload={"prompt": prompt, "tokens": steps, "context": context}))
        return result["ttft"], result.get("time_between_tokens")

    def test_a_prompt_of_512_tokens_takes_73_ms_and_77_with_a_full_head(self):
        blocks = 32 * (512 * 2 * (self.ATTENTION + self.MLP) + self.PAIR * 512 * 513 / 2) / 1e14
        for last_token, head in (True, 2 * self.HEAD / 1e12), (False, 512 * 2 * self.HEAD / 1e14):
            found, _ = self.llama(512, 1, last_token=last_token)
            self.assertClose(found, blocks + head)
        self.assertClose(round(blocks + 2 * self.HEAD / 1e12, 4), 0.0732)
        self.assertClose(round(found, 4), 0.0775)

    def test_a_step_reads_weights_and_the_cache(self):
        weights = 2 * (32 * (self.ATTENTION + self.MLP) + self.HEAD)
        for context, told in (512, 15.1), (32768, 19.3):
            first, _ = self.llama(0, 1, context)      # reads c + 1 tokens and writes one
            self.assertClose(first, (weights + 32 * self.CACHE * (context + 2)) / 1e12)
            self.assertClose(round(first * 1e3, 1), told)

    def test_a_slow_reader_of_the_cache_reads_it_at_its_share(self):
        weights, cache = 2 * (32 * (self.ATTENTION + self.MLP) + self.HEAD), 32 * self.CACHE * 1026
        found, _ = self.llama(0, 1, 1024, cache_efficiency=0.25, memory_efficiency=0.5)
        self.assertClose(found, (weights + 4 * cache) / 5e11)

    def test_sequences_share_the_experts_that_they_ask_for(self):
        # 8 of 128 experts: 1/16 of their weight for one sequence, 1 - (15/16)^16 = 64.4 % for 16
        experts = {"total": 128, "active": 8, "weight": 9e9}
        for samples, share in (1, 1 / 16), (16, 1 - (15 / 16) ** 16):
            found = semantics.simulate(token_model(
                [{"name": "a", "forward_flops": 0, "weight": 1e10, "traffic": 0, "experts": experts}], [stage("a", {0: samples})],
                samples=samples, each={0: {"memory_bandwidth": 1e12}}, workload={"tokens": 1}))
            self.assertClose(found["latency"], 1e-3 + 9e-3 * share)
        self.assertClose(round(share, 3), 0.644)

    def test_chunks_have_all_pairs_of_the_prompt_and_read_the_cache_again(self):
        # pairs 10 x 11/2; chunks of 4, 4, 2 read 4, 8, 10 tokens and write 4, 4, 2
        one = layer("a", 4e9, attention_flops=1e9, kv_bytes_per_token=1e6)
        def prompt(**more):
            workload = {"prompt": 10, "tokens": 1, **more}
            return semantics.simulate(token_model([one], [stage("a", {0: 1})], workload=workload, **each))["latency"]
        each = {"each": {0: {}}}
        for chunk in (1, 3, 4, 10, 12):
            self.assertClose(prompt(prompt_chunk=chunk), 10 * 3e-3 + 55e-3)
        each = {"each": {0: {"memory_bandwidth": 1e6, "compute": 1e30}}}
        self.assertClose(prompt(), 10 + 10)
        self.assertClose(prompt(prompt_chunk=4), 22 + 10)

    def test_a_window_limits_pairs_and_what_is_read_and_held(self):
        # causal, window 3, 5 new tokens behind 1: 2 + 3 + 3 + 3 + 3; reads 3, writes 5
        one = layer("a", 1e9, attention_flops=1e9, kv_bytes_per_token=1e6, window=3)
        document = token_model([one], [stage("a", {0: 1})], workload={"prompt": 5, "tokens": 1, "context": 1})
        found = semantics.simulate(document)
        self.assertClose(found["latency"], 14e-3)
        self.assertClose(found["peak_memory"]["d0"], 3e6)
        document["cluster"]["devices"][0].update(compute=1e30, memory_bandwidth=1e6)
        self.assertClose(semantics.simulate(document)["latency"], 8)
        one["attention"] = "full"
        document["cluster"]["devices"][0] = {"name": "d0", "compute": 1e12}
        self.assertClose(semantics.simulate(document)["latency"], 15e-3)

    def test_half_rows_counts_tokens_and_half_batch_samples(self):
        for half, rows in ("half_rows", 2 * 8), ("half_batch", 2):
            document = token_model([layer("a", 8e9)], [stage("a", {0: 2})], tokens=8, samples=2, each={0: {half: 16}},
                                   workload={"tokens": 1})
            self.assertClose(semantics.simulate(document)["ttft"], 16e-3 * (rows + 16) / rows)

    def test_a_layer_may_tell_the_rows_of_its_product(self):
        # 6 rows a sample of 8 tokens, 2 samples: 12 in the prompt; per request as they are, and 3 rows a request make 6
        for told, rows in ({"rows": 6}, 12), ({"rows": 3, "per": "request"}, 6):
            layers = [layer("a", 8e9, **told), layer("b", 0)]
            document = token_model(layers, [{**stage("a", {0: 2}), "layers": ["a", "b"]}], tokens=8, samples=2, each={0: {"half_rows": 16}},
                                   workload={"tokens": 1})
            self.assertClose(semantics.simulate(document)["ttft"], 16e-3 * (rows + 16) / rows)
        with self.assertRaisesRegex(semantics.BadInput, "layer a: rows"):
            semantics.simulate(token_model([layer("a", rows=0)], [stage("a", {0: 1})]))

    def test_a_model_with_several_tokens_is_a_prompt_of_them_and_steps_of_one(self):
        found = semantics.simulate(token_model([layer("a", 8e9)], [stage("a", {0: 1})], tokens=8, workload={"tokens": 3}))
        self.assertClose(found["ttft"], 8e-3)
        self.assertClose(found["latency"], 10e-3)
        self.assertClose(found["time_between_tokens"], 1e-3)
        self.assertClose(found["tokens_per_second"], 300)
        self.assertClose(found["prompt_tokens_per_second"], 1000)

    def test_without_a_prompt_all_tokens_are_steps(self):
        found = semantics.simulate(token_model([layer("a")], [stage("a", {0: 1})], workload={"tokens": 4}))
        self.assertClose(found["latency"], 4e-3)
        self.assertClose(found["ttft"], 1e-3)
        self.assertNotIn("prompt_tokens_per_second", found)
        one = semantics.simulate(token_model([layer("a")], [stage("a", {0: 1})], workload={"tokens": 1}))
        self.assertNotIn("time_between_tokens", one)

    def test_contexts_of_steps_are_rounded_up(self):
        # 33 tokens: q = 3, steps i = 0 ... 31 behind 10 tokens read 11 + 3 ceil(i / 3) and write 1
        document = token_model([layer("a", 0, kv_bytes_per_token=1e6)], [stage("a", {0: 1})],
                               each={0: {"memory_bandwidth": 1e9}}, workload={"prompt": 10, "tokens": 33})
        found = semantics.simulate(document)
        steps = sum(12 + 3 * -(-i // 3) for i in range(32))
        self.assertClose(found["latency"] - found["ttft"], steps * 1e-3)
        self.assertClose(found["peak_memory"]["d0"], 43e6)

    def towers(self, **more):
        """An encoder of 5 ms and 1 MB a request, a block of 1 ms a token, a head of 2 ms for the last."""
        layers = [layer("tower", 5e9, per="request", activation=7e3), layer("block", 4e9, activation=4e3), layer(
            "head", 8e9, last_token=True, activation=4e3)]
        each = {i: {"send_overhead": 1e-4 * (i + 1)} for i in range(3)}
        return semantics.simulate(token_model(
            layers, [stage([n], {i: 1}) for i, n in enumerate(("tower", "block", "head"))], 4, 3, each=each,
            edges=[("tower", "block", 1e6), ("block", "head", 4e6)], capacity=1e9, workload={"prompt": 4, **more}))

    def test_stages_vanish_where_none_of_their_layers_runs(self):
        found = self.towers(tokens=3, prompt_chunk=2)
        # The tower once, with what it sends; of the block's two chunks and two steps the last three send 1 MB each, as the
        # head needs one token; the head runs three times and sends two tokens to the block, now the source.
        self.assertClose(found["busy"]["d0"], 5e-3 + 1e-4)
        self.assertClose(found["busy"]["d1"], 6e-3 + 3 * 2e-4)
        self.assertClose(found["busy"]["d2"], 3 * 2e-3 + 2 * 3e-4)
        self.assertClose(found["bytes"]["d0->d1"], 1e6)
        self.assertClose(found["bytes"]["d1->d2"], 3e6)
        self.assertClose(found["bytes"]["d2->d1"], 8)
        self.assertEqual(found["bytes"]["d2->d0"], 0)
        first = 5e-3 + 1e-4 + 1e-3 + 4e-3 + 2e-4 + 1e-3 + 2e-3 + 3e-4     # ends with the token sent
        self.assertClose(found["ttft"], first)
        step = 4e-9 + 1e-3 + 2e-4 + 1e-3 + 2e-3
        self.assertClose(found["latency"], first + 2 * step + 3e-4)     # the first of two steps sends a token, too

    def test_activations_are_those_of_the_tokens_that_are_computed(self):
        found = self.towers(tokens=2, prompt_chunk=3)
        for device, expected in ("d0", 7e3), ("d1", 3e3), ("d2", 1e3):
            self.assertClose(found["peak_memory"][device], expected)

    def test_without_a_prompt_a_tower_never_runs(self):
        found = self.towers(prompt=0, tokens=2)
        self.assertEqual(found["busy"]["d0"], 0)
        self.assertClose(found["time_between_tokens"], 1e-3 + 2e-4 + 1e-3 + 2e-3 + 4e-9)    # the last step sends no token

    def test_chunks_in_flight_wait_for_the_sinks(self):
        # two stages of 1 ms a chunk: a pipeline of four chunks ends after 5 ms; with one in flight after 8
        for k, latency in (None, 5e-3), (2, 5e-3), (3, 5e-3), (1, 8e-3):
            found = semantics.simulate(token_model(
                [layer("a"), layer("b")], [stage("a", {0: 1}), stage("b", {1: 1})], 1, 2, edges=[("a", "b", 0)],
                workload={"prompt": 4, "tokens": 1, "prompt_chunk": 1, **({"chunks_in_flight": k} if k else {})}))
            self.assertClose(found["latency"], latency)

    def test_an_entry_of_an_explicit_order_stands_for_all_chunks(self):
        # d0 has a and c, d1 has b, each 1 ms a chunk; d0 runs both chunks of a before c
        stages = [stage("a", {0: 1}), stage("b", {1: 1}), stage("c", {0: 1})]
        orders = {"d0": [["F", 0, 0], ["F", 2, 0]], "d1": [["F", 1, 0]]}
        document = token_model([layer(n) for n in "abc"], stages, 1, 2, edges=[("a", "b", 0), ("b", "c", 0)],
                               schedule={"kind": "explicit", "orders": orders},
                               workload={"prompt": 2, "tokens": 2, "prompt_chunk": 1})
        found = semantics.simulate(document)
        self.assertClose(found["ttft"], 4e-3)
        self.assertClose(found["latency"], 7e-3)
        document["plan"]["workload"]["chunks_in_flight"] = 1    # c of the first chunk stands behind a of the second
        with self.assertRaisesRegex(semantics.BadInput, "cyclic order"):
            semantics.simulate(document)

    def test_overheads_count_once_per_task_and_per_flow(self):
        each = {0: {"overhead": 1e-3, "send_overhead": 1e-4}, 1: {"overhead": 2e-3}}
        document = case([layer("a", weight=1), layer("b", weight=1)], [stage("a", {0: 4}, recompute=True), stage("b", {1: 4})],
                        2, [("a", "b", 0)], each=each)
        found = semantics.simulate(document)        # F 4 ms, B 4 + 8 ms; one flow forward
        self.assertClose(found["busy"]["d0"], 16e-3 + 2e-3 + 1e-4)
        self.assertClose(found["busy"]["d1"], 12e-3 + 4e-3)
        document["plan"]["flows"] = [{"from": "d0", "to": "d1", "phase": "forward", "microbatch": 0, "chunk": k, "of": 3}
                                     for k in range(3)]
        self.assertSame(semantics.simulate(document), found)

    def test_reductions_wait_the_overhead_of_sending_and_are_not_busy(self):
        document = case([layer("a", weight=1e6)], [stage("a", {0: 2, 1: 2})], 2, capacity=1e9,
                        each={i: {"send_overhead": 5e-3} for i in range(2)})
        found = semantics.simulate(document)
        self.assertClose(found["busy"]["d0"], 6e-3)
        self.assertClose(found["latency"], 6e-3 + 5e-3 + 1e-3)

    def test_workspace_is_the_largest_of_a_device_and_of_training_alone(self):
        layers = [layer("a", workspace=100, activation=8), layer("b", workspace=50)]
        for mode, workspace in ("training", 100 * 3 * 8), ("inference", 0):
            document = token_model(layers, [stage("ab", {0: 3})], 8, edges=[("a", "b", 0)], mode=mode, samples=3,
                                   each={0: {"memory_overhead": 1e6}})
            self.assertClose(semantics.simulate(document)["peak_memory"]["d0"], 3 * 8 + workspace + 1e6)

    def test_scratch_is_added_to_the_workspace_of_its_layer(self):
        layers = [layer("a", workspace=100), layer("b", workspace=50, scratch=2000)]
        for samples, most in (3, 50 * 3 * 8 + 2000), (6, 100 * 6 * 8):
            document = token_model(layers, [stage("ab", {0: samples})], 8, edges=[("a", "b", 0)], mode="training", samples=samples)
            self.assertClose(semantics.simulate(document)["peak_memory"]["d0"], most)

    def test_a_missing_precision_is_replaced_by_a_wider_one(self):
        for asked, known, found in (("bf16", "fp16 tf32 fp32", "fp16"), ("fp16", "bf16 fp32", "bf16"), ("bf16", "tf32 fp32", "tf32"),
                                    ("int4", "int8 fp16", "int8"), ("int8", "fp16 bf16", "bf16"), ("fp8", "int8 fp16", "fp16"),
                                    ("tf32", "fp32 bf16", "fp32"), (None, "fp32 bf16", "fp32")):
            compute = {p: 1e12 * (2 if p == found else 1) for p in known.split()}
            document = token_model([layer("a")], [stage("a", {0: 1})], each={0: {"compute": compute}}, workload={"tokens": 1},
                                   model={"precision": asked} if asked else {})
            self.assertClose(semantics.simulate(document)["latency"], 0.5e-3)

    def test_shares_of_peak_may_be_given_by_weight_format(self):
        document = token_model([layer("a")], [stage("a", {0: 1})], each={0: {"efficiency": {"q4": 0.5, "f16": 1}}},
                               workload={"tokens": 1}, model={"weight_format": "q4"})
        self.assertClose(semantics.simulate(document)["latency"], 2e-3)
        document["model"]["weight_format"] = "q8"
        with self.assertRaisesRegex(semantics.BadInput, "efficiency.*weight_format q8"):
            semantics.simulate(document)
        document["cluster"]["devices"][0]["efficiency"]["other"] = 0.25
        self.assertClose(semantics.simulate(document)["latency"], 4e-3)
        del document["model"]["weight_format"]
        self.assertClose(semantics.simulate(document)["latency"], 4e-3)

    def test_a_backward_scales_attention_as_its_flops(self):
        # F: 10 of 40 GFLOP are attention over 10 pairs; B twice that, W nothing
        one = {"name": "a", "forward_flops": 4e10, "attention_flops": 1e9, "traffic": 0, "backward_input_flops": 8e10}
        found = semantics.simulate(token_model([one], [stage("a", {0: 1})], 4, mode="training", each={0: {"half_rows": 4}}))
        # the linear parts have 4 rows, half of peak: 60 + 10 ms, 120 + 20 ms
        self.assertClose(found["latency"], 0.21)

    def test_copies_per_device_cross_once(self):
        stages = [stage("a", {0: 1}), stage("b", {1: 1}), stage("c", {1: 1})]
        document = case([layer(n) for n in "abc"], stages, 2, [("a", "b", 1e6), ("a", "c", 3e6)], mode="inference", samples=1,
                        schedule={"kind": "explicit", "orders": {"d0": [["F", 0, 0]], "d1": [["F", 1, 0], ["F", 2, 0]]}},
                        each={0: {"send_overhead": 1e-3}})
        for copies, flows, moved in ("per_edge", 2, 4e6), ("per_device", 1, 3e6):
            document["plan"]["copies"] = copies
            found = semantics.simulate(document)
            self.assertClose(found["bytes"]["d0->d1"], moved)
            self.assertClose(found["busy"]["d0"], 1e-3 + flows * 1e-3)


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
