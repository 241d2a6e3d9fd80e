// SPDX-License-Identifier: Apache-2.0
#include "cluster/yaml.h"

#include <yaml-cpp/yaml.h>

#include "host/cli/cli.h"

namespace tenon::cluster {

namespace {

constexpr int kDeepest = 50;
constexpr size_t kMostNodes = 100'000;  // aliases count as often as they are there

// Converts a document, in which aliases may lead anywhere.
class Converter {
 public:
  explicit Converter(std::string path) : path_(std::move(path)) {}

  json convert(const YAML::Node& node, int depth = 0) {
    if (depth > kDeepest || ++nodes_ > kMostNodes)
      throw cli::Failure(cli::kBadConfig, path_ + ": this is deeper or larger than a kubeconfig can be");
    if (node.IsMap()) {
      json result = json::object();
      for (const auto& member : node) result[member.first.as<std::string>()] = convert(member.second, depth + 1);
      return result;
    }
    if (node.IsSequence()) {
      json result = json::array();
      for (const YAML::Node& entry : node) result.push_back(convert(entry, depth + 1));
      return result;
    }
    if (!node.IsScalar()) return nullptr;
    const bool is_quoted = node.Tag() == "!";
    if (bool truth = false; !is_quoted && YAML::convert<bool>::decode(node, truth)) return truth;
    if (int64_t number = 0; !is_quoted && YAML::convert<int64_t>::decode(node, number)) return number;
    return node.Scalar();
  }

 private:
  const std::string path_;
  size_t nodes_ = 0;
};

// Whether a text can be written as a block, in which lines are what they are.
bool is_block(const std::string& text) {
  return text.find('\n') != std::string::npos && text.back() == '\n' && text.front() != ' ' && text.front() != '\n' &&
         text.find_first_of("\r\t") == std::string::npos && !text.ends_with("\n\n");
}

void emit(YAML::Emitter& to, const json& value) {
  if (value.is_object()) {
    to << YAML::BeginMap;
    for (const auto& [key, member] : value.items()) {
      to << YAML::Key << key << YAML::Value;
      emit(to, member);
    }
    to << YAML::EndMap;
  } else if (value.is_array()) {
    to << YAML::BeginSeq;
    for (const json& entry : value) emit(to, entry);
    to << YAML::EndSeq;
  } else if (value.is_string()) {
    const std::string text = value;
    if (is_block(text))
      to << YAML::Literal << text;
    else
      to << YAML::DoubleQuoted << text;
  } else {
    to << value.dump();
  }
}

}  // namespace

json read_yaml(const std::string& path) try {
  return Converter(path).convert(YAML::LoadFile(path));
} catch (const YAML::BadFile&) {
  throw cli::Failure(cli::kNotFound, "cannot read \"" + path + "\"");
} catch (const YAML::Exception& error) {
  throw cli::Failure(cli::kBadConfig, path + ":" + std::to_string(error.mark.line + 1) + ": " + error.msg);
}

std::string write_yaml(const json& value) {
  YAML::Emitter to;
  to.SetIndent(2);
  emit(to, value);
  return "---\n" + std::string(to.c_str()) + "\n";
}

}  // namespace tenon::cluster
