// SPDX-License-Identifier: Apache-2.0
#include "host/cli/saved_model.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <tenon/tenon_topology.hpp>

#include "base/nearest.h"
#include "base/text.h"
#include "host/cli/job/reader_metadata.h"

namespace tenon::cli {

namespace {

namespace po = boost::program_options;

// Whether a file begins as a model file does: with the length of a header that fits into it. The letters of a job would
// be a length beyond every file's. A file that cannot be read counts as a job, whose reader says why.
bool is_model_file(const std::string& path) {
  std::error_code failed;
  const uintmax_t size = std::filesystem::file_size(path, failed);
  std::array<unsigned char, 8> bytes = {};
  std::ifstream file(path, std::ios::binary);
  if (failed || !file.read(reinterpret_cast<char*>(bytes.data()), bytes.size())) return false;
  uint64_t length = 0;
  for (size_t i = bytes.size(); i-- > 0;) length = length << 8 | bytes[i];
  return length <= size - bytes.size();
}

Role role_of(const Layer& layer) {
  const LayerInfo info = inspect(layer);
  if (info.output > 0 || info.role == "layer") return Role::kLayer;  // output 0 of a cost is the cost
  return info.role == "cost" ? Role::kCost : Role::kMetric;
}

// The name of an output in a job.
std::string name_of(const Layer& layer) {
  const LayerInfo info = inspect(layer);
  return info.output == 0 ? info.name : info.name + ":" + std::to_string(info.output);
}

std::string reader_of_model(const Host& host, const std::string& path) {
  const nlohmann::json model = nlohmann::json::parse(host.describe_model(path));
  const nlohmann::json& metadata = model.at("metadata");
  if (!metadata.contains(kReaderMetadata))
    throw Failure(kUsage, path +
                              ": the model file does not say how its data is read: it was not saved by `tenon train` " +
                              "since version 0.4; name a job with a reader, and the model by --model " + path);
  return metadata.at(kReaderMetadata).get<std::string>();
}

// Whether a reader says where its data is.
bool names_data(const JobReader& reader) {
  const auto is_place = [](const Attribute& attribute) {
    return std::find(std::begin(kDataPlaces), std::end(kDataPlaces), attribute.name) != std::end(kDataPlaces);
  };
  return std::any_of(reader.attributes.begin(), reader.attributes.end(), is_place);
}

}  // namespace

void SavedModelArguments::add_to(Options& options, const std::string& reader_help) {
  options.list.add_options()("model", po::value(&model)->value_name("FILE"),
                             "the model file of a job; default: where the job saves it")(
      "data", po::value(&data)->value_name("FILE..."),
      "read these files, or this folder, instead of those of the job's test data or, without it, training data")(
      "reader", po::value(&reader)->value_name("NAME"), ("train or test (default): " + reader_help).c_str());
  common.add_to(options);
}

void SavedModelArguments::take_operands(const Options& options) {
  const std::vector<std::string>& operands = options.given();
  if (operands.size() > 1 && data.empty()) options.fail("unexpected \"" + operands[1] + "\"");
  file = operands.at(0);
  data.insert(data.end(), operands.begin() + 1, operands.end());
}

SavedModel::SavedModel(const SavedModelArguments& arguments, const Options& options)
    : place_(arguments.file),
      is_job_(!is_model_file(arguments.file)),
      interactive_(arguments.interactive),
      data_(arguments.data),
      job_(is_job_ ? arguments.common.load(options, arguments.file) : arguments.common.without_job(options)),
      host_(arguments.common.host(job_)) {
  if (is_job_) {
    const bool trained_with = !data_.empty() && arguments.reader == "test" && !job_.test;
    source_ = reader_of(job_, trained_with ? "train" : arguments.reader);
    path_ = model_path(job_, arguments.model);
    topology_.emplace(host_, job_, source_, open_);
    return;
  }
  if (!arguments.model.empty()) options.fail("--model: the operand is a model file already");
  if (arguments.reader != "test") options.fail("--reader: a model file has no other readers; expected a job");
  path_ = arguments.file;
  job_ = parse_job_of_model(reader_of_model(host_, path_), path_, arguments.common.sets);
  source_ = reader_of(job_, "test");
  if (data_.empty() && !interactive_ && !names_data(source_))
    throw Failure(kUsage, path_ + ": a model file does not say where data is; name it with --data FILE...");
  model_ = host_.load(path_);
  if (model_->outputs.empty()) throw Failure(kBadData, path_ + ": the file has no layers");
}

void SavedModel::take_needed(std::vector<std::string> needed) {
  needed_ = std::move(needed);
  if (!data_.empty()) source_ = with_data(host_, source_, data_, needed_);
  data_.clear();
}

std::optional<Layer> SavedModel::find(const std::string& name) const {
  const auto layer_called = [&](const std::string& title) -> std::optional<Layer> {
    for (const Layer& output : model_->outputs)
      if (std::optional<Layer> layer = output.find(title); layer && inspect(*layer).type != "data") return layer;
    return std::nullopt;
  };
  if (std::optional<Layer> layer = layer_called(name)) return layer;
  const size_t colon = name.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  const std::optional<Layer> layer = layer_called(name.substr(0, colon));
  if (!layer) return std::nullopt;
  const std::string output = name.substr(colon + 1);
  const char* const end = output.data() + output.size();
  for (uint32_t i = 0, count = inspect(*layer).outputs, number = 0; i < count; ++i) {
    const auto [rest, failure] = std::from_chars(output.data(), end, number);
    const bool is_number = failure == std::errc() && rest == end && number == i;
    if (is_number || inspect_output(*layer, i).port == output) return layer->output(i);
  }
  return std::nullopt;
}

bool SavedModel::has_layer(const std::string& name) const {
  return topology_ ? topology_->has_layer(name) : find(name).has_value();
}

Role SavedModel::role(const std::string& name) const {
  return topology_ ? topology_->role(name) : role_of(find(name).value());
}

std::vector<std::string> SavedModel::layers() const {
  if (topology_) return topology_->names();
  std::vector<std::string> result;
  for (const Layer& layer : tenon::layers(model_->outputs))
    if (const LayerInfo info = inspect(layer); info.type != "data") result.push_back(info.name);
  return result;
}

std::string SavedModel::unknown(const std::string& name) const {
  return topology_ ? topology_->unknown(name)
                   : "the model has no layer \"" + name + "\"" + base::suggestion(name, layers());
}

std::vector<std::string> SavedModel::outputs() const {
  if (topology_) return topology_->outputs();
  std::vector<std::string> result;
  for (const Layer& output : model_->outputs) result.push_back(name_of(output));
  return result;
}

std::vector<std::string> SavedModel::measured() const {
  std::vector<std::string> result = outputs();
  std::erase_if(result, [this](const std::string& name) { return role(name) == Role::kLayer; });
  return result;
}

std::vector<std::string> SavedModel::scored() const {
  std::vector<std::string> result;
  const auto add = [&](const std::string& name) {
    if (has_layer(name) && role(name) == Role::kLayer && std::count(result.begin(), result.end(), name) == 0)
      result.push_back(name);
  };
  for (const std::string& output : outputs()) {
    if (role(output) != Role::kCost) continue;
    if (topology_) {
      for (const std::string& input : topology_->job_layer(output)->inputs) add(input);
      continue;
    }
    const Layer cost = find(output).value();
    for (uint32_t i = 0, count = inspect(cost).inputs; i < count; ++i)
      if (const std::optional<Layer> read = input(cost, i)) add(name_of(*read));
  }
  return result;
}

TrainOptions SavedModel::run(const std::vector<std::string>& outputs, Console& console) {
  TrainOptions options;
  if (topology_) {
    take_needed(data_layers_of(*topology_, outputs));
    options = run_of_model(host_, job_, source_, path_, outputs, open_, *topology_, console);
    names_ = options.parameters.names();
    return options;
  }
  for (const std::string& name : outputs) options.outputs.push_back(find(name).value());
  std::vector<std::string> needed;
  for (const Layer& data : data_layers(options.outputs)) needed.push_back(inspect(data).name);
  take_needed(std::move(needed));
  options.parameters = model_->parameters;
  names_ = options.parameters.names();
  if (!interactive_) open_ = open_reader(host_, job_, source_, true, names_, false, needed_);
  options.reader = open_.reader;
  options.feeding = open_.feeding;
  set_devices(job_, &options);
  return options;
}

OpenReader SavedModel::open_again(JobReader source) const {
  source.prefetch = 0;  // its texts are asked for, which a thread that reads ahead would not allow
  return open_reader(host_, job_, source, true, names_, false, needed_);
}

}  // namespace tenon::cli
