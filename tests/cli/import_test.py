# SPDX-License-Identifier: BSL-1.0
"""Language models from their own files through the program: configurations, GGUF, safetensors, and adapters."""

import json
import os
import pathlib
import re
import struct
import unittest

import toy_problem

CONFIG = {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 2,
          "intermediate_size": 512, "vocab_size": 320, "max_position_embeddings": 4096, "torch_dtype": "bfloat16"}


def text(s):
    return struct.pack("<Q", len(s)) + s.encode()


def gguf(**changes):
    """A llama of F16 matrices; data are zeros."""
    numbers = {"block_count": 2, "embedding_length": 256, "context_length": 4096, "attention.head_count": 4, "attention.head_count_kv": 2, **changes}
    values = [text("general.architecture") + struct.pack("<I", 8) + text("llama")]
    values += [text("llama." + k) + struct.pack("<II", 4, v) for k, v in numbers.items()]
    tensors = [("token_embd.weight", (256, 320), 1), ("output_norm.weight", (256,), 0), ("output.weight", (256, 320), 1)]
    for b in ("blk.0.", "blk.1."):
        tensors += [(b + "attn_norm.weight", (256,), 0), (b + "attn_q.weight", (256, 256), 1), (b + "attn_k.weight", (256, 128), 1),
                    (b + "attn_v.weight", (256, 128), 1), (b + "attn_output.weight", (256, 256), 1), (b + "ffn_norm.weight", (256,), 0),
                    (b + "ffn_gate.weight", (256, 512), 1), (b + "ffn_up.weight", (256, 512), 1), (b + "ffn_down.weight", (512, 256), 1)]
    infos, data = b"", 0
    for name, shape, kind in tensors:
        size = (2 if kind == 1 else 4) * shape[0] * (shape[1] if len(shape) > 1 else 1)
        infos += text(name) + struct.pack("<I", len(shape)) + b"".join(struct.pack("<Q", n) for n in shape) + struct.pack("<IQ", kind, data)
        data += size
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(values)) + b"".join(values) + infos
    return head + bytes(-len(head) % 32) + bytes(data), data


class imports(toy_problem.folder_test):
    def test_a_configuration(self):
        (self.path / "tiny").mkdir()
        self.write("tiny/config.json", json.dumps(CONFIG))
        printed = self.done("import", "hf", "tiny", "--out", "m.json")
        self.assertRegex(printed, r"^tiny: 7 layers, 6 edges, [\d.]+ M parameters, [\d.]+ GFLOP\n$")
        model = self.read("m.json")
        self.assertEqual([x["name"] for x in model["layers"]], ["embed", "l0.attn", "l0.mlp", "l1.attn", "l1.mlp", "norm", "lm_head"])
        self.assertEqual(model["tokens_per_sample"], 512)
        self.done("import", "hf", "tiny/config.json", "--fine", "--tokens", 64, "--dtype", "fp32", "--out", "fine.json")
        self.assertEqual(self.read("fine.json")["tokens_per_sample"], 64)
        self.assertEqual(self.read("fine.json").get("bytes_per_parameter", 4), 4)
        self.assertIn("l1.gate", [x["name"] for x in self.read("fine.json")["layers"]])
        self.done("import", "hf", "tiny", "--weights", "q4_k_m", "--out", "q4.json")
        self.assertEqual(self.read("q4.json")["weight_format"], "q4")
        self.write("j.json", json.dumps({"format": "hetplan/job/1", "mode": "generation", "batch": 1, "prompt": 64, "tokens": 16}))
        self.done("plan", "m.json", "smart-home-2", "j.json")

    def test_a_gguf_file_is_its_bytes(self):
        content, data = gguf()
        (self.path / "m.gguf").write_bytes(content)
        self.done("import", "gguf", "m.gguf", "--out", "m.json")
        self.assertEqual(sum(x.get("weight", 0) for x in self.read("m.json")["layers"]), data)
        self.assertIn('"hetplan import gguf m.gguf --out MODEL.json" makes one of it', self.refused("plan", "m.gguf", "smart-home-2"))
        self.assertIn("expected those of the file", self.refused("import", "gguf", "m.gguf", "--weights", "q4_0"))
        (self.path / "cut.gguf").write_bytes(content[:-1])
        self.assertIn("(is it cut off?)", self.refused("import", "gguf", "cut.gguf", "--out", "cut.json"))
        self.assertFalse((self.path / "cut.json").exists())
        (self.path / "lies.gguf").write_bytes(gguf(**{"attention.head_count_kv": 3})[0])
        self.assertIn("expected a divisor of the heads (4)", self.refused("import", "gguf", "lies.gguf"))

    def test_adapters(self):
        self.write("config.json", json.dumps(CONFIG))
        self.done("import", "hf", "config.json", "--lora", 4, "--fine", "--out", "m.json")
        layers = self.read("m.json")["layers"]
        learns = [x for x in layers if x.get("weight", 0) and x.get("trainable", True)]
        self.assertTrue(all(x["kind"] == "lora" for x in learns))
        self.assertEqual(sum(x["weight"] for x in learns) / 2, 2 * 4 * (2 * 512 + 2 * 384 + 3 * 768))
        self.write("j.json", json.dumps({"format": "hetplan/job/1", "mode": "training", "batch": 4}))
        self.done("plan", "qwen3-0.6b", "rtx4090", "j.json", "--lora", 8, "--planner", "gpipe")
        self.assertIn("--lora: only a built-in language model takes it, not m.json", self.refused("plan", "m.json", "rtx4090", "--lora", 8))
        self.assertIn("--lora", self.refused("plan", "resnet50", "rtx4090", "--lora", 8))
        self.assertIn("--lora", self.refused("plan", "qwen3-0.6b", "rtx4090", "--lora", 0))

    def test_what_is_not_known(self):
        self.write("config.json", json.dumps({**CONFIG, "model_type": "mamba"}))
        self.assertIn("config.json: /model_type: expected one of bert, ", self.refused("import", "hf", "config.json"))
        self.assertIn("--input: only a built-in vision model takes it", self.refused("import", "hf", "config.json", "--input", "3,4,4"))
        (self.path / "none").mkdir()
        self.assertIn("expected a folder with a config.json", self.refused("import", "hf", "none"))
        self.assertIn("expected a configuration beside the tensors", self.refused("import", "safetensors", "none/model.safetensors"))

    def test_the_page_names_what_is_known(self):
        source = pathlib.Path(os.environ["HETPLAN_SOURCE_DIR"])
        page = (source / "docs/how-to/import-a-model.md").read_text()
        for header, table in (("hf_config", "hf_model_types"), ("gguf", "gguf_architectures")):
            code = (source / f"include/hetplan/exchange/{header}.hpp").read_text()
            for name in re.findall(r'"([a-z0-9_]+)"', re.search(table + r"\{([^}]*)\}", code)[1]):
                self.assertRegex(page, rf"\b{name}\b")


if __name__ == "__main__":
    unittest.main()
