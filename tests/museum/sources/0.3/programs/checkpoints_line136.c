#include <tenon/tenon.h>

tn_status train_on(tn_host* host, tn_train_options options, const char* folder, int resume, tn_error* error) {
  tn_checkpoint_options checkpoint = {0};
  checkpoint.size = sizeof checkpoint;
  checkpoint.folder = folder;
  checkpoint.every_batches = 1000;
  checkpoint.best = "cost";
  checkpoint.start = resume ? TN_START_RESUME : TN_START_FRESH;
  options.checkpoint = &checkpoint;
  return tn_train(host, &options, error);
}
