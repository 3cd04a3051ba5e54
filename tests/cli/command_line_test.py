# SPDX-License-Identifier: BSL-1.0
"""The program as its users see it: documents, exit statuses, messages, and that nothing is half-written."""

import json
import os
import pathlib
import re
import unittest

import toy_problem

SHARED = pathlib.Path(os.environ["HETPLAN_SHARED_DIR"])
PLANNERS = ["on-device", "data-parallel", "ddp", "zero2", "fsdp", "pipeline", "zero-bubble", "gpipe", "pipedream", "dapple", "hetpipe",
            "edgeshard", "alpa", "metis", "asteroid", "deepcee", "dora-printed", "heft", "m-etf", "m-sct", "getf", "moirai", "dora"]
PLACERS = ["heft", "m-etf", "m-sct", "getf", "moirai"]  # place operators, for inference only


def needs_shared(path):
    """Leaves a class of tests out where ../shared has no such path, and says of each whether it did (tests/skips.py compares)."""

    def decorate(tests):
        there = (SHARED / path).exists()
        what = ("USED: {}: {}" if there else "SKIPPED: {}: no {}").format
        for name in unittest.defaultTestLoader.getTestCaseNames(tests):
            print(what(f"{tests.__name__}.{name}", f"../shared/{path}"), flush=True)
        return tests if there else unittest.skip(f"no ../shared/{path}")(tests)

    return decorate


class folder_test(toy_problem.folder_test):
    def latency(self, *arguments):
        return self.document(*arguments)["plans"][0]["predicted"]["latency"]


class a_first_session(folder_test):
    def test_init_plan_simulate(self):
        self.done("init", "start")
        files = [f"start/{name}.json" for name in ("model", "cluster", "job")]
        self.assertEqual(sorted(p.stem for p in (self.path / "start").iterdir()),
                         ["cloud", "cluster", "job", "model", "requests", "services", "timeline"])
        self.done("plan", *files, "--out", "p.json", "--svg", "p.svg", "--html", "p.html", "--trace", "p.trace.json")
        plan = json.loads((self.path / "p.json").read_text())
        self.assertEqual(plan["format"], "hetplan/plan/1")
        self.assertTrue((self.path / "p.svg").read_text().startswith("<svg"))
        self.assertTrue((self.path / "p.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>"))
        self.assertIn("traceEvents", json.loads((self.path / "p.trace.json").read_text()))

        judged = self.document("simulate", *files[:2], "p.json")
        for key, value in plan["predicted"].items():
            self.assertEqual(judged[key], value, key)  # bit for bit
        self.assertGreaterEqual(judged["gap"], -1e-9)

    def test_what_init_writes_is_served(self):
        self.done("init", "start")
        found = self.document("serve", *(f"start/{name}" for name in ("cloud.json", "services.json", "requests.csv")))
        self.assertGreater(found["attainment"], 0.8)
        self.assertTrue(all(s["credit"] > 0 for s in found["services"]))

    def test_init_keeps_what_exists(self):
        self.done("init", "start")
        (self.path / "start/model.json").write_text("mine")
        result = self.run_it("init", "start")
        self.assertEqual(result.returncode, 0)
        self.assertIn("model.json exists and is kept", result.stderr)
        self.assertEqual((self.path / "start/model.json").read_text(), "mine")

    @toy_problem.unsanitized
    def test_the_same_command_prints_the_same_bytes(self):
        command = ("simulate", "qwen3-0.6b", "smart-home-2", "p.json", "--json")
        self.done("plan", "qwen3-0.6b", "smart-home-2", "--out", "p.json")
        self.assertEqual(self.done(*command), self.done(*command))
        first = (self.path / "p.json").read_bytes()
        self.done("plan", "qwen3-0.6b", "smart-home-2", "--out", "p.json")
        self.assertEqual((self.path / "p.json").read_bytes(), first)

    def test_the_network_policy_can_be_overridden(self):
        self.done("plan", "bert-base", "traffic-monitor", "--planner", "gpipe", "--out", "p.json")
        simulate = ("simulate", "bert-base", "traffic-monitor", "p.json")
        plan = json.loads((self.path / "p.json").read_text())
        plan.pop("predicted")  # predictions of the original network
        latency = {}
        for network in ("fair_share", "exclusive", "per_link", "unlimited"):
            latency[network] = self.document(*simulate, "--network", network)["latency"]
            (self.path / "q.json").write_text(json.dumps({**plan, "network": network}))
            self.assertEqual(latency[network], self.document(*simulate[:3], "q.json")["latency"])
        self.assertNotEqual(latency["fair_share"], latency["exclusive"])
        self.assertLess(latency["unlimited"], latency["fair_share"])
        self.assertLessEqual(latency["unlimited"], min(latency["exclusive"], latency["per_link"]))  # no link carries two transfers at once


class documents(folder_test):
    def test_list_names_what_is_built_in(self):
        listed = self.document("list")
        self.assertEqual(listed["planners"], PLANNERS)
        for name in ("bert-base", "bert-small", "qwen3-0.6b", "qwen3-1.7b", "qwen-omni", "llama3-8b", "gpt2", "resnet50", "resnet101",
                     "efficientnet-b1", "mobilenetv2"):
            self.assertIn(name, listed["models"])
        self.assertEqual(listed["clusters"], ["smart-home-1", "smart-home-2", "traffic-monitor", "edge-cluster"])
        for name in ("rtx4060ti", "rtx4090", "h100", "m4-pro", "raspberry-pi-5"):
            self.assertIn(name, listed["devices"])
        self.assertEqual(list(self.document("list", "planners")), ["planners"])
        self.assertEqual(self.document("list", "policies"),
                         {"policies": ["static", "network-only", "microbatches", "dora", "replan-always", "replay", "heavy-rescheduling",
                                        "oracle"]})

    def test_show_is_a_file_that_reads_back(self):
        for name in ("mobilenetv2", "traffic-monitor", "h100"):
            document = self.document("show", name)
            for total in ("parameters", "forward_flops"):
                document.pop(total, None)
            (self.path / "again.json").write_text(json.dumps(document))
            again = self.document("show", "again.json")
            for total in ("parameters", "forward_flops"):
                again.pop(total, None)
            self.assertEqual(again, document)

    def test_show_honours_the_options_of_built_in_models(self):
        bf16, fp32 = self.document("show", "gpt2"), self.document("show", "gpt2", "--dtype", "fp32", "--tokens", "128")
        self.assertEqual((bf16["bytes_per_parameter"], fp32.get("bytes_per_parameter", 4)), (2, 4))
        self.assertAlmostEqual(bf16["parameters"], fp32["parameters"])
        self.assertEqual((bf16["tokens_per_sample"], fp32["tokens_per_sample"]), (512, 128))
        small = self.document("show", "resnet50", "--input", "3,112,112")
        self.assertLess(small["forward_flops"], 0.3 * self.document("show", "resnet50")["forward_flops"])

    def test_a_model_is_fused_as_a_backend_does(self):
        whole = self.document("show", "resnet50")
        fused = self.document("show", "resnet50", "--fuse", "tensorrt")
        self.assertEqual(self.document("show", "resnet50", "--fuse", "none"), whole)
        self.assertEqual((len(whole["layers"]), len(fused["layers"])), (73, 57))
        self.assertAlmostEqual(fused["parameters"], whole["parameters"])
        self.assertAlmostEqual(fused["forward_flops"], whole["forward_flops"])
        self.assertTrue(self.done("show", "resnet50", "--fuse", "tensorrt").startswith("fused by tensorrt: 73 layers before, 57 after\n"))
        self.assertEqual(self.document("list", "fusions"), {"fusions": ["tensorrt", "onednn", "none"]})
        (self.path / "j.json").write_text(json.dumps({"format": "hetplan/job/1", "mode": "inference", "batch": 1}))
        plan = ("plan", "resnet50", "smart-home-2", "j.json", "--planner", "on-device")
        alone = self.latency(*plan)
        self.assertLess(self.latency(*plan, "--fuse", "tensorrt", "--out", "p.json"), alone)
        self.assertIn("l0.0.c3+l0.0.add", json.loads((self.path / "p.json").read_text())["stages"][0]["layers"])
        self.document("simulate", "resnet50", "smart-home-2", "p.json", "--fuse", "tensorrt")
        self.assertIn("l0.0.c3+l0.0.add", self.refused("simulate", "resnet50", "smart-home-2", "p.json"))

    def test_what_is_fused_is_a_model_and_by_known_rules(self):
        for command in (("show", "smart-home-1"), ("list",), ("init", "new")):
            self.assertIn("--fuse: only a model takes it", self.refused(*command, "--fuse", "onednn"))
        self.assertIn('did you mean "onednn"', self.refused("show", "resnet50", "--fuse", "onedn"))

    def test_show_draws_a_graph(self):
        self.done("show", "bert-small", "--dot", "g.dot")
        self.assertTrue((self.path / "g.dot").read_text().lstrip().startswith("digraph"))

    def test_plan_prints_the_best_plans_first(self):
        document = self.document("plan", "bert-base", "smart-home-1", "--top", "4")
        self.assertEqual(document["status"], "feasible")
        latencies = [p["predicted"]["latency"] for p in document["plans"]]
        self.assertEqual(latencies, sorted(latencies))
        self.assertLessEqual(len(latencies), 4)
        self.assertGreater(document["candidates"], 4)
        self.assertGreaterEqual(document["elapsed"], 0)

    def test_operators_are_placed_for_one_inference_unless_a_job_says_otherwise(self):
        document = self.document("plan", "mobilenetv2", "edge-cluster", "--planner", "moirai", "--contention", "one_port", "--out", "p.json")
        plan = document["plans"][0]
        self.assertEqual((plan["mode"], plan["microbatch_size"], plan["network"], plan["copies"]), ("inference", 1, "exclusive", "per_device"))
        self.assertLessEqual(plan["predicted"]["placement_bound"], plan["predicted"]["latency"] * (1 + 1e-9))
        simulated = self.document("simulate", "mobilenetv2", "edge-cluster", "p.json")
        self.assertEqual(simulated["latency"], plan["predicted"]["latency"])
        placement = json.loads(self.done("export", "mobilenetv2", "edge-cluster", "p.json", "--to", "placement"))
        self.assertEqual(sum(len(x) for x in placement["order"].values()), len(placement["placement"]))
        self.assertIn("digraph", self.done("export", "mobilenetv2", "edge-cluster", "p.json", "--to", "dot"))
        (self.path / "training.json").write_text(json.dumps({"format": "hetplan/job/1", "mode": "training", "batch": 4}))
        refused = self.run_it("plan", "mobilenetv2", "edge-cluster", "training.json", "--planner", "heft")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("heft places the operators of one inference; the job is training", refused.stdout)
        warned = self.run_it("plan", "bert-small", "edge-cluster", "--planner", "pipeline", "--contention", "none")
        self.assertIn("--contention: only planners that place operators take it; not used", warned.stderr)

    @toy_problem.unsanitized
    def test_dora_is_the_default_and_lists_its_best_on_request(self):
        self.assertNotIn("\n    1.", self.done("plan", "bert-small", "smart-home-2"))
        text = self.done("plan", "bert-small", "smart-home-2", "--top", "3", "--phase", "1")
        self.assertIn(", dora: training,", text)
        self.assertEqual([line.split()[0] for line in text.splitlines()[-3:]], ["1.", "2.", "3."])
        one = self.latency("plan", "bert-small", "smart-home-2", "--phase", "1")
        two = self.latency("plan", "bert-small", "smart-home-2", "--phase", "2")
        both = self.latency("plan", "bert-small", "smart-home-2")
        self.assertLessEqual(both, min(one, two))
        same = [self.done("plan", "bert-small", "smart-home-2", "--top", "3", "--threads", n) for n in ("1", "2", "3")]
        self.assertEqual(len(set(same)), 1)
        self.assertIn("--phase", self.refused("plan", "bert-small", "smart-home-2", "--phase", "3"))
        self.assertIn("has no phases", self.refused("plan", "bert-small", "smart-home-2", "--planner", "pipeline", "--phase", "1"))

    def test_memory_savers_that_the_planner_does_not_use_are_a_warning(self):
        job = {"format": "hetplan/job/1", "mode": "training", "batch": 4, "memory_savers": ["recompute", "shard_state"]}
        (self.path / "job.json").write_text(json.dumps(job))
        (self.path / "plain.json").write_text(json.dumps({"format": "hetplan/job/1", "mode": "training", "batch": 4}))
        asked = self.run_it("plan", "bert-small", "smart-home-1", "job.json", "--planner", "on-device", "--json")
        plain = self.document("plan", "bert-small", "smart-home-1", "plain.json", "--planner", "on-device")
        self.assertEqual(asked.returncode, 0, asked.stderr)
        self.assertEqual(asked.stderr, 'hetplan: warning: memory_savers: planner "on-device" uses none; not used\n')
        self.assertEqual(json.loads(asked.stdout)["plans"], plain["plans"])

    def test_devices_may_share_tensors_where_that_is_allowed(self):
        job = {"format": "hetplan/job/1", "mode": "generation", "batch": 1, "tokens": 4}
        (self.path / "plain.json").write_text(json.dumps(job))
        (self.path / "split.json").write_text(json.dumps(dict(job, split_tensors=True)))
        gigabit = {"format": "hetplan/cluster/1", "name": "lan", "topology": {"kind": "star", "capacity": "1 Gbit/s", "latency": "0.2 ms"},
                   "devices": [{"name": f"pi{n}", "memory": "8 GB", "compute": "30 GFLOP/s", "memory_bandwidth": "8 GB/s"} for n in range(2)]}
        (self.path / "lan.json").write_text(json.dumps(gigabit))
        common = ("qwen3-0.6b", "lan.json")
        plain = self.document("plan", *common, "plain.json", "--tokens", "1")
        split = self.document("plan", *common, "split.json", "--tokens", "1", "--out", "p.json")
        asked = self.document("plan", *common, "plain.json", "--tokens", "1", "--split-tensors")
        self.assertEqual(split["plans"], asked["plans"])
        between = [d["plans"][0]["predicted"]["time_between_tokens"] for d in (plain, split)]
        self.assertLess(between[1], 0.7 * between[0])
        self.assertIn("--workers pi1:9999", self.done("export", *common, "p.json", "--tokens", "1", "--to", "distributed-llama"))
        self.assertIn("is a grid", self.refused("export", *common, "p.json", "--tokens", "1", "--to", "llama.cpp"))
        other = self.run_it("plan", *common, "split.json", "--tokens", "1", "--planner", "pipeline")
        self.assertIn('split_tensors: planner "pipeline" makes no grids; not used', other.stderr)

    @toy_problem.unsanitized
    def test_the_objective_can_be_overridden(self):
        energy = self.document("plan", "bert-base", "traffic-monitor", "--objective", "energy")["plans"][0]["predicted"]["energy"]
        latency = self.document("plan", "bert-base", "traffic-monitor")["plans"][0]["predicted"]["energy"]
        self.assertLess(sum(energy.values()), sum(latency.values()))

    def test_compare_has_a_row_per_planner(self):
        rows = self.document("compare", "qwen3-1.7b", "smart-home-2")["rows"]
        self.assertEqual([r["planner"] for r in rows], [p for p in PLANNERS if p not in PLACERS])
        blind = {"gpipe", "pipedream", "dapple", "hetpipe"}  # planners that ignore memory; those listed below use no pipeline
        for row in rows:
            fails = row["planner"] in blind | {"on-device", "data-parallel", "ddp", "zero2", "fsdp"}
            self.assertEqual(row["status"], "out_of_memory" if fails else "feasible", row["planner"])
            if fails:
                self.assertRegex(row["reason"], r"^memory: \w+ needs .* GB and may use . GB: .* too much \(\d+ plans? of [\w-]+ tried.*\)$")
                self.assertNotIn("plan", row)
        latency = {r["planner"]: r["latency"] for r in rows if r["status"] == "feasible"}
        self.assertEqual(latency["dora"], min(latency.values()))
        gone = self.run_it("plan", "bert-small", "smart-home-1", "--planner", "dora-with-baselines")
        self.assertEqual(gone.returncode, 2)
        self.assertEqual(gone.stderr, "hetplan: --planner: dora has the baselines' plans among its own; use dora\n")
        self.assertIn("needs 17.18 GB and may use 8 GB", rows[0]["reason"])
        best = rows[5]
        self.assertEqual(best["plan"]["predicted"]["latency"], best["latency"])
        self.assertAlmostEqual(best["energy"], sum(best["plan"]["predicted"]["energy"].values()))
        self.assertEqual(best["peak_memory"], max(best["plan"]["predicted"]["peak_memory"].values()))
        self.assertGreaterEqual(best["gap"], 0)
        only = self.document("compare", "bert-small", "smart-home-1", "--planners", "pipeline,on-device")["rows"]
        self.assertEqual([r["planner"] for r in only], ["pipeline", "on-device"])

    def test_a_row_that_fails_for_other_reasons_than_memory_is_infeasible_where_that_is_proven(self):
        self.done("init", "start")
        cluster = (self.path / "start/cluster.json").read_text()
        (self.path / "frugal.json").write_text(cluster.replace('"memory":', '"energy_budget": "1 uJ", "memory":'))
        wires = ('"resources": [{"name": "wire", "capacity": "600 Mbit/s"}], '
                 '"routes": [{"from": "phone0", "to": "phone1", "via": [{"resource": "wire"}]}]')
        (self.path / "islands.json").write_text(re.sub(r'"topology": \{.*\}', wires, cluster))
        result = self.run_it("compare", "start/model.json", "frugal.json", "--json")
        self.assertEqual(result.returncode, 1, result.stderr)
        for row in json.loads(result.stdout)["rows"]:
            self.assertRegex(row["reason"], "^energy: ")
            if row["planner"] in ("zero2", "fsdp", "deepcee"):  # no proofs for such plans
                self.assertEqual(row["status"], "none found", row["planner"])
                continue
            self.assertEqual(row["status"], "infeasible", row["planner"])
            self.assertGreater(row["proof"]["rows"][0]["needed"], row["proof"]["rows"][0]["available"])
        # phone1 cannot send: planners that train on several devices regardless find no plan, the others do.
        rows = {r["planner"]: r for r in self.document("compare", "start/model.json", "islands.json")["rows"]}
        self.assertEqual(rows["gpipe"]["status"], "none found")
        self.assertIn("joins the region of device", rows["deepcee"]["reason"])
        self.assertIn("has no route", rows["gpipe"]["reason"])
        for name in ("on-device", "edgeshard", "metis", "asteroid", "dora"):
            self.assertEqual(rows[name]["status"], "feasible", name)

    @toy_problem.unsanitized
    def test_the_table_for_people_says_what_fails_and_by_how_much(self):
        text = self.done("compare", "qwen3-1.7b", "smart-home-2")
        self.assertIn("data-parallel       out of memory: laptop0 needs 17.18 GB and may use 6 GB: 11.18 GB too much", text)


class over_time(folder_test):
    """Four cameras train; a link gets slow, one camera leaves and comes back."""

    SLOW = {"at": "10 s", "resource": "camera0->camera1", "capacity": "20 Mbit/s"}
    EVENTS = [SLOW, {"at": "60 s", "device": "camera1", "leaves": True}, {"at": "90 s", "device": "camera1", "joins": True}]

    def setUp(self):
        super().setUp()
        self.write("job.json", {"format": "hetplan/job/1", "mode": "training", "batch": 32})
        self.timeline(self.EVENTS)
        self.command = ("adapt", "mobilenetv2", "traffic-monitor", "job.json", "timeline.json")

    def timeline(self, events, duration="120 s", **more):
        self.write("timeline.json", {"format": "hetplan/timeline/1", "duration": duration, "events": events, **more})

    def policies(self, *options):
        return {p["policy"]: p for p in self.document(*self.command, *options)["policies"]}

    @toy_problem.unsanitized
    def test_a_table_for_people(self):
        lines = self.done(*self.command).splitlines()
        self.assertEqual(lines[0], "backups: after every 10 iterations")  # the default, because a device leaves
        self.assertEqual(lines[1].split(), ["policy", "iterations", "each", "violations", "energy", "stall", "switches", "moved", "reaction"])
        self.assertEqual([line.split()[0] for line in lines[2:]], ["static", "network-only", "dora", "replan-always", "oracle"])
        self.assertNotIn("backups", self.done(*self.command, "--backups", "0"))

    def test_the_document_and_what_must_be_true_of_it(self):
        found = self.policies()
        for policy in found.values():
            for key in ("iterations", "violations", "stall", "energy", "switches", "bytes_moved", "reaction"):
                self.assertGreaterEqual(policy[key], 0, (policy["policy"], key))
            self.assertEqual(policy["status"], "feasible")
            self.assertEqual(policy["violations"], 0)  # no latency is required
            self.assertAlmostEqual(policy["energy"], sum(policy["device_energy"].values()), delta=1e-9 * policy["energy"])
            stretches = policy["stretches"]
            self.assertEqual([s[1] for s in stretches], [0] + [s[2] for s in stretches[:-1]])
            self.assertEqual(stretches[-1][2], 120)
            self.assertEqual(sum(s[4] for s in stretches), policy["iterations"] + policy["lost"])
            halts = sum(s[2] - s[1] for s in stretches if s[0] in ("stalled", "migrating"))
            self.assertAlmostEqual(policy["stall"], halts, delta=1e-6)
        self.assertEqual(len({policy["plans"][0]["planner"] for policy in found.values()}), 1)
        static, dora, oracle = (found[name] for name in ("static", "dora", "oracle"))
        self.assertAlmostEqual(static["stall"], 30, delta=1e-6)  # the camera's absence
        self.assertEqual((static["switches"], static["adoptions"]), (0, []))
        self.assertLess(dora["stall"], static["stall"])
        self.assertGreater(dora["iterations"], static["iterations"])
        self.assertEqual(oracle["stall"], 0)

    def test_policies_and_backups_can_be_chosen(self):
        found = self.policies("--policies", "replay,heavy-rescheduling,static", "--backups", "0")
        self.assertEqual(list(found), ["replay", "heavy-rescheduling", "static"])
        for policy in found.values():  # no other device has the camera's weights
            self.assertEqual((policy["bytes_moved"], policy["switches"]), (0, 0))
            self.assertAlmostEqual(policy["stall"], 30, delta=1e-6)
        saved = self.policies("--policies", "replay", "--backups", "5")["replay"]
        self.assertEqual(saved["switches"], 1)
        self.assertGreater(saved["bytes_moved"], 0)
        self.assertLess(saved["stall"], 30)

    def test_the_same_command_prints_the_same_bytes(self):
        for option in ("--json", "--quiet"):
            self.assertEqual(self.done(*self.command, option), self.done(*self.command, option, "--threads", "2"))

    @toy_problem.unsanitized
    def test_pictures_are_written(self):
        self.done(*self.command, "--html", "r.html", "--svg", "r.svg")
        self.assertTrue((self.path / "r.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>"))
        svg = (self.path / "r.svg").read_text(encoding="utf-8")
        self.assertTrue(svg.startswith("<svg"))
        for name in ("static", "dora", "oracle", "camera1"):
            self.assertIn(name, svg)

    def test_the_starter_files_live(self):
        self.done("init", "start")
        files = [f"start/{name}.json" for name in ("model", "cluster", "job", "timeline")]
        found = {p["policy"]: p for p in self.document("adapt", *files)["policies"]}
        self.assertEqual(found["static"]["switches"], 0)
        self.assertGreater(found["dora"]["switches"], 0)

    @toy_problem.unsanitized
    def test_a_job_that_ends_says_when_and_whether_in_time(self):
        for deadline, missed in (("100 s", False), ("1 s", True)):
            self.write("job.json", {"format": "hetplan/job/1", "mode": "training", "batch": 32, "qoe": {"deadline": deadline, "iterations": 50}})
            for policy in self.policies("--policies", "static,dora").values():
                self.assertEqual(policy["iterations"], 50)
                self.assertEqual(policy["missed_deadline"], missed, policy["policy"])
                self.assertEqual(policy["stretches"][-1][2], policy["finished"])
        self.assertIn("after the deadline", self.done(*self.command, "--policies", "static"))

    def test_what_is_wanted_may_change(self):
        self.timeline([{"at": "60 s", "qoe": {"latency": "1 ms"}}])
        policy = self.policies("--policies", "static")["static"]
        late = sum(s[4] for s in policy["stretches"] if s[7])
        self.assertEqual(policy["violations"], late)
        self.assertGreater(late, 0)
        self.assertLess(late, policy["iterations"])

    @toy_problem.unsanitized
    def test_a_measured_network(self):
        (self.path / "link.txt").write_text("0 200\n10 50\n20 200\n")
        calm = self.policies("--policies", "static")["static"]["iterations"]
        self.timeline(self.EVENTS[1:], traces=[{"resource": "camera0->camera1", "file": "link.txt", "repeat": True, "mean": "20 Mbit/s"}])
        self.assertLess(self.policies("--policies", "static")["static"]["iterations"], calm)

    @toy_problem.unsanitized
    def test_a_relay_that_leaves_is_answered_by_every_policy(self):
        device = {"kind": "box", "memory": "8 GB", "compute": "10 TFLOP/s"}
        hops = [{"from": x, "to": y, "via": [{"resource": "air"}]} for x, y in ("ab", "ba", "bc", "cb")]
        cluster = {"format": "hetplan/cluster/1", "name": "line", "devices": [{"name": n, **device} for n in "abc"],
                   "resources": [{"name": "air", "capacity": "10 Gbit/s"}], "routes": hops}
        self.timeline([{"at": "20 s", "device": "b", "leaves": True}])
        for memory, status in (("8 GB", "feasible"), ("120 MB", "none found")):
            for d in cluster["devices"]:
                d["memory"] = memory
            self.write("line.json", cluster)
            for qoe in ({}, {"latency": "100 ms"}, {"deadline": "100 s", "iterations": 100000}):
                self.write("job.json", {"format": "hetplan/job/1", "mode": "training", "batch": 32, "qoe": qoe})
                command = ("adapt", "efficientnet-b1", "line.json", "job.json", "timeline.json", "--policies",
                           "static,network-only,microbatches,dora,replan-always,replay,heavy-rescheduling,oracle", "--json")
                result = self.run_it(*command)
                self.assertIn((result.returncode, result.stderr), ((0, ""), (1, "")), (memory, qoe))
                for policy in json.loads(result.stdout)["policies"]:
                    if policy["status"] != "feasible":
                        self.assertNotEqual(policy["reason"], "", policy["policy"])
                    if policy["policy"] == "oracle":
                        self.assertEqual(policy["status"], status, qoe)

    def test_a_job_that_fits_nowhere_has_status_1(self):
        result = self.run_it("adapt", "llama3-8b", "smart-home-1", "job.json", "empty.json", "--json")
        self.assertEqual(result.returncode, 2)
        self.write("empty.json", {"format": "hetplan/timeline/1", "duration": "60 s"})
        result = self.run_it("adapt", "llama3-8b", "smart-home-1", "job.json", "empty.json", "--json")
        self.assertEqual((result.returncode, result.stderr), (1, ""))
        for policy in json.loads(result.stdout)["policies"]:
            self.assertEqual((policy["status"], policy["iterations"]), ("infeasible", 0))
            self.assertRegex(policy["reason"], r"^memory: \w+ needs .* and may use .* too much$")

    def test_bad_timelines_name_the_event(self):
        def refused(events, **more):
            self.timeline(events, **more)
            message = self.refused(*self.command, "--html", "r.html", "--svg", "r.svg")
            self.assertIn("timeline.json", message)
            self.assertEqual(sorted(p.name for p in self.path.iterdir()), files)
            return message

        (self.path / "back.txt").write_text("0 200\n10 100\n5 200\n")
        files = sorted(p.name for p in self.path.iterdir())
        everybody = [{"at": i, "device": f"camera{i}", "leaves": True} for i in range(4)]
        message = refused(everybody)
        self.assertIn("/events/3", message)
        self.assertIn("no device is left", message)
        self.assertIn("/events/1", refused([self.SLOW, {**self.SLOW, "at": "9 s"}]))
        self.assertIn("/events/0/capacity", refused([{**self.SLOW, "capacity": "-1 Mbit/s"}]))
        self.assertIn("/events/0", refused([{"at": 1, "device": "camera1", "joins": True}]))
        self.assertIn("camera9", refused([{"at": 1, "device": "camera9", "leaves": True}]))
        self.assertIn("/duration", refused([], duration="0 s"))
        self.assertIn("/events/0", refused([{"at": 1, "qoe": {}}]))
        self.assertIn("back.txt", refused([], traces=[{"resource": "camera0->camera1", "file": "back.txt"}]))
        self.assertIn("nowhere.txt", refused([], traces=[{"resource": "camera0->camera1", "file": "nowhere.txt"}]))

    def test_bad_commands(self):
        self.assertIn("expected some of static, network-only, microbatches, dora", self.refused(*self.command, "--policies", "static,magic"))
        self.assertIn('got "magic"', self.refused(*self.command, "--policies", "static,magic"))
        self.refused(*self.command, "--backups", "-1")
        self.refused(*self.command[:-1])
        self.assertIn("nowhere.json", self.refused(*self.command[:-1], "nowhere.json"))
        self.assertIn("nowhere.json", self.refused(*self.command[:-2], "nowhere.json", "timeline.json"))
        self.assertIn("no/such/folder", self.refused(*self.command, "--policies", "static", "--svg", "no/such/folder/r.svg"))


class infeasible(folder_test):
    def test_status_1_and_the_document_all_the_same(self):
        result = self.run_it("plan", "llama3-8b", "traffic-monitor", "--planner", "on-device", "--json", "--out", "p.json")
        self.assertEqual(result.returncode, 1, result.stderr)
        document = json.loads(result.stdout)
        self.assertEqual((document["status"], document["plans"]), ("infeasible", []))
        self.assertRegex(document["reason"], r"memory: camera\d needs .* and may use 12 GB: .* too much")
        self.assertEqual(list(self.path.iterdir()), [])

    def test_dora_names_the_smallest_overflow(self):
        result = self.run_it("plan", "llama3-8b", "smart-home-1")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertRegex(result.stdout, r"^infeasible: memory: \w+ needs .* and may use .* GB: .* too much\n  proven of .*:\n"
                         r"    bytes of all layers, each tensor once, on all devices together: .* needed, .* available\n$")


class bad_input(folder_test):
    def test_the_command_line(self):
        self.assertIn("--help", self.refused("plan"))
        self.assertIn("--frobnicate", self.refused("plan", "gpt2", "smart-home-1", "--frobnicate"))
        self.assertIn(f"expected one of {', '.join(PLANNERS)}, got \"magic\"",
                      self.refused("plan", "gpt2", "smart-home-1", "--planner", "magic"))
        self.refused("simulate", "gpt2", "smart-home-1")
        self.refused("plan", "gpt2", "smart-home-1", "--top", "0")
        self.refused("show", "gpt2", "--tokens", "many")
        self.refused("show", "resnet50", "--input", "3,224")
        self.refused("nonsense")

    def test_names_that_are_neither_file_nor_built_in(self):
        message = self.refused("plan", "gpt5", "smart-home-1")
        self.assertIn("gpt5: expected a model file or one of", message)
        self.assertIn("bert-base", message)
        self.assertIn("smart-home-1", self.refused("plan", "gpt2", "mars"))
        self.assertIn("nowhere.json", self.refused("simulate", "gpt2", "smart-home-1", "nowhere.json"))

    def test_files_name_file_pointer_found_and_expected(self):
        self.done("init", "start")
        cluster = (self.path / "start/cluster.json").read_text()
        (self.path / "broken.json").write_text(cluster.replace('"memory": "6 GB"', '"memory": "six"'))
        message = self.refused("plan", "start/model.json", "broken.json", "--out", "p.json", "--svg", "p.svg")
        self.assertIn("broken.json: /devices/0/memory: expected", message)
        self.assertIn('got "six"', message)
        self.assertEqual(sorted(p.name for p in self.path.iterdir()), ["broken.json", "start"])

    def test_warm_ups_that_never_finish(self):
        self.done("init", "start")
        plan = {"format": "hetplan/plan/1", "model": "starter", "cluster": "home", "mode": "training", "microbatch_size": 2, "microbatches": 8,
                "schedule": {"kind": "1f1b", "warmup": [1, 3]},
                "stages": [{"layers": ["embed", "left"], "devices": [{"name": "laptop", "samples": 2}]},
                           {"layers": ["right", "head"], "devices": [{"name": "phone0", "samples": 2}]}]}
        (self.path / "p.json").write_text(json.dumps(plan))
        self.assertIn("cyclic order at device", self.refused("simulate", "start/model.json", "start/cluster.json", "p.json"))

    def test_outputs_that_cannot_be_written_leave_nothing(self):
        message = self.refused("plan", "bert-small", "smart-home-1", "--out", "no/such/folder/p.json")
        self.assertIn("no/such/folder", message)
        self.assertEqual(list(self.path.iterdir()), [])


class plan_files(folder_test):
    """Plans of bert-small by hand: a stage per camera, blocks l0, l1 on one and l2, l3 and the head on the next."""

    MODEL = ("bert-small", "traffic-monitor")

    def setUp(self):
        super().setUp()
        self.layers = [layer["name"] for layer in self.document("show", "bert-small")["layers"]]

    def write(self, name, cuts=("l2.q",), mode="inference", devices=None, **fields):
        at = [0, *(self.layers.index(cut) for cut in cuts), len(self.layers)]
        stages = [{"layers": self.layers[first:end], "devices": [{"name": f"camera{i}", "samples": 2}]}
                  for i, (first, end) in enumerate(zip(at, at[1:]))]
        if devices:
            stages[0]["devices"] = devices
        (self.path / name).write_text(json.dumps({"format": "hetplan/plan/1", "model": self.MODEL[0], "cluster": self.MODEL[1], "mode": mode,
                                                  "microbatch_size": 2, "microbatches": 4, "stages": stages, **fields}))


class exports(plan_files):
    """A plan for those who run it."""

    def export(self, runtime, *more):
        return self.done("export", *self.MODEL, "p.json", "--to", runtime, *more)

    def test_tasks(self):
        self.write("p.json", mode="training", cuts=("l2.q", "lm_head"))
        self.assertEqual(self.export("tasks", "--out", "t.json"), "")
        document = json.loads((self.path / "t.json").read_text())
        self.assertEqual(self.export("tasks"), (self.path / "t.json").read_text())
        self.assertEqual((document["format"], document["batch"], len(document["stages"])), ("hetplan/tasks/1", 8, 3))
        self.assertEqual(len(document["tasks"]), 3 * 4 * 2)
        self.assertEqual({t["phase"] for t in document["tasks"]}, {"F", "B"})
        self.assertEqual(len(document["transfers"]), 2 * 4 * 2 + 2)  # the head shares the embedding's tensor: a ring of two
        self.assertEqual([(r["devices"], r["layers"]) for r in document["reductions"]], [(["camera0", "camera2"], ["embed"])])
        judged = self.document("simulate", *self.MODEL, "p.json")
        self.assertEqual(document["predicted"]["latency"], judged["latency"])

    def test_runtimes(self):
        self.write("p.json")
        self.assertIn("llama-cli -m MODEL.gguf --rpc camera0:50052,camera1:50052 --device RPC0,RPC1 -ngl 5 -ts 2,3\n", self.export("llama.cpp"))
        self.assertIn("--world 2 --rank 0 --master camera1 --next camera0 -lw 2,2\n", self.export("prima.cpp"))
        self.assertIn("VLLM_PP_LAYER_PARTITION=2,2 vllm serve", self.export("vllm"))
        self.assertIn('"encoder.layer.2": SplitPoint.BEGINNING', self.export("torch", "--blocks", "encoder.layer"))
        text = self.export("vllm")
        self.assertEqual(json.loads(self.export("vllm", "--json")), {"text": text})
        self.assertEqual(json.loads(self.export("vllm", "--json", "--out", "v.sh")), {"written": ["v.sh"]})
        self.assertEqual((self.path / "v.sh").read_text(), text)

    def test_cuts_inside_a_block_are_refused_or_moved(self):
        command = ("export", *self.MODEL, "p.json", "--to")
        self.write("p.json", cuts=("l2.norm1",))
        self.assertIn('export to vLLM: it cuts a model between blocks; the plan cuts between layers "l2.add1" and "l2.norm1"',
                      self.refused(*command, "vllm"))
        self.assertIn("VLLM_PP_LAYER_PARTITION=2,2", self.export("vllm", "--whole-blocks"))
        self.export("plan", "--whole-blocks", "--out", "whole.json")
        whole = json.loads((self.path / "whole.json").read_text())
        self.assertEqual([s["layers"][0] for s in whole["stages"]], ["tokens", "l2.q"])
        self.assertEqual(self.document("simulate", *self.MODEL, "whole.json")["latency"], whole["predicted"]["latency"])

    def test_what_a_runtime_cannot_run_is_one_line(self):
        command = ("export", *self.MODEL, "p.json", "--to")
        self.write("p.json", mode="training")
        self.assertIn("export to llama.cpp: it runs inference; the plan is for training", self.refused(*command, "llama.cpp", "--out", "x"))
        self.write("p.json", devices=[{"name": "camera0", "samples": 1}, {"name": "camera2", "samples": 1}])
        self.assertIn('export to prima.cpp: it gives a stage one device; stage "s0" has 2', self.refused(*command, "prima.cpp", "--out", "x"))
        self.refused(*command, "abacus")
        self.assertIn("--blocks: only torch", self.refused(*command, "vllm", "--blocks", "layers"))
        self.refused(*command[:-1])
        self.assertEqual([p.name for p in self.path.iterdir()], ["p.json"])


class replays(plan_files):
    def test_the_plan_for_those_who_are_left(self):
        self.write("p.json", cuts=("l1.q", "l3.q"), mode="training")
        command = ("replay", *self.MODEL, "p.json", "--lost")
        self.assertIn("bert-small on traffic-monitor, replay", self.done(*command, "camera1", "--out", "r.json"))
        plan = json.loads((self.path / "r.json").read_text())
        self.assertEqual([[d["name"] for d in s["devices"]] for s in plan["stages"]], [["camera0"], ["camera2"]])
        self.assertEqual(sorted(sum((s["layers"] for s in plan["stages"]), [])), sorted(self.layers))
        self.assertEqual(self.document("simulate", *self.MODEL, "r.json")["latency"], plan["predicted"]["latency"])
        document = self.document(*command, "camera1")
        self.assertEqual((document["status"], document["plans"]), ("feasible", [plan]))
        two = self.document(*command, "camera1,camera0")["plans"][0]
        self.assertEqual([s["devices"][0]["name"] for s in two["stages"]], ["camera2"])

    def test_nobody_left_has_status_1_and_an_unknown_device_status_2(self):
        self.write("p.json", mode="training")
        result = self.run_it("replay", *self.MODEL, "p.json", "--lost", "camera0,camera1", "--out", "r.json")
        self.assertEqual((result.returncode, result.stdout), (1, "none found: no device of the running plan is left\n"), result.stderr)
        result = self.run_it("replay", *self.MODEL, "p.json", "--lost", "camera0", "--lost", "camera1", "--json")
        self.assertEqual((result.returncode, json.loads(result.stdout)["status"]), (1, "none found"))
        self.assertIn('--lost: expected a device of cluster "traffic-monitor", got "camera7"; did you mean "camera0"?',
                      self.refused("replay", *self.MODEL, "p.json", "--lost", "camera0,camera7", "--out", "r.json"))
        self.refused("replay", *self.MODEL, "p.json")
        self.assertEqual([p.name for p in self.path.iterdir()], ["p.json"])


class imports(folder_test):
    """One tiny file of each foreign format becomes a model that `plan` plans."""

    PIPEDREAM = """node1 -- Input -- forward_compute_time=9.0, backward_compute_time=0.0, activation_size=1000.0, parameter_size=0.0
node2 -- Conv2d(3, 8) -- forward_compute_time=4.0, backward_compute_time=8.0, activation_size=[500.0; 20.0], parameter_size=64.0
node3 -- Linear(8, 2) -- forward_compute_time=1.0, backward_compute_time=2.0, activation_size=8.0, parameter_size=128.0
\tnode1 -- node2
\tnode2 -- node3
"""
    PIPEEDGE_MODELS = "vit:\n  layers: 2\n  mem_MB: [1, 2]\n  parameters_in: 12\n  parameters_out: [100, 7]\n"
    PIPEEDGE_TYPES = """Board:
  bw_Mbps: 1000
  mem_MB: 2048
  model_profiles:
    vit:
    - {batch_size: 8, dtype: torch.float32, time_s: [0.5, 0.25]}
"""

    def setUp(self):
        super().setUp()
        self.write("toy.txt", self.PIPEDREAM)
        self.write("models.yml", self.PIPEEDGE_MODELS)
        self.write("types.yml", self.PIPEEDGE_TYPES)

        def node(number, time):
            vanilla = {"id": "vanilla", "timePerSample": time, "parameterSize": 10, "memoryUsageA": 5, "memoryUsageB": 20,
                       "syncTimeFw": {}, "syncTimeBw": {}}
            return {"id": number, "name": "layer", "TMPCs": {"1": [vanilla]}}
        self.write("piper.json", json.dumps({"maxDevices": 2, "maxMemoryPerDevice": 8e9, "bandwidth": 1e9, "mbsInBatch": 4,
                                             "nodes": [node(0, 3), node(1, 6)],
                                             "edges": [{"sourceId": 0, "destId": 1, "communicationCost": 600}]}))
        self.write("profile.json", json.dumps({"1": {"1": {"0": [0.001, 0.002, 0], "1": [0.003, 0.004, 0]}}}))
        self.write("mbs1_tmp1.json", json.dumps({"model": {"model_name": "opt", "parameters": {
            "parameters_per_layer_bytes": [100, 200], "activation_parameters_bytes": [64, 80]}}}))
        self.write("job.json", '{"format": "hetplan/job/1", "mode": "training", "batch": 4, "microbatch_sizes": [1]}')
        self.write("infer.json", '{"format": "hetplan/job/1", "mode": "inference", "batch": 16, "microbatch_sizes": [8]}')

    def cluster(self, *kinds):
        devices = [{"name": f"d{i}", "kind": kind, "memory": "8 GB"} for i, kind in enumerate(kinds)]
        cluster = {"format": "hetplan/cluster/1", "name": "own", "devices": devices}
        if len(devices) > 1:
            cluster["topology"] = {"kind": "shared", "capacity": "1 Gbit/s"}
        self.write("c.json", json.dumps(cluster))

    def test_pipedream(self):
        text = self.done("import", "pipedream", "toy.txt", "--device", "gpu", "--out", "m.json")
        self.assertEqual(text, "toy: 3 layers, 2 edges, measured on gpu\n")
        self.assertEqual(self.read("m.json")["layers"][1]["profile"]["gpu"]["forward"], [0.004, 0.008])
        self.cluster("gpu")
        plan = self.document("plan", "m.json", "c.json", "job.json")["plans"][0]
        self.assertAlmostEqual(plan["predicted"]["latency"], 4 * 0.015)
        # Without --out, the model is printed; --input-time includes the loader's time.
        model = json.loads(self.done("import", "pipedream", "toy.txt", "--input-time", "as-measured"))
        self.assertEqual(model["layers"][0]["profile"]["pipedream"]["forward"], [0.009, 0.018])

    def test_piper(self):
        written = self.document("import", "piper", "piper.json", "--time-unit", "ms", "--out", "m.json", "--cluster", "c.json")
        self.assertEqual(written, {"written": ["m.json", "c.json"]})
        plan = self.document("plan", "m.json", "c.json", "job.json", "--planner", "on-device")["plans"][0]
        self.assertAlmostEqual(plan["predicted"]["latency"], 4 * 0.009)
        self.assertEqual(len(self.read("c.json")["devices"]), 2)

    def test_pipeedge(self):
        command = ("import", "pipeedge", "models.yml", "--types", "types.yml", "--model", "vit", "--out", "m.json", "--cluster", "c.json")
        self.done(*command)
        self.assertEqual([d["name"] for d in self.read("c.json")["devices"]], ["Board-0"])
        self.assertAlmostEqual(self.latency("plan", "m.json", "c.json", "infer.json"), 2 * 0.75)
        self.done(*command, "--devices", "Board=3")
        self.assertLess(self.latency("plan", "m.json", "c.json", "infer.json"), 2 * 0.75)

    def test_sailor(self):
        self.done("import", "sailor", "profile.json", "--device", "fast", "--sizes", "mbs1_tmp1.json", "--out", "m.json")
        text = self.done("import", "sailor", "profile.json", "--device", "slow", "--onto", "m.json", "--out", "both.json")
        self.assertEqual(text, "opt: 2 layers, 1 edges, measured on fast, slow\n")
        self.cluster("fast", "slow")
        self.assertLess(self.latency("plan", "both.json", "c.json", "job.json"), 4 * 0.01 + 1e-9)

    def test_a_table_is_placed_by_its_own_times(self):
        # Transfer times need not follow bandwidths: one edge is slow from a to b, the other from b to a.
        self.write("t.json", json.dumps({"n": 3, "devices": 2, "edges": [[0, 1], [0, 2]], "op_time_ms": [[1, 9], [9, 1], [1, 9]],
                                         "edge_time_ms": [[[0, 2], [7, 0]], [[0, 7], [2, 0]]], "memory": [1, 1, 1], "capacity": [3, 3]}))
        self.assertEqual(self.done("import", "moirai", "t.json", "--place", "none"),
                         "4 ms by the file's own times, proven: no schedule is shorter\ndevice0: op0 op2\ndevice1: op1\n")
        document = self.document("import", "moirai", "t.json", "--place", "one_port")
        self.assertEqual(document, {"placement": {"makespan": 0.004, "bound": 0.004, "devices": {
            "op0": "device0", "op1": "device1", "op2": "device0"}}})
        self.write("t.json", self.path.joinpath("t.json").read_text().replace('"capacity": [3, 3]', '"capacity": [1, 1]'))
        refused = self.run_it("import", "moirai", "t.json", "--place", "none")
        self.assertEqual((refused.returncode, refused.stdout[:12]), (1, "infeasible: "))

    def test_bad_input_is_one_line_and_leaves_nothing(self):
        before = sorted(p.name for p in self.path.iterdir())
        out = ("--out", "m.json")
        self.write("toy.txt", self.PIPEDREAM.replace("=4.0", "=-4.0"))
        self.assertIn("toy.txt: line 2: expected forward_compute_time >= 0", self.refused("import", "pipedream", "toy.txt", *out))
        self.assertIn("nowhere.txt: cannot read", self.refused("import", "pipedream", "nowhere.txt", *out))
        self.assertIn("piper.json: /maxDevices: expected a", self.refused("import", "sailor", "piper.json", "--device", "d", "--onto", "gpt2", *out))
        self.assertIn("the 149 layers of model \"gpt2\", got 2",
                      self.refused("import", "sailor", "profile.json", "--device", "d", "--onto", "gpt2", *out))
        self.assertIn("got \"vanilla\" at 2", self.refused("import", "piper", "piper.json", "--degree", "2", "--cluster", "c.json", *out))
        pipeedge = ("import", "pipeedge", "models.yml", "--types", "types.yml", *out)
        self.assertIn("--model: expected one of vit, got \"deit\"", self.refused(*pipeedge, "--model", "deit"))
        self.assertIn("expected TYPE=NUMBER", self.refused(*pipeedge, "--model", "vit", "--cluster", "c.json", "--devices", "Board"))
        self.assertIn("device type of the file, got \"Phone\"",
                      self.refused(*pipeedge, "--model", "vit", "--cluster", "c.json", "--devices", "Phone=1"))
        self.assertIn("--devices", self.refused(*pipeedge, "--model", "vit", "--devices", "Board=1"))
        self.assertIn("--sizes", self.refused("import", "pipedream", "toy.txt", "--sizes", "x"))
        self.assertIn("--sizes,--onto", self.refused("import", "sailor", "profile.json", "--device", "d"))
        self.refused("import")
        self.refused("import", "onnx", "toy.txt")
        self.assertEqual(sorted(p.name for p in self.path.iterdir()), before)
        self.write("toy.txt", self.PIPEDREAM)
        self.assertIn("no/m.json", self.refused("import", "pipedream", "toy.txt", "--out", "no/m.json"))
        self.assertEqual(sorted(p.name for p in self.path.iterdir()), before)


@needs_shared("data/pipedream")
class imports_of_real_files(folder_test):
    def test_every_pipedream_graph_can_be_planned(self):
        cluster = {"format": "hetplan/cluster/1", "name": "four", "topology": {"kind": "star", "capacity": "10 Gbit/s"},
                   "devices": [{"name": f"g{i}", "kind": "pipedream", "memory": "64 GB"} for i in range(4)]}
        (self.path / "c.json").write_text(json.dumps(cluster))
        (self.path / "job.json").write_text('{"format": "hetplan/job/1", "mode": "training", "batch": 8, "microbatch_sizes": [1]}')
        for file in sorted((SHARED / "data/pipedream").glob("*.txt")):
            if file.stem == "LICENSE":
                continue
            self.done("import", "pipedream", file, "--out", "m.json")
            alone = self.latency("plan", "m.json", "c.json", "job.json", "--planner", "on-device")
            self.assertLessEqual(self.latency("plan", "m.json", "c.json", "job.json", "--planner", "pipeline"), alone, file.stem)


@needs_shared("data/moirai")
class placements_of_real_files(folder_test):
    def test_example_1_takes_30_ms_by_its_own_times(self):
        example = SHARED / "data/moirai/example-1.json"
        for rule in ("none", "per_link", "one_port"):
            self.assertIn("30 ms by the file's own times, proven", self.done("import", "moirai", example, "--place", rule))
            self.assertAlmostEqual(self.document("import", "moirai", example, "--place", rule)["placement"]["bound"], 0.03)


@needs_shared("reference/simulator_cases.json")
class reference_cases(folder_test):
    def test_plans_of_others_give_their_numbers(self):
        cases = json.loads((SHARED / "reference/simulator_cases.json").read_text())["cases"]
        for case in cases[::9]:
            for part in ("model", "cluster", "plan"):
                (self.path / f"{part}.json").write_text(json.dumps(case[part]))
            result = self.run_it("simulate", "model.json", "cluster.json", "plan.json", "--json")
            self.assertEqual(result.returncode, 0, result.stderr)
            for line in result.stderr.splitlines():  # profiled kinds of devices may be missing from the cluster
                self.assertRegex(line, "^hetplan: warning: model .* has a profile for kind .*, which is timed by FLOP|; not used$")
            got = json.loads(result.stdout, parse_constant=self.fail)
            self.assertAlmostEqual(got["latency"] / case["expected"]["latency"], 1, delta=1e-9)
            for key in ("energy", "peak_memory", "busy"):
                for device, value in case["expected"][key].items():
                    self.assertAlmostEqual(got[key][device], value, delta=1e-9 * max(1, abs(value)))


if __name__ == "__main__":
    unittest.main()
