// The verbs of the program: the function of each, and the table that the program searches. A new verb is a function in
// a file of its own, a declaration and a row here, or a program of its own (external.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/cli/cli.h"

namespace tenon::cli {

struct Verb {
  const char* name;                        // one or two words
  int (*run)(const Arguments& arguments);  // null: the verb is a program of its own
  const char* help;                        // one line
};

int run_train(const Arguments& arguments);
int run_test(const Arguments& arguments);
int run_infer(const Arguments& arguments);
int run_generate(const Arguments& arguments);
int run_bench(const Arguments& arguments);
int run_plan(const Arguments& arguments);
int run_data_show(const Arguments& arguments);
int run_plugins_list(const Arguments& arguments);
int run_plugins_info(const Arguments& arguments);
int run_plugins_new(const Arguments& arguments);
int run_plugins_seal(const Arguments& arguments);
int run_plugins_lock(const Arguments& arguments);
int run_plugins_key(const Arguments& arguments);
int run_plugins_sign(const Arguments& arguments);
int run_plugins_verify(const Arguments& arguments);
int run_model_show(const Arguments& arguments);
int run_model_join(const Arguments& arguments);
int run_model_split(const Arguments& arguments);
int run_model_print(const Arguments& arguments);
int run_version(const Arguments& arguments);

inline constexpr Verb kVerbs[] = {
    {"new job", nullptr, "write a commented job for a table or for folders of pictures"},
    {"train", run_train, "train the model of a job file"},
    {"launch", nullptr, "start and supervise several processes of 'train'"},
    {"rerun", nullptr, "train again from the record of a training, and compare"},
    {"test", run_test, "measure a saved model on the job's test data"},
    {"infer", run_infer, "print a saved model's predictions"},
    {"generate", run_generate, "continue texts with a saved model of sequences"},
    {"plan", run_plan, "show what would run where, and the bytes it takes"},
    {"bench", run_bench, "time a job's steps and layers beside the machine's limit"},
    {"data show", run_data_show, "show samples of a job's data, as images or as a table"},
    {"plugins list", run_plugins_list, "list the plugins that are found"},
    {"plugins info", run_plugins_info, "describe a plugin, or a layer, updater or reader type"},
    {"plugins new", run_plugins_new, "make the project of a new plugin"},
    {"plugins check", nullptr, "check a plugin against the rules of the interface"},
    {"plugins seal", run_plugins_seal, "complete the file of a plugin that another build system built"},
    {"plugins lock", run_plugins_lock, "write the plugin set that a job needs"},
    {"plugins key", run_plugins_key, "make keys for signing plugins"},
    {"plugins sign", run_plugins_sign, "sign plugins"},
    {"plugins verify", run_plugins_verify, "check the files of a plugin set, or signatures"},
    {"model show", run_model_show, "describe a model file"},
    {"model convert", nullptr, "convert a model from or to ONNX, or tensors of safetensors"},
    {"model join", run_model_join, "write a model whose tables lie in parts as one file"},
    {"model split", run_model_split, "write a model with its tables in parts"},
    {"model print", run_model_print, "print the layers of a file as a program"},
    {"version", run_version, "print the version"},
};

}  // namespace tenon::cli
