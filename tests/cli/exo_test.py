# SPDX-License-Identifier: BSL-1.0
"""The program that `export --to exo` writes, against a stand-in for exo's API that places layers by exo's own rule."""

import http.server
import json
import os
import subprocess
import sys
import threading
import unittest
import urllib.parse

import toy_problem


def proportional(layers, memory):
    """allocate_layers_proportionally of exo: the largest remainder, and at least one layer each."""
    raw = [layers * m / sum(memory) for m in memory]
    shares = [int(r) for r in raw]
    for i in sorted(range(len(raw)), key=lambda i: raw[i] - shares[i], reverse=True)[:layers - sum(shares)]:
        shares[i] += 1
    for i, share in enumerate(shares):
        if share == 0:
            most = max(range(len(shares)), key=shares.__getitem__)
            shares[most], shares[i] = shares[most] - 1, 1
    return shares


class stand_in(http.server.BaseHTTPRequestHandler):
    """Knows the orders of nodes in `orders`; keeps what is posted in `posted`."""

    def log_message(self, *_):
        pass

    def answer(self, body):
        text = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def preview(self, order):
        shares, shards, start = proportional(self.server.layers, [1] * len(order)), {}, 0
        for rank, share in enumerate(shares):
            shards[f"runner{rank}"] = {"PipelineShardMetadata": {"deviceRank": rank, "worldSize": len(order), "startLayer": start,
                                                                 "endLayer": start + share, "nLayers": self.server.layers}}
            start += share
        assigned = {"modelId": "m", "runnerToShard": shards, "nodeToRunner": {node: f"runner{rank}" for rank, node in enumerate(order)}}
        return {"sharding": "Pipeline", "error": None, "instance": {"MlxRingInstance": {"instanceId": "x", "shardAssignments": assigned}}}

    def do_GET(self):
        url = urllib.parse.urlparse(self.path)
        assert url.path == "/instance/previews", url
        self.server.asked = urllib.parse.parse_qs(url.query)
        tensor = {"sharding": "Tensor", "error": None, "instance": None}
        failed = {"sharding": "Pipeline", "error": "no memory", "instance": None}
        self.answer({"previews": [tensor, failed, *map(self.preview, self.server.orders)]})

    def do_POST(self):
        assert self.path == "/instance", self.path
        self.server.posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.answer({"message": "Command received."})


class exo(toy_problem.folder_test):
    def setUp(self):
        super().setUp()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), stand_in)
        self.server.posted, self.server.layers = [], 5
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.write("m.json", toy_problem.model(1, 1, 1, 1, 1))
        self.write("c.json", toy_problem.cluster(a=1, b=2, c=1))
        stages = [(["l0"], "b"), (["l1", "l2", "l3"], "a"), (["l4"], "c")]
        self.write("p.json", {"format": "hetplan/plan/1", "model": "toy", "cluster": "home", "mode": "inference", "microbatch_size": 1,
                              "microbatches": 1, "stages": [{"layers": layers, "devices": [{"name": device, "samples": 1}]}
                                                            for layers, device in stages]})

    def run_program(self):
        program = self.done("export", "m.json", "c.json", "p.json", "--to", "exo")
        for name in "abc":
            program = program.replace(f'"{name}": "NODE_ID"', f'"{name}": "node-{name}"')
        self.write("place.py", program)
        address = f"http://127.0.0.1:{self.server.server_address[1]}"
        return subprocess.run([sys.executable, "place.py"], cwd=self.path, env={**os.environ, "EXO": address}, capture_output=True, text=True,
                              timeout=60)

    def test_exo_gets_the_plans_layers(self):
        self.server.orders = [["node-a", "node-b", "node-c"], ["node-b", "node-a"], ["node-b", "node-a", "node-c"]]
        result = self.run_program()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.server.asked["node_ids"], ["node-b", "node-a", "node-c"])
        (posted,) = self.server.posted
        assigned = posted["instance"]["MlxRingInstance"]["shardAssignments"]
        layers = {node: (lambda s: (s["startLayer"], s["endLayer"]))(assigned["runnerToShard"][runner]["PipelineShardMetadata"])
                  for node, runner in assigned["nodeToRunner"].items()}
        self.assertEqual(layers, {"node-b": (0, 1), "node-a": (1, 4), "node-c": (4, 5)})

    def test_another_order_or_model_is_refused(self):
        self.server.orders = [["node-a", "node-b", "node-c"]]
        result = self.run_program()
        self.assertEqual((result.returncode, result.stderr), (1, "exo offers no pipeline of these nodes in this order\n"))
        self.server.orders, self.server.layers = [["node-b", "node-a", "node-c"]], 6
        self.assertEqual(self.run_program().stderr, "the model has 6 layers, the plan 5\n")
        self.assertEqual(self.server.posted, [])


if __name__ == "__main__":
    unittest.main()
