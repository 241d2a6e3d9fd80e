#include <tenon/tenon.hpp>

void train_head_faster(const tenon::Host& host, tenon::TrainOptions options) {
  options.updater = host.updater("adam", {{"learning_rate", 1e-5}});
  options.groups = {{host.updater("adam", {{"learning_rate", 1e-3}}), {"head", "last.bias"}}};
  tenon::train(options);
}
