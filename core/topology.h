// Layers and their outputs, and the topology traced back from outputs. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/layer.h>

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/array_view.h"
#include "core/attribute.h"
#include "core/names.h"
#include "core/parameter_set.h"
#include "core/shape.h"

namespace tenon::core {

struct Layer;
using LayerRef = std::shared_ptr<const Layer>;

struct Branch;
using BranchRef = std::shared_ptr<const Branch>;

// One output of a layer. Applications hold these; a model is given by one or more of them.
struct LayerOutput {
  LayerRef layer;  // null: an optional input that is absent
  uint32_t output = 0;
};

// Type, shape and storage of the values that a data layer is fed.
struct DataSource {
  tn_dtype dtype = TN_COMPUTE;  // of the fed array
  std::vector<int64_t> shape;   // of one sample, as fed
  int64_t index_limit = -1;
  double scale = 1, offset = 0;  // integers are converted to scale * x + offset at float ports
  int32_t storage = TN_DENSE;    // TN_RAGGED: `shape` is that of one row; TN_CSR: `shape` is [width]
  uint32_t levels = 0;           // TN_RAGGED: 1 or 2
  std::string sequence;          // TN_RAGGED: data layers with an equal `sequence` have sequences of equal lengths
  bool channels_first = false;   // fed as [channels, height, width]; the output is [height, width, channels]
};

// A ragged dimension that a layer makes, with the members of tn_rows_rule.
struct DerivedRows {
  int32_t rule = TN_ROWS_CONCATENATED;
  int32_t rows = 0;               // the symbol of the dimension
  int32_t first = 0, second = 0;  // symbols of the rows of a and b; 0: none
  int64_t window = 1, stride = 1, padding = 0, count = 0;
  Dim bound = tn_dim_constant(0);  // TN_ROWS_DATA: the most rows
  Shape outer;                     // the dimensions around, innermost first
};

// A parameter or buffer that a layer declared. Its position among those of its kind is its index in tn_builder.
struct LayerParameter {
  std::string name;    // full: "hidden.weight"
  std::string suffix;  // as its type declares it: "weight"
  std::string path;    // as the attributes param.<path>.<key> of the outermost layer name it: "query.weight"
  Spec spec;
  tn_initializer initializer = {};
  bool initializer_stated = false;  // by the user; else it is that of plan
  uint32_t flags = 0;
  bool sparse_declared = false;   // whether plan allowed a row-sparse gradient; flags say whether the user does, too
  int32_t merge = TN_MERGE_MEAN;  // of a buffer
  Multipliers multipliers;
};

// The plugin that offered the type of a layer.
struct TypeVersion {
  std::string plugin;          // id
  std::string version;         // of the plugin
  uint32_t state_version = 0;  // of the type: what its attributes, parameters and buffers mean
  bool operator==(const TypeVersion&) const = default;
};

// What a model file holds of a layer that an expansion made.
struct InnerLayer {
  std::string name;
  std::string type;
  TypeVersion type_version;
  Values attributes;  // the type's own, defaults included
};

struct Scan;
using ScanRef = std::shared_ptr<Scan>;

// A scan of a topology: layers that run at each step of sequences. They are recorded over all steps at once, so a layer
// inside is a layer like any other; its values are [steps, W...].
struct Scan {
  std::string name;  // that of the layer which stands for the scan outside
  bool reverse = false;
  Dim rows = tn_dim_constant(0);   // the ragged dimension that it goes through
  Dim outer = tn_dim_constant(0);  // the number of sequences
  Dim steps = tn_dim_constant(0);  // stands for the steps in the shapes of layers
  // By the symbol of the rows of further sequences: what stands for these rows, as steps see them. Set like `ended`.
  std::map<int32_t, Dim> seen;
  BranchRef branch;    // that it is inside of; null: none
  ScanRef around;      // that it is inside of: it goes through sequences that steps of that one see; null: none
  bool ended = false;  // no more layers join it; set by the host's layer factory
};

// A layer that the host itself computes, where values enter and leave a scan.
struct ScanPart {
  enum class Kind {
    kInput,   // inputs: sequences; if the scan was begun with others, these. Output: their row of each step, which is a
              // sub-sequence if they have two levels
    kMemory,  // inputs: the initial value or none, sequences of `rows`. Output: what the step before left. The layer
              // may have a carried state: the last value, with which the next minibatch begins
    kScan  // inputs: sequences of `rows`, the results, then each memory and what is left in it. Outputs: the results as
           // sequences, then the last values of the memories
  };
  Kind kind = Kind::kInput;
  ScanRef scan;
  double initial_value = 0;  // kMemory, without an initial layer
  size_t results = 0;        // kScan

  [[nodiscard]] size_t memories(size_t inputs) const { return (inputs - 1 - results) / 2; }  // kScan
};

// Data-dependent branches of a topology: each row of a dimension belongs to branches, whose layers run over their own
// rows alone. They are layers like any other; their values are [rows of the branch, W...].
struct Cond {
  std::string name;              // that of the layer which stands for it outside
  Dim all = tn_dim_constant(0);  // the dimension whose rows are chosen
  size_t branches = 0;           // how many
  BranchRef around;              // that it is inside of; null: none
  bool ended = false;            // no more layers join it; set by the host's layer factory
};

struct Branch {
  std::shared_ptr<Cond> cond;
  size_t number = 0;              // from 0
  Dim rows = tn_dim_constant(0);  // the dimension of its rows
};

// A layer that the host itself computes, where values enter a branch and leave branches.
struct CondPart {
  enum class Kind {
    kInput,  // inputs: a value, the one whose rows are chosen, the rows of all branches, of sequences also the numbers
             // of their rows that belong to the branch. Output: the rows of the branch
    kCond  // inputs: the value whose rows are chosen, the rows of all branches; then for each result, for each branch:
           // the numbers of the rows of sequences or none, the result. Outputs: the results in the order of all rows
  };
  Kind kind = Kind::kInput;
  std::shared_ptr<Cond> cond;
  size_t branch = 0;  // kInput: its number
};

// An immutable layer with its inputs. Created by the host's layer factory, which runs plan and expand.
struct Layer {
  Layer() = default;
  // Releases the layers before this one in a loop: recursion over a long chain would overflow the stack.
  ~Layer();
  Layer(const Layer&) = default;
  Layer(Layer&&) = default;
  Layer& operator=(const Layer&) = default;
  Layer& operator=(Layer&&) = default;

  std::string name;
  std::string type;  // "data" for data layers
  int32_t role = TN_ROLE_LAYER;
  std::string parameter_name;
  std::vector<LayerOutput> inputs;  // in port order
  Values given;                     // attributes as the user gave them, host attributes included
  std::vector<Value> attributes;    // the type's own, checked, in the order of their declaration
  Values resolved;                  // the same by name, absent ones included
  TypeVersion type_version;         // empty for data layers
  std::vector<Spec> outputs;
  std::vector<LayerParameter> parameters, buffers;
  std::vector<IndexLimit> index_limits;   // per input
  double drop_rate = 0;                   // of output 0, in training
  double coefficient = 1;                 // of a cost: the factor of its mean
  uint32_t state_count = 0;               // metrics
  std::vector<DerivedRows> derived_rows;  // declared by its plan
  std::vector<Spec> carried;              // states carried from minibatch to minibatch
  // What the host itself computes: values that are fed, or that enter and leave scans and branches. Else the type does.
  std::variant<std::monostate, DataSource, ScanPart, CondPart> host_part;
  ScanRef scan;                        // the innermost scan that it is inside of; null: none
  BranchRef branch;                    // the innermost branch that it is inside of; null: none
  std::vector<LayerOutput> expansion;  // if not empty, the layer stands for these, one per output
  std::vector<InnerLayer> inner;       // the layers that the expansion made, those of inner expansions included
  std::string path;                    // of an inner layer: what precedes its suffixes in those of the outermost one
  LayerRef dropped_next;               // link of a list in the destructor

  [[nodiscard]] bool expanded() const { return !expansion.empty(); }
  [[nodiscard]] bool is_of_host() const { return host_part.index() != 0; }
  // Return null for other layers.
  [[nodiscard]] const DataSource* data() const { return std::get_if<DataSource>(&host_part); }
  [[nodiscard]] const ScanPart* scan_part() const { return std::get_if<ScanPart>(&host_part); }
  [[nodiscard]] const CondPart* cond_part() const { return std::get_if<CondPart>(&host_part); }
};

// Returns the layer as messages name it: 'layer "hidden" (fc)'.
[[nodiscard]] std::string layer_label(const Layer& layer);

// Returns the branch as messages name it: 'branch 0 of cond "gate"'.
[[nodiscard]] std::string branch_label(const Branch& branch);

// Whether scan `inner` is `outer`, or inside of it; null: outside of all.
[[nodiscard]] bool is_within(const Scan* inner, const Scan* outer);

// Throws TN_INVALID naming the layer if an output is inside of a scan or a branch.
void require_outside(const std::vector<LayerOutput>& outputs);

// Returns the output of a layer that an input of a scan has its rows from; any other output itself.
[[nodiscard]] LayerOutput entered(LayerOutput output);

// Follows expansions to the layer that computes an output.
[[nodiscard]] LayerOutput resolved(LayerOutput output);

// Returns the layers that compute `layer`: itself or, if it is expanded, the leaves between its inputs and its outputs.
[[nodiscard]] std::vector<LayerRef> leaves_of(const LayerRef& layer);

// The directed acyclic graph of the layers that some outputs depend on.
struct Topology {
  std::vector<LayerOutput> outputs;
  std::vector<LayerRef> layers;  // as the application made them, without the inside of expansions; inputs first
  std::vector<LayerRef> leaves;  // the layers that compute: expansions replaced by their layers; inputs first

  // Collects the layers that `outputs` depend on. Throws TN_INVALID if two different layers have the same name, or if
  // an output is inside of a scan or a branch.
  static Topology trace(std::vector<LayerOutput> outputs);
  // Returns the declarations of all parameters and buffers, for ParameterSet::create.
  [[nodiscard]] std::vector<ParameterDeclaration> declarations() const;
  // Returns {"version": 1, "layers": [...], "outputs": [...]}, the form in model files (docs/model-file.md).
  [[nodiscard]] nlohmann::json to_json(const DataNames& names = {}) const;
};

// Returns "name", or "name:1" for an output other than the first; "" for an absent input.
[[nodiscard]] std::string output_name(const LayerOutput& output);

}  // namespace tenon::core
