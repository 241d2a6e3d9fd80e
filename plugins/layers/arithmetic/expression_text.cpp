// SPDX-License-Identifier: Apache-2.0
#include "expression_text.h"

#include <cctype>
#include <charconv>
#include <functional>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

namespace tenon::arithmetic {

namespace {

using tn::Float;
using tn::Logical;

constexpr int kMostDepth = 200;  // of parentheses and signs; the parser calls itself for each
constexpr size_t kMostCharacters = 1 << 16;

struct Value {
  std::variant<Float, Logical> held;
  std::optional<double> literal = {};  // a number as it was written
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
  struct Function {
    size_t arguments = 0;
    std::function<Value(std::vector<Value>&)> apply;
  };
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

  Value either() {
    Value left = both();
    while (keyword("or")) left = {truth(left) || truth(both())};
    return left;
  }
  Value both() {
    Value left = negation();
    while (keyword("and")) left = {truth(left) && truth(negation())};
    return left;
  }
  Value negation() {
    const Depth depth(*this);
    return keyword("not") ? Value{!truth(negation())} : comparison();
  }
  Value comparison() {
    const Value left = sum();
    const std::optional<Value> compared = compare(left);
    if (!compared) return left;
    if (compare(left)) fail("comparisons do not chain: join them by \"and\"");
    return *compared;
  }
  // The two of "<=" before "<".
  std::optional<Value> compare(const Value& left) {
    if (symbol("<=")) return Value{number(left) <= number(sum())};
    if (symbol(">=")) return Value{number(left) >= number(sum())};
    if (symbol("==")) return Value{number(left) == number(sum())};
    if (symbol("!=")) return Value{number(left) != number(sum())};
    if (symbol("<")) return Value{number(left) < number(sum())};
    if (symbol(">")) return Value{number(left) > number(sum())};
    return std::nullopt;
  }
  Value sum() {
    Value left = product();
    while (true) {
      if (symbol("+"))
        left = {number(left) + number(product())};
      else if (symbol("-"))
        left = {number(left) - number(product())};
      else
        return left;
    }
  }
  Value product() {
    Value left = signed_power();
    while (true) {
      if (symbol("*"))
        left = {number(left) * number(signed_power())};
      else if (symbol("/"))
        left = {number(left) / number(signed_power())};
      else
        return left;
    }
  }
  Value signed_power() {
    const Depth depth(*this);
    if (symbol("+")) return signed_power();
    if (!symbol("-")) return power();
    const Value value = signed_power();
    if (value.literal) return constant(-*value.literal);
    return {-number(value)};
  }
  Value power() {
    const Value base = atom();
    if (!symbol("**")) return base;
    const Value exponent = signed_power();
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

  Value atom() {
    const size_t begin = skip();
    if (symbol("(")) {
      const Value value = either();
      require(")");
      return {value.held};
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

  Value call(const std::string& name, size_t begin) {
    const auto found = functions_.find(name);
    if (found == functions_.end()) {
      at_ = begin;
      fail("unknown function \"" + name + "\"; functions: " + kFunctions);
    }
    std::vector<Value> arguments;
    if (!symbol(")")) {
      do arguments.push_back(either());
      while (symbol(","));
      require(")");
    }
    if (arguments.size() != found->second.arguments) {
      at_ = begin;
      fail(name + " takes " + std::to_string(found->second.arguments) + " arguments, got " +
           std::to_string(arguments.size()));
    }
    return found->second.apply(arguments);
  }

  // Counts how deep the parser is in itself.
  class Depth {
   public:
    explicit Depth(Parser& parser) : parser_(parser) {
      if (++parser_.depth_ > kMostDepth) parser_.fail("is nested more than " + std::to_string(kMostDepth) + " deep");
    }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    ~Depth() { --parser_.depth_; }

   private:
    Parser& parser_;
  };

  const std::string& text_;
  const char* attribute_;
  tn::Program& program_;
  std::map<std::string, Value> names_;
  std::map<std::string, Function> functions_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Float record_formula(const std::string& text, const char* attribute, tn::Program& program,
                     const std::map<std::string, Float>& names) {
  return Parser(text, attribute, program, names).parse();
}

}  // namespace tenon::arithmetic
