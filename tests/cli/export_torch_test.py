# SPDX-License-Identifier: BSL-1.0
"""export_torch.py: what it writes of ten modules against PyTorch's own counter, or a count of its own by hooks; ties, cuts, bad input."""

import contextlib
import io
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import torch_python

torch_python.require()

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

SOURCE = pathlib.Path(os.environ.get("HETPLAN_SOURCE_DIR") or pathlib.Path(__file__).parents[2])
SCRIPT = SOURCE / "examples" / "torch" / "export_torch.py"
sys.path.insert(0, str(SCRIPT.parent))
sys.dont_write_bytecode = True

import export_torch  # noqa: E402


class Residual(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first, self.second = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)
        self.straight = nn.Conv2d(inputs, outputs, 1, stride, bias=False) if (inputs, stride) != (outputs, 1) else None

    def forward(self, x):
        y = self.norm2(self.second(functional.relu(self.norm1(self.first(x)))))
        return functional.relu(y + (x if self.straight is None else self.straight(x)))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 7, 2, 3)
        self.layer1 = nn.Sequential(Residual(8, 8, 1), Residual(8, 8, 1))
        self.layer2 = nn.Sequential(Residual(8, 16, 2), Residual(16, 16, 1))
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        return self.head(self.layer2(self.layer1(functional.max_pool2d(self.stem(x), 2))).mean((2, 3)))


def mobilenet():
    def block(inputs, outputs, stride):
        return nn.Sequential(nn.Conv2d(inputs, inputs, 3, stride, 1, groups=inputs, bias=False), nn.BatchNorm2d(inputs), nn.ReLU6(),
                             nn.Conv2d(inputs, outputs, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU6())

    return nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), block(8, 16, 1), block(16, 32, 2), block(32, 32, 1), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Linear(32, 10))


class Attention(nn.Module):
    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        n, t, w = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(n, t, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / math.sqrt(w // self.heads)
        if self.causal:
            scores = scores + torch.full((t, t), float("-inf")).triu(1)
        x = x + self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(n, t, w))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Decoder(nn.Module):
    def __init__(self, tied=True, bias=False, blocks=3):
        super().__init__()
        self.embed, self.position = nn.Embedding(50, 24), nn.Embedding(16, 24)
        self.blocks = nn.ModuleList(Attention(24, 4, True) for _ in range(blocks))
        self.norm, self.head = nn.LayerNorm(24), nn.Linear(24, 50, bias=bias)
        if tied:
            self.head.weight = self.embed.weight

    def forward(self, tokens):
        x = self.embed(tokens) + self.position(torch.arange(tokens.shape[1]))
        for b in self.blocks:
            x = b(x)
        return self.head(self.norm(x))


class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 24, 8, 8)
        self.token, self.position = nn.Parameter(torch.zeros(1, 1, 24)), nn.Parameter(torch.zeros(1, 17, 24))
        self.blocks = nn.Sequential(*(Attention(24, 3, False) for _ in range(2)))
        self.head = nn.Linear(24, 10)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.position
        return self.head(self.blocks(x)[:, 0])


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        def two(a, b):
            return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.ReLU(), nn.Conv2d(b, b, 3, padding=1), nn.ReLU())

        self.down = nn.ModuleList([two(1, 4), two(4, 8)])
        self.middle, self.up = two(8, 16), nn.ModuleList([nn.ConvTranspose2d(16, 8, 2, 2), nn.ConvTranspose2d(8, 4, 2, 2)])
        self.after, self.last = nn.ModuleList([two(16, 8), two(8, 4)]), nn.Conv2d(4, 2, 1)

    def forward(self, x):
        kept = []
        for d in self.down:
            x = d(x)
            kept.append(x)
            x = functional.max_pool2d(x, 2)
        x = self.middle(x)
        for u, a in zip(self.up, self.after):
            x = a(torch.cat([u(x), kept.pop()], 1))
        return self.last(x)


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.embed, self.rnn, self.head = nn.Embedding(30, 12), kind(12, 16, num_layers=2, batch_first=True), nn.Linear(16, 30)

    def forward(self, x):
        return self.head(self.rnn(self.embed(x))[0])


def encoder():
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(24, 4, 48, batch_first=True, dropout=0.0), 2)


def mlp():
    return nn.Sequential(nn.Linear(20, 40), nn.ReLU(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 5))


def picture(*shape):
    return torch.randn(*shape)


MODELS = {
    "mlp": (mlp, (picture(3, 20),)), "resnet": (ResNet, (picture(2, 3, 32, 32),)), "mobilenet": (mobilenet, (picture(2, 3, 32, 32),)),
    "encoder": (encoder, (picture(2, 7, 24),)), "decoder": (Decoder, (torch.zeros(2, 16, dtype=torch.int64),)),
    "vit": (ViT, (picture(2, 3, 32, 32),)), "unet": (UNet, (picture(2, 1, 16, 16),)),
    "lstm": (lambda: Recurrent(nn.LSTM), (torch.zeros(2, 6, dtype=torch.int64),)),
    "gru": (lambda: Recurrent(nn.GRU), (torch.zeros(2, 6, dtype=torch.int64),)),
    "grouped": (lambda: nn.Sequential(nn.Conv1d(6, 12, 5, groups=3, dilation=2), nn.ConvTranspose1d(12, 4, 3, 2, groups=2), nn.Flatten(),
                                      nn.Linear(100, 7)), (picture(2, 6, 20),)),
}


def by_hooks(model, inputs):
    """Twice the multiply-adds of layers that have weights, and of matrix products between activations."""
    total = 0

    def count(m, given, out):
        nonlocal total
        x = given[0]
        if isinstance(m, nn.Linear):
            total += 2 * x.numel() * m.out_features
        elif isinstance(m, (nn.ConvTranspose1d, nn.ConvTranspose2d)):
            total += 2 * x.numel() * m.out_channels // m.groups * math.prod(m.kernel_size)
        elif isinstance(m, (nn.Conv1d, nn.Conv2d)):
            total += 2 * out.numel() * m.in_channels // m.groups * math.prod(m.kernel_size)
        elif isinstance(m, (nn.LSTM, nn.GRU)):
            gates, tokens = (4 if isinstance(m, nn.LSTM) else 3), x.shape[0] * x.shape[1]
            for layer in range(m.num_layers):
                total += 2 * tokens * gates * m.hidden_size * ((m.input_size if layer == 0 else m.hidden_size) + m.hidden_size)
        elif isinstance(m, Attention):
            n, t, w = x.shape
            total += 2 * 2 * n * t * t * w
        elif isinstance(m, nn.MultiheadAttention):  # its products are functional
            n, t, w = x.shape
            total += 2 * n * t * w * 4 * w + 2 * 2 * n * t * t * w

    inside = nn.modules.linear.NonDynamicallyQuantizableLinear  # of nn.MultiheadAttention, never called
    handles = [m.register_forward_hook(count) for m in model.modules() if not isinstance(m, inside)]
    with torch.enable_grad():
        model(*inputs)
    for h in handles:
        h.remove()
    return total


def kept_by_autograd(model, inputs):
    kept = {}

    def keep(t):
        if t.dim() > 0:  # else a number in an expression
            kept[t.storage().data_ptr()] = len(t.storage()) * t.element_size()
        return t

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda t: t):
        out = model(*inputs)
    own = {t.storage().data_ptr() for t in [*model.parameters(), *model.buffers(), *inputs]}
    del out
    return sum(size for at, size in kept.items() if at not in own)


def plain_attention():
    """The counter knows no kernel of processors for attention."""
    try:
        from torch.nn.attention import SDPBackend, sdpa_kernel
    except ImportError:
        return contextlib.nullcontext()
    return sdpa_kernel(SDPBackend.MATH)


def total(document, key):
    return sum(l[key] for l in document["layers"])


def weight(document):
    groups = {l["weight_group"]: l["weight"] for l in document["layers"] if "weight_group" in l}
    return sum(groups.values()) + sum(l["weight"] for l in document["layers"] if "weight_group" not in l)


class Exported(unittest.TestCase):
    def check_graph(self, document):
        names = [l["name"] for l in document["layers"]]
        self.assertEqual(len(set(names)), len(names))
        for e in document["edges"]:
            self.assertLess(names.index(e["from"]), names.index(e["to"]), e)
            self.assertGreater(e["bytes"], 0)

    def every(self):
        for name, (make, inputs) in MODELS.items():
            torch.manual_seed(1)
            model = make()
            yield name, model, inputs

    def test_flop_are_those_of_products_at_every_depth(self):
        for name, model, inputs in self.every():
            expected = by_hooks(model, inputs)
            for how in ({}, {"fine": True}, {"depth": 1}, {"depth": 2}):
                document = export_torch.export(model, inputs, **how)
                self.check_graph(document)
                self.assertEqual(total(document, "forward_flops") * len(inputs[0]), expected, (name, how))

    def test_flop_are_those_of_the_counter_of_pytorch(self):
        try:
            from torch.utils.flop_counter import FlopCounterMode
        except ImportError:
            self.skipTest("torch.utils.flop_counter is of torch 2.1")
        for name, model, inputs in self.every():
            with plain_attention(), FlopCounterMode(display=False) as counter:
                out = model(*inputs)
                forward = counter.get_total_flops()
                out.sum().backward()
            with plain_attention():
                document = export_torch.export(model, inputs)
            self.assertEqual(total(document, "forward_flops") * len(inputs[0]), forward, name)
            backward = total(document, "backward_input_flops") + total(document, "backward_weight_flops")
            self.assertEqual(backward * len(inputs[0]), counter.get_total_flops() - forward, name)

    def test_every_parameter_counts_once(self):
        for name, model, inputs in self.every():
            for how in ({}, {"fine": True}, {"depth": 1}):
                expected = 4 * sum(p.numel() for p in model.parameters())
                self.assertEqual(weight(export_torch.export(model, inputs, **how)), expected, (name, how))

    def test_activations_are_what_autograd_keeps(self):
        for name, model, inputs in self.every():
            for how in ({}, {"fine": True}):
                self.assertEqual(total(export_torch.export(model, inputs, **how), "activation") * len(inputs[0]),
                                 kept_by_autograd(model, inputs), (name, how))

    def test_tensors_without_numbers_say_what_real_ones_say(self):
        for name, model, inputs in self.every():
            real, run = export_torch.export(model, inputs), export_torch._run
            used = []

            def on_real(*a, **k):
                used.append(k.pop("fake"))
                return run(*a, **k, fake=False)

            export_torch._run = on_real
            try:
                self.assertEqual(export_torch.export(model, inputs), real, name)
            finally:
                export_torch._run = run
            self.assertEqual(used, [True], name)

    def test_tied_tensors_are_groups_of_layers_that_hold_nothing_else(self):
        tokens = (torch.zeros(2, 16, dtype=torch.int64),)
        for bias in (False, True):
            model = Decoder(bias=bias)
            for how in ({}, {"fine": True}, {"depth": 1}):
                document = export_torch.export(model, tokens, **how)
                tied = [l for l in document["layers"] if "weight_group" in l]
                self.assertEqual([(l["weight_group"], l["weight"]) for l in tied], [("embed.weight", 4 * 50 * 24)] * 2, how)
                self.assertEqual(tied[0]["weight_traffic"], 0)  # rows alone are read
                self.assertEqual(weight(document), 4 * sum(p.numel() for p in model.parameters()))
                self.check_graph(document)

    def test_a_module_that_is_called_again_is_a_layer_again(self):
        class Again(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.block = nn.Linear(24, 24), Attention(24, 4, False)

            def forward(self, x):
                x = self.first(x)
                for _ in range(3):
                    x = self.block(x)
                return x

        document = export_torch.export(Again(), (picture(1, 5, 24),))
        self.assertEqual([(l["name"], l.get("weight_group")) for l in document["layers"]],
                         [("first", None)] + [(n, "block.norm1.weight") for n in ("block", "block#2", "block#3")])
        self.assertEqual(len({l["weight"] for l in document["layers"][1:]}), 1)

    def test_a_layer_is_frozen_or_trainable(self):
        class Adapted(nn.Module):
            def __init__(self):
                super().__init__()
                self.base, self.a, self.b = nn.Linear(64, 64, bias=False), nn.Linear(64, 4, bias=False), nn.Linear(4, 64, bias=False)
                self.base.weight.requires_grad_(False)

            def forward(self, x):
                return self.base(x) + self.b(self.a(x))

        document = export_torch.export(nn.Sequential(Adapted(), Adapted()), (picture(3, 64),))
        self.check_graph(document)
        frozen = [l for l in document["layers"] if l.get("trainable") is False]
        self.assertEqual([l["weight"] for l in frozen], [4 * 64 * 64] * 2)
        self.assertEqual([l["backward_weight_flops"] for l in frozen], [0, 0])
        self.assertEqual([l["backward_input_flops"] for l in frozen], [0, 2 * 64 * 64])
        self.assertEqual(weight(document), 4 * 2 * (64 * 64 + 2 * 64 * 4))

    def test_tokens_part_what_grows_with_their_square(self):
        for causal in (False, True):
            parts = []
            for tokens in (8, 16):
                document = export_torch.export(Decoder(), (torch.zeros(2, tokens, dtype=torch.int64),), tokens=tokens, causal=causal)
                pairs = tokens * (tokens + 1) / 2 if causal else tokens ** 2
                parts.append([((l["forward_flops"] - l.get("attention_flops", 0) * pairs) / tokens, l.get("attention_flops", 0),
                               l.get("attention_traffic", 0) if not causal else 0, l.get("kv_bytes_per_token", 0), l["weight"])
                              for l in document["layers"]])
                self.assertEqual(document["tokens_per_sample"], tokens)
            self.assertEqual(parts[0], parts[1])
            blocks = [p for p in parts[0] if p[1]]
            self.assertEqual([p[1] for p in blocks], [4 * 24] * 3)
            self.assertEqual([p[3] for p in blocks], [2 * 4 * 24 * causal] * 3)
            self.assertEqual([p[0] for p in blocks], [2 * 12 * 24 * 24] * 3)

    def test_edges_carry_what_is_read_once(self):
        document = export_torch.export(UNet(), (picture(2, 1, 16, 16),))
        bytes_of = {(e["from"], e["to"]): e["bytes"] for e in document["edges"]}
        self.assertEqual(bytes_of["down.0.3", "up.1"], 4 * 4 * 16 * 16)  # the skip, joined behind the layer before
        self.assertEqual(bytes_of["down.0.3", "down.1.0"] if ("down.0.3", "down.1.0") in bytes_of else 4 * 4 * 8 * 8, 4 * 4 * 8 * 8)

    def test_writing_in_place_through_a_view_is_seen(self):
        class Writer(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b, self.c = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(8, 2)

            def forward(self, x):
                room = torch.zeros(x.shape[0], 8)
                room[:, :4] = self.a(x)
                room[:, 4:] = self.b(x)
                return self.c(room)

        for how in ({}, {"fine": True}):
            document = export_torch.export(Writer(), (picture(3, 4),), **how)
            reached, edges = {"c" if not how else "c.addmm"}, [(e["from"], e["to"]) for e in document["edges"]]
            for _ in edges:
                reached |= {a for a, b in edges if b in reached}
            self.assertEqual({n for n in reached if n[0] in "ab"}, {"a", "b"} if not how else {"a.addmm", "b.addmm"})

    def test_modules_on_the_meta_device_and_those_that_decide_by_numbers(self):
        class Decides(nn.Module):
            def __init__(self):
                super().__init__()
                self.yes, self.no, self.norm = nn.Linear(4, 4), nn.Linear(4, 8), nn.BatchNorm1d(4)

            def forward(self, x):
                x = self.norm(x)
                return self.yes(x) if x.sum().item() < 1e9 else self.no(x)

        model = Decides()
        document = export_torch.export(model, picture(3, 4))
        self.assertEqual(total(document, "forward_flops"), 32)
        self.assertEqual(int(model.norm.num_batches_tracked), 0)  # buffers are as they were
        model = mlp().to("meta")
        self.assertEqual(total(export_torch.export(model, picture(2, 20)), "forward_flops"), 2 * (20 * 40 + 40 * 40 + 40 * 5))

    def test_half_precision(self):
        document = export_torch.export(mlp().to(torch.bfloat16), picture(2, 20).to(torch.bfloat16))
        self.assertEqual((document["bytes_per_parameter"], document["precision"]), (2, "bf16"))
        self.assertEqual(document["edges"][0]["bytes"], 80)

    def test_layers_are_timed_here_for_a_kind_of_device(self):
        model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.BatchNorm1d(512), nn.Linear(512, 8))
        document = export_torch.export(model, picture(2, 64), measure="here", batches=(4, 2))
        for l in document["layers"]:
            times = l["profile"]["here"]
            self.assertEqual(times["batch"], [2, 4])
            self.assertTrue(all(t > 0 for t in times["forward"] + times["backward"]), l)
        self.assertEqual(int(model[2].num_batches_tracked), 0)
        self.assertTrue(all(p.grad is None for p in model.parameters()))
        told = io.StringIO()
        with contextlib.redirect_stderr(told):
            document = export_torch.export(Decoder(), (torch.zeros(2, 16, dtype=torch.int64),), measure="here", batches=(1,))
        self.assertEqual([l["name"] for l in document["layers"] if "profile" in l],
                         ["embed", "position", "blocks.0", "blocks.1", "blocks.2", "norm", "head"])
        self.assertEqual(told.getvalue(), "")
        for how, expected in [({"fine": True}, "measure: expected layers"), ({"batches": (0,)}, "batches, runs: expected integers >= 1")]:
            with self.assertRaises(export_torch.BadInput) as caught:
                export_torch.export(model, picture(2, 64), measure="here", **how)
            self.assertTrue(str(caught.exception).startswith(expected), caught.exception)

    def test_bad_input_is_one_clear_error(self):
        class Nothing(nn.Module):
            def forward(self, x):
                return x

        cases = [
            (lambda: export_torch.export(3, ()), "expected a torch.nn.Module, got int"),
            (lambda: export_torch.export(mlp(), picture(2, 19)), "Sequential does not run on the example inputs: RuntimeError: "),
            (lambda: export_torch.export(Nothing(), picture(2, 19)), "Nothing runs no operator on the example inputs"),
            (lambda: export_torch.export(mlp(), picture(2, 20), fine=True, depth=2), "fine: expected either fine or depth, got both"),
            (lambda: export_torch.export(mlp(), picture(2, 20), depth=0), "depth: expected an integer >= 1, got 0"),
            (lambda: export_torch.export(mlp(), picture(0, 20)), "example_inputs: expected at least one sample, got a first axis of 0"),
            (lambda: export_torch.export(mlp(), picture(2, 20), causal=True), "causal: expected tokens, too"),
            (lambda: export_torch.export(mlp(), picture(2, 20), "/nowhere/at/all.json"), "/nowhere/at/all.json: No such file or directory"),
        ]
        for call, expected in cases:
            with self.assertRaises(export_torch.BadInput) as caught:
                call()
            self.assertTrue(str(caught.exception).startswith(expected), caught.exception)


class Command(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def run_it(self, *arguments):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = export_torch.main(list(map(str, arguments)))
        return status, out.getvalue(), err.getvalue()

    def test_a_file_of_ones_own(self):
        (self.path / "mine.py").write_text("import torch\nclass net(torch.nn.Linear):\n  def __init__(self): super().__init__(3, 2)\n"
                                           "broken = lambda: 1 / 0\nthree = 3\n")
        mine, out = f"{self.path}/mine.py", self.path / "m.json"
        status, text, wrong = self.run_it(f"{mine}:net", "--input", "4x3", "--out", out)
        self.assertEqual((status, text, wrong), (0, "net: 1 layers, 0 edges, 8e-06 M parameters, 1.2e-08 GFLOP\n", ""))
        self.assertEqual(json.loads(out.read_text())["layers"][0]["forward_flops"], 12)
        out.unlink()
        for module, given, expected in [
            ("net", "4x3", "MODULE: expected FILE.py:NAME or PACKAGE.MODULE:NAME, got 'net'"),
            (f"{mine}:other", "4x3", f"MODULE: {mine} has no 'other'"),
            (f"{mine}:broken", "4x3", "MODULE: broken(): ZeroDivisionError: division by zero"),
            (f"{mine}:three", "4x3", "MODULE: three(): TypeError: 'int' object is not callable"),
            ("no_such_package:x", "4x3", "MODULE: no_such_package: ModuleNotFoundError: No module named 'no_such_package'"),
            (f"{mine}:net", "4xx3", "--input: expected sizes such as 1x3x224x224 or int64:1x128, got '4xx3'"),
            (f"{mine}:net", "huge:4x3", "--input: expected sizes such as 1x3x224x224 or int64:1x128, got 'huge:4x3'"),
            (f"{mine}:net", "4x5", "net does not run on the example inputs: RuntimeError: "),
        ]:
            status, text, wrong = self.run_it(module, "--input", given, "--out", out)
            self.assertEqual((status, text), (2, ""))
            self.assertTrue(wrong.startswith("export_torch: " + expected), wrong)
            self.assertFalse(out.exists())

    @unittest.skipUnless(os.environ.get("HETPLAN_CLI"), "no hetplan program")
    def test_the_program_reads_and_plans_it(self):
        for name, (make, inputs) in MODELS.items():
            for how in ({}, {"fine": True}):
                export_torch.export(make(), inputs, self.path / "m.json", **how)
                done = subprocess.run([os.environ["HETPLAN_CLI"], "plan", "m.json", "smart-home-2", "--planner", "pipedream", "--json"],
                                      cwd=self.path, capture_output=True, text=True, timeout=120)
                self.assertEqual((done.returncode, done.stderr), (0, ""), (name, how))
        export_torch.export(Decoder(), (torch.zeros(2, 16, dtype=torch.int64),), str(self.path / "m.json"), tokens=16, causal=True)
        (self.path / "job.json").write_text(json.dumps({"format": "hetplan/job/1", "mode": "generation", "batch": 2, "tokens": 4}))
        done = subprocess.run([os.environ["HETPLAN_CLI"], "plan", "m.json", "smart-home-2", "job.json", "--json"], cwd=self.path,
                              capture_output=True, text=True, timeout=120)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
