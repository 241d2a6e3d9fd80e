// The program tenon-model-convert: model files of Tenon, ONNX, and tensors of safetensors without a topology. ONNX is
// read and written by the Python package. SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>
#include <tenon/tenon_topology.hpp>

#include "base/files.h"
#include "base/temporary.h"
#include "host/cli/job/initial.h"
#include "host/cli/options.h"
#include "host/cli/program.h"
#include "process/child.h"

namespace tenon::cli {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using weights::StoredTensor;
using weights::TensorFile;

enum class Format { kOnnx, kTensors, kTenon };

struct ConvertArguments {
  std::string in, out, to, topology;
  JobInit init;  // how tensors become parameters
  PluginOptions plugins;
};

void tell_lost(const std::string& out, const std::string& what) {
  std::cerr << plain("not in " + out + ": " + what) << "\n";
}

bool is_onnx(const std::string& path) { return path.ends_with(".onnx"); }

// Runs the converter of the Python package. What it cannot convert it says itself, in several lines.
int convert_onnx(const std::string& in, const std::string& out, const std::string& out_name) {
  const char* const named = std::getenv("TENON_PYTHON");
  const std::string python = named != nullptr && *named != '\0' ? named : "python3";
  const process::ChildEnd end = process::run_child(
      [&](int to) {
        dup2(to, STDOUT_FILENO);
        dup2(to, STDERR_FILENO);
        // -P: a folder "tenon" where the command runs is not the package.
        execlp(python.c_str(), python.c_str(), "-P", "-m", "tenon.onnx", in.c_str(), out.c_str(), nullptr);
        const std::string reason = std::strerror(errno);
        base::write_all(to, reason);
        _exit(1);
      },
      0);
  if (end.code() == kDone) {
    std::istringstream lines(end.text);
    for (std::string line; std::getline(lines, line);)
      if (line.rfind("lost: ", 0) == 0) tell_lost(out_name, line.substr(6));
    return kDone;
  }
  if (end.code() >= kUsage && end.code() <= kBadConfig) {
    std::cerr << plain_lines("tenon: " + end.text);
    return end.code();
  }
  const std::string text = end.text.substr(0, end.text.find_last_not_of('\n') + 1);
  throw Failure(kNotFound,
                "ONNX is read and written by the Python package tenon with onnx (pip install tenon[onnx]), which " +
                    python + " lacks; TENON_PYTHON names another interpreter: " + text.substr(text.rfind('\n') + 1));
}

// Says what of a model of Tenon tensors alone do not have.
void tell_lost_topology(const Host& host, const ConvertArguments& request, const std::string& path) {
  const json layers = json::parse(host.describe_model(path)).at("topology").at("layers");
  tell_lost(request.out, "the topology, " + std::to_string(layers.size()) + " layers");
  for (const json& layer : layers)
    for (const char* key : {"names", "columns"})
      if (layer.contains(key)) tell_lost(request.out, std::string(key) + " of " + layer.at("name").get<std::string>());
}

// Writes the tensors of a file, bit for bit and in their order, as a file of safetensors.
void write_tensors(const Host& host, const ConvertArguments& request, const std::string& path) {
  TensorFile file = weights::read_tensors(host, path);
  const auto is_own = [](const std::string& name) { return name.rfind("tenon.", 0) == 0; };
  if (file.has_topology) {
    tell_lost_topology(host, request, path);
    file.metadata.erase("format");
    std::erase_if(file.metadata, [&](const auto& entry) { return is_own(entry.first); });
    const size_t all = file.tensors.size();
    std::erase_if(file.tensors, [&](const StoredTensor& tensor) { return is_own(tensor.name); });
    if (file.tensors.size() < all)
      tell_lost(request.out, "the state of a training, " + std::to_string(all - file.tensors.size()) + " tensors");
  }
  json header = json::object();
  if (!file.metadata.empty()) header["__metadata__"] = file.metadata;
  uint64_t end = 0;
  for (const StoredTensor& tensor : file.tensors) {
    header[tensor.name] = {
        {"dtype", tensor.type}, {"shape", tensor.shape}, {"data_offsets", {end, end + tensor.bytes}}};
    end += tensor.bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string bytes;
  bytes.reserve(8 + text.size() + end);
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(text.size() >> (8 * i));
  bytes += text;
  for (const StoredTensor& tensor : file.tensors) bytes += weights::read_bytes(tensor);
  replace_file(request.out, bytes);
}

// Returns the model of --topology: a model file, whose values are replaced, or a topology without values.
Model topology_of(const Host& host, const std::string& path) {
  std::error_code error;
  if (fs::is_regular_file(path, error) && path.ends_with(".safetensors")) return host.load(path);
  Model model;
  model.outputs = load_topology(host, path);
  model.parameters = host.parameters(model.outputs, 0);
  return model;
}

// Writes a model of Tenon of tensors and the topology that --topology names.
void write_model(const Host& host, const ConvertArguments& request, const std::string& path, const std::string& out) {
  JobInit init = request.init;
  init.file = path;
  init.target = "\"" + request.topology + "\"";
  const Initial initial(host, init);
  const Model model = topology_of(host, request.topology);
  for (const std::string& line : initial.give(model.parameters, model.outputs, {})) std::cerr << plain(line) << "\n";
  std::vector<std::string> rounded;
  for (const StoredTensor& tensor : weights::read_tensors(host, path).tensors)
    if (tensor.type != "F32" && tensor.type != "F16" && tensor.type != "BF16")
      rounded.push_back(tensor.name + " " + tensor.type);
  if (!rounded.empty()) tell_lost(request.out, "bits of numbers that became float32: " + base::listed(rounded));
  model.parameters.save(model.outputs, out);
}

Format format_of(const Host& host, const std::string& path) {
  if (is_onnx(path)) return Format::kOnnx;
  return weights::read_tensors(host, path).has_topology ? Format::kTenon : Format::kTensors;
}

// Returns the format of OUT: that of --to, or the one that its name and IN leave.
Format target_of(const ConvertArguments& request, Format from) {
  if (request.to == "onnx" || (request.to.empty() && is_onnx(request.out))) return Format::kOnnx;
  const bool becomes_model = from == Format::kOnnx || (from == Format::kTensors && !request.topology.empty());
  return request.to == "tenon" || (request.to.empty() && becomes_model) ? Format::kTenon : Format::kTensors;
}

// Converts in one step, or in two with a model of Tenon between them.
int convert(const ConvertArguments& request, const Options& options) {
  const Host host = request.plugins.host();
  const Format from = format_of(host, request.in), to = target_of(request, from);
  const bool fills = from == Format::kTensors && to != Format::kTensors;
  std::error_code error;
  if (fs::equivalent(request.in, request.out, error)) options.fail("IN and OUT are one file: " + request.in);
  if (from == to && from != Format::kTensors) options.fail(request.in + " has the format of OUT already");
  if (fills && request.topology.empty())
    options.fail(request.in +
                 " holds tensors without a topology: --topology FILE names a file of one, such as a model");
  if (!fills && (!request.topology.empty() || !request.init.layout.empty() || !request.init.rename.empty()))
    options.fail("--topology, --layout and --rename are for tensors that become a model");
  check_file(request.out);
  const base::TemporaryFolder folder;
  std::string path = request.in;
  if (from == Format::kOnnx) {
    const std::string out = to == Format::kTenon ? request.out : folder.file("read.safetensors");
    if (const int exit = convert_onnx(path, out, request.out); exit != kDone) return exit;
    path = out;
  }
  if (fills) {
    const std::string out = to == Format::kTenon ? request.out : folder.file("filled.safetensors");
    write_model(host, request, path, out);
    path = out;
  }
  if (to == Format::kTensors) write_tensors(host, request, path);
  if (to == Format::kOnnx)
    if (const int exit = convert_onnx(path, request.out, request.out); exit != kDone) return exit;
  std::cout << plain("saved " + request.out) << "\n";
  return kDone;
}

int run(const Arguments& arguments) {
  namespace po = boost::program_options;
  ConvertArguments request;
  std::vector<std::string> renames;
  Options options(
      "model convert", {"IN", "OUT"},
      "Converts a model: a model file of Tenon, a file of ONNX, or tensors of safetensors, which have no\n"
      "topology. IN may also be the index of tensors in shards (model.safetensors.index.json) or their\n"
      "folder. The format of OUT follows from its name and IN: .onnx is ONNX; else a file of ONNX becomes a\n"
      "model of Tenon, a model of Tenon its tensors, and tensors with --topology a model of Tenon.\n"
      "What OUT cannot hold is said on standard error. ONNX needs the Python package tenon[onnx];\n"
      "TENON_PYTHON names its interpreter.");
  options.list.add_options()("to", po::value(&request.to)->value_name("FORMAT"),
                             "the format of OUT: onnx, safetensors or tenon")(
      "topology", po::value(&request.topology)->value_name("FILE"),
      "the topology of tensors: a model file, whose values are replaced, or one of a topology alone")(
      "layout", po::value(&request.init.layout)->value_name("NAME"),
      "names and layouts of the tensors: tenon, pytorch or keras, as the key of [init]")(
      "rename", po::value(&renames)->value_name("FROM=TO"), "a name of IN, and the name in its place; may be repeated");
  request.plugins.add_to(options);
  if (!options.parse(arguments)) return kDone;
  const auto require = [&](const char* option, const std::string& value, const std::vector<std::string>& choices) {
    if (!value.empty() && std::find(choices.begin(), choices.end(), value) == choices.end())
      options.fail(std::string(option) + ": expected " + base::joined(choices) + ", got " + value);
  };
  require("--to", request.to, {"onnx", "safetensors", "tenon"});
  require("--layout", request.init.layout, {"tenon", "pytorch", "keras"});
  for (const std::string& each : renames) {
    const size_t sign = each.find('=');
    if (sign == std::string::npos || sign == 0) options.fail("--rename: expected FROM=TO, got " + each);
    request.init.rename.emplace_back(each.substr(0, sign), each.substr(sign + 1));
    const auto& [from, to] = request.init.rename.back();
    if (std::count(from.begin(), from.end(), '*') != std::count(to.begin(), to.end(), '*'))
      options.fail("--rename: expected as many * on both sides, got " + each);
  }
  request.in = options.operand(0);
  request.out = options.operand(1);
  return convert(request, options);
}

}  // namespace

}  // namespace tenon::cli

int main(int argc, char** argv) { return tenon::cli::program(argc, argv, tenon::cli::run); }
