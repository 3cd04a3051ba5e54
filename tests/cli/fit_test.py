# SPDX-License-Identifier: BSL-1.0
"""Devices are fitted to measured speeds: what is printed, written and refused."""

import unittest

import toy_problem

CLUSTER = {"format": "hetplan/cluster/1", "name": "two", "topology": {"kind": "shared", "capacity": "1 GB/s"},
           "devices": [{"name": f"g{i}", "kind": "gpu", "memory": "24 GB", "compute": "100 TFLOP/s", "memory_bandwidth": "1 TB/s"}
                        for i in range(2)]}
LAYER = {"forward_flops": "64 GFLOP", "weight": "400 MB", "kv_bytes_per_token": "4 kB"}
MODEL = {"format": "hetplan/model/1", "name": "toy", "bytes_per_parameter": 2, "tokens_per_sample": 64,
         "layers": [{"name": f"l{i}", **LAYER} for i in range(4)],
         "edges": [{"from": f"l{i}", "to": f"l{i + 1}", "bytes": "512 kB"} for i in range(3)]}
HEADER = "device,model,batch,prompt,context,what,value,tokens,prompt_chunk"
# Half of the bandwidth reads 1.6 GB in 3.2 ms, and a step has some more bytes; a prompt of 640 tokens is 2.56 TFLOP.
DECODE, PREFILL = "g0,m.json,1,0,0,decode_tokens_per_s,300,16,", "gpu,m.json,1,640,0,prefill_tokens_per_s,10000,,"


class fit(toy_problem.folder_test):
    def setUp(self):
        super().setUp()
        self.write("c.json", CLUSTER)
        self.write("m.json", MODEL)
        self.table("rows.csv", DECODE, PREFILL)

    def table(self, name, *rows, header=HEADER):
        self.write(name, "\n".join([header, *rows]) + "\n")

    def test_a_fitted_cluster_is_written_and_predicts_the_rows(self):
        found = self.document("fit", "c.json", "rows.csv", "-o", "fitted.json")
        for row in found["rows"]:
            self.assertAlmostEqual(row["predicted"] / row["measured"], 1, 4)
        self.assertEqual([row["what"] for row in found["off"]], ["prefill_tokens_per_s", "decode_tokens_per_s"])
        by_name = {p["name"]: p for p in found["parameters"]}
        self.assertEqual(by_name["efficiency of gpu"]["before"], 1)
        self.assertNotIn("kept", by_name["efficiency of gpu"])
        self.assertIn("cannot tell it from", by_name["overhead of gpu"]["kept"])
        written = self.read("fitted.json")
        for device in written["devices"]:  # one set for the kind
            self.assertEqual(device["efficiency"], by_name["efficiency of gpu"]["after"])
            self.assertEqual(device["memory_efficiency"], by_name["memory_efficiency of gpu"]["after"])
        again = self.document("fit", "fitted.json", "rows.csv")
        for p in again["parameters"]:
            self.assertAlmostEqual(p["after"], p["before"], 4, p)
        self.assertEqual(self.done("fit", "c.json", "rows.csv"), self.done("fit", "c.json", "rows.csv"))

    def test_rows_that_are_not_fitted_are_predicted(self):
        self.table("others.csv", "g1,m.json,4,0,100,decode_tokens_per_s,1000,16,")
        text = self.done("fit", "c.json", "rows.csv", "--check", "others.csv")
        self.assertIn("\nNot fitted: others.csv\n", text)
        self.assertIn("decode_tokens_per_s: 1 row, off by ", text)
        found = self.document("fit", "c.json", "rows.csv", "--check", "others.csv")
        self.assertEqual(len(found["check"]["rows"]), 1)
        self.assertAlmostEqual(found["check"]["rows"][0]["predicted"], 4 * 300, delta=20)

    def test_shares_of_a_weight_format(self):
        self.write("m.json", {**MODEL, "weight_format": "q4"})
        self.done("fit", "c.json", "rows.csv", "-o", "fitted.json")
        self.assertEqual(list(self.read("fitted.json")["devices"][0]["efficiency"]), ["q4", "other"])

    def test_one_number_of_the_network(self):
        self.table("rows.csv", "g0+g1,m.json,1,640,0,prefill_tokens_per_s,5000,,64")
        self.done("fit", "c.json", "rows.csv", "--fit", "host:shared", "-o", "fitted.json")
        (shared,) = self.read("fitted.json")["resources"]
        self.assertLess(shared["capacity"], 1e8)
        self.assertIn("capacity of shared: ", self.done("fit", "c.json", "rows.csv", "--fit", "host:shared"))
        self.assertIn('expected a resource of cluster "two" (shared), got "pci"',
                      self.refused("fit", "c.json", "rows.csv", "--fit", "host:pci"))

    def test_profiles_are_left_alone_and_it_is_said(self):
        layers = [{**l, "profile": {"gpu": {"batch": [1], "forward": [0.01]}}} for l in MODEL["layers"]]
        self.write("m.json", {**MODEL, "tokens_per_sample": 1, "layers": layers})
        self.table("rows.csv", "g0,m.json,1,,,images_per_s,25,,")
        result = self.run_it("fit", "c.json", "rows.csv", "--fit", "efficiency")
        self.assertEqual(result.returncode, 0)
        self.assertIn("warning: rows.csv: line 2: 4 of 4 layers", result.stderr)
        self.assertIn("efficiency of gpu: no row depends on it; kept 1\n", result.stdout)

    def test_what_is_wrong_is_named(self):
        def row(cells, header=HEADER):
            self.table("rows.csv", cells, header=header)
            return self.refused("fit", "c.json", "rows.csv", "-o", "new.json")

        self.assertIn('rows.csv: line 2: device: expected names or kinds', row(DECODE.replace("g0", "g7")))
        self.assertIn("rows.csv: line 2: model: expected a model file or one of", row(DECODE.replace("m.json", "n.json")))
        self.assertIn("rows.csv: line 2: what: expected one of prefill_tokens_per_s", row(DECODE.replace("decode_", "decode")))
        self.assertIn('rows.csv: line 2: value: expected a number > 0, got "0"', row(DECODE.replace("300", "0")))
        self.assertIn("rows.csv: line 2: expected 9 fields", row(DECODE + ","))
        self.assertIn('rows.csv: line 1: expected a header with a column "value", got none', row(DECODE, HEADER.replace("value,", "")))
        self.assertIn("rows.csv: line 2: prompt: expected tokens >= 1", row(PREFILL.replace("640", "0")))
        self.table("rows.csv")
        self.assertIn("rows.csv: expected a line for each measurement under the header, got none",
                      self.refused("fit", "c.json", "rows.csv"))
        self.assertIn("nothing.csv", self.refused("fit", "c.json", "nothing.csv"))

    def test_rows_that_the_judge_refuses_name_their_line(self):
        devices = [{key: value for key, value in d.items() if key != "compute"} for d in CLUSTER["devices"]]
        self.write("c.json", {**CLUSTER, "devices": devices})
        self.assertIn('rows.csv: line 2: roofline: device "g0" has no compute', self.refused("fit", "c.json", "rows.csv"))

    def test_options_that_cannot_be(self):
        self.assertIn('--fit: expected efficiency, memory_efficiency, cache_efficiency, half_rows, launch, overhead, send_overhead, latency or '
                      'host:RESOURCE, got "lauch"; did you mean "launch"?', self.refused("fit", "c.json", "rows.csv", "--fit", "lauch"))
        self.assertIn("--fit: expected every name once", self.refused("fit", "c.json", "rows.csv", "--fit", "launch,launch"))
        self.assertIn("--out: expected a file of its own", self.refused("fit", "c.json", "rows.csv", "-o", "c.json"))
        self.assertIn("only a built-in language model takes it", self.refused("fit", "c.json", "rows.csv", "--tokens", "5"))


if __name__ == "__main__":
    unittest.main()
