// Errors of the library about components of a job, with their places in it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "host/cli/job/job.h"

namespace tenon::cli {

// A component of the job, with the names that messages use.
struct JobComponent {
  const char* kind;  // "layer", "updater", "reader"
  const JobType& type;
  std::string section;            // for messages: `layer "hidden"`, "[updater]"
  std::vector<std::string> keys;  // keys of the job file beside the attributes
  std::string component;          // its name in errors of the library
  bool named = false;             // the library's messages name the section already
};

// Throws an error of the library as a Failure that begins with the place of the component or attribute in the job.
[[noreturn]] void rethrow_at(const Error& error, const Host& host, const JobComponent& wanted);

}  // namespace tenon::cli
