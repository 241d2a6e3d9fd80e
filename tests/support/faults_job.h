// A small job in steps, from loading plugins to predictions. A step can be repeated after it failed.
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

// The results of a job.
struct Products {
  std::string plan, model, predictions;
  double cost = 0, accuracy = 0;
  bool operator==(const Products&) const = default;
};

class FaultsJob {
 public:
  // `folder` holds "plugins" and the data; the model is saved as "saved/model" in it.
  FaultsJob(std::string folder, const tn_allocator* allocator) : folder_(std::move(folder)), allocator_(allocator) {}
  virtual ~FaultsJob() = default;
  FaultsJob(const FaultsJob&) = delete;
  FaultsJob& operator=(const FaultsJob&) = delete;

  // Restores the initial state of a step, so that every attempt starts from the same state.
  void prepare(Step step);
  void run(Step step);

  // Sets the host, in place of Step::kHost.
  void use(const std::optional<Host>& host) { host_ = host; }
  [[nodiscard]] const std::optional<Host>& host() const { return host_; }
  [[nodiscard]] std::string plugins() const { return host_->plugins(); }
  [[nodiscard]] const Products& products() const { return products_; }
  // The bytes of all parameters.
  [[nodiscard]] std::string state() const;
  [[nodiscard]] std::string model_path() const { return folder_ + "/saved/model"; }

  std::set<std::string>* states = nullptr;  // if not null: receives state() before the first update and after each

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

// A job of a perceptron with dropout on images of 4 x 4 pixels in IDX files. write_image_job writes its files into
// `folder`.
void write_image_job(const std::string& folder);
[[nodiscard]] std::unique_ptr<FaultsJob> image_job(const std::string& folder, const tn_allocator* allocator);
// A job of word vectors with row-sparse gradients on a text. write_word_job writes its files into `folder`.
void write_word_job(const std::string& folder);
[[nodiscard]] std::unique_ptr<FaultsJob> word_job(const std::string& folder, const tn_allocator* allocator);

}  // namespace tenon_tests
