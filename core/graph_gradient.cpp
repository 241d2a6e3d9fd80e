// Derivative rules of the primitives. SPDX-License-Identifier: Apache-2.0
#include "core/error.h"
#include "core/graph.h"

namespace tenon {

namespace {

class Differentiator {
 public:
  Differentiator(Graph& graph, const std::vector<ValueId>& wanted, const std::set<ValueId>& by_rows, tn_dtype compute)
      : graph_(graph),
        wanted_(wanted.begin(), wanted.end()),
        by_rows_(by_rows),
        compute_(compute),
        needed_(graph.values.size(), false),
        gradients_(graph.values.size(), kNoValue) {
    for (const ValueId value : wanted) needed_[index(value)] = true;
    for (const Node& node : graph.nodes)
      for (const ValueId input : node.inputs)
        if (input != kNoValue && needed_[index(input)])
          for (const ValueId output : node.outputs)
            if (output != kNoValue && is_float(graph.spec(output).dtype)) needed_[index(output)] = true;
  }

  void run(const std::vector<GradientSeed>& seeds) {
    for (const GradientSeed& seed : seeds) add(seed.value, seed.gradient, -1);
    for (size_t i = graph_.nodes.size(); i-- > 0;) {
      const Node node = graph_.nodes[i];  // a copy: the rules append to the graph
      bool reached = false;
      for (const ValueId output : node.outputs)
        reached = reached || (output != kNoValue && gradient(output) != kNoValue);
      if (reached) step(node);
    }
    for (const auto& [value, contributions] : rows_) finish_rows(value, contributions);
  }

  [[nodiscard]] ValueId gradient(ValueId value) const { return gradients_[index(value)]; }

 private:
  static size_t index(ValueId value) { return static_cast<size_t>(value); }
  [[nodiscard]] bool needed(ValueId value) const { return value != kNoValue && needed_[index(value)]; }
  GraphWriter writer(int32_t layer) { return {graph_, layer, true, compute_}; }

  // Adds a contribution to the gradient of a value.
  void add(ValueId value, ValueId contribution, int32_t layer) {
    if (!needed(value)) return;
    ValueId& sum = gradients_[index(value)];
    if (sum == kNoValue) {
      sum = contribution;
      return;
    }
    ProgramWriter program;
    program.output(program.apply(TN_OP_ADD, program.input(TN_FULL), program.input(TN_FULL)));
    sum = writer(layer).pointwise(std::make_shared<Program>(program.finish()), {sum, contribution}, 0)[0];
  }

  void step(const Node& node) {
    switch (node.primitive) {
      case Primitive::kPointwise:
        return pointwise(node);
      case Primitive::kGemm:
        return gemm(node);
      case Primitive::kGather: {
        if (!needed(node.inputs[0])) return;
        if (by_rows_.contains(node.inputs[0])) return add_rows(node);
        const Dim height = graph_.spec(node.inputs[0]).shape[0];
        return add(node.inputs[0], writer(node.layer).scatter_add(gradient(node.outputs[0]), node.inputs[1], height),
                   node.layer);
      }
      case Primitive::kScatterAdd:
        if (!needed(node.inputs[0])) return;
        return add(node.inputs[0], writer(node.layer).gather(gradient(node.outputs[0]), node.inputs[1]), node.layer);
      case Primitive::kMove:
        for (const MovePart& part : node.move->parts)
          if (needed(node.inputs[part.input]))
            add(node.inputs[part.input], writer(node.layer).move_back(node, part, gradient(node.outputs[0])),
                node.layer);
        return;
      case Primitive::kView:
        if (!needed(node.inputs[0])) return;
        return add(node.inputs[0],
                   writer(node.layer).view(gradient(node.outputs[0]), graph_.spec(node.inputs[0]).shape), node.layer);
      case Primitive::kSegment:
        if (node.inputs[0] != kNoValue && needed(node.inputs[0])) segment(node);
        return;
      case Primitive::kCoalesce:  // stands in backward alone
        return;
      case Primitive::kNative:
        return native(node);
    }
  }

  void segment(const Node& node) {
    const ValueId x = node.inputs[0];
    const ValueId given = gradient(node.outputs[0]);
    const auto [op, rows, by] = node.segment;
    GraphWriter write = writer(node.layer);
    switch (op) {
      case TN_SEGMENT_SUM:
        return add(x, write.segment(TN_SEGMENT_SPREAD, given, rows, 0), node.layer);
      case TN_SEGMENT_SPREAD:
        return add(x, write.segment(TN_SEGMENT_SUM, given, rows, 0), node.layer);
      case TN_SEGMENT_SHIFT:
        return add(x, write.segment(TN_SEGMENT_SHIFT, given, rows, -by), node.layer);
      case TN_SEGMENT_MAX:
        return add(x, largest(node, given), node.layer);
      default:
        return;
    }
  }

  // Shared between the rows that are equal to the largest one of their segment.
  ValueId largest(const Node& node, ValueId given) {
    const Dim& rows = node.segment.rows;
    GraphWriter write = writer(node.layer);
    const ValueId most = write.segment(TN_SEGMENT_SPREAD, node.outputs[0], rows, 0);
    ProgramWriter marks;
    const int32_t equal = marks.apply(TN_OP_EQUAL, marks.input(TN_FULL), marks.input(TN_FULL));
    marks.output(marks.apply(TN_OP_SELECT, equal, marks.constant(1), marks.constant(0)));
    const ValueId marked = write.pointwise(std::make_shared<Program>(marks.finish()), {node.inputs[0], most}, 1)[0];
    const ValueId count = write.segment(TN_SEGMENT_SUM, marked, rows, 0);
    ProgramWriter share;
    const int32_t gradient = share.input(TN_FULL);
    share.output(share.apply(TN_OP_DIV, gradient, share.apply(TN_OP_MAX, share.input(TN_FULL), share.constant(1))));
    const ValueId shared = write.pointwise(std::make_shared<Program>(share.finish()), {given, count}, 1)[0];
    ProgramWriter product;
    product.output(product.apply(TN_OP_MUL, product.input(TN_FULL), product.input(TN_FULL)));
    const ValueId spread = write.segment(TN_SEGMENT_SPREAD, shared, rows, 0);
    return write.pointwise(std::make_shared<Program>(product.finish()), {marked, spread}, 1)[0];
  }

  // ---- gradients of rows

  // A table was read by ids: what its rows get is noted, and becomes one value at the end.
  void add_rows(const Node& gather) {
    const ValueId table = gather.inputs[0];
    const ValueId ids = gather.inputs[1];
    GraphWriter::Contribution contribution{gradient(gather.outputs[0]), ids, kNoValue};
    // What a segment spreads over its ids need not be written out for each of them.
    const int32_t producer = graph_.values[index(contribution.values)].producer;
    if (producer >= 0 && graph_.spec(ids).shape.size() == 1) {
      const Node& maker = graph_.nodes[static_cast<size_t>(producer)];
      if (maker.primitive == Primitive::kSegment && maker.segment.op == TN_SEGMENT_SPREAD &&
          same(maker.segment.rows, graph_.spec(ids).shape[0]))
        contribution = {maker.inputs[0], ids, maker.inputs[1]};
    }
    rows_[table].push_back(contribution);
    rows_layer_.try_emplace(table, gather.layer);
  }

  void finish_rows(ValueId table, const std::vector<GraphWriter::Contribution>& contributions) {
    const int32_t layer = rows_layer_.at(table);
    const Spec whole = graph_.spec(table);
    ValueId& sum = gradients_[index(table)];
    if (sum == kNoValue) {
      sum = writer(layer).coalesce(contributions, whole);
      return;
    }
    for (const GraphWriter::Contribution& each : contributions) {
      ValueId values = each.values;
      if (each.offsets != kNoValue)
        values = writer(layer).segment(TN_SEGMENT_SPREAD, values, graph_.spec(each.ids).shape[0], 0);
      add(table, writer(layer).scatter_add(values, each.ids, whole.shape[0]), layer);
    }
  }

  // Whether it is 0 whatever the inputs are: the constant, or that spread over a larger extent.
  static bool is_zero(const Program& program, const tn_instruction& in) {
    if (in.op == TN_OP_SELECT && in.b == in.c) return is_zero(program, program.instructions[static_cast<size_t>(in.b)]);
    return in.op == TN_OP_CONSTANT && in.number == 0;
  }

  void pointwise(const Node& node) {
    std::vector<int32_t> wanted;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (node.program->inputs[i].kind == TN_FLOAT && needed(node.inputs[i])) wanted.push_back(static_cast<int32_t>(i));
    if (wanted.empty()) return;
    std::vector<bool> given;
    for (const ValueId output : node.outputs) given.push_back(output != kNoValue && gradient(output) != kNoValue);
    const Program derived = node.author_gradient
                                ? restrict_gradient(*node.author_gradient, *node.program, given, wanted)
                                : derive_gradient(*node.program, given, wanted);
    const auto operand = [&](int32_t input) {
      const auto at = static_cast<size_t>(input);
      const size_t first_output = node.inputs.size();
      const size_t first_gradient = first_output + node.outputs.size();
      return at < first_output     ? node.inputs[at]
             : at < first_gradient ? node.outputs[at - first_output]
                                   : gradient(node.outputs[at - first_gradient]);
    };
    // A gradient that is one of the operands unchanged needs no copy; one that is 0, where what follows from it is not
    // asked for itself (the largest value that softmax subtracts), is none.
    Program computed = derived;
    computed.outputs.clear();
    std::vector<ValueId> contributions(wanted.size(), kNoValue);
    std::vector<bool> none(wanted.size(), false);
    for (size_t i = 0; i < wanted.size(); ++i) {
      const tn_instruction& in = derived.instructions[static_cast<size_t>(derived.outputs[i].value)];
      none[i] = is_zero(derived, in) && !wanted_.contains(node.inputs[static_cast<size_t>(wanted[i])]);
      if (none[i]) continue;
      if (in.op == TN_OP_INPUT && derived.inputs[static_cast<size_t>(in.a)].kind == TN_FLOAT)
        contributions[i] = operand(in.a);
      else
        computed.outputs.push_back(derived.outputs[i]);
    }
    if (!computed.outputs.empty()) {
      const TrimmedProgram trimmed = trim_inputs(computed);
      std::vector<ValueId> inputs;
      for (const int32_t kept : trimmed.kept) inputs.push_back(operand(kept));
      const std::vector<ValueId> made =
          writer(node.layer).pointwise_on(std::make_shared<Program>(trimmed.program), inputs, node.whole, node.leading);
      size_t next = 0;
      for (size_t i = 0; i < wanted.size(); ++i)
        if (contributions[i] == kNoValue && !none[i]) contributions[i] = made[next++];
    }
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (none[i]) continue;
      const ValueId input = node.inputs[static_cast<size_t>(wanted[i])];
      // A PER_ROW operand may carry trailing ones that its gradient has not.
      add(input, writer(node.layer).view(contributions[i], graph_.spec(input).shape), node.layer);
    }
  }

  // C = alpha op(A) op(B); dA = alpha dC op(B)^T, dB = alpha op(A)^T dC, each transposed where A or B is stored so.
  void gemm(const Node& node) {
    const bool ta = (node.flags & TN_TRANSPOSE_A) != 0;
    const bool tb = (node.flags & TN_TRANSPOSE_B) != 0;
    const ValueId a = node.inputs[0];
    const ValueId b = node.inputs[1];
    const ValueId dc = gradient(node.outputs[0]);
    const auto flags = [](bool first, bool second) {
      return static_cast<uint32_t>((first ? TN_TRANSPOSE_A : 0) | (second ? TN_TRANSPOSE_B : 0));
    };
    if (needed(a))
      add(a,
          ta ? writer(node.layer).gemm(b, dc, flags(tb, true), node.alpha)
             : writer(node.layer).gemm(dc, b, flags(false, !tb), node.alpha),
          node.layer);
    if (needed(b))
      add(b,
          tb ? writer(node.layer).gemm(dc, a, flags(true, ta), node.alpha)
             : writer(node.layer).gemm(a, dc, flags(!ta, false), node.alpha),
          node.layer);
  }

  // Backward of a native kernel: inputs, parameters, outputs, gradients of outputs; kNoValue where not read.
  void native(const Node& node) {
    bool any = false;
    for (const ValueId input : node.inputs) any = any || needed(input);
    if (!any) return;
    const std::string& layer = graph_.layers[static_cast<size_t>(node.layer)];
    if (!node.native.differentiable) fail(TN_UNSUPPORTED, "layer \"", layer, "\": its kernel has no backward");
    std::vector<ValueId> inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      inputs.push_back((node.native.backward_inputs >> i & 1U) != 0 ? node.inputs[i] : kNoValue);
    for (size_t i = 0; i < node.outputs.size(); ++i)
      inputs.push_back((node.native.backward_outputs >> i & 1U) != 0 ? node.outputs[i] : kNoValue);
    for (const ValueId output : node.outputs) inputs.push_back(gradient(output));
    Node backward;
    backward.primitive = Primitive::kNative;
    backward.inputs = std::move(inputs);
    backward.layer = node.layer;
    backward.fused = node.fused;
    backward.backward = true;
    backward.native = node.native;
    const auto number = static_cast<int32_t>(graph_.nodes.size());
    graph_.nodes.push_back(backward);
    for (const ValueId input : node.inputs) {
      ValueId made = kNoValue;
      if (needed(input)) {
        const Spec spec = graph_.spec(input);
        made = graph_.add_value(spec, number);
        add(input, made, node.layer);
      }
      graph_.nodes[static_cast<size_t>(number)].outputs.push_back(made);
    }
  }

  Graph& graph_;
  const std::set<ValueId> wanted_;
  const std::set<ValueId>& by_rows_;
  tn_dtype compute_;
  std::map<ValueId, std::vector<GraphWriter::Contribution>> rows_;
  std::map<ValueId, int32_t> rows_layer_;  // the layer of the first contribution
  std::vector<bool> needed_;               // on a path from a wanted value; only values that existed at the start
  std::vector<ValueId> gradients_;         // likewise
};

}  // namespace

std::map<ValueId, ValueId> differentiate(Graph& graph, const std::vector<GradientSeed>& seeds,
                                         const std::vector<ValueId>& wanted, tn_dtype compute,
                                         const std::set<ValueId>& by_rows) {
  Differentiator differentiator(graph, wanted, by_rows, compute);
  differentiator.run(seeds);
  std::map<ValueId, ValueId> result;
  for (const ValueId value : wanted) result[value] = differentiator.gradient(value);
  return result;
}

}  // namespace tenon
