# SPDX-License-Identifier: BSL-1.0
"""`hetplan serve`: what it prints and writes, and that bad input ends in one sentence, status 2 and no file."""
import csv
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

CLI = os.environ.get("HETPLAN_CLI", "")

CLOUD = {"format": "hetplan/cloud/1", "name": "street", "ring": {"period": "100 ms"},
         "servers": [{"name": "pole", "count": 3, "gpus": [{"kind": "P100", "memory": "16 GB", "count": 2}],
                      "uplink": "1 Gbit/s", "latency": "1 ms"}]}
SERVICES = {"format": "hetplan/services/1",
            "services": [{"name": "image", "latency": "200 ms", "request_bytes": "100 kB",
                          "variants": [{"name": "one", "gpu": "P100", "memory": "2 GB",
                                        "pass": {"batch": [1, 8], "seconds": ["20 ms", "60 ms"]}}]}]}
DEPLOYMENT = {"format": "hetplan/deployment/1",
              "instances": [{"service": "image", "gpus": [["pole0", 0]], "batch": 8},
                            {"service": "image", "gpus": [["pole2", 1]], "batch": 8}]}
HEADER = "arrival,service,server\n"
REQUESTS = HEADER + "".join(f"{0.01 * i},image,pole{i % 3}\n" for i in range(90))


@unittest.skipUnless(CLI, "no HETPLAN_CLI")
class Serve(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.at = pathlib.Path(self.folder.name)

    def serve(self, requests=REQUESTS, cloud=CLOUD, services=SERVICES, deployment=DEPLOYMENT, faults=None, more=()):
        def put(name, content):
            text = content if isinstance(content, str) else json.dumps(content)
            (self.at / name).write_text(text, encoding="utf-8")
            return str(self.at / name)
        command = [CLI, "serve", put("cloud.json", cloud), put("services.json", services), put("requests.csv", requests),
                   "--deployment", put("deployment.json", deployment), "--records", str(self.at / "records.csv"),
                   "--html", str(self.at / "page.html"), *more]
        if faults is not None:
            command += ["--faults", put("faults.json", faults)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    def refused(self, words, **what):
        done = self.serve(**what)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertFalse((self.at / "records.csv").exists())
        self.assertFalse((self.at / "page.html").exists())

    def test_counts_add_up_and_the_same_input_gives_the_same_bytes(self):
        done = self.serve(more=["--json"])
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual(found["requests"], 90)
        self.assertEqual(sum(found["outcomes"].values()), 90)
        self.assertEqual(found["outcomes"]["served"], 90)
        self.assertGreater(found["mean_offloads"], 0)
        with open(self.at / "records.csv", encoding="utf-8") as file:
            records = list(csv.DictReader(file))
        self.assertEqual(len(records), 90)
        self.assertEqual(sum(float(r["credit"]) for r in records), found["credit"])
        page = (self.at / "page.html").read_bytes()
        self.assertEqual(self.serve(more=["--json"]).stdout, done.stdout)
        self.assertEqual((self.at / "page.html").read_bytes(), page)

    def test_a_table_says_what_was_served(self):
        done = self.serve()
        self.assertIn("image", done.stdout)
        self.assertIn("90 requests", done.stdout)

    def test_a_lost_server_is_told(self):
        faults = {"format": "hetplan/faults/1", "events": [{"at": 0.3, "kind": "server_fails", "server": "pole0"}]}
        found = json.loads(self.serve(faults=faults, more=["--json"]).stdout)
        self.assertGreater(found["outcomes"]["lost"], 0)
        self.assertEqual(sum(found["outcomes"].values()), 90)

    def test_bad_requests(self):
        self.refused(["line 2", "expected 3 fields"], requests=REQUESTS[:30])
        self.refused(["line 3", "arrival", "0.5"], requests=HEADER + "0.5,image,pole0\n0.4,image,pole0\n")
        self.refused(["line 2", "seconds >= 0", "-1"], requests=HEADER + "-1,image,pole0\n")
        self.refused(["line 2", "service", "imag"], requests=HEADER + "1,imag,pole0\n")
        self.refused(["line 2", "server", "pole9"], requests=HEADER + "1,image,pole9\n")
        self.refused(["a line for each request"], requests=HEADER)
        self.refused(["column", "server"], requests="arrival,service\n1,image\n")

    def test_bad_documents(self):
        self.refused(["cloud.json", "line 1", "syntax error"], cloud=json.dumps(CLOUD)[:80])
        self.refused(["/ring/period"], cloud={**CLOUD, "ring": {"period": 0}})
        large = json.loads(json.dumps(SERVICES))
        large["services"][0]["variants"][0]["memory"] = "17 GB"
        self.refused(["deployment.json", "image", "are left"], services=large)
        self.refused(["/events/0/server", "pole7"],
                     faults={"format": "hetplan/faults/1", "events": [{"at": 1, "kind": "server_fails", "server": "pole7"}]})
        self.refused(["until"], faults={"format": "hetplan/faults/1",
                                        "events": [{"at": 1, "kind": "server_fails", "server": "pole0", "until": 2}]})

    def test_a_trace_is_served_by_the_service_with_tokens(self):
        pass_and_step = {"pass": {"batch": [1, 8], "seconds": ["20 ms", "60 ms"]}, "step": {"batch": [1, 8], "seconds": ["5 ms", "9 ms"]}}
        chat = {"name": "chat", "latency": "9 s", "tokens": {"in": 20, "out": 8},
                "variants": [{"name": "one", "gpu": "P100", "memory": "2 GB", **pass_and_step}]}
        services = {**SERVICES, "services": [*SERVICES["services"], chat]}
        deployment = {**DEPLOYMENT, "instances": [{"service": "chat", "gpus": [["pole0", 0]], "batch": 8}]}
        where = {"services": services, "deployment": deployment}
        azure = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(f"2023-11-16 18:17:0{i}.9799600,48,10\n" for i in range(9))
        burstgpt = "Timestamp,Model,Request tokens,Response tokens\n5,ChatGPT,47,18\n6,GPT-4,9,0\n45.5,GPT-4,5,9\n"
        mooncake = "".join(json.dumps({"timestamp": 1000 * i, "input_length": 5, "output_length": 6}) + "\n" for i in range(4))
        for trace, requests, seconds in ((azure, 9, 8), (burstgpt, 2, 40.5), (mooncake, 4, 3)):
            done = self.serve(requests=trace, more=["--json", "--time-scale", "2"], **where)
            self.assertEqual(done.returncode, 0, done.stderr)
            found = json.loads(done.stdout)
            self.assertEqual(found["requests"], requests)
            self.assertEqual(found["outcomes"]["served"], requests)
            self.assertGreaterEqual(found["duration"], 2 * seconds)
            self.assertEqual("left out: 1" in done.stderr, trace is burstgpt)
        for file in self.at.iterdir():
            file.unlink()
        two = {**services, "services": [chat, {**chat, "name": "talk"}]}
        self.refused(["requests.csv", "chat, talk"], requests=azure, services=two, deployment=deployment)
        self.refused(["requests.csv", "image"], requests=azure, more=["--trace-service", "image"], **where)
        self.refused(["--time-scale", "requests.csv"], more=["--time-scale", "2"])
        self.refused(["line 10", "expected 3 fields"], requests=azure[:-20], **where)
        for scale in ("0", "nan", "-1", "x"):
            self.refused(["--time-scale", "expected a finite number > 0"], requests=azure, more=["--time-scale", scale], **where)
        self.refused(["requests.csv", "finite"], requests=azure, more=["--time-scale", "1e308"], **where)
        done = self.serve(requests=azure, services=two, deployment=deployment, more=["--trace-service", "chat"])
        self.assertEqual(done.returncode, 0, done.stderr)

    def placed_by_a_system(self, *more):
        """Without --deployment: the files stand where `serve` has put them."""
        self.serve()
        for name in ("records.csv", "page.html"):
            (self.at / name).unlink()
        command = [CLI, "serve", *(str(self.at / f) for f in ("cloud.json", "services.json", "requests.csv")), *more]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    def test_a_system_places_and_its_deployment_can_be_played_again(self):
        placed = self.placed_by_a_system("--out", str(self.at / "placed.json"), "--json")
        self.assertEqual(placed.returncode, 0, placed.stderr)
        self.assertEqual(json.loads(placed.stdout)["outcomes"]["served"], 90)
        deployment = json.loads((self.at / "placed.json").read_text())
        self.assertGreaterEqual(len(deployment["instances"]), 1)
        self.assertEqual(self.serve(deployment=deployment, more=["--json"]).stdout, placed.stdout)
        told = self.placed_by_a_system("--explain").stdout
        for word in ("runs as", "category: one GPU, latency", "BS 8", "MT 1", "MP: variant"):
            self.assertIn(word, told)

    def test_every_system_serves_and_cycles_place_anew(self):
        names = json.loads(subprocess.run([CLI, "list", "systems", "--json"], capture_output=True, text=True, check=True).stdout)["systems"]
        self.assertIn("alpaserve", names)
        for name in names:
            done = self.placed_by_a_system("--system", name, "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads(done.stdout)["requests"], 90)
        for cycle in ("200 ms", "0.2"):
            self.assertEqual(json.loads(self.placed_by_a_system("--cycle", cycle, "--json").stdout)["changes"], 4)

    def test_as_many_gpus_as_a_load_needs(self):
        done = self.placed_by_a_system("--size-for", "99%", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual((found["status"], found["target"]), ("feasible", 0.99))
        self.assertGreaterEqual(found["best"]["attainment"], 0.99)
        self.assertIn("GPUs, at most", self.placed_by_a_system("--size-for", "0.5").stdout)
        # The deployment found can be served on the cloud for which it was found.
        done = self.placed_by_a_system("--size-for", "0.9", "--out", str(self.at / "d.json"), "--out-cloud", str(self.at / "c.json"))
        self.assertEqual(done.returncode, 0, done.stderr)
        cloud = json.loads((self.at / "c.json").read_text())
        self.assertEqual(self.serve(cloud=cloud, deployment=json.loads((self.at / "d.json").read_text())).returncode, 0)
        large = json.loads(json.dumps(SERVICES))
        large["services"][0]["latency"] = "1 us"
        (self.at / "services.json").write_text(json.dumps(large))
        command = [CLI, "serve", *(str(self.at / f) for f in ("cloud.json", "services.json", "requests.csv"))]
        done = subprocess.run([*command, "--size-for", "1", "--out", str(self.at / "x.json"), "--out-cloud", str(self.at / "y.json")],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("none found", done.stdout)
        self.assertFalse((self.at / "x.json").exists() or (self.at / "y.json").exists())
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0)
        self.assertIn("no instance of it was placed", done.stderr)

    def test_options_that_do_not_go_together(self):
        def refused(words, *more):
            done = self.placed_by_a_system(*more)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertEqual(done.stdout, "")
            self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
            for word in words:
                self.assertIn(word, done.stderr)
        refused(["--system", "epara", "eparo"], "--system", "eparo")
        refused(["--size-for", "100x"], "--size-for", "100x")
        refused(["--size-for"], "--size-for", "120%")
        refused(["--cycle", "60 s"], "--cycle", "0")
        refused(["changes.cycle", "100000"], "--cycle", "1 us")
        refused(["--most-gpus", "--size-for"], "--most-gpus", "3")
        refused(["--out-cloud", "--size-for"], "--out-cloud", str(self.at / "new.json"))
        refused(["--out", "--out-cloud"], "--size-for", "99%", "--out", str(self.at / "new.json"))
        refused(["--explain", "--json"], "--explain", "--json")
        refused(["--offloads", "alpaserve"], "--system", "alpaserve", "--offloads", "2")
        refused(["--seed", "interedge"], "--system", "interedge", "--seed", "2")
        refused(["--seed", "9223372036854775807", "99999999999999999999"], "--seed", "99999999999999999999")
        refused(["nowhere", "cannot write"], "--out", str(self.at / "nowhere" / "d.json"))
        refused(["--faults"], "--size-for", "99%", "--faults", str(self.at / "cloud.json"))
        self.refused(["--cycle"], more=["--cycle", "1 s"])

    def test_what_comes_too_late_and_a_kind_that_is_nearly_there(self):
        def warned(**what):
            done = self.serve(**what)
            self.assertEqual(done.returncode, 0, done.stderr)
            return [x.removeprefix("hetplan: warning: ").removeprefix(str(self.at) + "/") for x in done.stderr.splitlines()]

        def faults(*events):
            return {"format": "hetplan/faults/1", "events": list(events)}

        self.assertEqual(warned(), [])
        self.assertEqual(warned(faults=faults({"at": 0.1, "kind": "server_fails", "server": "pole0"})), [])
        late = warned(faults=faults({"at": 90, "kind": "server_fails", "server": "pole0"}, {"at": 91, "kind": "server_fails", "server": "pole1"}))
        self.assertEqual(len(late), 1)
        self.assertRegex(late[0], r"^faults.json: /events/0: the last request has ended at [0-9.]+ s; not used, nor is what follows$")
        leaves = {"at": 0.1, "kind": "server_leaves", "server": "pole1"}
        self.assertEqual(warned(faults=faults(leaves)),
                         ["faults.json: /events/0: the server would leave with a change of the deployment, and none comes; not used"])
        same = {**DEPLOYMENT, "changes": [{"at": 0.5, "instances": DEPLOYMENT["instances"]}]}
        self.assertEqual(warned(faults=faults(leaves), deployment=same), [])
        after = {**DEPLOYMENT, "changes": [{"at": 50, "instances": DEPLOYMENT["instances"]}]}
        self.assertRegex(warned(deployment=after)[0], "^deployment.json: /changes/0: the last request has ended at .* s; not used")
        gone = [{"at": at / 100, "kind": kind, "server": server, **more} for at, kind, server, more in (
            (1, "gpu_fails", "pole0", {"gpu": 0}), (2, "gpu_fails", "pole1", {"gpu": 0}), (3, "gpu_fails", "pole0", {"gpu": 0}),
            (4, "server_fails", "pole0", {}), (5, "server_fails", "pole0", {}), (6, "gpu_fails", "pole0", {"gpu": 0}))]
        again = [f"faults.json: /events/{i}: {who} has failed before; not used"
                 for i, who in ((2, 'GPU 0 of server "pole0"'), (4, 'server "pole0"'), (5, 'server "pole0"'))]
        self.assertEqual(warned(faults=faults(*gone)), again)
        image = SERVICES["services"][0]
        slip = {**image["variants"][0], "name": "other", "gpu": "P10O"}
        self.assertEqual(warned(services={**SERVICES, "services": [{**image, "variants": [*image["variants"], slip]}]}),
                         ['service "image": variant "other" is for GPUs of kind "P10O", of which cloud "street" has none; did you mean "P100"?'])
        other = {**slip, "gpu": "RTX4090"}  # a GPU of another cloud
        self.assertEqual(warned(services={**SERVICES, "services": [{**image, "variants": [*image["variants"], other]}]}), [])

    def test_what_a_service_of_this_kind_has_no_use_for(self):
        image = SERVICES["services"][0]

        def services(**more):
            return {**SERVICES, "services": [{**image, **more}]}

        self.refused(["/services/0/bytes_per_token: only services with tokens have bytes for them"], services=services(bytes_per_token=4))
        self.refused(["/services/0/frames: frames are for streams, which have a rate"], services=services(frames=10))
        for more in ({"bytes_per_token": 0, "frames": 1}, {"rate": 5, "frames": 10}):
            self.assertEqual(self.serve(services=services(**more)).returncode, 0)

    def test_a_language_model_from_one_file(self):
        judged = {"model": "tinyllama-1.1b", "device": "v100"}
        chat = {"name": "chat", "latency": "60 s", "ttft": "1 s", "time_between_tokens": "50 ms", "tokens": {"in": 500, "out": 20},
                "batching": "continuous", "prefill_chunk": 256,
                "variants": [{"name": "bf16", "gpu": "P100", "memory": "8 GB", "judged": judged}]}
        where = {"deployment": {**DEPLOYMENT, "instances": [{"service": "chat", "gpus": [["pole0", 0]], "batch": 32}]},
                 "requests": HEADER + "".join(f"{0.02 * i},chat,pole0\n" for i in range(300))}

        def services(variant=None, judge=None, **more):
            one = {**chat["variants"][0], "judged": {**judged, **(judge or {})}, **(variant or {})}
            kept = {k: v for k, v in {**chat, **more}.items() if v is not None}
            return {**SERVICES, "services": [{**kept, "variants": [{k: v for k, v in one.items() if v is not None}]}]}

        done = self.serve(services=services(), **where)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r'judged "chat", "bf16": a cache of \d+ tokens, prompts to [\d.]+ %, steps to [\d.]+ % as simulated')
        self.assertIn("first p99", done.stdout)
        self.assertIn('<table id="tokens">', (self.at / "page.html").read_text(encoding="utf-8"))
        found = json.loads(self.serve(services=services(), more=["--json"], **where).stdout)["services"][0]
        with open(self.at / "records.csv", encoding="utf-8") as file:
            records = [r for r in csv.DictReader(file) if r["ttft"]]
        self.assertEqual(len(records), found["outcomes"]["served"] + found["outcomes"]["late"])
        for key in ("ttft", "time_between_tokens"):
            mean = sum(float(r[key]) for r in records) / len(records)
            self.assertAlmostEqual(found[key]["mean"], mean, delta=1e-9 * mean)
        self.assertEqual(found["broke"]["ttft"], sum(float(r["ttft"]) > 1 + 1e-7 for r in records))
        # A cache that no request fits is told.
        done = self.serve(services=services({"cache_tokens": 519}), **where)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("300 requests are longer than the largest cache, up to 520 of 519 tokens: nobody serves them", done.stderr)
        for file in self.at.iterdir():
            file.unlink()

        at = "services.json: /services/0"
        for words, given in (
                ([at + "/variants/0/judged", "tinyllama-1.1b"], services(judge={"model": "tinylama-1.1b"})),
                ([at + "/variants/0/judged", "v100"], services(judge={"device": "v10"})),
                ([at + "/variants/0/judged", "weights"], services(judge={"weights": "q9"})),
                ([at + "/variants/0/judged", "one of device and cluster, got both"], services(judge={"cluster": "v100"})),
                ([at + "/variants/0/judged", "model"], services(judge={"modell": "x"})),
                ([at + "/variants/0/judged/largest", "0"], services(judge={"largest": 0})),
                ([at + "/variants/0/judged", "no plan for a prompt of one token"], services({"memory": "1 GB"})),
                ([at + "/variants/0/judged", "tensor_parallel * pipeline_parallel = 1", "got 2"], services({"tensor_parallel": 2})),
                ([at + "/variants/0/judged", "whole compute"], services({"compute": 0.5})),
                ([at + "/variants/0/pass", "has no"], services({"pass": {"batch": [1], "seconds": [1]}})),
                ([at + "/variants/0/judged", "only services with tokens"],
                 services(tokens=None, batching=None, prefill_chunk=None, ttft=None, time_between_tokens=None)),
                ([at + "/prefill_chunk", "only continuous batches"], services(batching=None)),
                ([at + "/variants/0/cache_tokens", "only continuous batches"],
                 services({"cache_tokens": 9}, batching=None, prefill_chunk=None)),
                ([at + "/ttft", "tokens and no rate"], services(rate=5, batching=None, prefill_chunk=None)),
                ([at, "latency"], services(latency=None, ttft=None))):
            with self.subTest(words=words):
                self.refused(words, services=given, **where)

    def test_a_service_that_fits_nowhere(self):
        large = json.loads(json.dumps(SERVICES))
        large["services"][0]["variants"][0]["memory"] = "17 GB"
        for name, content in (("cloud.json", CLOUD), ("services.json", large)):
            (self.at / name).write_text(json.dumps(content))
        (self.at / "requests.csv").write_text(REQUESTS)
        command = [CLI, "serve", *(str(self.at / f) for f in ("cloud.json", "services.json", "requests.csv")),
                   "--out", str(self.at / "d.json")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn('service "image" fits nowhere in cloud "street": it needs', done.stderr)
        self.assertFalse((self.at / "d.json").exists())


if __name__ == "__main__":
    unittest.main()
