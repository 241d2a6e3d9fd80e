// SPDX-License-Identifier: Apache-2.0
#include "rerun/verb.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>

#include "base/temporary.h"
#include "host/cli/console.h"
#include "host/cli/options.h"
#include "host/cli/record/data.h"
#include "host/cli/record/recorded.h"
#include "host/cli/verbs/train_job.h"
#include "record/comparison.h"
#include "record/differences.h"

namespace tenon::rerun {

namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;
using cli::Failure;
using cli::Job;
using nlohmann::json;

struct Request {
  std::string folder;      // of the record
  std::string job_folder;  // where relative paths of the job begin
  cli::PathPairs data;     // paths of the job, and those in place of them
  bool goes_on = false;
  cli::TrainArguments arguments;
};

// Returns the job of the record, with the paths of this machine. What it saves goes into the folder `results`.
Job job_of(const json& record, const Request& request, const fs::path& results) {
  const json& job = record.at("job");
  std::vector<cli::JobFile> files;
  for (const json& file : job.at("files"))
    files.push_back({(fs::path(request.job_folder) / file.at("path").get<std::string>()).lexically_normal().string(),
                     file.at("text")});
  if (files.empty()) throw Failure(cli::kBadData, request.folder + ": the record has no job");
  Job result = cli::parse_job(files.front().text, files.front().path, job.at("set"), &files);
  result.seed = record.at("seed");
  result.training.passes = record.at("passes");
  result.test_every = record.at("test_every");
  result.shards = record.at("shards");
  result.threads = std::max<int64_t>(0, request.arguments.common.threads);
  result.checkpoint.reset();
  const auto moved = [&](const std::string& path) { return (results / fs::path(path).filename()).string(); };
  for (auto* const file : {&result.save, &result.average_save}) file->reset();
  for (const json& model : record.at("models"))
    (model.at("key") == "save" ? result.save : result.average_save) = moved(model.at("file"));
  cli::replace_paths(result, request.data);
  return result;
}

// Compares the data with the record, and returns what differs first, empty if nothing does.
std::string data_difference(const json& record, const Request& request, const Job& job) {
  const json& files = record.at("data").at("files");
  std::map<std::string, std::string> here;  // where each file is read
  for (const cli::DataFile& each : cli::data_of(job).files) here[each.path] = each.file;
  uint64_t bytes = 0;
  for (const json& before : files) {
    const std::string path = cli::replaced_path(before.at("path"), request.data);
    const auto place = here.find(path);
    std::error_code unknown;
    if (place == here.end() || !fs::exists(place->second, unknown))
      throw Failure(cli::kNotFound, "data file \"" + path + "\" of the record is missing, seen from \"" +
                                        request.job_folder + "\"; --data OLD=NEW states another place, " +
                                        "--job-folder another folder");
    const json now = record::digest_of_file(cli::record_surroundings(), place->second, path);
    if (std::string text = record::file_difference(before, now); !text.empty()) return text;
    bytes += now.at("bytes").get<uint64_t>();
    here.erase(place);
  }
  if (!here.empty()) return "data file \"" + here.begin()->first + "\" is not in the record";
  std::cout << "data: " << files.size() << (files.size() == 1 ? " file, " : " files, ") << cli::shown_bytes(bytes)
            << ", as recorded" << std::endl;
  for (const json& sentence : record.at("data").at("unknown"))
    std::cout << cli::plain("not recorded: " + sentence.get<std::string>()) << std::endl;
  return "";
}

int differs(const std::string& text) {
  std::cout << cli::plain("differs: " + text) << std::endl;
  return kDiffers;
}

int rerun(Request& request) {
  const record::Surroundings surroundings = cli::record_surroundings();
  const json record = record::read_record(surroundings, request.folder);
  record::require_repeatable(surroundings, record, request.folder);
  if (record.at("job").is_null())
    throw Failure(cli::kBadConfig, record::record_path(request.folder) +
                                       ": is of a training of an application, which compares with it by its option "
                                       "\"rerun\"; there is no job to repeat");
  if (request.job_folder.empty())
    request.job_folder =
        (fs::path(request.folder) / record.at("job").at("folder").get<std::string>()).lexically_normal().string();
  const base::TemporaryFolder results("tenon-rerun");
  Job job = job_of(record, request, results.path());
  if (const std::string text = data_difference(record, request, job); !text.empty()) {
    if (!request.goes_on) return differs(text);
    std::cout << cli::plain("differs: " + text) << std::endl;
  }
  cli::TrainArguments& arguments = request.arguments;
  arguments.common.quiet = true;
  arguments.no_save = record.at("models").empty();
  if (job.save) arguments.save = *job.save;
  record::Comparison comparison(surroundings, record, request.goes_on);
  int exit = cli::kDone;
  try {
    exit = cli::train_job(arguments, std::move(job), comparison);
  } catch (const Failure&) {
    if (comparison.difference().empty()) throw;
  }
  for (const std::string& remark : comparison.remarks()) std::cout << cli::plain("remark: " + remark) << std::endl;
  if (!comparison.difference().empty()) return differs(comparison.difference());
  if (exit >= cli::kSignalled) return exit;
  std::cout << comparison.updates() << " updates, " << comparison.compared()
            << " digests of the parameters, as recorded\n"
            << cli::plain("the same model: " + request.folder) << std::endl;
  return cli::kDone;
}

}  // namespace

int run_rerun(const cli::Arguments& words) {
  Request request;
  std::vector<std::string> data;
  cli::Options options(
      "rerun", {"FOLDER"},
      "Trains again from the record of a training, which `tenon train --run FOLDER` has written, and compares\n"
      "data, versions, arithmetic and parameters with it. Exit code 0: the same model, bit for bit; 1: something\n"
      "differs, of which it names the first: a block of a data file, a version, an update and a parameter.\n"
      "Nothing is saved.");
  cli::JobOptions& common = request.arguments.common;
  options.list.add_options()("job-folder", po::value(&request.job_folder)->value_name("DIR"),
                             "where relative paths of the job begin (the place of the job, seen from FOLDER)")(
      "data", po::value(&data)->value_name("OLD=NEW"),
      "read NEW in place of the file or folder OLD of the job; may be repeated")(
      "go-on", po::bool_switch(&request.goes_on), "train also with other data or versions, to see where bits part")(
      "threads", po::value(&common.threads)->value_name("N"), "compute threads; 0 (default): one for each core");
  common.plugins.add_to(options);
  if (!options.parse(words)) return cli::kDone;
  request.folder = options.operand(0);
  if (common.threads != cli::JobOptions::kNotGiven && (common.threads < 0 || common.threads > cli::kMostThreads))
    options.fail("--threads: expected 0 to " + std::to_string(cli::kMostThreads) + ", got " +
                 std::to_string(common.threads));
  for (const std::string& pair : data) {
    const size_t equals = pair.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == pair.size())
      options.fail("--data: expected OLD=NEW, got \"" + pair + "\"");
    request.data.emplace_back(pair.substr(0, equals), fs::absolute(pair.substr(equals + 1)).string());
  }
  try {
    return rerun(request);
  } catch (const json::exception& error) {
    throw Failure(cli::kBadData, record::record_path(request.folder) + ": is not a whole record: " + error.what());
  }
}

}  // namespace tenon::rerun
