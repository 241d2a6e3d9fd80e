// SPDX-License-Identifier: Apache-2.0
#include "check/definitions/parts.h"

#include <tenon/plugin.hpp>

#include "check/definitions/statements.h"

namespace tenon::check {

namespace {

struct Copy {
  static void describe(tn::LayerDescription& d) {
    d.type("check.copy", "output = input");
    d.input("input", "any shape");
    d.output("output", "as the input");
  }
  static void plan(tn::Planner& planner) { planner.output(0, planner.input(0)); }
  static void lower(const tn::Attributes&, tn::Builder& body) {
    // A sum with zeros of the same shape would be folded; a transpose to and fro is a value in memory of its own.
    const tn::Tensor input = body.input(0);
    tn::Program p;
    p.output(p.full() * 1.0);
    body.output(0, body.pointwise(p, {input}).front());
  }
};

struct Input {
  static void describe(tn::LayerDescription& d) {
    d.type("check.input", "output = the rows of a parameter that the ids name, of any shape");
    d.input("ids", "any shape", TN_PORT_INTEGER);
    d.output("output", "the rows of ids, each of the shape");
    d.attribute(tn::int_attribute("rows").required().at_least(0).doc("rows of the parameter"));
    d.attribute(tn::ints_attribute("shape").required().doc("of a row"));
    d.parameter("values");
  }
  static void plan(tn::Planner& planner) {
    tn::Spec stored = {planner.attributes().integer("rows")}, read = {planner.input(0)[0]};
    for (const int64_t extent : planner.attributes().integers("shape")) {
      stored.push_back(extent);
      read.push_back(extent);
    }
    planner.parameter("values", stored, tn::uniform_initializer(-1, 1));
    planner.output(0, read);
  }
  static void lower(const tn::Attributes&, tn::Builder& body) {
    body.output(0, body.gather(body.parameter(0), body.input(0)));
  }
};

struct Rows {
  static void describe(tn::LayerDescription& d) {
    d.type("check.rows", "output = the rows of a parameter that the ids name");
    d.input("ids", "[samples]", TN_PORT_INTEGER);
    d.output("output", "[samples, width]");
    d.attribute(tn::int_attribute("height").required().at_least(1).doc("rows of the parameter"));
    d.attribute(tn::int_attribute("width").required().at_least(1).doc("elements of a row"));
    d.attribute(tn::bool_attribute("sparse", false).doc("whether the gradient may be row-sparse"));
    d.parameter("values");
  }
  static void plan(tn::Planner& planner) {
    const tn::Attributes attributes = planner.attributes();
    const int64_t height = attributes.integer("height"), width = attributes.integer("width");
    planner.index_limit(0, height);
    planner.parameter("values", tn::Spec({height, width}), tn::uniform_initializer(-1, 1),
                      attributes.flag("sparse") ? TN_PARAMETER_SPARSE_GRADIENT : 0);
    planner.output(0, tn::Spec({planner.input(0)[0], width}));
  }
  static void lower(const tn::Attributes&, tn::Builder& body) {
    body.output(0, body.gather(body.parameter(0), body.input(0)));
  }
};

// Score i = row ids[i] of a parameter times vector i.
struct Scores {
  static void describe(tn::LayerDescription& d) {
    d.type("check.scores", "output = the products of vectors and the rows of a parameter that the ids name");
    d.input("ids", "[samples]", TN_PORT_INTEGER);
    d.input("vectors", "[samples, width]");
    d.output("output", "[samples]");
    d.attribute(tn::int_attribute("height").required().at_least(1).doc("rows of the parameter"));
    d.parameter("values");
  }
  static void plan(tn::Planner& planner) {
    const int64_t height = planner.attributes().integer("height");
    planner.index_limit(0, height);
    planner.parameter("values", tn::Spec({tn::Dim(height), planner.input(1)[1]}), tn::uniform_initializer(-1, 1),
                      TN_PARAMETER_SPARSE_GRADIENT);
    planner.output(0, tn::Spec({planner.input(0)[0]}));
  }
  static void lower(const tn::Attributes&, tn::Builder& body) {
    const tn::Tensor ids = body.input(0), vectors = body.input(1);
    const tn::Dim samples = ids.spec()[0], width = vectors.spec()[1];
    const tn::Tensor rows = body.gather(body.parameter(0), ids.view(tn::Spec({samples, 1})));
    body.output(0, body.gemm(rows, vectors.view(tn::Spec({samples, width, 1}))).view(tn::Spec({samples})));
  }
};

struct Descent {
  static void describe(tn::UpdaterDescription& d) {
    d.type("check.descent", "v = v + sum(g g) of a row; m = m / 2 + g; p = p - m / (8 (1 + v))");
  }
  static void record(tn::UpdateRecorder& update) {
    update.grain(TN_GRAIN_ROW);
    const tn::State m = update.state("m", 0), v = update.row_state("v", 0);
    const tn::Float g = update.gradient();
    const tn::Float m_next = 0.5 * m + g, v_next = v + sum_per_row(g * g);
    update.state_next(m, m_next);
    update.state_next(v, v_next);
    update.parameter_next(update.parameter() - 0.125 * m_next / (1 + v_next));
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("check.parts", "1.0.0", "Layers and an updater of the conformance kit", "Apache-2.0");
  plugin.layer<Copy>();
  plugin.layer<Input>();
  plugin.layer<Rows>();
  plugin.layer<Scores>();
  plugin.layer(primitive_layer());
  plugin.updater<Descent>();
}

}  // namespace

const tn_plugin& parts() { return *tn::entry<describe>(); }

}  // namespace tenon::check
