// SPDX-License-Identifier: Apache-2.0
#include "expression_text.h"

#include <cctype>
#include <charconv>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tenon::arithmetic {

namespace {

using tn::Float;
using tn::Logical;

// Of signs, each "not" and "**", and twice the parentheses. The parser does not call itself, so the stack sets no
// bound.
constexpr size_t kMostDepth = 200;
constexpr size_t kMostCharacters = 1 << 16;

struct Value {  // NOLINT(bugprone-exception-escape): its parts move without one
  std::variant<Float, Logical> held;
  std::optional<double> literal = {};  // a number as it was written
};

struct Function {
  size_t arguments = 0;
  std::function<Value(std::vector<Value>&)> apply;
};

enum class Step {
  kGroup,
  kCall,
  kOr,
  kAnd,
  kNot,
  kCompare,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kPlus,
  kMinus,
  kPower
};

// How tightly a step binds its operands; 0 if a bracket encloses them.
int rank(Step step) {
  constexpr int kRanks[] = {0, 0, 1, 2, 3, 4, 5, 5, 6, 6, 7, 7, 8};
  return kRanks[static_cast<size_t>(step)];
}

// What waits for the value of the text behind it.
struct Pending {
  Step step;
  std::optional<Value> left = {};      // of a binary operator
  const char* sign = "";               // of a comparison
  bool chained = false;                // whether `left` is a comparison itself, without brackets
  const Function* function = nullptr;  // of a call
  std::string name = {};               // likewise
  size_t begin = 0;                    // likewise: where its name is
  std::vector<Value> arguments = {};   // likewise, that are complete
};

class Parser {
 public:
  Parser(const std::string& text, const char* attribute, tn::Program& program,
         const std::map<std::string, Float>& names)
      : text_(text), attribute_(attribute), program_(program) {
    for (const auto& [name, value] : names) names_.emplace(name, Value{value});
    functions_ = {{"sqrt", one(tn::sqrt)},   {"exp", one(tn::exp)},     {"expm1", one(tn::expm1)},
                  {"log", one(tn::log)},     {"log1p", one(tn::log1p)}, {"tanh", one(tn::tanh)},
                  {"erf", one(tn::erf)},     {"sin", one(tn::sin)},     {"cos", one(tn::cos)},
                  {"floor", one(tn::floor)}, {"round", one(tn::round)}};
    functions_["abs"] = one([](const Float& x) { return abs(x); });
    functions_["sign"] = one([](const Float& x) { return sign(x); });
    functions_["stop"] = one([](const Float& x) { return stop(x); });
    functions_["square"] = one([](const Float& x) { return x * x; });
    functions_["reciprocal"] = one([](const Float& x) { return 1 / x; });
    functions_["relu"] = one([](const Float& x) { return max(x, 0); });
    // Bounded, or the derivative would be infinity times 0; float32 holds exp(80).
    functions_["sigmoid"] = one([](const Float& x) { return 1 / (1 + exp(min(-x, 80))); });
    // (x + |x|) / 2 has the derivative 1/2 at 0, as the whole has.
    functions_["softplus"] = one([](const Float& x) { return 0.5 * (x + abs(x)) + log1p(exp(-abs(x))); });
    functions_["max"] = two([](const Float& a, const Float& b) { return max(a, b); });
    functions_["min"] = two([](const Float& a, const Float& b) { return min(a, b); });
    functions_["pow"] = two([](const Float& a, const Float& b) { return pow(a, b); });
    functions_["is_finite"] = {1, [this](std::vector<Value>& a) { return Value{is_finite(number(a[0]))}; }};
    functions_["clip"] = {
        3, [this](std::vector<Value>& a) { return Value{min(max(number(a[0]), number(a[1])), number(a[2]))}; }};
    functions_["where"] = {
        3, [this](std::vector<Value>& a) { return Value{select(truth(a[0]), number(a[1]), number(a[2]))}; }};
  }

  Float parse() {
    if (text_.size() > kMostCharacters) fail("has more than " + std::to_string(kMostCharacters) + " characters");
    while (true) {
      const size_t begin = skip();
      const std::string name = word();
      if (!name.empty() && symbol("=") && !symbol("=")) {
        check_new(name, begin);
        const Value value = either();
        names_.insert_or_assign(name, Value{value.held});
        require(";");
        continue;
      }
      at_ = begin;
      const Value value = either();
      if (skip() != text_.size()) fail("unexpected \"" + std::string(1, text_[at_]) + "\"");
      return number(value);
    }
  }

 private:
  template <typename Apply>
  Function one(Apply apply) {
    return {1, [this, apply](std::vector<Value>& a) { return Value{apply(number(a[0]))}; }};
  }
  template <typename Apply>
  Function two(Apply apply) {
    return {2, [this, apply](std::vector<Value>& a) { return Value{apply(number(a[0]), number(a[1]))}; }};
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw tn::Failure(TN_INVALID, attribute_, "character " + std::to_string(at_ + 1) + ": " + what);
  }
  void check_new(const std::string& name, size_t begin) {
    at_ = begin;
    if (is_keyword(name) || functions_.count(name) != 0) fail("\"" + name + "\" is taken");
    if (names_.count(name) != 0) fail("\"" + name + "\" has a value already");
    at_ = begin + name.size();
    require("=");
  }
  static bool is_keyword(const std::string& name) { return name == "and" || name == "or" || name == "not"; }

  size_t skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    return at_;
  }
  // Takes a symbol if it is next.
  bool symbol(std::string_view wanted) {
    skip();
    if (text_.compare(at_, wanted.size(), wanted) != 0) return false;
    at_ += wanted.size();
    return true;
  }
  void require(std::string_view wanted) {
    if (symbol(wanted)) return;
    const std::string found = at_ == text_.size() ? "the end" : "\"" + std::string(1, text_[at_]) + "\"";
    fail("expected \"" + std::string(wanted) + "\", found " + found);
  }
  // Takes a name, or returns "".
  std::string word() {
    const size_t begin = skip();
    const auto is_part = [this] {
      const auto c = static_cast<unsigned char>(text_[at_]);
      return std::isalpha(c) != 0 || c == '_' || (std::isdigit(c) != 0);
    };
    if (at_ == text_.size() || std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) return "";
    while (at_ < text_.size() && is_part()) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  bool keyword(const std::string& wanted) {
    const size_t begin = skip();
    if (word() == wanted) return true;
    at_ = begin;
    return false;
  }

  Float number(const Value& value) const {
    if (const auto* number = std::get_if<Float>(&value.held)) return *number;
    return to_float(std::get<Logical>(value.held));
  }
  Logical truth(const Value& value) const {
    if (const auto* logical = std::get_if<Logical>(&value.held)) return *logical;
    return tn::to_logical(std::get<Float>(value.held));
  }

  // Returns the value of the text up to what cannot belong to it.
  Value either() {
    while (true) {
      std::optional<Value> value = operand();
      while (value && !next_operator(*value)) {
        reduce(*value, 1);
        if (pending_.empty()) return *value;
        value = close(*value);
      }
    }
  }

  // Takes what begins an operand, and what of it is complete; nothing after a bracket that opens.
  std::optional<Value> operand() {
    if (pending_.empty() || rank(pending_.back().step) <= rank(Step::kNot)) {
      check_depth(1);
      while (keyword("not")) open({Step::kNot}, 1);
    }
    check_depth(2);
    while (true) {
      if (symbol("+"))
        open({Step::kPlus}, 2);
      else if (symbol("-"))
        open({Step::kMinus}, 2);
      else
        return atom();
    }
  }
  // more: how deep it is in the innermost brackets.
  void open(Pending pending, size_t more) {
    pending_.push_back(std::move(pending));
    ++deep_;
    check_depth(more);
  }
  void check_depth(size_t more) const {
    if (deep_ + more > kMostDepth) fail("is nested more than " + std::to_string(kMostDepth) + " deep");
  }

  // Takes the operator behind a value, which becomes its left operand; false if there is none.
  bool next_operator(Value& value) {
    struct Sign {
      const char* text;
      Step step;
    };
    // The longer of two with the same beginning is the first.
    constexpr Sign kSigns[] = {{"**", Step::kPower},   {"*", Step::kMultiply}, {"/", Step::kDivide},
                               {"+", Step::kAdd},      {"-", Step::kSubtract}, {"<=", Step::kCompare},
                               {">=", Step::kCompare}, {"==", Step::kCompare}, {"!=", Step::kCompare},
                               {"<", Step::kCompare},  {">", Step::kCompare}};
    const size_t begin = skip();
    // Messages name the end of the operand.
    const auto reduce_to = [&](Step step) {
      const size_t after = std::exchange(at_, begin);
      const bool compared = reduce(value, rank(step));
      at_ = after;
      return compared;
    };
    for (const Sign& sign : kSigns)
      if (symbol(sign.text)) {
        const bool power = sign.step == Step::kPower;  // of the atom alone
        const bool compared = !power && reduce_to(sign.step);
        if (power) ++deep_;
        const bool chained = sign.step == Step::kCompare && compared;
        pending_.push_back({sign.step, value, sign.text, chained});
        return true;
      }
    for (const Step step : {Step::kAnd, Step::kOr})
      if (keyword(step == Step::kAnd ? "and" : "or")) {
        reduce_to(step);
        pending_.push_back({step, Value{truth(value)}});
        return true;
      }
    return false;
  }

  // Applies what waits for the value and binds it at least as tightly as this rank. Returns whether one of them was a
  // comparison.
  bool reduce(Value& value, int least) {
    bool compared = false;
    while (!pending_.empty() && rank(pending_.back().step) >= least) {
      const Pending last = std::move(pending_.back());
      pending_.pop_back();
      if (last.step == Step::kNot || rank(last.step) >= rank(Step::kPlus)) --deep_;
      compared = compared || last.step == Step::kCompare;
      value = applied(last, value);
    }
    return compared;
  }

  Value applied(const Pending& by, const Value& value) {
    switch (by.step) {
      case Step::kGroup:
      case Step::kCall:
        break;
      case Step::kOr:
        return {truth(*by.left) || truth(value)};
      case Step::kAnd:
        return {truth(*by.left) && truth(value)};
      case Step::kNot:
        return {!truth(value)};
      case Step::kCompare:
        return compare(by, value);
      case Step::kAdd:
        return {number(*by.left) + number(value)};
      case Step::kSubtract:
        return {number(*by.left) - number(value)};
      case Step::kMultiply:
        return {number(*by.left) * number(value)};
      case Step::kDivide:
        return {number(*by.left) / number(value)};
      case Step::kPlus:
        break;
      case Step::kMinus:
        return value.literal ? constant(-*value.literal) : Value{-number(value)};
      case Step::kPower:
        return power(*by.left, value);
    }
    return value;
  }
  Value compare(const Pending& by, const Value& value) {
    if (by.chained) fail("comparisons do not chain: join them by \"and\"");
    const std::string_view sign = by.sign;
    if (sign == "<=") return {number(*by.left) <= number(value)};
    if (sign == ">=") return {number(*by.left) >= number(value)};
    if (sign == "==") return {number(*by.left) == number(value)};
    if (sign == "!=") return {number(*by.left) != number(value)};
    if (sign == "<") return {number(*by.left) < number(value)};
    return {number(*by.left) > number(value)};
  }
  Value power(const Value& base, const Value& exponent) {
    const Float x = number(base);
    // Exact, and defined for all numbers.
    if (exponent.literal == 1.0) return base;
    if (exponent.literal == 2.0) return {x * x};
    if (exponent.literal == 3.0) return {x * x * x};
    if (exponent.literal == 0.5) return {sqrt(x)};
    if (exponent.literal == -1.0) return {1 / x};
    return {pow(x, number(exponent))};
  }
  Value constant(double number) { return {program_.constant(number), number}; }

  std::optional<Value> atom() {
    const size_t begin = skip();
    if (symbol("(")) {
      open_bracket({Step::kGroup});
      return std::nullopt;
    }
    if (begin < text_.size() && (std::isdigit(static_cast<unsigned char>(text_[begin])) != 0 || text_[begin] == '.')) {
      double number = 0;
      const char* const end = text_.data() + text_.size();
      const auto [rest, failure] = std::from_chars(text_.data() + begin, end, number);
      if (failure != std::errc()) fail("is no number that can be held");
      at_ = static_cast<size_t>(rest - text_.data());
      return constant(number);
    }
    const std::string name = word();
    if (name.empty() || is_keyword(name)) {
      at_ = begin;
      fail(begin == text_.size()
               ? "expected a value, found the end"
               : "expected a value, found \"" + (name.empty() ? std::string(1, text_[begin]) : name) + "\"");
    }
    if (symbol("(")) return call(name, begin);
    const auto found = names_.find(name);
    if (found != names_.end()) return found->second;
    at_ = begin;
    std::string known;
    for (const auto& [each, value] : names_) known += (known.empty() ? "" : ", ") + each;
    fail("unknown name \"" + name + "\"; names: " + known);
  }
  void open_bracket(Pending pending) {
    pending_.push_back(std::move(pending));
    deep_ += 2;
  }

  std::optional<Value> call(const std::string& name, size_t begin) {
    const auto found = functions_.find(name);
    if (found == functions_.end()) {
      at_ = begin;
      fail("unknown function \"" + name + "\"; functions: " + kFunctions);
    }
    open_bracket({Step::kCall, {}, "", false, &found->second, name, begin});
    if (symbol(")")) return finish_call();
    return std::nullopt;
  }
  // Ends the innermost brackets behind a value; nothing if another argument follows.
  std::optional<Value> close(const Value& value) {
    if (pending_.back().step == Step::kCall) {
      pending_.back().arguments.push_back(value);
      if (symbol(",")) return std::nullopt;
      require(")");
      return finish_call();
    }
    require(")");
    pending_.pop_back();
    deep_ -= 2;
    return Value{value.held};
  }
  Value finish_call() {
    Pending last = std::move(pending_.back());
    pending_.pop_back();
    deep_ -= 2;
    if (last.arguments.size() != last.function->arguments) {
      at_ = last.begin;
      fail(last.name + " takes " + std::to_string(last.function->arguments) + " arguments, got " +
           std::to_string(last.arguments.size()));
    }
    return last.function->apply(last.arguments);
  }

  const std::string& text_;
  const char* attribute_;
  tn::Program& program_;
  std::map<std::string, Value> names_;
  std::map<std::string, Function> functions_;
  size_t at_ = 0;
  std::vector<Pending> pending_;  // the innermost is the last
  size_t deep_ = 0;               // the depth of what is pending
};

}  // namespace

Float record_formula(const std::string& text, const char* attribute, tn::Program& program,
                     const std::map<std::string, Float>& names) {
  return Parser(text, attribute, program, names).parse();
}

}  // namespace tenon::arithmetic
