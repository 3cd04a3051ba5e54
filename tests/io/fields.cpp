// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <concepts>
#include <cstdlib>
#include <limits>
#include <map>
#include <string>

#include <catch2/catch.hpp>

#include <hetplan/io/cluster_json.hpp>
#include <hetplan/io/job_json.hpp>
#include <hetplan/io/json_document.hpp>
#include <hetplan/io/json_text.hpp>
#include <hetplan/io/serving_json.hpp>

namespace test_fields {

using namespace hetplan;
using io::json;
using io::detail::fields_of;
namespace d = io::detail;

namespace {

/// Collects properties of objects in JSON schema form. Fields read by hand are null: the schema describes them.
class field_schemas {
 public:
  explicit field_schemas(const std::string& name = "") : name_(name) { objects[name]["required"] = json::array(); }

  void format(std::string_view format) {
    property("format", {{"const", format}});
    require("format");
  }
  template <class T, class Otherwise, class Rule>
  void operator()(std::string_view key, const T&, const Otherwise& otherwise, const Rule& rule, std::string_view meaning = {}) {
    using type = typename d::value_of<T>::type;
    json p;
    std::string said(meaning);
    const auto say = [&](const std::string& more) { said += (said.empty() ? "" : " ") + more; };
    if constexpr (std::same_as<Rule, io::range>) {
      p = number(rule, d::unit_of<type>, said);
    } else if constexpr (std::same_as<Rule, d::numbers_of>) {
      p = number(rule.allowed, rule.unit, said);
    } else if constexpr (std::same_as<Rule, d::at_most>) {
      p = number(rule.allowed, {}, said);
      p["maximum"] = io::json_number(rule.most);
    } else if constexpr (std::same_as<Rule, d::integers>) {
      p = {{"type", "integer"}, {"minimum", rule.low}};
      if (rule.most) p["maximum"] = *rule.most;
      else if (std::same_as<type, int>) p["maximum"] = std::numeric_limits<int>::max();
    } else if constexpr (std::same_as<Rule, d::names>) {
      p = {{"type", "string"}, {"minLength", 1}};
    } else if constexpr (std::same_as<Rule, d::truth>) {
      p["type"] = "boolean";
    } else {
      for (const auto& [name, value] : rule) p["enum"].push_back(name);
    }
    if constexpr (std::same_as<Otherwise, d::required_field>) {
      require(key);
    } else if constexpr (std::same_as<Otherwise, d::same_as<T>>) {
      say("Default: `" + std::string(otherwise.key) + "`.");
    } else if constexpr (std::same_as<Otherwise, d::always<T>>) {
      p["default"] = json_of(otherwise.value, rule).front();
    } else if constexpr (!std::same_as<Otherwise, d::absent_field>) {
      const json plain = json_of(otherwise, rule);
      // A default outside the allowed values, such as a speed of 0, stands for no limit.
      if (plain.empty()) say("Default: infinite.");
      else if (plain.front() != 0 || (p.value("$ref", "") != "#/$defs/positive" && p.value("minimum", 0) <= 0))
        p["default"] = plain.front();
    }
    if (!said.empty()) p["description"] = said;
    property(key, p);
  }
  template <class Noun>
  void object(std::string_view key, const Noun& part, std::string_view, std::string_view meaning = {}) {
    json p{{"$ref", "#/$defs/" + std::string(key)}};
    if (!meaning.empty()) p["description"] = meaning;
    property(key, p);
    field_schemas inner{std::string(key)};
    fields_of(part, inner);
    objects.merge(inner.objects);
  }
  void by_hand(std::string_view key, const auto&, const auto&) { property(key, nullptr); }
  void check(const auto&) {}

  std::map<std::string, json> objects;

 private:
  void property(std::string_view key, const json& p) { objects[name_]["properties"][std::string(key)] = p; }
  void require(std::string_view key) { objects[name_]["required"].push_back(key); }
  template <class T, class Rule>
  static json json_of(const T& value, const Rule& rule) {
    json o;
    d::field_writer<json> writer(o);
    writer("value", value, d::required, rule);
    return o;
  }
  static json number(io::range r, const io::dimension& unit, std::string& said) {
    if (!unit.plain()) {
      said = "[" + std::string(to_string(unit)) + "]" + (said.empty() ? "" : " ") + said;
      return {{"$ref", r == io::range::above_zero ? "#/$defs/positive" : "#/$defs/amount"}};
    }
    json p{{"type", "number"}};
    if (r != io::range::any) p[r == io::range::above_zero ? "exclusiveMinimum" : "minimum"] = 0;
    return p;
  }

  std::string name_;
};

template <class Noun>
std::map<std::string, json> schemas_of(const std::string& name = "") {
  field_schemas all(name);
  const Noun nothing{};
  fields_of(nothing, all);
  return all.objects;
}

/// Prints JSON with short values on one line, as in files but with the longer lines of schemas.
void print(std::string& out, const json& value, std::size_t indent) {
  std::string line;
  if (value.is_primitive() || d::write_line(line, value, 160 - indent)) {
    out += value.is_primitive() ? value.dump() : line;
    return;
  }
  const char* between = value.is_array() ? "[" : "{";
  for (const auto& [key, each] : value.items()) {
    out += between + ("\n" + std::string(indent + 2, ' '));
    if (value.is_object()) out += json(key).dump() + ": ";
    print(out, each, indent + 2);
    between = ",";
  }
  out += "\n" + std::string(indent, ' ') + (value.is_array() ? "]" : "}");
}

json read_schema(const std::string& kind) {
  return json::parse(io::read_text(std::string(HETPLAN_SOURCE_DIR) + "/docs/reference/" + kind + ".schema.json"));
}

/// Compares a schema with its file; writes the file if HETPLAN_UPDATE is set.
void check_schema(const std::string& kind, const json& schema) {
  INFO(kind << ": HETPLAN_UPDATE=1 test_io \"" << Catch::getResultCapture().getCurrentTestName() << "\" writes it");
  const std::string path = std::string(HETPLAN_SOURCE_DIR) + "/docs/reference/" + kind + ".schema.json";
  std::string wanted;
  print(wanted, schema, 0);
  wanted += "\n";
  if (std::getenv("HETPLAN_UPDATE") != nullptr) io::write_atomically(path, wanted);
  CHECK((io::read_text(path) == wanted));
}

/// Returns the schema with the properties of the lists of fields.
json with_fields(json schema, const std::map<std::string, json>& objects) {
  for (const auto& [name, object] : objects) {
    json& there = name.empty() ? schema : schema["$defs"][name];
    json properties;
    for (const auto& [key, value] : object["properties"].items())
      properties[key] = value.is_null() ? there.at("properties").value(key, json()) : value;
    there["properties"] = properties;
    json required = json::array();
    const json by_hand = there.value("required", json::array());
    for (const auto& [key, value] : object["properties"].items()) {
      const json& where = value.is_null() ? by_hand : object["required"];
      if (std::find(where.begin(), where.end(), key) != where.end()) required.push_back(key);
    }
    if (!required.empty()) there["required"] = required;
  }
  return schema;
}

}  // namespace

TEST_CASE("the schemas say what the lists of fields say") {
  const json jobs = with_fields(read_schema("job"), schemas_of<job>());
  check_schema("job", jobs);

  // A job in a sweep has a name in place of a job file's format.
  json sweep = read_schema("sweep"), properties = {{"name", sweep["$defs"]["job"]["properties"]["name"]}};
  for (const auto& [key, value] : jobs["properties"].items())
    if (key != "format") properties[key] = value;
  sweep["$defs"].update(jobs["$defs"]);
  for (const char* rule : {"if", "then"}) sweep["$defs"]["job"][rule] = jobs[rule];
  sweep["$defs"]["job"]["properties"] = properties;
  check_schema("sweep", sweep);

  std::map<std::string, json> cloud = schemas_of<serve::ring_options>("ring");
  cloud.merge(schemas_of<serve::registered_device>("device"));
  check_schema("cloud", with_fields(read_schema("cloud"), cloud));
  check_schema("services", with_fields(read_schema("services"), schemas_of<serve::service_variant>("variant")));
  std::map<std::string, json> clusters = schemas_of<device>("device");
  clusters.merge(schemas_of<memory_tier>("tier"));
  json cluster = with_fields(read_schema("cluster"), clusters);
  cluster["$defs"]["device"]["required"] = {"name"};  // and memory, unless it is like a built-in device
  check_schema("cluster", cluster);
}

}  // namespace test_fields
