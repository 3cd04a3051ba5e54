# SPDX-License-Identifier: BSL-1.0
"""A model that does not fit: weights in tiers in tables, JSON, pages and exports; pins; devices like built-in ones."""

import unittest

import toy_problem


def job(**more):
    return {"format": "hetplan/job/1", "mode": "generation", "batch": 1, "prompt": 64, "tokens": 8, **more}


def home(*tiers):
    """A desktop and a laptop without room for 42.5 GB."""
    devices = [{"name": "desktop", "like": "rtx3090"}, {"name": "laptop", "like": "rtx3060"}]
    for device in devices:
        if tiers:
            device["tiers"] = [{"name": name, "memory": memory, "bandwidth": rate} for name, memory, rate in tiers]
    return {"format": "hetplan/cluster/1", "name": "home", "devices": devices,
            "topology": {"kind": "shared", "capacity": "1 Gbit/s", "latency": "0.5 ms"}}


RAM, DISK = ("ram", "60 GB", "45 GB/s"), ("disk", "500 GB", "3 GB/s")
MODEL = ("llama3-70b", "--weights", "q4_k_m")


@toy_problem.unsanitized
class tiers(toy_problem.folder_test):
    def setUp(self):
        super().setUp()
        self.write("j.json", job())

    def planned(self, *more):
        return self.document("plan", MODEL[0], "c.json", "j.json", *MODEL[1:], "--out", "p.json", *more)

    def test_a_model_that_does_not_fit_has_a_time_with_tiers(self):
        self.write("c.json", home())
        without = self.run_it("plan", MODEL[0], "c.json", "j.json", *MODEL[1:])
        self.assertEqual(without.returncode, 1)
        self.assertIn("memory", without.stdout)
        for below in ((RAM,), (RAM, DISK), (DISK,)):
            with self.subTest(below=below):
                self.write("c.json", home(*below))
                answer = self.planned("--html", "r.html")
                stages = answer["plans"][0]["stages"]
                names = {tier for stage in stages for tier in stage.get("offload", {}).values()}
                self.assertTrue(names and names <= {tier[0] for tier in below}, names)
                for stage in stages:
                    self.assertLessEqual(set(stage.get("offload", {})), set(stage["layers"]))
                tokens = answer["run"]["limits"]["tokens"]["devices"]
                self.assertTrue(any(set(shares.get("by_tier", {})) & names for shares in tokens.values()), tokens)
                for shares in tokens.values():
                    self.assertAlmostEqual(sum(v for k, v in shares.items() if k != "by_tier"), 1)
                    self.assertAlmostEqual(sum(shares.get("by_tier", {}).values()), shares["tiers"])
                text = self.done("simulate", MODEL[0], "c.json", "p.json", *MODEL[1:])
                self.assertRegex(text, r"[GM]B of weights \(\d+ layers?\) in (ram|disk)")
                page = (self.path / "r.html").read_text()
                self.assertRegex(page, r"[GM]B of weights \(\d+ layers?\) in (ram|disk)")
                self.assertIn("tier " + sorted(names)[0], page)

    def test_slower_tiers_take_longer_and_all_in_memory_is_fastest(self):
        times = []
        for below in ((RAM,), (DISK,)):
            self.write("c.json", home(*below))
            times.append(self.planned()["run"]["time_between_tokens"])
        self.assertLess(times[0], times[1])

    def test_the_largest_context_counts_tiers(self):
        self.write("c.json", home(RAM))
        found = self.document("plan", MODEL[0], "c.json", "j.json", *MODEL[1:], "--largest", "context", "--most", 4000)["largest"]
        self.assertGreater(found["value"], 1000)
        self.write("c.json", home())
        none = self.run_it("plan", MODEL[0], "c.json", "j.json", *MODEL[1:], "--largest", "context", "--json")
        self.assertEqual(none.returncode, 1)

    def test_exports_place_weights_or_say_why_not(self):
        self.write("c.json", home(RAM))
        self.planned()
        of_plan = (MODEL[0], "c.json", "w.json", *MODEL[1:])
        self.done("export", MODEL[0], "c.json", "p.json", *MODEL[1:], "--whole-blocks", "--to", "plan", "--out", "w.json")
        command = self.done("export", *of_plan, "--to", "llama.cpp").splitlines()[-1]
        self.assertRegex(command, r"-ngl 81 -ts \d+,\d+.* -ot '.*=(CPU|RPC1\[\w+:50052\])'")
        for to in ("vllm", "exo", "prima.cpp", "torch", "placement", "tasks"):
            with self.subTest(to=to):
                why = self.refused("export", *of_plan, "--to", to)
                self.assertRegex(why, "tier|weights in")

    def test_pins_are_kept_and_bad_ones_named(self):
        self.write("c.json", home(RAM))
        self.write("j.json", job(pins={"lm_head": "laptop", "tokens": "laptop"}))
        plan = self.planned()["plans"][0]
        for stage in plan["stages"]:
            if {"lm_head", "tokens"} & set(stage["layers"]):
                self.assertEqual([d["name"] for d in stage["devices"]], ["laptop"])
        for pins, why in (({"lm_haed": "laptop"}, r"j\.json: /pins/lm_haed: expected a layer of model"),
                          ({"lm_head": "lapdog"}, r"j\.json: /pins/lm_head: expected a device of cluster"),
                          ({"lm_head": 3}, r"j\.json: /pins/lm_head: expected")):
            self.write("j.json", job(pins=pins))
            self.assertRegex(self.refused("plan", MODEL[0], "c.json", "j.json", *MODEL[1:], "--out", "q.json"), why)

    def test_bad_tiers_and_unknown_devices_are_named(self):
        bad = home(RAM)
        bad["devices"][0]["tiers"][0]["resource"] = "bus"
        self.write("c.json", bad)
        self.assertRegex(self.refused("plan", MODEL[0], "c.json", "j.json", *MODEL[1:], "--out", "q.json"),
                         r"c\.json: /devices/0/tiers/0/resource: expected the name of a resource of the network, got \"bus\"")
        bad = home(RAM)
        bad["devices"][1]["like"] = "rtx3061"
        self.write("c.json", bad)
        why = self.refused("plan", MODEL[0], "c.json", "j.json", *MODEL[1:], "--out", "q.json")
        self.assertRegex(why, r"c\.json: /devices/1/like: ")
        self.assertIn("rtx3060", why)

    def test_training_keeps_what_is_trained_in_memory(self):
        model = toy_problem.model(1, 1, 2)
        self.write("m.json", model)
        cluster = toy_problem.cluster(a=1)
        cluster["devices"][0].update(memory="20 MB", tiers=[{"name": "ram", "memory": "1 GB", "bandwidth": "10 GB/s"}])
        del cluster["topology"]
        self.write("c.json", cluster)
        self.write("t.json", {"format": "hetplan/job/1", "mode": "training", "batch": 2})
        self.assertEqual(self.run_it("plan", "m.json", "c.json", "t.json").returncode, 1)
        model["layers"][0]["trainable"] = model["layers"][1]["trainable"] = False  # as under LoRA
        self.write("m.json", model)
        cluster["devices"][0]["memory"] = "22 MB"
        self.write("c.json", cluster)
        self.done("plan", "m.json", "c.json", "t.json", "--out", "p.json")
        plan = self.read("p.json")
        self.assertLessEqual(set(plan["stages"][0].get("offload", {})), {"l0", "l1"})
        plan["stages"][0]["offload"] = {"l2": "ram"}
        self.write("p.json", plan)
        self.assertRegex(self.refused("simulate", "m.json", "c.json", "p.json"),
                         r"p\.json: /stages/0/offload/l2: layer \"l2\" is trained; expected its weights in the devices' memory")


if __name__ == "__main__":
    unittest.main()
