# SPDX-License-Identifier: BSL-1.0
"""ONNX files through the program: in as models, out as a file for each device; and every way in which a file can be bad."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import toy_problem

# Encoders of the protobuf fields that the tests need: a number or text after its key.
def number(field, value):
    text, value = bytes(), value % 2**64
    while value > 127:
        text, value = text + bytes([value % 128 + 128]), value // 128
    return bytes([field * 8]) + text + bytes([value])


def text(field, value):
    value = value.encode() if isinstance(value, str) else value
    return bytes([field * 8 + 2]) + number(0, len(value))[1:] + value


def shape(name, *dims):
    axes = b"".join(text(1, text(2, d) if isinstance(d, str) else number(1, d)) for d in dims)
    return text(1, name) + text(2, text(1, number(1, 1) + text(2, axes)))


def weight(name, *dims, beside=None):
    size = 4
    for d in dims:
        size *= d
    data = text(9, bytes(size)) if beside is None else text(13, text(1, "location") + text(2, beside)) + number(14, 1)
    return text(5, b"".join(number(1, d) for d in dims) + number(2, 1) + text(8, name) + data)


def node(kind, inputs, output):
    return text(1, b"".join(text(1, i) for i in inputs) + text(2, output) + text(4, kind))


def graph_of(*parts, inputs=(), outputs=()):
    return b"".join(parts) + text(2, "g") + b"".join(text(11, i) for i in inputs) + b"".join(text(12, o) for o in outputs)


def choice(condition, output, **branches):
    """If with the graphs of its branches."""
    attributes = b"".join(text(5, text(1, f"{name}_branch") + text(6, graph) + bytes([160, 1, 5]))
                          for name, graph in branches.items())
    return text(1, text(1, condition) + text(2, output) + text(4, "If") + attributes)


def model(*parts, inputs=(), outputs=()):
    graph = graph_of(*parts, inputs=inputs, outputs=outputs)
    return number(1, 7) + text(7, graph) + text(8, text(1, "") + number(2, 13))


def chain(rows="n", last="MatMul", **how):
    """Four products of 4 x 4, each with 64 bytes of weights, and what adds its first and last results."""
    return model(*(weight(f"w{i}", 4, 4, **how) for i in range(4)), node("MatMul", ["x", "w0"], "t0"), node("MatMul", ["t0", "w1"], "t1"),
                 node("MatMul", ["t1", "w2"], "t2"), node(last, ["t2", "w3"], "t3"), node("Add", ["t0", "t3"], "y"),
                 inputs=[shape("x", rows, 4)], outputs=[shape("y", rows, 4)])


def cluster(*memory):
    devices = [{"name": f"board {i}", "kind": "board", "memory": m, "compute": "1 GFLOP/s"} for i, m in enumerate(memory)]
    wires = {"topology": {"kind": "mesh", "capacity": "10 Gbit/s"}} if len(devices) > 1 else {}
    return json.dumps({"format": "hetplan/cluster/1", "name": "boards", "devices": devices, **wires})


class imports(toy_problem.folder_test):
    def test_a_model(self):
        self.write("m.onnx", chain())
        printed = self.done("import", "onnx", "m.onnx", "--dim", "n=3", "--out", "m.json")
        self.assertEqual(printed, "0 operators compute constants or shapes and are no layers\n"
                                  "m: 5 layers, 5 edges, 6.4e-05 M parameters, 3.96e-07 GFLOP\n")
        layers = self.read("m.json")["layers"]
        self.assertEqual([x["kind"] for x in layers], ["MatMul"] * 4 + ["Add"])
        self.assertEqual(layers[0]["forward_flops"], 2 * 3 * 4 * 4)
        result = self.run_it("import", "onnx", "m.onnx")
        self.assertEqual(result.stderr, 'hetplan: warning: m.onnx: axis "n" of the inputs is 1\n')
        self.assertEqual(json.loads(result.stdout)["layers"][0]["forward_flops"], 2 * 4 * 4)

    def test_sizes_of_axes(self):
        self.write("m.onnx", chain())
        self.assertIn("--dim: expected NAME=SIZE", self.refused("import", "onnx", "m.onnx", "--dim", "n"))
        self.assertIn("--dim: expected NAME=SIZE", self.refused("import", "onnx", "m.onnx", "--dim", "n=0"))
        self.assertIn('--dim: "n" twice', self.refused("import", "onnx", "m.onnx", "--dim", "n=2,n=3"))
        self.assertIn('m.onnx: no dynamic axis of an input is called "k"', self.refused("import", "onnx", "m.onnx", "--dim", "k=2"))
        self.assertIn('m.onnx: axis "x[1]" is 4 in the file', self.refused("import", "onnx", "m.onnx", "--dim", "x[1]=2"))
        two = model(node("Add", ["x", "z"], "y"), inputs=[shape("x", "b", "s"), shape("z", "s")])
        self.write("two.onnx", two)
        self.assertEqual(json.loads(self.done("import", "onnx", "two.onnx", "--dim", "b=3,s=5"))["layers"][0]["forward_flops"], 15)

    def test_tokens_of_a_sample(self):
        self.write("m.onnx", model(node("Relu", ["x"], "y"), inputs=[shape("x", 1, "seq_len")]))
        self.write("c.json", cluster(1000, 1000))
        self.write("j.json", json.dumps({"format": "hetplan/job/1", "mode": "generation", "batch": 1}))
        given = ("import", "onnx", "m.onnx", "--dim", "seq_len=8", "--out", "m.json")
        self.assertEqual(self.run_it(*given).stderr, 'hetplan: warning: m.onnx: axis "seq_len" is 8, yet a sample counts as one token: '
                                                            '--tokens-per-sample says how many it has\n')
        self.assertNotIn("tokens_per_sample", self.read("m.json"))
        self.done("plan", "m.json", "c.json", "--planner", "heft", "--out", "p.json")
        self.done(*given, "--tokens-per-sample", 8)
        self.assertEqual(self.read("m.json")["tokens_per_sample"], 8)
        self.done("plan", "m.json", "c.json", "j.json")  # a prompt of 8 tokens, then steps
        self.done("export", "m.json", "c.json", "p.json", "--to", "onnx", "--source", "m.onnx", "--dim", "seq_len=8", "--out", "part")
        self.assertIn("--tokens-per-sample", self.refused(*given, "--tokens-per-sample", 0))

    def test_what_is_not_known_is_told(self):
        self.write("m.onnx", chain(last="Newest"))
        result = self.run_it("import", "onnx", "m.onnx", "--dim", "n=3", "--out", "m.json")
        self.assertEqual(result.returncode, 0)
        self.assertIn("operators of type Newest compute nothing that counts", result.stderr)
        self.assertIn('shapes are not known, and count as one element, of tensors "t3"', result.stderr)

    def test_a_branch_is_chosen(self):
        self.write("m.onnx", model(choice("c", "y", then=graph_of(node("Relu", ["x"], "z"), outputs=[shape("z", 4)]),
                                          **{"else": graph_of(node("Sigmoid", ["x"], "z"), outputs=[shape("z", 4)])}),
                                   inputs=[shape("x", 4), shape("c")], outputs=[shape("y", 4)]))
        kinds = lambda *options: [x["kind"] for x in json.loads(self.done("import", "onnx", "m.onnx", *options, warned=1))["layers"]]
        self.assertEqual(kinds(), ["Sigmoid"])
        self.assertEqual(kinds("--if", "then"), ["Relu"])
        self.assertEqual(kinds("--if", "y=then"), ["Relu"])
        self.assertIn("m.onnx: operator If \"y\": which branch it takes is known when it runs; else_branch counts, with 16 FLOP, not then_branch with 4",
                      self.run_it("import", "onnx", "m.onnx").stderr)
        self.assertIn("--if: expected then, else, NAME=then or NAME=else, got \"first\"", self.refused("import", "onnx", "m.onnx", "--if", "first"))
        self.assertIn("--if: \"y\" twice", self.refused("import", "onnx", "m.onnx", "--if", "y=then,y=else"))
        self.assertIn("no operator If is called \"z\"", self.refused("import", "onnx", "m.onnx", "--if", "z=then"))
        self.write("c.json", cluster(1000, 1000))
        self.done("import", "onnx", "m.onnx", "--if", "then", "--out", "m.json", warned=1)
        self.done("plan", "m.json", "c.json", "--planner", "heft", "--out", "p.json")
        export = ("export", "m.json", "c.json", "p.json", "--to", "onnx", "--source", "m.onnx", "--out", "part")
        self.assertIn("is not what model \"m\" was imported from", self.refused(*export))
        self.assertIn("part.0", self.done(*export, "--if", "then"))

    def test_a_raw_file_is_to_be_imported_first(self):
        self.write("m.onnx", chain(rows=3))
        self.write("renamed.json", chain(rows=3))
        self.write("odd.onnx", text(1, "no model at all"))
        self.write("c.json", cluster(1000, 1000))
        for name in ("m.onnx", "renamed.json", "odd.onnx"):
            for command in (("plan", name, "c.json"), ("compare", name, "c.json"), ("simulate", name, "c.json", "p.json"), ("show", name),
                            ("adapt", name, "c.json", "j.json", "t.json"), ("export", name, "c.json", "p.json", "--to", "placement"),
                            ("replay", name, "c.json", "p.json", "--lost", "board 0")):
                self.assertIn(f'{name}: expected a hetplan model, got an ONNX file; "hetplan import onnx {name} --out MODEL.json" makes one of it',
                              self.refused(*command))
        self.done("import", "onnx", "m.onnx", "--out", "m.json")
        (self.path / "m.json").rename(self.path / "in.onnx")
        self.done("show", "in.onnx")  # a model under another name

    def test_bad_files_are_one_line_and_leave_nothing(self):
        out = ("--out", "m.json")
        whole = chain()
        for name, content, what in (
                ("short.onnx", whole[:100], "expected an ONNX model, got something else, or one that is cut short"),
                ("empty.onnx", b"", "expected an ONNX model, got nothing"),
                ("picture.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(64), "expected an ONNX model, got something else"),
                ("m.json", '{"format": "hetplan/model/1"}', "expected an ONNX model, got something else"),
                ("cycle.onnx", model(node("Add", ["x", "b"], "a"), node("Relu", ["a"], "b"), inputs=[shape("x", 4)]), "expected no cycle"),
                ("shapeless.onnx", model(node("Relu", ["x"], "y"), inputs=[text(1, "x") + text(2, text(1, number(1, 1)))]),
                 'input "x" has no shape'),
                ("dynamic.onnx", model(node("Relu", ["x"], "y"), inputs=[shape("x", 2, "rows")]),
                 'expected a size for each dynamic axis, got none for "rows" of input "x"'),
                ("nobody.onnx", model(node("Relu", ["z"], "y"), inputs=[shape("x", 2)]), 'operator Relu "y" reads tensor "z", which nobody makes')):
            self.write(name, content)
            self.assertIn(f"{name}: {what}", self.refused("import", "onnx", name, "--out", "new.json"))
        (self.path / "folder").mkdir()
        self.assertIn("folder: expected a file, got a folder", self.refused("import", "onnx", "folder", *out))
        self.assertIn("nowhere.onnx: cannot read", self.refused("import", "onnx", "nowhere.onnx", *out))
        with open(self.path / "large.onnx", "wb") as file:
            file.truncate(3_000_000_000)  # a sparse file that takes no space
        self.assertIn("large.onnx: expected at most 2147 MB, got more", self.refused("import", "onnx", "large.onnx", *out))

    def test_weights_may_be_larger_than_any_json_file(self):
        self.write("m.onnx", model(weight("w", 4, 5_000_000), node("MatMul", ["x", "w"], "y"), inputs=[shape("x", 1, 4)]))
        self.assertIn("20 M parameters", self.done("import", "onnx", "m.onnx", "--out", "m.json"))


class plans(toy_problem.folder_test):
    def import_chain(self, **how):
        self.write("m.onnx", chain(rows=3, **how))
        self.done("import", "onnx", "m.onnx", "--out", "m.json")

    def test_memory_is_too_small_by_one_byte(self):
        self.import_chain()
        self.write("job.json", json.dumps({"format": "hetplan/job/1", "mode": "inference", "batch": 1}))
        for planner in ("heft", "moirai", "pipeline"):
            self.write("c.json", cluster(256))
            self.done("plan", "m.json", "c.json", "job.json", "--planner", planner)
            self.write("c.json", cluster(255))
            result = self.run_it("plan", "m.json", "c.json", "job.json", "--planner", planner, "--out", "p.json")
            self.assertEqual(result.returncode, 1)
            self.assertRegex(result.stdout, "^infeasible: .*memory")
            self.assertFalse((self.path / "p.json").exists())

    def test_no_devices(self):
        self.import_chain()
        self.write("c.json", '{"format": "hetplan/cluster/1", "name": "none", "devices": []}')
        self.assertIn("c.json: /devices", self.refused("plan", "m.json", "c.json", "--planner", "heft", "--out", "p.json"))

    def cut(self, planner, *options, **how):
        self.import_chain(**how)
        self.write("c.json", cluster(150, 150))
        self.done("plan", "m.json", "c.json", "--planner", planner, "--out", "p.json", *options)
        return ("export", "m.json", "c.json", "p.json", *options)

    def test_parts_placement_and_a_picture(self):
        for options in ((), ("--fuse", "tensorrt")):
            export = self.cut("heft", *options)
            placement = json.loads(self.done(*export, "--to", "placement"))
            self.assertEqual(set(placement["placement"].values()), {"board 0", "board 1"})
            dot = self.done(*export, "--to", "dot")
            fills = {name: re.search(f'on {name}.*fillcolor="(#[0-9a-f]+)"', dot)[1] for name in ("board 0", "board 1")}
            self.assertNotEqual(fills["board 0"], fills["board 1"])
            written = json.loads(self.done(*export, "--to", "onnx", "--source", "m.onnx", "--out", "part", "--json"))["written"]
            self.assertGreaterEqual(len(written), 2)
            operators = 0
            for name in written:
                self.assertRegex(name, r"^part\.\d\.board_[01]\.onnx$")
                operators += len(json.loads(self.done("import", "onnx", name))["layers"])
            self.assertEqual(operators, 5)

    def test_a_placement_lists_operators_also_where_they_were_fused(self):
        self.write("m.onnx", model(*(weight(f"w{i}", 4, 4) for i in range(2)), node("MatMul", ["x", "w0"], "a"), node("Relu", ["a"], "b"),
                                   node("MatMul", ["b", "w1"], "d"), node("Relu", ["d"], "y"), inputs=[shape("x", 3, 4)],
                                   outputs=[shape("y", 3, 4)]))
        self.done("import", "onnx", "m.onnx", "--out", "m.json")
        names = [x["name"] for x in self.read("m.json")["layers"]]
        self.assertEqual(len(names), 4)
        self.write("c.json", cluster(80, 80))
        fused = ("--fuse", "tensorrt")
        self.assertLess(len(json.loads(self.done("show", "m.json", *fused, "--json"))["layers"]), 4)
        self.done("plan", "m.json", "c.json", "--planner", "heft", "--out", "p.json", *fused)
        document = json.loads(self.done("export", "m.json", "c.json", "p.json", "--to", "placement", *fused))
        self.assertEqual(sorted(document["placement"]), sorted(names))
        self.assertEqual(sorted(sum(document["order"].values(), [])), sorted(names))
        self.assertEqual(document["placement"]["MatMul a"], document["placement"]["Relu b"])
        self.assertNotEqual(document["placement"]["MatMul a"], document["placement"]["MatMul d"])

    def test_weights_beside_the_file(self):
        export = self.cut("heft", beside="weights.bin")
        command = (*export, "--to", "onnx", "--source", "m.onnx", "--out", "part")
        result = self.run_it(*command)
        self.assertEqual(result.returncode, 0)
        self.assertEqual(result.stderr, 'hetplan: warning: the parts hold weights in "weights.bin", which is not beside them\n')
        self.write("weights.bin", bytes(64))
        self.done(*command)

    def test_the_how_to_runs_as_it_is_pasted(self):
        page = (pathlib.Path(os.environ["HETPLAN_SOURCE_DIR"]) / "docs/how-to/place-an-onnx-model.md").read_text()
        commands = re.search("```sh\n(.*?)```", page, re.DOTALL)[1]
        self.write("resnet50.onnx", chain(rows=3))
        result = subprocess.run(["sh", "-e", "-c", f'hetplan() {{ "{toy_problem.CLI}" "$@"; }}\n{commands}'], capture_output=True, text=True, cwd=self.path,
                                timeout=120)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(list((self.path / "parts").glob("resnet50.0.*.onnx")))

    def test_what_cannot_be_exported(self):
        export = self.cut("heft")
        self.assertIn("--to onnx: expected --source FILE.onnx and --out PREFIX", self.refused(*export, "--to", "onnx", "--out", "part"))
        self.write("other.onnx", chain(rows=5))
        self.assertIn('other.onnx is not what model "m" was imported from',
                      self.refused(*export, "--to", "onnx", "--source", "other.onnx", "--out", "part"))
        self.assertIn("short.onnx: cannot read", self.refused(*export, "--to", "onnx", "--source", "short.onnx", "--out", "part"))
        (self.path / "part.1.board_1.onnx").mkdir()
        (self.path / "part.1.board_0.onnx").mkdir()
        self.assertIn("got a folder", self.refused(*export, "--to", "onnx", "--source", "m.onnx", "--out", "part"))
        self.write("c.json", cluster(1000, 1000))
        self.write("job.json", json.dumps({"format": "hetplan/job/1", "mode": "inference", "batch": 8}))
        self.done("plan", "m.json", "c.json", "job.json", "--planner", "data-parallel", "--out", "p.json")
        self.assertIn("expected a plan with every layer on one device",
                      self.refused(*export, "--to", "onnx", "--source", "m.onnx", "--out", "other"))


if __name__ == "__main__":
    with tempfile.NamedTemporaryFile(suffix=".onnx") as probe:
        if "built without ONNX" in subprocess.run([toy_problem.CLI, "import", "onnx", probe.name], capture_output=True, text=True).stderr:
            print("SKIPPED: the program was built without ONNX")
            sys.exit(77)
    unittest.main()
