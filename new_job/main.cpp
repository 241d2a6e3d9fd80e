// The program tenon-new-job, which `tenon new job` runs. SPDX-License-Identifier: Apache-2.0
#include "host/cli/program.h"
#include "new_job/verb.h"

int main(int argc, char** argv) { return tenon::cli::program(argc, argv, tenon::new_job::run_new_job); }
