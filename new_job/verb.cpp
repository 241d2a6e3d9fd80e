// SPDX-License-Identifier: Apache-2.0
#include "new_job/verb.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <tenon/plugin.hpp>

#include "base/files.h"
#include "base/utf8.h"
#include "host/cli/options.h"
#include "new_job/pictures.h"
#include "new_job/table/write.h"

namespace tenon::new_job {

namespace {

namespace fs = std::filesystem;
using cli::Failure;
using cli::Options;

bool is_folder(const std::string& path) {
  std::error_code unknown;
  return fs::is_directory(path, unknown);
}

// Returns the name of the data without folders and endings: "iris" of "data/iris.csv.gz".
std::string name_of_data(const std::string& path) {
  const fs::path normal = fs::absolute(path).lexically_normal();
  std::string name = (normal.has_filename() ? normal : normal.parent_path()).filename().string();
  if (!is_folder(path)) name = name.substr(0, name.find('.', 1));
  return name.empty() ? "job" : name;
}

void check(const Request& request, const Options& options) {
  if (!(request.hold_out > 0 && request.hold_out < 1)) options.fail("--hold-out: expected a fraction between 0 and 1");
  if (request.seed < 0) options.fail("--seed: expected at least 0, got " + std::to_string(request.seed));
  if (!request.task.empty() && request.task != "classification" && request.task != "regression")
    options.fail("--task: expected classification or regression, got \"" + request.task + "\"");
  for (const std::string& name : request.left_out)
    if (name == request.target) options.fail("--leave-out: \"" + name + "\" is the target");
  std::error_code unknown;
  for (const std::string& path : request.data) {
    if (!base::is_utf8(path)) throw Failure(cli::kBadData, path + ": its name is not UTF-8, as jobs are");
    if (!fs::exists(path, unknown)) throw Failure(cli::kNotFound, path + ": there is no such file or folder");
    if (is_folder(path) && request.data.size() > 1)
      options.fail("expected the files of one table, or one folder of pictures; " + path + " is one of several");
  }
}

// Writes a new file; never over another one.
void write_new(const fs::path& path, const std::string& text) {
  base::Descriptor file(
      base::uninterrupted([&] { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); }));
  if (file.get() < 0 && errno == EEXIST)
    throw Failure(cli::kIo, path.string() + " exists already and is not overwritten; --output names another file");
  if (file.get() >= 0 && base::write_all(file.get(), text) && file.close() == 0) return;
  const std::string why = std::strerror(errno);
  std::error_code unknown;
  if (file.get() >= 0) fs::remove(path, unknown);  // a part of a job
  throw Failure(cli::kIo, path.string() + ": cannot be written: " + why);
}

// The file at fault in what the code of readers throws.
std::string file_of(const tn::Failure& failure) {
  std::string file;
  const auto take = [](void* self, const tn_error_report* report) {
    *static_cast<std::string*>(self) = report->port == nullptr ? "" : report->port;
  };
  const tn_errors errors = {sizeof errors, 0, &file, take};
  failure.report(&errors);
  return file;
}

Written job_for(const Request& request) try {
  return is_folder(request.data.front()) ? job_for_pictures(request) : job_for_table(request);
} catch (const tn::Failure& failure) {
  throw Failure(cli::exit_code(failure.code()), file_of(failure) + ": " + failure.what());
}

}  // namespace

std::string Request::path_in_job(const std::string& path) const {
  const fs::path folder = output == "-" ? fs::current_path() : fs::absolute(output).parent_path();
  const fs::path relative = fs::absolute(path).lexically_normal().lexically_proximate(folder.lexically_normal());
  std::string result = relative.string();
  while (result.size() > 1 && result.back() == '/') result.pop_back();
  return result;
}

std::string Request::name() const { return output == "-" ? name_of_data(data.front()) : output.stem().string(); }

int run_new_job(const cli::Arguments& arguments) {
  namespace po = boost::program_options;
  Request request;
  std::string output;
  Options options(
      "new job", {"DATA..."},
      "Looks at data and writes a commented job for it, which trains as it is. DATA is a table, one or more\n"
      "CSV files (also gzip, with tabs or semicolons), or a folder that has a folder of pictures for each "
      "class.\ndocs/tables.md says what it decides and why.");
  options.list.add_options()("target", po::value(&request.target)->value_name("COLUMN"),
                             "the column of the table that the model is to predict")(
      "task", po::value(&request.task)->value_name("TASK"),
      "classification or regression, where the target may be either")(
      "leave-out", po::value(&request.left_out)->value_name("COLUMN"),
      "a column that the model must not see; may be repeated")(
      "hold-out", po::value(&request.hold_out)->value_name("FRACTION"),
      "the share of the rows that is measured and not trained on; default 0.2")(
      "seed", po::value(&request.seed)->value_name("N"), "of the rows held out and of the training; default 1")(
      "output", po::value(&output)->value_name("FILE"),
      "the job, which must not exist yet; -: standard output; default: DATA with the ending .toml, here");
  if (!options.parse(arguments)) return cli::kDone;
  request.data = options.given();
  check(request, options);
  request.output = output.empty() ? name_of_data(request.data.front()) + ".toml" : output;
  std::error_code unknown;
  if (request.output != "-" && fs::exists(fs::symlink_status(request.output, unknown)))
    throw Failure(cli::kIo,
                  request.output.string() + " exists already and is not overwritten; --output names another file");
  const Written job = job_for(request);
  if (request.output == "-") {
    std::cout << job.text;
    return cli::kDone;
  }
  write_new(request.output, job.text);
  std::cout << cli::plain("wrote " + request.output.string() + ": " + job.summary) << "\n"
            << cli::plain("next: tenon train " + request.output.string()) << "\n";
  return cli::kDone;
}

}  // namespace tenon::new_job
