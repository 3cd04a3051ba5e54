// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/coarsen/fusion_rules.hpp>

#include <algorithm>
#include <cstddef>
#include <initializer_list>

#include <hetplan/core/error.hpp>
#include <hetplan/core/escaped.hpp>

namespace hetplan::coarsen {

namespace detail {

using type_lists = std::vector<std::vector<std::string>>;

/// Every head followed by every tail.
HETPLAN_INLINE void append_products(type_lists& rules, const type_lists& heads, const type_lists& tails) {
  for (const auto& head : heads) {
    for (const auto& tail : tails) {
      rules.push_back(head);
      rules.back().insert(rules.back().end(), tail.begin(), tail.end());
    }
  }
}

HETPLAN_INLINE type_lists one_by_one(std::initializer_list<const char*> types) {
  type_lists all;
  for (const char* type : types) all.push_back({type});
  return all;
}

/// Operators that work on each number by itself, given one tensor.
HETPLAN_INLINE type_lists activations() {
  return one_by_one({"relu", "leakyrelu", "prelu", "clip", "sigmoid", "tanh", "gelu", "elu", "silu", "hardsigmoid", "hardswish", "mish"});
}

/// An activation that ONNX has no operator for, from the first operator that has a single reader.
HETPLAN_INLINE type_lists written_out_activations() {
  return {{"div", "erf", "add", "mul", "mul"},  // GELU
          {"mul", "erf", "add", "mul", "mul"},
          {"div", "erf", "add", "mul"},
          {"mul", "erf", "add", "mul"},
          {"pow", "mul", "add", "mul", "tanh", "add", "mul", "mul"},  // its approximation
          {"pow", "mul", "add", "mul", "tanh", "add", "mul"},
          {"sigmoid", "mul"},      // SiLU
          {"hardsigmoid", "mul"},  // hard swish
          {"add", "clip", "mul", "div"},
          {"add", "clip", "div", "mul"},
          {"add", "clip", "mul"},
          {"add", "clip", "div"},
          {"softplus", "tanh", "mul"}};  // Mish
}

HETPLAN_INLINE type_lists rules_as_types(const fusion_rules& given) {
  type_lists all;
  for (const auto& rule : given.rules) {
    std::vector<std::string> types;
    const auto fail = [&](const std::string& what) {
      throw invalid_input("fusion rules \"" + escaped(given.name) + "\": rule " + std::to_string(&rule - given.rules.data()) + " " + what);
    };
    for (const std::string& kind : rule) {
      const std::vector<std::string> named = operator_types(kind, given.aliases);
      if (named.empty()) fail("names an operator \"" + escaped(kind) + "\"; expected the name of a kind");
      types.insert(types.end(), named.begin(), named.end());
    }
    if (types.size() < 2) fail("has " + std::to_string(types.size()) + " operators; expected at least two");
    all.push_back(std::move(types));
  }
  return all;
}

}  // namespace detail

HETPLAN_INLINE const std::vector<type_alias>& common_aliases() {
  static const std::vector<type_alias> all = [] {
    std::vector<type_alias> known{
        {"convbn", {"conv", "bn"}}, {"convbnrelu", {"conv", "bn", "relu"}}, {"convrelu", {"conv", "relu"}}, {"bnrelu", {"bn", "relu"}}};
    const auto same = [&](const char* type, std::initializer_list<const char*> kinds) {
      for (const char* kind : kinds) known.push_back({kind, {type}});
    };
    same("conv", {"conv1d", "conv2d", "conv3d", "convolution", "depthwiseconv", "depthwiseconv2d"});
    same("deconv", {"convtranspose", "convtranspose2d", "deconvolution", "conv2dtranspose"});
    same("matmul", {"gemm", "linear", "dense", "fc", "fullyconnected", "innerproduct", "matrixmultiply"});
    same("bn", {"batchnorm", "batchnorm1d", "batchnorm2d", "batchnormalization", "batchnorminference"});
    same("layernorm", {"norm", "layernormalization", "rmsnorm", "rmsnormalization", "simplifiedlayernormalization"});
    same("add", {"sum", "plus", "biasadd", "residualadd", "elementwiseadd"});
    same("sub", {"subtract", "minus"});
    same("mul", {"multiply", "times", "scale"});
    same("div", {"divide", "realdiv"});
    same("pow", {"power"});
    same("min", {"minimum"});
    same("max", {"maximum"});
    same("clip", {"clamp", "relu6", "hardtanh"});
    same("silu", {"swish"});
    same("hardswish", {"hswish"});
    same("hardsigmoid", {"hsigmoid"});
    same("gelu", {"fastgelu", "quickgelu"});
    same("tanh", {"hyperbolictangent"});
    same("sigmoid", {"logistic"});
    same("avgpool", {"averagepool", "globalaveragepool", "globalavgpool"});
    same("maxpool", {"globalmaxpool"});
    same("reshape", {"flatten", "squeeze", "unsqueeze", "view"});
    same("transpose", {"permute"});
    return known;
  }();
  return all;
}

HETPLAN_INLINE std::string plain_type(std::string_view kind) {
  std::string plain;
  for (const char c : kind) {
    if (c == '_' || c == '-') continue;
    plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return plain;
}

HETPLAN_INLINE std::vector<std::string> operator_types(std::string_view kind, std::span<const type_alias> aliases) {
  std::vector<std::string> types;
  while (!kind.empty()) {
    const std::size_t end = std::min(kind.find('+'), kind.size());
    std::string plain = plain_type(kind.substr(0, end));
    kind.remove_prefix(std::min(end + 1, kind.size()));
    if (plain.empty()) continue;
    const auto known = std::find_if(aliases.begin(), aliases.end(), [&](const type_alias& a) { return a.kind == plain; });
    if (known == aliases.end()) types.push_back(std::move(plain));
    else types.insert(types.end(), known->types.begin(), known->types.end());
  }
  return types;
}

HETPLAN_INLINE fusion_rules tensorrt_like() {
  fusion_rules r{.name = "tensorrt"};
  const detail::type_lists acts = detail::activations(), sum{{"add"}};
  detail::type_lists summed_acts;
  detail::append_products(summed_acts, sum, acts);
  for (const detail::type_lists& tails : {acts, sum, summed_acts}) {
    detail::append_products(r.rules, {{"conv"}, {"conv", "bn"}, {"deconv"}, {"deconv", "bn"}, {"matmul"}, {"matmul", "bn"}}, tails);
  }
  detail::append_products(r.rules, {{"conv"}, {"deconv"}, {"matmul"}, {"pad", "conv"}}, {{"bn"}});
  detail::append_products(r.rules, {{"pad"}}, {{"conv"}, {"deconv"}});
  detail::append_products(r.rules, {{"pad", "conv"}, {"pad", "conv", "bn"}, {"bn"}}, acts);
  for (auto& written : detail::written_out_activations()) r.rules.push_back(std::move(written));
  const detail::type_lists binary = detail::one_by_one({"add", "sub", "mul", "div", "min", "max", "pow"});
  const detail::type_lists unary = detail::one_by_one({"sqrt", "exp", "log", "abs", "neg", "erf", "reciprocal"});
  detail::append_products(r.rules, binary, binary);
  detail::append_products(r.rules, binary, unary);
  detail::append_products(r.rules, unary, binary);
  detail::append_products(r.rules, unary, unary);
  detail::append_products(r.rules, binary, acts);
  detail::append_products(r.rules, acts, binary);
  r.rules.push_back({"pow", "reducemean", "add", "sqrt", "div", "mul", "add"});  // layer norm, behind its first difference
  r.rules.push_back({"softmax", "log"});
  r.rules.push_back({"softmax", "topk"});
  detail::append_products(r.rules, {{"reshape"}, {"transpose"}}, {{"reshape"}, {"transpose"}, {"reducemean"}, {"reducesum"}});
  detail::append_products(r.rules, {{"reshape"}, {"transpose"}}, {{"transpose", "reshape"}, {"reshape", "transpose"}});
  std::sort(r.rules.begin(), r.rules.end());
  r.rules.erase(std::unique(r.rules.begin(), r.rules.end()), r.rules.end());
  return r;
}

HETPLAN_INLINE fusion_rules onednn_like() {
  fusion_rules r{.name = "onednn"};
  const detail::type_lists acts = detail::activations();
  const detail::type_lists binary = detail::one_by_one({"add", "sub", "mul", "div", "min", "max"});
  const detail::type_lists products{{"conv"}, {"conv", "bn"}, {"deconv"}, {"deconv", "bn"}, {"matmul"}};
  detail::append_products(r.rules, {{"conv"}, {"deconv"}}, {{"bn"}});
  for (const detail::type_lists& tails : {acts, binary}) {
    detail::append_products(r.rules, products, tails);
    detail::append_products(r.rules, binary, tails);
    detail::append_products(r.rules, detail::one_by_one({"softmax", "layernorm", "reducemean", "reducesum"}), tails);
  }
  detail::append_products(r.rules, detail::one_by_one({"avgpool", "maxpool"}), binary);
  r.rules.push_back({"bn", "relu"});
  detail::type_lists pairs, behind_sums;
  detail::append_products(pairs, detail::one_by_one({"add", "mul"}), acts);
  detail::append_products(pairs, acts, detail::one_by_one({"add", "mul"}));
  detail::append_products(pairs, detail::one_by_one({"add", "mul", "div"}), detail::one_by_one({"add", "mul"}));
  detail::append_products(behind_sums, {{"add", "add"}, {"add", "mul"}, {"mul", "add"}}, acts);
  detail::append_products(r.rules, products, pairs);
  detail::append_products(r.rules, products, behind_sums);
  detail::append_products(r.rules, {{"matmul", "add"}, {"conv"}}, {{"sigmoid", "mul"}, {"hardsigmoid", "mul"}});
  r.rules.push_back({"div", "erf", "add", "mul", "mul"});
  r.rules.push_back({"mul", "erf", "add", "mul", "mul"});
  detail::append_products(
      r.rules, {{"matmul"}, {"matmul", "div"}, {"matmul", "mul"}, {"matmul", "add"}, {"matmul", "div", "add"}, {"matmul", "mul", "add"}},
      {{"softmax", "matmul"}});
  std::sort(r.rules.begin(), r.rules.end());
  r.rules.erase(std::unique(r.rules.begin(), r.rules.end()), r.rules.end());
  return r;
}

HETPLAN_INLINE fusion_rules no_fusion() { return {.name = "none"}; }

}  // namespace hetplan::coarsen
