// SPDX-License-Identifier: Apache-2.0
#include "new_job/table/write.h"

#include <cmath>

#include "base/text.h"
#include "host/cli/cli.h"
#include "new_job/recipe.h"
#include "new_job/table/layers.h"
#include "new_job/table/slots.h"

namespace tenon::new_job {

namespace {

// Returns what the columns are, "4 columns of numbers, 1 of categories".
std::string columns_in_words(const Roles& roles) {
  const auto count = [&](std::initializer_list<Role> kinds) {
    size_t result = 0;
    for (const Role role : kinds) result += roles.with(role).size();
    return result;
  };
  const std::pair<size_t, const char*> kinds[] = {{count({Role::kNumber, Role::kGap, Role::kTail}), "numbers"},
                                                  {count({Role::kCategory, Role::kList}), "categories"},
                                                  {count({Role::kDate}), "dates"},
                                                  {count({Role::kText}), "texts"}};
  std::string result;
  for (const auto& [columns, kind] : kinds) {
    if (columns == 0) continue;
    const std::string columns_of = std::string(" of ") + kind;
    base::append(result, result.empty() ? counted(static_cast<int64_t>(columns), "column") + columns_of
                                        : std::to_string(columns) + columns_of);
  }
  const size_t left_out = roles.with(Role::kLeftOut).size();
  return result + (left_out == 0 ? "" : ", " + std::to_string(left_out) + " left out");
}

std::string target_in_words(const Target& target) {
  const std::string name = files::quoted(target.column->name);
  return target.classes ? std::to_string(target.count()) + " classes of " + name : "the quantity " + name;
}

}  // namespace

Written job_for_table(const Request& request) {
  const Table table = table_of(request);
  const Target target = target_of(table, request);
  const Roles roles = roles_of(table, target, request);
  const auto held_out = static_cast<int64_t>(std::lround(request.hold_out * static_cast<double>(target.rows)));
  const int64_t rows = target.rows - held_out;
  if (held_out < 1 || rows < 1)
    throw cli::Failure(cli::kUsage, "--hold-out: " + shown(request.hold_out) + " of " + counted(target.rows, "row") +
                                        " leaves " + counted(held_out, "row") + " for tests and " +
                                        std::to_string(rows) + " for the training; both need some");
  const Recipe recipe = recipe_of(rows);
  const std::string summary =
      counted(target.rows, "row") + ", " + columns_in_words(roles) + ", to predict " + target_in_words(target);
  JobText job;
  const std::string file = request.name() + ".toml";
  job.comment(cli::plain(summary) + ". Written by `tenon new job`; change what you know better (docs/tables.md).");
  job.line("#   tenon train " + file);
  job.line("#   tenon test " + file + "                   # on the rows that are held out");
  job.line("#   tenon infer " + file + " --data NEW.csv   # new rows need no column " +
           cli::plain(files::quoted(target.column->name)));
  job.key("passes", std::to_string(recipe.passes));
  job.key("seed", std::to_string(request.seed));
  job.key("save", toml_text(request.name() + ".safetensors"));
  if (const std::vector<std::string> fitted = fitted_layers(roles); !fitted.empty()) job.key("fit", toml_texts(fitted));
  job.key("outputs", toml_texts(outputs_of(target)));
  write_readers(job, table, target, roles, request, recipe.batch);
  write_layers(job, target, roles, rows);
  write_training(job, recipe, rows);
  return {job.text(), summary};
}

}  // namespace tenon::new_job
