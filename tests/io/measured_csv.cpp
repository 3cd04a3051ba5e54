// SPDX-License-Identifier: BSL-1.0
#include <string>

#include <catch2/catch.hpp>

#include <hetplan/io/measured_csv.hpp>

#include "support/message_of.hpp"

using namespace hetplan;

namespace test_measured_csv {

const cluster& gpus() {
  static const cluster c = [] {
    std::vector<device> all;
    for (const char* name : {"g0", "g1", "a+b"}) {
      all.push_back(
          {.name = name, .kind = "gpu", .memory = 24_GB, .compute = flops_per_second(1e14), .memory_bandwidth = bytes_per_second(1e12)});
    }
    return cluster("host", all, shared_medium{bytes_per_second(1e10)});
  }();
  return c;
}

io::measured_rows parse(const std::string& text) { return io::parse_measurements(text, "rows.csv", gpus()); }

std::string refused(const std::string& text) {
  return test::message_of([&] { return parse(text); });
}

const std::string header = "device,model,batch,prompt,context,what,value";

/// A row with these columns in addition.
std::string with(const std::string& columns, const std::string& cells, const std::string& what = "decode_tokens_per_s") {
  return header + "," + columns + "\ng0,llama3-8b,1,512,0," + what + ",10," + cells + "\n";
}

}  // namespace test_measured_csv

using namespace test_measured_csv;

TEST_CASE("measured rows: columns in any order, comments, defaults", "[io]") {
  const io::measured_rows read = parse(
      "# a comment before the header\n"
      "model,device,what,value,batch,prompt,context,tokens,weights,score_bytes,note\n"
      "# another\n"
      "\n"
      "llama3-8b,g1,decode_tokens_per_s,47.4,,,,512,q4_k_m,32,\"as published, May\"\n"
      "llama3-8b,gpu+gpu,prefill_tokens_per_s,4444,2,512,7,,q4_k_m,32,\n"
      "resnet50,a+b,images_per_s,100,8,,,,,,\n");
  REQUIRE(read.rows.size() == 3);
  const fit::measurement &decode = read.rows[0], &prefill = read.rows[1], &images = read.rows[2];
  CHECK(decode.devices == std::vector<device_id>{device_id(1)});
  CHECK((decode.what == fit::measured::decode_tokens_per_s && decode.value == 47.4 && decode.tokens == 512 && decode.batch == 1));
  CHECK((!decode.context && decode.prompt == 0 && decode.weight == 1));
  CHECK(decode.where == "rows.csv: line 5");
  CHECK(prefill.devices == std::vector<device_id>{device_id(0), device_id(1)});  // a kind is the next device of it
  CHECK((prefill.batch == 2 && prefill.prompt == 512 && prefill.context == 7));
  CHECK(images.devices == std::vector<device_id>{device_id(2)});  // a whole name goes before its parts
  CHECK(decode.model == prefill.model);                           // made once
  CHECK(decode.model->facts().weight_format == "q4");
  const auto layers = decode.model->layers();
  CHECK(std::any_of(layers.begin(), layers.end(), [](const layer& l) { return l.sequence.attention_traffic == bytes(32 * 32); }));
  CHECK(read.models == std::vector<std::string>{"llama3-8b q4_k_m", "llama3-8b q4_k_m", "resnet50"});
  CHECK(read.devices == std::vector<std::string>{"g1", "gpu+gpu", "a+b"});
}

TEST_CASE("measured rows: layers by the beginnings of their names, in samples or behind a context", "[io]") {
  const io::measured_rows read = parse(header +
                                       ",layers,phase,dtype\n"
                                       "g0,llama3-8b,4,64,,layer_seconds,0.001,l0.gate l0.up,backward_weight,fp32\n"
                                       "g0,llama3-8b,4,1,64,layer_seconds,0.001,l0.,,\n");
  REQUIRE(read.rows.size() == 2);
  CHECK(read.rows[0].model->size() == 2);
  CHECK(read.rows[0].model->tokens_per_sample() == 64);
  CHECK(read.rows[0].model->facts().precision == precision::fp32);
  CHECK(read.rows[0].phase == fit::timed_phase::backward_weight);
  CHECK(read.rows[1].model->size() > 10);
  CHECK(read.models[0] == "llama3-8b fp32 l0.gate l0.up");
}

TEST_CASE("measured rows: what is wrong is named by line and column", "[io]") {
  CHECK(refused("") ==
        "rows.csv: line 1: expected columns among device, model, batch, prompt, context, what, value, tokens, weights, dtype, "
        "layers, phase, prompt_chunk, chunks_in_flight, weight, score_bytes, note, got \"\"");
  CHECK(refused("# only\ndevice,model,batch,prompt,context,what\n") ==
        "rows.csv: line 2: expected a header with a column \"value\", got none");
  CHECK(refused(header + ",tokns\n").ends_with("got \"tokns\"; did you mean \"tokens\"?"));
  CHECK(refused(header + "\n") == "rows.csv: expected a line for each measurement under the header, got none");
  CHECK(refused(header + "\ng0,llama3-8b,1\n") == "rows.csv: line 2: expected 7 fields, as in the header; got 3");
  const auto row = [](const std::string& cells) { return refused(header + "\n" + cells + "\n"); };
  CHECK(
      row("g3,llama3-8b,1,0,0,decode_tokens_per_s,10") ==
      "rows.csv: line 2: device: expected names or kinds of different devices of cluster \"host\", one or joined by +, got \"g3\"; did you "
      "mean \"g0\"?");
  CHECK(row("g0+g0,llama3-8b,1,0,0,decode_tokens_per_s,10").find("device: expected names or kinds of different devices") !=
        std::string::npos);
  CHECK(row("g0,llama3-9b,1,0,0,decode_tokens_per_s,10").find("model: expected a model file or one of bert-base") != std::string::npos);
  CHECK(row("g0,llama3-8b,1,0,0,decode,10") ==
        "rows.csv: line 2: what: expected one of prefill_tokens_per_s, decode_tokens_per_s, layer_seconds, images_per_s, got \"decode\"");
  CHECK(row("g0,llama3-8b,1,0,0,decode_tokens_per_s,0") == "rows.csv: line 2: value: expected a number > 0, got \"0\"");
  CHECK(row("g0,llama3-8b,1,0,0,decode_tokens_per_s,fast") == "rows.csv: line 2: value: expected a number > 0, got \"fast\"");
  CHECK(row("g0,llama3-8b,1.5,0,0,decode_tokens_per_s,10") ==
        "rows.csv: line 2: batch: expected a whole number from 1 to 4294967295, got \"1.5\"");
  CHECK(row("g0,llama3-8b,1,,0,prefill_tokens_per_s,10") == "rows.csv: line 2: prompt: expected tokens >= 1, got 0");
  CHECK(refused(with("weights", "q4")) ==
        "rows.csv: line 2: zoo::model: unknown weights \"q4\"; expected one of f16, q8_0, q6_k, q5_k_m, q4_k_m, q4_0, int8, int4");
  CHECK(refused(with("layers", "l99.")) == "rows.csv: line 2: model \"llama3-8b\" has no layer whose name begins with \"l99.\"");
  CHECK(refused(with("weight", "-1")) == "rows.csv: line 2: weight: expected a number >= 0, got \"-1\"");
  CHECK(refused(with("dtype", "fp12")).find("dtype: expected one of fp32, tf32, bf16") != std::string::npos);
  CHECK(refused(with("phase", "backward")) == "rows.csv: line 2: phase: a backward is measured in layer_seconds, without a context");
}
