// Products and sums by Einstein's convention. SPDX-License-Identifier: Apache-2.0
#include "einsum.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace tenon::matmul {

namespace {

bool has(const std::string& letters, char letter) { return letters.find(letter) != std::string::npos; }

// The letters of `from` that `keep(letter)` accepts, in their order.
template <typename Keep>
std::string those(const std::string& from, const Keep& keep) {
  std::string result;
  for (const char letter : from)
    if (keep(letter)) result += letter;
  return result;
}

// "ij,jk->ik": the letters of the dimensions of a sample, of each input and of the output.
struct Equation {
  std::vector<std::string> inputs;
  std::string output;
};

// The equation that an attribute states. Does not check it.
Equation parsed(const std::string& text) {
  const std::string letters = those(text, [](char c) { return c != ' '; });
  const size_t arrow = letters.find("->");
  Equation equation;
  const std::string left = letters.substr(0, arrow);
  for (size_t start = 0, end = 0; end != std::string::npos; start = end + 1) {
    end = left.find(',', start);
    equation.inputs.push_back(left.substr(start, end == std::string::npos ? end : end - start));
  }
  if (arrow != std::string::npos) {
    equation.output = letters.substr(arrow + 2);
  } else {  // the letters that occur once, in alphabetical order
    equation.output = those(left, [&](char c) { return c != ',' && std::count(left.begin(), left.end(), c) == 1; });
    std::sort(equation.output.begin(), equation.output.end());
  }
  return equation;
}

tn::Failure refused(tn_status code, const std::string& message) { return {code, "equation", message}; }

// Throws unless each term is made of different letters, and the output of letters of the inputs.
void check_letters(const std::string& text, const Equation& equation) {
  if (text.find("...") != std::string::npos)
    throw refused(TN_UNSUPPORTED, "has an ellipsis; only a letter for each dimension of a sample is offered");
  std::vector<std::string> terms = equation.inputs;
  terms.push_back(equation.output);
  std::string all;
  for (const std::string& term : terms) {
    for (const char c : term) {
      if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')))
        throw refused(TN_INVALID,
                      "has the character \"" + std::string(1, c) + "\"; expected letters, \",\" and \"->\"");
      if (std::count(term.begin(), term.end(), c) > 1)
        throw refused(TN_UNSUPPORTED,
                      "has the letter " + std::string(1, c) + " twice in \"" + term + "\"; diagonals are not offered");
    }
  }
  for (const std::string& term : equation.inputs) all += term;
  for (const char c : equation.output)
    if (!has(all, c))
      throw refused(TN_INVALID, "has the letter " + std::string(1, c) + " in the output and in no input");
}

// A value [samples, dimensions...] with a letter for each dimension after the samples.
struct Operand {
  tn::Tensor value;
  std::string letters;
};

int64_t elements(const Operand& operand, const std::string& letters) {
  int64_t product = 1;
  for (const char letter : letters)
    product *= operand.value.spec()[static_cast<int32_t>(operand.letters.find(letter)) + 1].offset;
  return product;
}

Operand ordered(tn::Builder& body, const Operand& operand, const std::string& letters) {
  if (operand.letters == letters) return operand;
  std::vector<int32_t> axes{0};
  for (const char letter : letters) axes.push_back(static_cast<int32_t>(operand.letters.find(letter)) + 1);
  return {body.transpose(operand.value, axes), letters};
}

// Sums over the dimensions that `keep` does not accept.
template <typename Keep>
Operand summed(tn::Builder& body, const Operand& operand, const Keep& keep) {
  const std::string kept = those(operand.letters, keep);
  if (kept.size() == operand.letters.size()) return operand;
  const std::string gone = those(operand.letters, [&](char c) { return !keep(c); });
  tn::Program program;
  program.output(sum_per_row(program.full()));
  const tn::Tensor value = ordered(body, operand, kept + gone).value;
  return {body.pointwise(program, {value}, static_cast<int32_t>(kept.size()) + 1).front(), kept};
}

// The letters of two operands by their part in the product. A letter of one operand alone is wanted.
struct Parts {
  Parts(const Operand& a, const Operand& b, const std::string& wanted)
      : batch(those(a.letters, [&](char c) { return has(b.letters, c) && has(wanted, c); })),
        joined(those(a.letters, [&](char c) { return has(b.letters, c) && !has(wanted, c); })),
        of_a(those(a.letters, [&](char c) { return !has(b.letters, c); })),
        of_b(those(b.letters, [&](char c) { return !has(a.letters, c); })) {}
  std::string batch;   // of both, and wanted
  std::string joined;  // of both, summed over
  std::string of_a, of_b;
};

// a [samples, batch, of_a], b [samples, batch], or with the same dimensions: element by element, summed over joined.
Operand by_elements(tn::Builder& body, const Operand& a, const Operand& b, const Parts& parts) {
  tn::Program program;
  const tn::Float x = program.full();
  const tn::Float product = x * (parts.of_a.empty() ? program.full() : program.per_row());
  program.output(parts.joined.empty() ? product : sum_per_row(product));
  const std::vector<tn::Tensor> operands{ordered(body, a, parts.batch + parts.joined + parts.of_a).value,
                                         ordered(body, b, parts.batch + parts.joined).value};
  return {body.pointwise(program, operands, static_cast<int32_t>(parts.batch.size()) + 1).front(),
          parts.batch + parts.of_a};
}

// A matrix product for each sample and place of batch: [of_a, joined] times [joined, of_b].
Operand by_matrices(tn::Builder& body, const Operand& a, const Operand& b, const Parts& parts) {
  const bool ta = a.letters == parts.batch + parts.joined + parts.of_a && !parts.of_a.empty();
  const bool tb = b.letters == parts.batch + parts.of_b + parts.joined && !parts.of_b.empty();
  const Operand left = ta ? a : ordered(body, a, parts.batch + parts.of_a + parts.joined);
  const Operand right = tb ? b : ordered(body, b, parts.batch + parts.joined + parts.of_b);
  const tn::Dim samples = a.value.spec()[0];
  const int64_t batch = elements(a, parts.batch), depth = elements(a, parts.joined);
  const int64_t rows = elements(a, parts.of_a), columns = elements(b, parts.of_b);
  const tn::Spec left_shape({samples, batch, ta ? depth : rows, ta ? rows : depth});
  const tn::Spec right_shape({samples, batch, tb ? columns : depth, tb ? depth : columns});
  const uint32_t flags = (ta ? uint32_t{TN_TRANSPOSE_A} : 0U) | (tb ? uint32_t{TN_TRANSPOSE_B} : 0U);
  const tn::Tensor product = body.gemm(left.value.view(left_shape), right.value.view(right_shape), flags);
  tn::Spec shape({samples});
  for (const char letter : parts.batch + parts.of_a) shape.push_back(elements(a, std::string(1, letter)));
  for (const char letter : parts.of_b) shape.push_back(elements(b, std::string(1, letter)));
  return {product.view(shape), parts.batch + parts.of_a + parts.of_b};
}

// The product of two operands, summed over the letters that are not wanted.
Operand multiplied(tn::Builder& body, const Operand& first, const Operand& second, const std::string& wanted) {
  const Operand a = summed(body, first, [&](char c) { return has(wanted, c) || has(second.letters, c); });
  const Operand b = summed(body, second, [&](char c) { return has(wanted, c) || has(first.letters, c); });
  const Parts parts(a, b, wanted);
  if (parts.of_b.empty() && (parts.of_a.empty() || parts.joined.empty())) return by_elements(body, a, b, parts);
  if (parts.of_a.empty() && parts.joined.empty()) return by_elements(body, b, a, Parts(b, a, wanted));
  return by_matrices(body, a, b, parts);
}

struct Einsum {
  static void describe(tn::LayerDescription& d) {
    d.type("einsum",
           "The product of the inputs, summed over the dimensions that the output does not have, by Einstein's "
           "convention as in numpy.einsum: letters name the dimensions of one sample, the samples have none. "
           "\"ij,jk->ik\" multiplies matrices, \"i,j->ij\" is the outer product, \"ij->ji\" transposes, \"ij->i\" sums "
           "rows. Without an arrow the output has the letters that occur once, in alphabetical order. Inputs are "
           "multiplied from the first to the last. Not offered: an ellipsis, and a letter twice in one input "
           "(diagonals).");
    d.input("inputs", "[samples, ...]; at most 16", TN_PORT_VARIADIC);
    d.output("output", "[samples, the dimensions of the output's letters...]");
    d.attribute(tn::string_attribute("equation").required().doc("letters of each input, and of the output"));
  }

  static void plan(tn::Planner& planner) {
    const std::string text = planner.attributes().text("equation");
    const Equation equation = parsed(text);
    check_letters(text, equation);
    const uint32_t count = planner.inputs_count();
    if (count > kMostInputs)
      throw tn::Failure(TN_UNSUPPORTED, "inputs",
                        "are " + std::to_string(count) + "; at most " + std::to_string(kMostInputs) + " are offered");
    if (equation.inputs.size() != count)
      throw refused(TN_INVALID, "has " + std::to_string(equation.inputs.size()) + " terms for " +
                                    std::to_string(count) + " inputs");
    std::map<char, int64_t> sizes;
    for (uint32_t i = 0; i < count; ++i) {
      const tn::Spec input = planner.input(i);
      const std::string& letters = equation.inputs[i];
      const std::string name = "number " + std::to_string(i) + ", \"" + letters + "\",";
      if (input.rank() != static_cast<int32_t>(letters.size()) + 1)
        throw planner.bad_input(
            i, name + " must have " + std::to_string(letters.size()) + " dimensions after the samples");
      if (!input[0].same(planner.input(0)[0]))
        throw planner.bad_input(i, name + " has other samples than the first").expected(planner.input(0));
      planner.elements(i, 1);
      for (size_t k = 0; k < letters.size(); ++k) {
        const int64_t size = input[static_cast<int32_t>(k) + 1].offset;
        const int64_t known = sizes.emplace(letters[k], size).first->second;
        if (known != size)
          throw planner
              .bad_input(i, name + " has the length " + std::to_string(size) + " along " + letters[k] + ", which is " +
                                std::to_string(known) + " in an input before it")
              .expected(input.with(static_cast<int32_t>(k) + 1, known));
      }
    }
    if (equation.output.size() >= TN_MAX_RANK)
      throw refused(TN_UNSUPPORTED, "has more than " + std::to_string(TN_MAX_RANK - 1) + " letters in the output");
    tn::Spec output = planner.input(0).leading(1).as(TN_COMPUTE);
    int64_t elements = 1;
    for (const char letter : equation.output) {
      if (elements > INT64_MAX / sizes[letter]) throw refused(TN_INVALID, "makes an output of too many elements");
      elements *= sizes[letter];
      output.push_back(sizes[letter]);
    }
    planner.output(0, output);
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const Equation equation = parsed(attributes.text("equation"));
    Operand result = {body.input(0), equation.inputs[0]};
    for (uint32_t i = 1; i < equation.inputs.size(); ++i) {
      std::string wanted = equation.output;
      for (size_t later = i + 1; later < equation.inputs.size(); ++later) wanted += equation.inputs[later];
      result = multiplied(body, result, {body.input(0, i), equation.inputs[i]}, wanted);
    }
    result = summed(body, result, [&](char c) { return has(equation.output, c); });
    body.output(0, ordered(body, result, equation.output).value);
  }

 private:
  static constexpr uint32_t kMostInputs = 16;
};

}  // namespace

void add_einsum(tn::Plugin& plugin) { plugin.layer<Einsum>(); }

}  // namespace tenon::matmul
