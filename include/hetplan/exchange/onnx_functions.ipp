// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/onnx_functions.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <onnx/defs/schema.h>

#include <hetplan/exchange/onnx_inference.hpp>
#include <hetplan/exchange/onnx_scopes.hpp>
#include <hetplan/exchange/onnx_values.hpp>

namespace hetplan::exchange::detail {

/// The texts of a field of a message, whether or not the library's own version of the message has that field.
[[nodiscard]] HETPLAN_INLINE std::vector<std::string> texts_of_field(const google::protobuf::MessageLite& message, int field) {
  using wire = google::protobuf::internal::WireFormatLite;
  const std::string all = message.SerializeAsString();
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const std::uint8_t*>(all.data()), static_cast<int>(all.size()));
  std::vector<std::string> found;
  for (std::uint32_t tag = in.ReadTag(); tag != 0; tag = in.ReadTag()) {
    std::uint32_t size = 0;
    if (wire::GetTagFieldNumber(tag) != field || wire::GetTagWireType(tag) != wire::WIRETYPE_LENGTH_DELIMITED) {
      if (!wire::SkipField(&in, tag)) break;
    } else if (!in.ReadVarint32(&size) || !in.ReadString(&found.emplace_back(), static_cast<int>(size))) {
      found.pop_back();
      break;
    }
  }
  return found;
}

class onnx_function_expander {
 public:
  using say = std::function<void(const std::string&)>;
  onnx_function_expander(onnx::ModelProto& model, const say& note, const say& fail) : model_(model), note_(note), fail_(fail) {}

  [[nodiscard]] std::map<std::string, std::string> run() && {
    for (const auto& f : model_.functions()) {
      const function_key key{own_domain(f.domain()), f.name(), last_text(f, 13)};
      if (!functions_.emplace(key, &f).second) fail_("expected one " + to_text(key) + ", got two");
      named_.emplace(std::get<0>(key), std::get<1>(key));
    }
    if (!named_.empty()) collect_names(model_.graph(), taken_);
    expand(*model_.mutable_graph());
    for (const auto& [domain, version] : imports_) {
      auto& o = *model_.add_opset_import();
      o.set_domain(domain);
      o.set_version(version);
    }
    model_.clear_functions();
    return std::move(asks_of_);
  }

 private:
  using function_key = std::tuple<std::string, std::string, std::string>;  ///< domain, name, overload
  using attributes = std::map<std::string, onnx::AttributeProto>;
  using node_list = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

  [[nodiscard]] static std::string own_domain(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }
  [[nodiscard]] static std::string last_text(const google::protobuf::MessageLite& m, int field) {
    const std::vector<std::string> all = texts_of_field(m, field);
    return all.empty() ? "" : all.back();
  }
  [[nodiscard]] static std::string to_text(const function_key& key) {
    const auto& [domain, name, overload] = key;
    return "function \"" + name + "\" of \"" + domain + "\"" + (overload.empty() ? "" : ", overload \"" + overload + "\"");
  }

  void expand(onnx::GraphProto& g) {
    node_list all;
    all.Swap(g.mutable_node());
    for (auto& n : all) expand(std::move(n), *g.mutable_node());
  }

  void expand(onnx::NodeProto&& n, node_list& to) {
    if (n.domain() == "ai.onnx") n.clear_domain();  // two names for ONNX's own operators
    for (auto& a : *n.mutable_attribute()) {
      if (!a.ref_attr_name().empty() && open_.empty())
        fail_("operator " + n.op_type() + " \"" + called(n) + "\" refers to attribute \"" + a.ref_attr_name() +
              "\" of a function, and is in none");
      if (a.has_g()) expand(*a.mutable_g());
      for (auto& g : *a.mutable_graphs()) expand(g);
    }
    if (named_.contains({n.domain(), n.op_type()})) return call(n, to);
    if (!open_.empty()) count(n);
    *to.Add() = std::move(n);
  }

  void count(const onnx::NodeProto& n) {
    bytes_ += n.ByteSizeLong();
    if (++expanded_ > most_expanded_nodes)
      fail_("expected at most " + std::to_string(most_expanded_nodes) + " operators of functions, got more");
    if (bytes_ > static_cast<std::size_t>(std::numeric_limits<int>::max()))
      fail_("expected at most 2 GB with all functions in place, got more");
  }

  [[nodiscard]] static std::string called(const onnx::NodeProto& n) { return n.name().empty() ? first_output(n) : n.name(); }

  void call(const onnx::NodeProto& n, node_list& to) {
    const function_key key{n.domain(), n.op_type(), last_text(n, 8)};
    const auto found = functions_.find(key);
    const std::string what = "operator " + n.op_type() + " \"" + called(n) + "\"";
    if (found == functions_.end()) fail_(what + ": there is no " + to_text(key));
    const onnx::FunctionProto& f = *found->second;
    if (std::find(open_.begin(), open_.end(), key) != open_.end())
      fail_(to_text(key) + " calls itself, by way of " + to_text(open_.back()));
    if (open_.size() >= most_nested_calls)
      fail_("expected calls of functions at most " + std::to_string(most_nested_calls) + " deep, got more");
    if (n.input_size() > f.input_size() || n.output_size() > f.output_size()) {
      fail_(what + ": expected at most " + std::to_string(f.input_size()) + " inputs and " + std::to_string(f.output_size()) +
            " outputs, as " + to_text(key) + " has, got " + std::to_string(n.input_size()) + " and " + std::to_string(n.output_size()));
    }
    count(n);
    import_versions(key, f);
    const attributes given = attributes_of(n, f);
    std::string prefix = called(n);
    if (prefix.size() > longest_prefix) prefix = n.op_type() + " " + std::to_string(expanded_);

    std::map<std::string, std::string> names;  // in the function, and where it is called
    for (int i = 0; i < f.input_size(); ++i) names[f.input(i)] = input_of(n, i);
    std::vector<std::pair<std::string, std::string>> copies;
    for (int i = 0; i < n.output_size(); ++i) {
      if (!n.output(i).empty() && !names.emplace(f.output(i), n.output(i)).second) copies.emplace_back(f.output(i), n.output(i));
    }
    const auto renamed = [&](const std::string& name) -> std::string {
      if (name.empty()) return "";
      const auto it = names.find(name);
      return it != names.end() ? it->second : names.emplace(name, free_name(taken_, prefix + "/" + name)).first->second;
    };
    open_.push_back(key);
    for (const auto& body : f.node()) {
      onnx::NodeProto copy = body;
      bind(copy, given, to_text(key));
      set_names(copy, prefix);
      for (auto& o : *copy.mutable_output()) o = renamed(o);
      rename_reads(copy, renamed, [&](const std::string& own) { return free_name(taken_, prefix + "/" + own); });
      if (const auto it = asks_.find(key); it != asks_.end()) asks_of_.emplace(first_output(copy), it->second);
      expand(std::move(copy), to);
    }
    open_.pop_back();
    for (const auto& [from, output] : copies) {
      if (renamed(from).empty())
        fail_(what + ": " + to_text(key) + " gives its input \"" + from + "\" as it is, which the call leaves out");
      onnx::NodeProto& same = *to.Add();
      same.set_op_type("Identity");
      same.add_input(renamed(from));
      same.add_output(output);
    }
  }

  /// Operators of a function are called CALL/NAME, those in its branches, too.
  static void set_names(onnx::NodeProto& n, const std::string& prefix) {
    if (!n.name().empty()) n.set_name(prefix + "/" + n.name());
    const auto inside = [&](onnx::GraphProto& g) {
      for (auto& inner : *g.mutable_node()) set_names(inner, prefix);
    };
    for (auto& a : *n.mutable_attribute()) {
      if (a.has_g()) inside(*a.mutable_g());
      std::for_each(a.mutable_graphs()->begin(), a.mutable_graphs()->end(), inside);
    }
  }

  /// By name: what the call gives, else the function's defaults.
  [[nodiscard]] attributes attributes_of(const onnx::NodeProto& n, const onnx::FunctionProto& f) const {
    attributes all;
    for (const auto& a : n.attribute()) all[a.name()] = a;
    for (const std::string& text : texts_of_field(f, 11)) {
      onnx::AttributeProto a;
      if (a.ParseFromString(text)) all.emplace(a.name(), a);
    }
    return all;
  }

  /// Attributes that refer to the function's become those.
  void bind(onnx::NodeProto& n, const attributes& given, const std::string& function) {
    auto& all = *n.mutable_attribute();
    for (int i = all.size(); i-- > 0;) {
      const std::string name = all[i].name(), wanted = all[i].ref_attr_name();
      const auto type = all[i].type();
      if (!wanted.empty()) {
        const auto it = given.find(wanted);
        if (it == given.end()) {
          all.DeleteSubrange(i, 1);
          continue;
        }
        if (type != onnx::AttributeProto::UNDEFINED && it->second.type() != onnx::AttributeProto::UNDEFINED && type != it->second.type()) {
          fail_(function + ": operator " + n.op_type() + " expects attribute \"" + wanted + "\" of type " +
                onnx::AttributeProto::AttributeType_Name(type) + ", got " + onnx::AttributeProto::AttributeType_Name(it->second.type()));
        }
        all[i] = it->second;
        all[i].set_name(name);
      }
      const auto inside = [&](onnx::GraphProto& g) {
        for (auto& inner : *g.mutable_node()) bind(inner, given, function);
      };
      if (wanted.empty() && all[i].has_g()) inside(*all[i].mutable_g());
      if (wanted.empty()) std::for_each(all[i].mutable_graphs()->begin(), all[i].mutable_graphs()->end(), inside);
    }
  }

  /// A function may import what the file does not, and other versions, if its operators are the same ones in both.
  void import_versions(const function_key& key, const onnx::FunctionProto& f) {
    if (!imported_.insert(key).second) return;
    std::map<std::string, std::int64_t> whole = imports_;
    for (const auto& o : model_.opset_import()) whole[own_domain(o.domain())] = o.version();
    for (const auto& o : f.opset_import()) {
      const std::string domain = own_domain(o.domain());
      const auto [it, is_new] = whole.emplace(domain, o.version());
      if (is_new) imports_.emplace(domain, o.version());
      if (it->second == o.version()) continue;
      const auto known = [&](const std::string& type, std::int64_t version) {
        const auto most = static_cast<std::int64_t>(1'000'000);
        return onnx::OpSchemaRegistry::Schema(type, static_cast<int>(std::clamp<std::int64_t>(version, 0, most)), domain);
      };
      const bool newer = domain.empty() && o.version() > std::max<std::int64_t>(it->second, onnx_inference::newest());
      const auto differs = std::find_if(f.node().begin(), f.node().end(), [&](const onnx::NodeProto& n) {
        return own_domain(n.domain()) == domain && (newer || known(n.op_type(), it->second) != known(n.op_type(), o.version()));
      });
      if (differs == f.node().end()) continue;
      asks_[key] = to_text(key) + " asks for version " + std::to_string(o.version()) + " of " +
                   (newer ? "ONNX's operators: they count" : "operator " + differs->op_type() + ": it counts") + " as of version " +
                   std::to_string(it->second) + ", which the file asks for";
      note_(asks_[key]);
    }
  }

  static constexpr std::size_t longest_prefix = 200;

  onnx::ModelProto& model_;
  const say& note_;
  const say& fail_;
  std::map<function_key, const onnx::FunctionProto*> functions_;
  std::set<std::pair<std::string, std::string>> named_;  ///< domains and names that any overload has
  std::set<std::string> taken_;                          ///< names of tensors
  std::vector<function_key> open_;                       ///< calls within calls
  std::set<function_key> imported_;
  std::map<function_key, std::string> asks_;     ///< for other versions than the file, in a sentence
  std::map<std::string, std::string> asks_of_;   ///< by first output of each of its operators
  std::map<std::string, std::int64_t> imports_;  ///< that the file lacks
  std::size_t expanded_ = 0, bytes_ = 0;
};

HETPLAN_INLINE std::map<std::string, std::string> expand_functions(onnx::ModelProto& model,
                                                                   const std::function<void(const std::string&)>& note,
                                                                   const std::function<void(const std::string&)>& fail) {
  return onnx_function_expander(model, note, fail).run();
}

}  // namespace hetplan::exchange::detail
