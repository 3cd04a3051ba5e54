# SPDX-License-Identifier: BSL-1.0
"""The torch executor from outside: it learns what one device would, whoever is killed, and leaves nothing behind."""

import contextlib
import errno
import io
import itertools
import json
import os
import pathlib
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
import weakref
from unittest import mock
from xml.etree import ElementTree

import torch_python

torch_python.require()

SOURCE = pathlib.Path(os.environ.get("HETPLAN_SOURCE_DIR") or pathlib.Path(__file__).parents[2])
FOLDER = SOURCE / "examples" / "executors" / "torch"
EXECUTOR = FOLDER / "executor.py"
sys.path.insert(0, str(FOLDER))
sys.dont_write_bytecode = True

import numpy  # noqa: E402

import documents  # noqa: E402
import executor  # noqa: E402
import fleet  # noqa: E402
import greeting  # noqa: E402
import links  # noqa: E402
import netns  # noqa: E402
import pacing  # noqa: E402
import picture  # noqa: E402
import models  # noqa: E402
import recovery  # noqa: E402
import stages  # noqa: E402
import worker  # noqa: E402

LAYERS = {"transformer-small": ["embed", "block0", "block1", "block2", "head"],
          "cnn-small": ["stem", "residual0", "residual1", "residual2", "head"],
          "towers-small": ["stem", "residual0", "residual1", "embed", "block0", "block1", "join", "head"]}
LAYERS["transformer-tied-small"] = LAYERS["transformer-small"]
CLUSTER = {"format": "hetplan/cluster/1", "name": "home", "topology": {"kind": "shared", "capacity": "100 Mbit/s", "latency": "1 ms"},
           "devices": [{"name": n, "kind": f"core/{s}", "memory": "4 GB"} for n, s in (("a", 2), ("b", 2), ("c", 4), ("d", 4))]}
TOLERANCE = 1e-4


def plan(model, *stages, size=4, count=3, **more):
    """Stages are (layers, {device: samples})."""
    return {"format": "hetplan/plan/1", "model": model, "cluster": "home", "mode": "training", "workload": {"optimizer_factor": 0},
            "microbatch_size": size, "microbatches": count,
            "stages": [{"layers": layers, "devices": [{"name": d, "samples": n} for d, n in shares.items()]} for layers, shares in stages], **more}


def chain(model, *devices, **more):
    """The layers of a network, one after another, cut into as many parts as there are devices."""
    layers, n = LAYERS[model], len(devices)
    ends = [round(len(layers) * i / n) for i in range(n + 1)]
    return plan(model, *[(layers[ends[i]:ends[i + 1]], {d: 2}) for i, d in enumerate(devices)], size=2, count=4, **more)


def execute(*arguments, python=(sys.executable, "-B"), timeout=120):
    return subprocess.run([*python, str(EXECUTOR), *map(str, arguments)], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=timeout)


def children(pid):
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        found += [int(p) for p in task.read_text().split()]
    return found


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def comes_true(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def namespaces_in_use():
    """Of every process, as a member or by a descriptor."""
    found = set()
    for link in [*pathlib.Path("/proc").glob("[0-9]*/ns/net"), *pathlib.Path("/proc").glob("[0-9]*/fd/*")]:
        try:
            found.add(os.readlink(link))
        except OSError:
            pass
    return {f for f in found if f.startswith("net:")}


class executor_test(unittest.TestCase):
    temporary = tempfile.TemporaryDirectory()
    path = pathlib.Path(temporary.name)
    cluster = path / "nominal.json"
    cluster.write_text(json.dumps(CLUSTER))
    models = {}

    def write(self, name, document):
        (self.path / name).write_text(document if isinstance(document, str) else json.dumps(document))
        return self.path / name

    @classmethod
    def model(cls, network):
        if network not in cls.models:
            model = cls.path / f"{network}.json"
            done = execute("profile", network, cls.cluster, "--out-model", model, "--out-cluster", cls.path / "measured.json",
                           "--batches", "1,4", "--quick", "--links", "paced", "--busy")
            assert done.returncode == 0, done.stderr
            cls.models[network] = model
        return cls.models[network]

    def run_plan(self, document, *options):
        p = self.write("plan.json", document)
        return execute("run", self.model(document["model"]), self.cluster, p, "--json", *options)

    def trained(self, document, *options, links="paced", iterations=2):
        done = self.run_plan(document, "--check", "--iterations", iterations, "--links", links, *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual((len(report["losses"]), len(report["iterations"])), (iterations + 1, iterations))
        self.assertLessEqual(report["difference"], TOLERANCE)
        self.assertLessEqual(report["learnt"], 100 * TOLERANCE)  # a missing or doubled gradient differs by more
        return report

    def endless(self, p):
        return [sys.executable, "-B", EXECUTOR, "run", self.model("transformer-small"), self.cluster, p, "--iterations", "100000"]



class learns_what_one_device_would(executor_test):
    def test_on_a_chain_of_stages(self):
        drawn = self.path / "chain.svg"
        report = self.trained(chain("transformer-small", "a", "b", "c"), "--svg", drawn)
        self.assertEqual((report["executor"], report["network"], report["paced"]), ("torch", "transformer-small", True))
        self.assertGreater(report["predicted"], 0)
        self.assertEqual(drawn.read_text().count("<title>"), 2 * 3 * 4 * 2)  # F and B, stages, microbatches, predicted and measured

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "one core")
    def test_with_work_that_is_repeated(self):
        report = self.trained(chain("transformer-tied-small", "a", "c"), "--slow", "repeat")
        self.assertEqual(report["slow"], "repeat")

    def test_on_devices_that_wait_as_many_times_the_processor_time_of_their_work(self):
        trace = self.path / "trace.json"
        report = self.trained(chain("transformer-small", "a", "b", "c"), "--slow", "wait", "--trace", trace)
        self.assertEqual(report["slow"], "wait")
        for task in json.loads(trace.read_text())["tasks"]:
            if task["phase"] != "U":
                begun, ended, worked = task["measured"]
                self.assertGreater(worked, 0)
                self.assertGreaterEqual(ended - begun, 0.999 * {"a": 2, "b": 2, "c": 4}[task["device"]] * worked)

    def test_on_replicated_stages_with_uneven_shares(self):
        layers = LAYERS["transformer-small"]
        self.trained(plan("transformer-small", (layers[:2], {"a": 3, "b": 1}), (layers[2:], {"c": 1, "d": 3})))

    def test_with_a_tensor_tied_across_replicated_stages(self):
        layers = LAYERS["transformer-tied-small"]
        self.trained(plan("transformer-tied-small", (layers[:2], {"a": 3, "b": 1}), (layers[2:4], {"c": 4}), (layers[4:], {"d": 4})))

    def test_with_all_layers_on_all_devices(self):
        self.trained(plan("cnn-small", (LAYERS["cnn-small"], {"a": 3, "b": 2, "c": 1}), size=6, count=2), "--pace", "none")

    def test_on_a_graph_of_stages(self):
        layers = LAYERS["towers-small"]
        self.trained(plan("towers-small", (layers[:3], {"a": 3, "d": 1}), (layers[3:6], {"b": 4}), (layers[6:], {"c": 4})))

    def test_with_stages_of_different_microbatches_and_transfers_in_chunks_by_priority(self):
        document = chain("transformer-small", "a", "b", schedule={"kind": "gpipe"}, network="priority")
        document["stages"][1].update(microbatch_size=4, devices=[{"name": "b", "samples": 4}])
        document["flows"] = [{"from": "a", "to": "b", "microbatch": m, "phase": "forward", "chunk": k, "of": 3, "priority": 4 - m,
                              "release": 0.002 * k} for m in range(4) for k in range(3)]
        self.trained(document)

    def test_with_two_stages_on_one_device_that_share_a_tensor(self):
        layers, both, outer = LAYERS["transformer-tied-small"], ["F0", "F2", "B2", "B0"], ["F0", "B0"]
        for first, last, works in (({"a": 4}, "a", {"a": both}), ({"a": 3, "c": 1}, "c", {"a": outer, "c": both})):
            orders = {d: [[w[0], int(w[1]), m] for m in range(2) for w in work] for d, work in {**works, "b": ["F1", "B1"]}.items()}
            with self.subTest(last=last):
                self.trained(plan("transformer-tied-small", (layers[:2], first), (layers[2:4], {"b": 4}), (layers[4:], {last: 4}), count=2,
                                  schedule={"kind": "explicit", "orders": orders}))

    def test_on_a_device_used_twice_with_passes_of_unequal_size_and_activations_computed_again(self):
        ends = [0, 1, 4, 7, 8]
        orders = {d: [["F", s, m] for s in own for m in range(4)] + [["B", s, m] for s in reversed(own) for m in range(4)]
                  for d, own in (("a", (0, 2)), ("b", (1,)))}
        document = chain("transformer-small", "a", "b", "a", schedule={"kind": "explicit", "orders": orders})
        for s in document["stages"]:
            s.update(cuts={"forward": ends, "backward": ends}, recompute=True)
        self.trained(document)
        document["stages"][1]["recompute"] = False
        self.trained(document, "--slow", "repeat")

    def test_without_activations_between_a_forward_and_the_backward_that_computes_them_again(self):
        network = models.network_named("transformer-small", "")
        kept = {}
        for recompute in (False, True):
            made = []  # what the layers give
            part = stages.StagePart(network, types.SimpleNamespace(batch=4, stages=[documents.Stage("s0", network.order, [], recompute)]), 0, 1)
            for module in part.modules.values():
                module.register_forward_hook(lambda _, __, given, made=made: made.append(weakref.ref(given)))
            part.reset()
            part.forward(0, 4, {}, network.samples(1, 0, 0, 4))
            kept[recompute] = sum(one() is not None for one in made)
        self.assertGreater(kept[False], 0)
        self.assertEqual(kept[True], 0)

    def test_with_gradients_of_weights_apart(self):
        def apart(*stages):
            """Forwards, then gradients of inputs, those of weights last and in the other order."""
            back = [["B", s, m] for m in range(3) for s in reversed(stages)] + [["W", s, m] for m in (2, 0, 1) for s in stages]
            return [["F", s, m] for m in range(3) for s in stages] + back
        tied, cnn = LAYERS["transformer-tied-small"], LAYERS["cnn-small"]
        drawn = self.path / "apart.svg"
        orders = {"a": apart(0, 3), "b": apart(1, 2)}  # a V of stages; the tied tensor is in both ends, on one device
        self.trained(plan("transformer-tied-small", (tied[:1], {"a": 4}), (tied[1:2], {"b": 4}), (tied[2:3], {"b": 4}), (tied[3:], {"a": 4}),
                          schedule={"kind": "explicit", "orders": orders}), "--svg", drawn)
        self.assertIn("gradients of weights", drawn.read_text())
        self.trained(plan("transformer-tied-small", (tied, {"a": 4}), schedule={"kind": "explicit", "orders": {"a": apart(0)}}), "--slow", "repeat")
        # One of two devices in a stage splits its backward passes.
        orders = {"a": apart(0), "b": [t for t in apart(0) if t[0] != "W"], "c": apart(1)}
        self.trained(plan("cnn-small", (cnn[:2], {"a": 3, "b": 1}), (cnn[2:], {"c": 4}), schedule={"kind": "explicit", "orders": orders}))

    def test_gradients_of_inputs_and_of_weights_are_those_of_a_whole_backward(self):
        for name, recompute in itertools.product(LAYERS, (False, True)):
            network = models.network_named(name, "")
            stage = documents.Stage("s0", network.order, [], recompute)
            part = stages.StagePart(network, types.SimpleNamespace(batch=8, stages=[stage]), 0, 1, times=2)
            part.reset()
            for first in (0, 4):
                part.forward(first, first + 4, {}, network.samples(1, 0, first, first + 4))
                part.input_gradients(first, first + 4, {})
            self.assertTrue(all(not g.any() for n in network.order for g in part.gradients(n)))
            for first in (4, 0):
                part.weight_gradients(first, first + 4)
            whole = network.tied_modules(network.order, 1)
            (network.forward(whole, {}, network.samples(1, 0, 0, 8))[network.loss].sum() / 8).backward()
            sums = {}
            for p in (p for m in whole.values() for p in m.parameters()):
                sums[p.data_ptr()] = sums.get(p.data_ptr(), 0) + p.grad
            for n in network.order:
                for got, p in zip(part.gradients(n), whole[n].parameters()):
                    expected = sums[p.data_ptr()]
                    self.assertLess((got - expected).abs().max(), 1e-5 * expected.abs().max(), f"{name}: {n}")

    def test_on_shaped_wires_between_namespaces(self):
        nominal = documents.Program(None).cluster(str(self.cluster))
        why = netns.why_not(nominal)
        if why:
            self.skipTest(why)
        layers = LAYERS["transformer-small"]
        report = self.trained(plan("transformer-small", (layers[:2], {"a": 3, "b": 1}), (layers[2:], {"c": 4})), links="namespaces")
        self.assertEqual(report["links"], "namespaces")

    def test_on_a_ring_of_wires_where_flows_are_relayed(self):
        ring = self.write("ring.json", {**CLUSTER, "topology": {**CLUSTER["topology"], "kind": "ring"}})
        self.trained(chain("transformer-small", "a", "c", "b"), "--nominal", ring, links="auto")


class goes_on_when(executor_test):
    def test_any_worker_of_a_chain_is_killed(self):
        document = chain("transformer-small", "a", "b", "c")
        losses = self.trained(document)["losses"]
        for lost in "abc":
            with self.subTest(lost=lost):
                report = self.trained(document, "--kill", f"{lost}@2")
                self.assertEqual([r["lost"] for r in report["recoveries"]], [[lost]])
                self.assertEqual(report["recoveries"][0]["iteration"], 2)
                for a, b in zip(report["losses"], losses):
                    self.assertAlmostEqual(a, b, delta=TOLERANCE * b)

    def test_a_worker_of_a_graph_of_stages_is_killed(self):
        layers = LAYERS["towers-small"]
        document = plan("towers-small", (layers[:3], {"a": 4}), (layers[3:6], {"b": 4}), (layers[6:], {"c": 4}))
        report = self.trained(document, "--kill", "b@1", "--kill", "a@2")
        self.assertEqual([r["lost"] for r in report["recoveries"]], [["b"], ["a"]])

    def test_a_worker_is_killed_whose_plan_runs_gradients_of_weights_apart(self):
        orders = {d: [[what, s, m] for what in "FBW" for m in range(4)] for s, d in enumerate("abc")}
        report = self.trained(chain("transformer-small", "a", "b", "c", schedule={"kind": "explicit", "orders": orders}), "--kill", "b@1")
        self.assertEqual([r["lost"] for r in report["recoveries"]], [["b"]])

    def test_two_workers_of_replicated_stages_are_killed_at_once(self):
        layers = LAYERS["transformer-small"]
        document = plan("transformer-small", (layers[:2], {"a": 3, "b": 1}), (layers[2:], {"c": 1, "d": 3}))
        report = self.trained(document, "--kill", "b@1", "--kill", "c@1")
        self.assertEqual({d for r in report["recoveries"] for d in r["lost"]}, {"b", "c"})

    def test_nothing_gets_through_for_a_while(self):
        for kind in ("paced", "auto"):
            with self.subTest(links=kind):
                report = self.trained(chain("transformer-small", "a", "b"), "--cut", "1.5@1", links=kind)
                self.assertGreater(report["iterations"][0], 1.0)

    def test_a_worker_falls_silent_and_is_probed(self):
        p = self.write("plan.json", chain("transformer-small", "a", "b"))
        with subprocess.Popen(self.endless(p), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            self.assertTrue(comes_true(lambda: len(children(process.pid)) == 2))
            workers = children(process.pid)
            time.sleep(0.5)
            os.kill(workers[1], signal.SIGSTOP)
            self.assertIn("lost b", process.stderr.readline())
            self.assertIn("goes on with a", process.stderr.readline())
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(20), 128 + signal.SIGTERM)
            self.assertTrue(comes_true(lambda: not any(map(is_alive, workers))))
            process.communicate()

    def test_but_not_without_anybody(self):
        done = self.run_plan(plan("transformer-small", (LAYERS["transformer-small"], {"a": 4})), "--kill", "a@1")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("nobody is left after a", done.stderr)

    def test_and_not_for_ever(self):
        done = self.run_plan(chain("transformer-small", "a", "b"), "--cut", "50@1", "--timeout", "1", "--links", "paced")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("waited 1 s", done.stderr)


class leaves_nothing_behind(executor_test):
    def test_however_it_ends(self):
        p = self.write("plan.json", chain("transformer-small", "a", "b", "c"))
        for number in (signal.SIGKILL, signal.SIGINT):
            with self.subTest(signal=number), subprocess.Popen(self.endless(p), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
                self.assertTrue(comes_true(lambda: len(children(process.pid)) == 3))
                workers, home = children(process.pid), os.readlink("/proc/self/ns/net")
                time.sleep(0.5)
                held = {os.readlink(f"/proc/{w}/ns/net") for w in workers} - {home}
                process.send_signal(number)
                process.wait(20)
                self.assertTrue(comes_true(lambda: not any(map(is_alive, workers))), "a worker is left")
                self.assertTrue(comes_true(lambda: not held & namespaces_in_use()), "a namespace is left")
                self.assertNotIn(f"hp{process.pid % 100000}x", " ".join(os.listdir("/sys/class/net")))


    def test_while_torch_is_loaded(self):
        p = self.write("plan.json", chain("transformer-small", "a", "b"))
        with subprocess.Popen(self.endless(p), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            self.assertTrue(comes_true(lambda: "libtorch" in pathlib.Path(f"/proc/{process.pid}/maps").read_text()))
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.communicate(timeout=20)[1], "")
            self.assertIn(process.returncode, (-signal.SIGINT, 128 + signal.SIGINT))  # the latter once torch was loaded


class refuses(executor_test):
    """Before any worker is started, so that this process can be the program."""

    def refused(self, *words, given):
        with contextlib.redirect_stderr(io.StringIO()) as told:
            status = executor.main([str(a) for a in given])
        self.assertEqual((status, told.getvalue().count("\n")), (2, 1), told.getvalue())
        for w in words:
            self.assertIn(w, told.getvalue())

    def refused_plan(self, document, *words, options=()):
        self.refused(*words, given=["run", self.model(document["model"]), self.cluster, self.write("plan.json", document), *options])

    def test_a_corrupted_plan(self):
        document = json.dumps(chain("transformer-small", "a", "b"))
        p = self.write("broken.json", document[:len(document) // 2])
        self.refused("broken.json", "syntax error", given=["run", self.model("transformer-small"), self.cluster, p])

    def test_a_device_that_is_not_there(self):
        self.refused_plan(chain("transformer-small", "a", "x"), "plan.json", '"x"')
        less = self.write("less.json", {**CLUSTER, "devices": CLUSTER["devices"][:1]})
        self.refused_plan(chain("transformer-small", "a", "b"), "less.json", '"b"', options=["--nominal", less])

    def test_corrupted_tasks(self):
        model = self.model("transformer-small")
        p = self.write("good.json", chain("transformer-small", "a", "b"))
        made = subprocess.run([os.environ["HETPLAN_CLI"], "export", model, self.cluster, p, "--to", "tasks"], capture_output=True, text=True)
        good = json.loads(made.stdout)
        documents.read_tasks(documents.Reader("good", good))
        wrongs = [("tasks/0/phase", "X"), ("tasks/3/device", "x"), ("tasks/3/seconds", -1), ("tasks/2/samples", [3, 3]),
                  ("devices/0/order", [0, 1]), ("devices/0/order/0", 999), ("transfers/0/producer", 10 ** 6), ("transfers/0/bytes", "many"),
                  ("stages/0/devices/0/tensor_parallel", 2), ("stages/0/recompute", "yes"), ("mode", "inference"), ("network", "exclusive"), ("parameter_server", "a"),
                  ("format", "hetplan/tasks/2"), ("routes", [])]
        for place, value in wrongs:
            with self.subTest(place=place):
                bad = json.loads(made.stdout)
                *way, last = [int(k) if k.isdigit() else k for k in place.split("/")]
                at = bad
                for k in way:
                    at = at[k]
                at[last] = value
                with self.assertRaises(documents.BadInput) as caught:
                    documents.read_tasks(documents.Reader("bad", bad))
                self.assertIn("bad: /", str(caught.exception))

    def test_links_that_are_not_there(self):
        air = {"resources": [{"name": "air", "capacity": 1e7}], "routes": [{"from": "a", "to": "b", "via": [{"resource": "air"}]}]}
        one_way = self.write("one_way.json", {**{k: v for k, v in CLUSTER.items() if k != "topology"}, **air})
        self.refused_plan(chain("transformer-small", "a", "b"), "one_way.json", 'no route from "b" to "a"', options=["--nominal", one_way])

    def test_places_that_cannot_be_written_before_any_work(self):
        nowhere = self.path / "nowhere" / "file"
        self.refused_plan(chain("transformer-small", "a", "b"), str(nowhere), options=["--trace", nowhere])
        for out in ((nowhere, self.path / "c"), (self.path / "m", nowhere)):
            self.refused(str(nowhere), given=["profile", "cnn-small", self.cluster, "--out-model", out[0], "--out-cluster", out[1]])

    def test_a_full_standard_output(self):
        p = self.write("plan.json", chain("transformer-small", "a", "b"))
        with open("/dev/full", "w") as full:
            done = subprocess.run([sys.executable, "-B", EXECUTOR, "run", self.model("transformer-small"), self.cluster, p, "--iterations", "1"],
                                  stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (2, "standard output: cannot be written: No space left on device\n"))

    def test_waits_without_end(self):
        for option in (("--timeout", "nan"), ("--timeout", "0"), ("--cut", "nan@1"), ("--cut", "long@1")):
            with contextlib.redirect_stderr(io.StringIO()) as told, self.assertRaisesRegex(SystemExit, "2"):
                executor.main(["run", "m", "c", "p", *option])
            self.assertIn("expected a number of seconds > 0", told.getvalue())

    def test_another_model_under_the_same_name(self):
        document = json.loads(self.model("transformer-small").read_text())
        document["layers"][2]["weight"] = 4
        other = self.write("other.json", document)
        p = self.write("plan.json", chain("transformer-small", "a", "b"))
        self.refused("other.json", '"block1"', "weight", given=["run", other, self.cluster, p])

    def test_more_devices_than_cores(self):
        fast = [{**d, "kind": "core"} for d in CLUSTER["devices"]] * (1 + os.cpu_count() // 4)
        cluster = self.write("fast.json", {**CLUSTER, "devices": [{**d, "name": f"d{i}"} for i, d in enumerate(fast)]})
        model = json.loads(self.model("transformer-small").read_text())
        for layer in model["layers"]:
            layer["profile"]["core"] = layer["profile"]["core/2"]
        p = self.write("plan.json", plan("transformer-small", (LAYERS["transformer-small"], {f"d{i}": 1 for i in range(len(fast))}), size=len(fast)))
        if len(fast) > len(os.sched_getaffinity(0)):
            self.refused("cores", given=["run", self.write("m.json", model), cluster, p])

    def test_to_start_without_torch(self):
        done = execute("run", "m", "c", "p", python=(sys.executable, "-I", "-S"))  # no package folders
        self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
        self.assertIn("has no torch", done.stderr)


class touched:
    """What pickle runs when it reads this: it makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


class links_between_workers(unittest.TestCase):
    """Who may speak to a worker, and what comes of the rest. Sockets of the local machine, no processes."""

    def setUp(self):
        self.secret = greeting.new_key()
        self.a, self.b = (self.links(d, self.secret) for d in "ab")

    def links(self, device, secret):
        made = links.Links(device, secret, None, {}, lambda pair: 1000)
        self.addCleanup(made.listener.close)
        return made

    def meet(self, sender):
        sender.meet({"b": self.b.listener.getsockname()})

    def test_what_is_sent_arrives_whole_under_its_key(self):
        self.meet(self.a)
        numbers = numpy.arange(5000, dtype=numpy.float32)
        for key in ((0, "task", 3, 17), (0, "layer", "l1.\u00fc"), (0, "empty")):
            data = numbers if key[1] != "empty" else numbers[:0]
            self.a.send("b", key, data)
            self.assertTrue(numpy.array_equal(self.b.take(key, 10), data))

    def test_links_listen_to_this_machine_alone_unless_told_otherwise(self):
        self.assertEqual(self.a.listener.getsockname()[0], "127.0.0.1")

    def test_a_stranger_is_hung_up_on_and_what_it_sends_is_not_looked_at(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "made")
            text = pickle.dumps(touched(path))
            header = links.HEADER.pack(0, 1, 0, len(text))
            for opening in (b"", bytes(greeting.NONCE_BYTES + greeting.PROOF_BYTES)):  # no greeting, or an invalid proof
                with socket.create_connection(self.b.listener.getsockname(), timeout=10) as stranger:
                    with contextlib.suppress(OSError):
                        stranger.sendall(opening + header + text + bytes(64))
                    self.assert_hung_up(stranger)
            self.assertFalse(os.path.exists(path))
        self.test_what_is_sent_arrives_whole_under_its_key()

    def assert_hung_up(self, connection):
        with contextlib.suppress(ConnectionError):
            while connection.recv(4096):
                pass

    def test_a_worker_of_another_run_is_refused_and_nothing_is_sent_to_one(self):
        other = self.links("c", greeting.new_key())
        self.meet(other)
        with self.assertRaises(greeting.Stranger):
            other.connect("b")
        # A listener without the key learns nothing: the connecting end's proof is invalid for the accepting end.
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.a.meet({"b": listener.getsockname()})
            self.a.send("b", (0, "secret"), numpy.ones(100, numpy.float32))
            with listener.accept()[0] as accepted:
                accepted.sendall(bytes(greeting.NONCE_BYTES))
                answer = greeting.receive(accepted, greeting.NONCE_BYTES + greeting.PROOF_BYTES, time.monotonic() + 10)
                accepted.sendall(answer[greeting.NONCE_BYTES:])
                self.assertEqual(accepted.recv(1), b"")

    def test_a_greeting_has_one_deadline_however_slowly_the_other_end_speaks(self):
        for speak, size in ((greeting.admit, greeting.NONCE_BYTES + greeting.PROOF_BYTES), (greeting.greet, greeting.NONCE_BYTES)):
            ours, theirs = socket.socketpair()
            with ours, theirs, mock.patch.object(greeting, "GREETING_SECONDS", 0.2):
                said = []

                def dribble():
                    with contextlib.suppress(OSError):
                        for _ in range(size):
                            theirs.sendall(b"x")
                            said.append(b"x")
                            time.sleep(0.05)  # shorter than the deadline

                peer = threading.Thread(target=dribble)
                peer.start()
                with self.assertRaises(TimeoutError):
                    speak(ours, self.secret)
                self.assertLess(len(said), size)
                ours.close()
                peer.join(10)

    def test_greetings_under_way_are_bounded_and_the_oldest_ends_for_a_new_one(self):
        with contextlib.ExitStack() as stack:
            stack.enter_context(mock.patch.object(links, "MOST_GREETINGS", 4))
            silent = []
            for n in range(9):
                silent.append(stack.enter_context(socket.create_connection(self.b.listener.getsockname(), timeout=10)))
                silent[-1].recv(greeting.NONCE_BYTES, socket.MSG_WAITALL)  # accepted in this order
                self.assertLessEqual(len(self.b.greeting), 4)
            for stranger in silent[:5]:
                self.assert_hung_up(stranger)
            for stranger in silent[5:]:
                stranger.setblocking(False)
                with self.assertRaises(BlockingIOError):
                    stranger.recv(1)
            self.test_what_is_sent_arrives_whole_under_its_key()

    class scripted_listener:
        """Accepts what it is told to, then is closed."""

        def __init__(self, *accepted):
            self.accepted = list(accepted)

        def accept(self):
            if not self.accepted:
                raise OSError(errno.EBADF, "closed")
            answer = self.accepted.pop(0)
            if isinstance(answer, OSError):
                raise answer
            return answer, None

        def fileno(self):
            return 3 if self.accepted else -1

    def links_that_accept(self, *accepted):
        """Without a thread of their own: the test calls _accept."""
        with mock.patch.object(links.threading.Thread, "start"):
            made = self.links("c", self.secret)
        made.listener.close()
        made.listener = self.scripted_listener(*accepted)
        return made

    def test_a_process_without_descriptors_waits_before_it_accepts_again_and_ends_the_oldest_greeting(self):
        ours, theirs = socket.socketpair()
        theirs.settimeout(10)
        errors = [errno.EMFILE, errno.ECONNABORTED, errno.ENFILE]
        made = self.links_that_accept(*(OSError(e, "accept") for e in errors), OSError(errno.EBADF, "closed"))
        made.greeting.append(ours)
        with ours, theirs, mock.patch.object(links.time, "sleep") as sleep:
            made._accept()
            self.assertEqual(sleep.mock_calls, [mock.call(links.EXHAUSTED_SECONDS)] * 2)
            self.assertEqual(theirs.recv(1), b"")
            self.assertEqual(made.greeting, [])

    def test_a_connection_for_which_there_is_no_thread_is_closed_and_the_next_is_accepted(self):
        pairs = [socket.socketpair() for _ in range(2)]
        pairs[0][1].settimeout(10)
        made = self.links_that_accept(*(ours for ours, _ in pairs))
        with mock.patch.object(links.threading.Thread, "start", side_effect=[RuntimeError("can't start new thread"), None]) as start, \
                mock.patch.object(socket.socket, "setsockopt"):
            made._accept()
        self.assertEqual(start.call_count, 2)
        self.assertEqual(pairs[0][1].recv(1), b"")
        self.assertEqual(made.greeting, [pairs[1][0]])
        for ours, theirs in pairs:
            ours.close()
            theirs.close()

    def test_messages_that_no_worker_sends_end_the_connection_before_memory_is_taken(self):
        key = links.key_text((0, "k"))
        for message in (links.HEADER.pack(0, 1, 1 << 63, len(key)) + key, links.HEADER.pack(0, 1, 8, 1 << 31),
                        links.HEADER.pack(0, 1, 8, len(key)) + key + links.HEADER.pack(1, 1, 4, 8) + bytes(8),
                        links.HEADER.pack(1, 9, 1 << 62, (1 << 32) - 1), links.HEADER.pack(2, 1, 8, 8),
                        *(links.HEADER.pack(0, 1, 8, len(bad)) + bad for bad in (
                            b"\x80\x04.", b"{}", b"[]", b'["epoch"]', b"[0, [1]]", b"[true]", b"[1.5]", b"[" * 4000, pickle.dumps((0,))))):
            with self.subTest(message=message[:40]):
                self.meet(self.a)
                connection = self.a.connect("b")
                connection.settimeout(10)
                with connection:
                    connection.sendall(message)
                    self.assert_hung_up(connection)
        self.assertEqual(self.b.arrived, {})

    def test_no_source_of_the_links_knows_pickle(self):
        for source in ("links.py", "greeting.py", "fabrics.py", "netns.py", "pacing.py"):
            self.assertNotIn("pickle", (SOURCE / "examples/executors/torch" / source).read_text())


class parts(unittest.TestCase):
    def test_a_worker_that_no_longer_reads_is_lost_and_holds_up_nobody(self):
        workers = fleet.Fleet()
        with mock.patch.multiple(fleet, SILENCE_SECONDS=0.2, PROBE_SECONDS=0.2):
            workers.start("a", lambda control, parent: time.sleep(60))
            try:
                workers.tell(["a"], "adopt", bytes(1 << 24))
                with self.assertRaises(fleet.Lost):
                    workers.collect("adopted", 1, ["a"], 10)
            finally:
                workers.stop()

    def test_what_all_have_adopted_can_be_handed_out_even_if_the_next_iteration_is_called_off(self):
        class called_off:
            called_off = 1

        held = worker.Worker("a", worker.Settings(None, 1, {}, 1.0), called_off, None)
        held.parts = {0: "adopted"}
        with self.assertRaises(links.Aborted):
            held.prepare(1, 3)
        self.assertEqual(held.store.settled, {0: "adopted"})

    def test_how_slow_a_kind_is(self):
        self.assertEqual([documents.slowness(kind, "a") for kind in ("core", "core/1", "core/2.5")], [1, 1, 2.5])
        for kind in ("phone", "core/", "core/0.5", "core/nan", "core/inf", "core/-2"):
            with self.subTest(kind=kind), self.assertRaises(documents.BadInput):
                documents.slowness(kind, "a")

    def test_slower_devices_repeat_where_each_has_a_core_and_wait_elsewhere(self):
        kinds, odd = {"a": "core", "b": "core/4"}, {"a": "core", "b": "core/2.5"}
        for asked, devices, cores, expected in ((None, kinds, 2, "repeat"), (None, kinds, 1, "wait"), (None, odd, 2, "wait"),
                                                ("repeat", kinds, 1, "repeat"), ("wait", kinds, 2, "wait")):
            self.assertEqual(documents.paces(asked, devices, cores)[0], expected)
        self.assertEqual(documents.paces(None, kinds, 2)[1]["b"], documents.Pace(times=4))
        self.assertEqual(documents.paces("wait", odd, 2)[1]["b"], documents.Pace(wait=2.5))
        with self.assertRaisesRegex(documents.BadInput, 'device "b": expected a whole number'):
            documents.paces("repeat", odd, 2)

    def test_chunks_cover_what_is_sent(self):
        chunks = [documents.Chunk(10.0, 0.5 * k, k) for k in range(3)]
        self.assertEqual(links.pieces_of(chunks, 90, 1.0), [links.Piece(30, 1.0, 0), links.Piece(60, 1.5, 1), links.Piece(90, 2.0, 2)])
        # The middle third, one round of a ring, has the middle chunk's rule. A part across two chunks has both rules.
        self.assertEqual(links.pieces_of(chunks, 30, 1.0, 1 / 3, 2 / 3), [links.Piece(30, 1.5, 1)])
        self.assertEqual(links.pieces_of(chunks, 45, 1.0, 0.5, 1.0), [links.Piece(15, 1.5, 1), links.Piece(45, 2.0, 2)])
        self.assertEqual(links.pieces_of([documents.Chunk(0.0, 0.0, 0)], 0, 1.0), [links.Piece(0, 1.0, 0)])

    def test_flows_over_one_resource_alternate_and_a_more_urgent_one_goes_first(self):
        routes = {("a", "c"): documents.Route(0.0, (("air", 1.0),)), ("b", "c"): documents.Route(0.0, (("air", 2.0),))}
        medium = pacing.Medium(documents.Cluster({}, dict.fromkeys("abc", "core"), {"air": 1e6}, routes), True)
        start = time.monotonic() + 100
        ends = [medium.reserve(pair, 1000, start) - start for pair in [("a", "c"), ("b", "c"), ("a", "c")]]
        for end, expected in zip(ends, [0.001, 0.003, 0.004]):  # b uses the air twice
            self.assertAlmostEqual(end, expected, places=6)
        medium.announce("a", 1, ("a", "c"), 0)
        self.assertIsNone(medium.reserve(("b", "c"), 1000, start, 1))
        self.assertIsNotNone(medium.reserve(("b", "c"), 1000, start, 0))
        medium.forget("a")
        self.assertIsNotNone(medium.reserve(("b", "c"), 1000, start, 1))
        medium.close()

    def test_a_picture_has_two_bars_for_every_task_to_scale(self):
        task = {"device": "a & b", "stage": 0, "microbatch": 0, "measured": [0.0, 0.5, 0.4], "predicted": [0.0, 0.25]}
        trace = [{**task, "phase": "F"}, {**task, "phase": "B", "measured": [0.5, 1.0, 0.5]}, {**task, "phase": "U"}]
        bars = [e for e in ElementTree.fromstring(picture.svg("one < two", trace)).iter() if any("title" in child.tag for child in e)]
        wide = (picture.WIDTH - picture.NAMES - picture.MARGIN) / 2  # half of one second
        self.assertEqual(len(bars), 4)
        for bar, expected in zip(bars, [wide / 2, wide / 2, wide, wide]):
            self.assertAlmostEqual(float(bar.get("width")), expected, delta=0.1)

    def test_a_stage_on_one_device_is_kept_by_the_next_and_the_last_by_the_first(self):
        class network:
            order = ["l0", "l1", "l2"]
            layers = {n: type("layer", (), {"inputs": i})() for n, i in (("l0", ()), ("l1", ("l0",)), ("l2", ("l1",)))}

        stages = [documents.Stage("s0", ["l0"], ["a"]), documents.Stage("s1", ["l1"], ["b", "c"]), documents.Stage("s2", ["l2"], ["d"])]
        graph = type("graph", (), {"stages": stages})()
        self.assertEqual(recovery.keepers(graph, network), {0: "b", 2: "a"})
        graph.stages = [documents.Stage("s0", ["l0", "l1", "l2"], ["a"])]
        self.assertEqual(recovery.keepers(graph, network), {})


if __name__ == "__main__":
    unittest.main()
