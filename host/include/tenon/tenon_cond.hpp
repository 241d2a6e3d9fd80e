// Tenon's public API for C++17 and later: branches, layers that run for chosen rows alone.
//
//   const tenon::CondResult made = tenon::cond(
//       is_long, [&](tenon::Branch& then) { return tenon::Layers{host.layer("fc", {then.input(x)}, {{"size", 8}})}; },
//       [&](tenon::Branch& otherwise) { return tenon::Layers{otherwise.input(x)}; });
//
// Then made.results[0] has for each sample what the branch has made that ran for it.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENON_TENON_COND_HPP
#define TENON_TENON_COND_HPP

#include <tenon/tenon_cond.h>

#include <cstdint>
#include <functional>
#include <string>
#include <tenon/tenon.hpp>
#include <vector>

namespace tenon {
inline namespace v0 {

namespace detail {
// Makes a layer of a type of Tenon's plugin "branches".
inline Layer branch_layer(const char* type, const Layers& inputs, const Attributes& attributes = {},
                          const std::string& name = {}) {
  return made_layer(inputs.at(0).host_ref(), type, inputs, attributes, name);
}
}  // namespace detail

// Branches while they are built. tn_cond_input documents the inputs.
class Cond : public detail::Owned<tn_cond, tn_cond_release> {
 public:
  using Owned::Owned;
  [[nodiscard]] uint32_t branches() const { return detail::count_of(rows_.size()); }
  // The rows of branch number `branch` of a value, which may be sequences.
  [[nodiscard]] Layer input(uint32_t branch, const Layer& value, const std::string& name = {}) const {
    try {
      return made_input(branch, value, {}, name);
    } catch (const Error& error) {
      if (error.subject() != "sequence_rows") throw;
    }
    const Layer chosen = made_input(branch, rows_.at(branch), {}, {});
    return made_input(branch, value, detail::branch_layer("choose_sequences", {chosen, value}), name);
  }

 private:
  friend Cond begin_cond(const Layer& over, const Layers& rows, const std::string& name);

  [[nodiscard]] Layer made_input(uint32_t branch, const Layer& value, const Layer& rows,
                                 const std::string& name) const {
    return detail::made<Layer>(host_ref(), [&](tn_layer* to, tn_error* error) {
      return tn_cond_input(host(), handle(), branch, value.handle(), rows.handle(),
                           name.empty() ? nullptr : detail::c_text(name, "name"), to, error);
    });
  }

  Layers rows_;  // of each branch
};

// One branch of a cond; borrows it.
class Branch {
 public:
  Branch(const Cond& cond, uint32_t number) : cond_(cond), number_(number) {}
  [[nodiscard]] uint32_t number() const { return number_; }
  // The rows of the branch of a value, which may be sequences.
  [[nodiscard]] Layer input(const Layer& value, const std::string& name = {}) const {
    return cond_.input(number_, value, name);
  }

 private:
  const Cond& cond_;
  uint32_t number_;
};
// Makes the layers of a branch, and returns its results.
using BranchFunction = std::function<Layers(Branch& branch)>;

// What branches leave outside.
struct CondResult {
  Layer layer;     // whose outputs are the results
  Layers results;  // a value for each sample or row: of the branch that ran for it
};

// Begins branches. over: a layer with a value for each of the rows that are chosen from. rows: of each branch the
// numbers of its rows. name: of the layer that stands for it; empty: generated.
inline Cond begin_cond(const Layer& over, const Layers& rows, const std::string& name = {}) {
  const std::vector<tn_layer> list = detail::handles(rows);
  tn_cond_options c = {};
  c.size = sizeof c;
  c.rows_count = detail::count_of(list.size());
  c.rows = list.data();
  c.over = over.handle();
  c.name = name.empty() ? nullptr : detail::c_text(name, "name");
  Cond cond = detail::made<Cond>(
      over.host_ref(), [&](tn_cond* to, tn_error* error) { return tn_cond_begin(over.host(), &c, to, error); });
  cond.rows_ = rows;
  return cond;
}
// The same with a branch for each of the values 0 to cases - 1 of `choice`; cases 0: it is a predicate, and branch 0
// has the rows in which it holds (is above 0), branch 1 the others.
inline Cond begin_cases(const Layer& choice, uint32_t cases, const std::string& name = {}) {
  const Layer chosen = detail::branch_layer(
      "choose_rows", {choice}, cases == 0 ? Attributes() : Attributes{{"cases", static_cast<int64_t>(cases)}},
      name.empty() ? name : name + ".rows");
  Layers rows;
  for (uint32_t i = 0; i < (cases == 0 ? 2 : cases); ++i) rows.push_back(chosen.output(i));
  return begin_cond(choice, rows, name);
}

// Ends branches. results: of each branch, equally many.
inline CondResult end_cond(Cond& cond, const std::vector<Layers>& results) {
  std::vector<tn_layer> list;
  for (const Layers& each : results)
    for (const Layer& result : each) list.push_back(result.handle());
  for (const Layers& each : results)
    if (each.size() != results[0].size() || results.size() != cond.branches())
      throw Error(TN_INVALID, "branches of a cond have different numbers of results, or not all have some", {},
                  "results");
  CondResult made;
  made.layer = detail::made<Layer>(cond.host_ref(), [&](tn_layer* to, tn_error* error) {
    return tn_cond_end(cond.host(), cond.handle(), list.data(), detail::count_of(list.size()), to, error);
  });
  cond.forget();
  for (uint32_t i = 0; i < results[0].size(); ++i) made.results.push_back(made.layer.output(i));
  return made;
}

namespace detail {
inline CondResult ended_with(Cond cond, const std::vector<BranchFunction>& functions) {
  std::vector<Layers> results;
  for (const BranchFunction& function : functions) {
    Branch branch(cond, count_of(results.size()));
    results.push_back(function(branch));
  }
  return end_cond(cond, results);
}
}  // namespace detail

// Runs `then` for the rows in which the predicate holds (is above 0), `otherwise` for the others. predicate: one number
// for each sample or row. Returns the results outside. Exceptions of the functions are passed on; nothing is left then.
inline CondResult cond(const Layer& predicate, const BranchFunction& then, const BranchFunction& otherwise,
                       const std::string& name = {}) {
  return detail::ended_with(begin_cases(predicate, 0, name), {then, otherwise});
}
// Runs functions[i] for the rows in which `choice`, integers, is i.
inline CondResult cases(const Layer& choice, const std::vector<BranchFunction>& functions,
                        const std::string& name = {}) {
  if (functions.empty()) throw Error(TN_INVALID, "cases need at least one function", {}, "functions");
  return detail::ended_with(begin_cases(choice, detail::count_of(functions.size()), name), functions);
}

}  // namespace v0
}  // namespace tenon
#endif
