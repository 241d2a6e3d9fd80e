// A small job in steps, from finding plugins to predictions, each of which can be tried again after it failed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tenon/tenon.hpp>

namespace tenon_tests {

using namespace tenon;

enum class Step { kHost, kBuild, kPlan, kTrain, kSave, kLoad, kTest, kInfer };
constexpr Step kSteps[] = {Step::kHost, Step::kBuild, Step::kPlan, Step::kTrain,
                           Step::kSave, Step::kLoad,  Step::kTest, Step::kInfer};
constexpr const char* kStepNames[] = {"host", "build", "plan", "train", "save", "load", "test", "infer"};

// All that comes out of a job.
struct Products {
  std::string plan, model, predictions;
  double cost = 0, accuracy = 0;
  bool operator==(const Products&) const = default;
};

class FaultsJob {
 public:
  // In `folder` are "plugins" and the data; the model goes to "saved/model" there.
  FaultsJob(std::string folder, const tn_allocator* allocator) : folder_(std::move(folder)), allocator_(allocator) {}
  virtual ~FaultsJob() = default;
  FaultsJob(const FaultsJob&) = delete;
  FaultsJob& operator=(const FaultsJob&) = delete;

  // Makes what a step begins with, so that it finds the same however often it is tried.
  void prepare(Step step);
  void run(Step step);

  // Instead of Step::kHost.
  void use(const std::optional<Host>& host) { host_ = host; }
  [[nodiscard]] const std::optional<Host>& host() const { return host_; }
  [[nodiscard]] std::string plugins() const { return host_->plugins(); }
  [[nodiscard]] const Products& products() const { return products_; }
  // The values of all parameters that a training changes.
  [[nodiscard]] std::string state() const;
  [[nodiscard]] std::string model_path() const { return folder_ + "/saved/model"; }

  std::set<std::string>* states = nullptr;  // takes state() before the first update and after each

 protected:
  struct Network {
    Layer cost, accuracy, prediction;
    Reader train, test;
  };
  [[nodiscard]] virtual Network build(const Host& host) const = 0;
  [[nodiscard]] const std::string& folder() const { return folder_; }

 private:
  [[nodiscard]] TrainOptions options(const Layers& outputs, const Parameters& parameters, const Reader& reader) const;
  void plan();
  void train();
  void test();
  void infer();

  std::string folder_;
  const tn_allocator* allocator_;
  std::optional<Host> host_;
  std::optional<Network> network_;
  Parameters parameters_;
  Updater updater_;
  std::optional<Model> model_;
  Products products_;
};

// Images of 4 x 4 pixels in files of idx; a perceptron with dropout. Writes what it needs into `folder` beforehand.
void write_image_job(const std::string& folder);
[[nodiscard]] std::unique_ptr<FaultsJob> image_job(const std::string& folder, const tn_allocator* allocator);
// Words of a text; vectors of words, whose gradients are rows.
void write_word_job(const std::string& folder);
[[nodiscard]] std::unique_ptr<FaultsJob> word_job(const std::string& folder, const tn_allocator* allocator);

}  // namespace tenon_tests
